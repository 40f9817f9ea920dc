"""STATE: what the job says of itself."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("STATE"))
