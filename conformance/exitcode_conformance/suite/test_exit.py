"""EXIT: what a code means under restartPolicy ExitCode."""

from exitcode_conformance.suite import tests_of

globals().update(tests_of("EXIT"))
