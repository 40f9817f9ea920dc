"""The variants of the controller, by name. The unchanged one is `reference`; each other has one deliberate
fault.

A variant is one small override of `Reconciler` and a sentence on what is wrong with it.
"""

from dataclasses import dataclass

from exitcode_reference_controller.job import Job, ReplicaSpec
from exitcode_reference_controller.kinds import JobKind
from exitcode_reference_controller.plan import Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A controller to choose with --variant."""

    name: str
    sentence: str
    reconciler: type[Reconciler]


VARIANTS: dict[str, Variant] = {}


def variant(name: str, sentence: str) -> "_Register":
    """Registers a class of reconciler under a name."""
    return _Register(name, sentence)


class _Register:
    def __init__(self, name: str, sentence: str) -> None:
        self._name, self._sentence = name, sentence

    def __call__(self, reconciler: type[Reconciler]) -> type[Reconciler]:
        if self._name in VARIANTS:
            raise ValueError(f"two variants are named {self._name}")
        VARIANTS[self._name] = Variant(name=self._name, sentence=self._sentence, reconciler=reconciler)
        return reconciler


variant("reference", "The reference behaviour.")(Reconciler)


@variant("null", "Watches, and does nothing at all.")
class DoesNothing(Reconciler):
    """The control subject that no requirement may pass on by accident."""

    def reconcile(self, kind: JobKind, observed: Observed) -> Plan:  # noqa: ARG002
        """Wants nothing done."""
        return Plan(status=observed.job.get("status") or {})


@variant("always-restart", "Replaces every failed pod, whatever its exit code and whatever its replica's policy.")
class AlwaysRestarts(Reconciler):
    """The control subject to which every exit code is retryable."""

    def is_restarted(self, job: Job, spec: ReplicaSpec, code: int | None) -> bool:  # noqa: ARG002
        """Yes."""
        return True
