"""The register of variants: what one is, and how a class of reconciler enters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from exitcode_reference_controller.reconcile import Reconciler
from exitcode_reference_controller.slowness import Slowness

_Class = TypeVar("_Class", bound=type[Reconciler])


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A controller to choose with --variant."""

    name: str
    sentence: str
    reconciler: type[Reconciler]
    slowness: Slowness | None = None
    """What the controller does late; None: everything at once."""


VARIANTS: dict[str, Variant] = {}


def register(entry: Variant) -> None:
    """Takes a variant in. Raises ValueError if its name is taken."""
    if entry.name in VARIANTS:
        raise ValueError(f"two variants are named {entry.name}")
    VARIANTS[entry.name] = entry


def variant(name: str, sentence: str) -> Callable[[_Class], _Class]:
    """Registers a class of reconciler under a name."""

    def enter(reconciler: _Class) -> _Class:
        register(Variant(name=name, sentence=sentence, reconciler=reconciler))
        return reconciler

    return enter
