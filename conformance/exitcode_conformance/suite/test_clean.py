"""CLEAN: what is left of a job."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("CLEAN"))
