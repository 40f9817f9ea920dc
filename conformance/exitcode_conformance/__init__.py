"""What is certified: contracts, requirements, scenarios, histories, checks. No clock, no network."""

SUITE_VERSION = "0.1.0"
"""Version of the suite; every recording names the one that wrote it."""
