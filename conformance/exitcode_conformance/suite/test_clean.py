"""CLEAN: what is left of a job."""

from exitcode_conformance.suite import tests_of

globals().update(tests_of("CLEAN"))
