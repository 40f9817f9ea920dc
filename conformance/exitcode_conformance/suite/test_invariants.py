"""INV: what holds in every history."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("INV"))
