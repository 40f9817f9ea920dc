"""The registry of all requirements. Importing this module declares every one of them, in the order of the catalogue."""

from exitcode_conformance.checks import (
    activity,
    cleaning,
    counts,
    environment,
    events,
    exit_circumstances,
    exit_codes,
    identity,
    invariants,
    limits,
    parameter_servers,
    printing,
    restarts,
    services,
    states,
    tallies,
    tidying,
    times,
)
from exitcode_conformance.registry import FEATURES, REGISTRY, Feature, Level, Profile, Requirement

__all__ = ["FEATURES", "REQUIREMENTS", "Feature", "Level", "Profile", "Requirement", "by_group"]

CHECK_MODULES = (
    exit_codes,
    exit_circumstances,
    restarts,
    tallies,
    states,
    activity,
    counts,
    parameter_servers,
    printing,
    times,
    limits,
    tidying,
    cleaning,
    identity,
    services,
    environment,
    events,
    invariants,
)
"""Every module that declares requirements."""

REQUIREMENTS: dict[str, Requirement] = dict(sorted(REGISTRY.items()))
"""Id → requirement."""


def by_group(group: str) -> tuple[Requirement, ...]:
    """The requirements of a group such as `EXIT`, in the order of their ids."""
    return tuple(r for r in REQUIREMENTS.values() if r.group == group)
