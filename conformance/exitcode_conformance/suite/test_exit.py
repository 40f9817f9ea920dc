"""EXIT: what a code means under restartPolicy ExitCode."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("EXIT"))
