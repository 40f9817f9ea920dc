"""IDENT: names, labels, owners and environment."""

from exitcode_conformance.suite import tests_of

globals().update(tests_of("IDENT"))
