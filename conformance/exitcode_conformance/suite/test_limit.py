"""LIMIT: what ends a job, or removes it, that no exit code asks for."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("LIMIT"))
