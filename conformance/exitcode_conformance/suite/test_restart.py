"""RESTART: how a restart is done."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("RESTART"))
