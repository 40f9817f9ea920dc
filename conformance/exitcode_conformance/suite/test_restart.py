"""RESTART: how a restart is done."""

from exitcode_conformance.suite import tests_of

globals().update(tests_of("RESTART"))
