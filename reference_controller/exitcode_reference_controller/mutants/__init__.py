"""The variants of the controller, by name: `reference` is the unchanged one, and each other has one deliberate fault.

A variant is one small override of `Reconciler`, or of `BatchReconciler` for Kubernetes' own Jobs, and a sentence on the
fault of a real operator that it stands for. They prove that every requirement of the suite can fail, and that what is
not broken still passes. Importing this package registers all of them, in the order of the groups below.
"""

from exitcode_reference_controller.mutants.registry import VARIANTS, Variant, variant

# Their order is that of registration.
# isort: off
from exitcode_reference_controller.mutants import (
    controls,
    exit_codes,
    restarts,
    states,
    times,
    success,
    limits,
    cleaning,
    identity,
    events,
    slow,
    batch,
)
# isort: on

GROUPS = (controls, exit_codes, restarts, states, times, success, limits, cleaning, identity, events, slow, batch)
"""Every module that registers variants."""

__all__ = ["GROUPS", "VARIANTS", "Variant", "variant"]
