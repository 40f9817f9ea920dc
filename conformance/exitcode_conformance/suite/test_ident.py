"""IDENT: names, labels, owners and environment."""

from exitcode_conformance.suite import requirement_tests

globals().update(requirement_tests("IDENT"))
