"""INV: what holds in every history."""

from exitcode_conformance.suite import tests_of

globals().update(tests_of("INV"))
