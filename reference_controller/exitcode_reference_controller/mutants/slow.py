"""Controllers that are right and slow: one within every bound of the suite, and one beyond each bound.

The seconds are set against the suite's durations for its embedded cluster: 10 s for created, state, restart, terminal
and removal. They are repeated here, since the controller shares no table with the suite.
"""

from exitcode_reference_controller.mutants.registry import TRAINING_KINDS, Variant, register
from exitcode_reference_controller.slowness import (
    Early,
    Slowness,
    all_but_cleaning,
    all_but_creation,
    all_but_ending,
    all_but_replacement,
    all_but_state,
    nothing,
)

WITHIN = 3.0
"""A restart takes two passes, one that deletes and one that creates, and has to be made within 10 s."""
BEYOND = 18.0
"""Longer than the bound by more than a busy machine adds to it on its own."""

_SLOW: tuple[tuple[str, str, float, Early], ...] = (
    (
        "within-bounds",
        f"Waits {WITHIN:.0f} s before it does anything, as one of a busy cluster; no fault.",
        WITHIN,
        nothing,
    ),
    ("beyond-created", "Takes a job up only after the bound for Created.", BEYOND, all_but_creation),
    ("beyond-state", "Writes a change of state only after the bound for it.", BEYOND, all_but_state),
    ("beyond-restart", "Creates a replacement only after the bound for a restart.", BEYOND, all_but_replacement),
    ("beyond-terminal", "Ends a job only after the bound for its end.", BEYOND, all_but_ending),
    ("beyond-removal", "Cleans up only after the bound for that.", BEYOND, all_but_cleaning),
)

for _name, _sentence, _seconds, _early in _SLOW:
    register(
        Variant(
            name=f"slow-{_name}",
            sentence=_sentence,
            kinds=TRAINING_KINDS,
            slowness=Slowness(seconds=_seconds, early=_early),
        )
    )
