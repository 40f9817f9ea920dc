"""STATE: what the job says of itself."""

from exitcode_conformance.suite import tests_of

globals().update(tests_of("STATE"))
