"""EVENT: what the operator tells in Kubernetes events."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("EVENT"))
