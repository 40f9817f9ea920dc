"""The register of variants: what one is, and how a class of reconciler enters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from exitcode_reference_controller.batch_job import BatchReconciler
from exitcode_reference_controller.kinds import BATCH_JOB, KINDS
from exitcode_reference_controller.reconcile import Reconciler
from exitcode_reference_controller.slowness import Slowness

_Class = TypeVar("_Class", bound=type[Reconciler])
_BatchClass = TypeVar("_BatchClass", bound=type[BatchReconciler])

TRAINING_KINDS = tuple(KINDS)
BATCH_KINDS = (BATCH_JOB.name,)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A controller to choose with --variant."""

    name: str
    sentence: str
    kinds: tuple[str, ...]
    """Those that it may be the controller of: its fault is in the jobs of these."""
    reconciler: type[Reconciler] = Reconciler
    """For training jobs."""
    batch: type[BatchReconciler] = BatchReconciler
    """For Kubernetes' own Jobs."""
    slowness: Slowness | None = None
    """What the controller does late; None: everything at once."""


VARIANTS: dict[str, Variant] = {}


def register(entry: Variant) -> None:
    """Takes a variant in. Raises ValueError if its name is taken."""
    if entry.name in VARIANTS:
        raise ValueError(f"two variants are named {entry.name}")
    VARIANTS[entry.name] = entry


def variant(name: str, sentence: str) -> Callable[[_Class], _Class]:
    """Registers a class of reconciler of training jobs under a name."""

    def enter(reconciler: _Class) -> _Class:
        register(Variant(name=name, sentence=sentence, kinds=TRAINING_KINDS, reconciler=reconciler))
        return reconciler

    return enter


def batch_variant(name: str, sentence: str) -> Callable[[_BatchClass], _BatchClass]:
    """Registers a class of reconciler of Kubernetes' own Jobs under a name."""

    def enter(reconciler: _BatchClass) -> _BatchClass:
        register(Variant(name=name, sentence=sentence, kinds=BATCH_KINDS, batch=reconciler))
        return reconciler

    return enter
