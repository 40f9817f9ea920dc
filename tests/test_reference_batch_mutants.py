"""Every variant for Kubernetes' own Jobs has one fault that can be seen in what it plans, and is otherwise the
reference."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from exitcode_reference_controller.batch_job import BatchReconciler
from exitcode_reference_controller.batch_pod import INDEX
from exitcode_reference_controller.kinds import BATCH_JOB
from exitcode_reference_controller.mutants import VARIANTS
from exitcode_reference_controller.mutants.exit_codes import Panic
from exitcode_reference_controller.mutants.slow import WITHIN
from exitcode_reference_controller.plan import Create, Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler
from exitcode_reference_controller.status import timestamp

Thing = dict[str, Any]
NOON = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
BACKOFF = 10.0


def rule(action: str, *codes: int) -> Thing:
    return {"action": action, "onExitCodes": {"containerName": "main", "operator": "In", "values": list(codes)}}


POLICY = {"rules": [rule("FailJob", 1), rule("Ignore", 137)]}


def seen(*pods: Thing, seconds: float = 30, name: str = "j", status: Thing | None = None, **spec: Any) -> Observed:
    """A Job with these pods, so many seconds after noon, when it began."""
    template = {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "env": []}]}}
    defaults = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "podReplacementPolicy": "Failed"}
    job = {
        "metadata": {"namespace": "n", "name": name, "uid": "job-uid", "annotations": {}},
        "spec": {**defaults, "template": template, **spec},
        "status": {"startTime": timestamp(NOON), **(status or {})},
    }
    return Observed(job=job, pods=pods, services=(), now=NOON + timedelta(seconds=seconds))


def indexed(*pods: Thing, number: int = 2, **more: Any) -> Observed:
    """The same of an Indexed Job."""
    spec = {"parallelism": number, "completions": number, "completionMode": "Indexed"}
    return seen(*pods, podFailurePolicy=POLICY, **{**spec, **more})


def pod(
    code: int | None = None, *, index: int | None = None, seconds: float = 5, others: Any = (), **end: Any
) -> Thing:
    """A pod that runs, or has ended with a code so many seconds after noon."""
    phase = "Running" if code is None else "Failed" if code or others else "Succeeded"
    finished = timestamp(NOON + timedelta(seconds=seconds))
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code, "finishedAt": finished, **end}}
    return {
        "metadata": {
            "namespace": "n",
            "name": f"j-{index or 0}-{code}",
            "uid": f"uid-{index or 0}-{code}",
            "creationTimestamp": timestamp(NOON),
            "labels": {"batch.kubernetes.io/controller-uid": "job-uid"},
            "annotations": {} if index is None else {INDEX: str(index)},
            "ownerReferences": [{"controller": True, "uid": "job-uid"}],
        },
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}, *others]},
    }


def ended(kind: str, *pods: Thing, seconds: float = 30) -> Observed:
    """A Job that ended at noon."""
    moment = timestamp(NOON)
    condition = {"type": kind, "status": "True", "lastProbeTime": moment, "lastTransitionTime": moment}
    status: Thing = {"conditions": [condition]}
    return seen(*pods, seconds=seconds, status={**status, **({"completionTime": moment} if kind == "Complete" else {})})


def sidecar(code: int) -> list[Thing]:
    return [{"name": "sidecar", "state": {"terminated": {"exitCode": code}}}]


SITUATIONS: dict[str, Callable[[], Observed]] = {
    "batch-sibling-hides-failure": lambda: indexed(pod(1, index=0), pod(index=1)),
    "batch-half-rolled-out": lambda: seen(pod(137), name="d", podFailurePolicy=POLICY),
    "batch-any-container-decides": lambda: seen(pod(137, others=sidecar(1)), podFailurePolicy=POLICY),
    "batch-message-decides": lambda: seen(pod(137, message="out of memory"), podFailurePolicy=POLICY),
    "batch-completed-index-restarted": lambda: indexed(pod(0, index=0), pod(137, index=1, seconds=9)),
    "batch-index-lost-on-restart": lambda: indexed(pod(137, index=0), pod(index=1)),
    "batch-pods-never-restart": lambda: seen(
        template={"metadata": {}, "spec": {"restartPolicy": "OnFailure", "containers": []}}
    ),
    "batch-backoff-ignored": lambda: seen(pod(1), backoffLimit=0),
    "batch-timers-lost": lambda: seen(
        pod(), activeDeadlineSeconds=60, status={"active": 1, "ready": 0, "terminating": 0}
    ),
    "batch-finished-job-removed": lambda: ended("Complete", pod(0)),
    "batch-one-success-more": lambda: seen(pod(0)),
    "batch-one-success-less": lambda: indexed(pod(0, index=0), pod(index=1)),
    "batch-owner-missing": seen,
    "batch-pod-after-the-end": lambda: ended("Failed", pod(1)),
    "batch-end-rewritten": lambda: ended("Complete", pod(0)),
    "batch-slow-beyond-restart": lambda: seen(pod(137), seconds=16, podFailurePolicy=POLICY),
}
"""Variant → a situation in which its plan is another than the reference's."""
BESIDE_THE_PLAN = {"reference", "batch-panics-after-failure", "batch-slow-within-bounds"}


def plan_of(name: str, observed: Observed) -> Plan:
    """What a fresh controller of that name wants in a situation."""
    return VARIANTS[name].batch(backoff=BACKOFF).reconcile(BATCH_JOB, observed)


def test_every_variant_of_jobs_is_in_the_table_once() -> None:
    named = [name for name, variant in VARIANTS.items() if BATCH_JOB.name in variant.kinds]
    assert sorted([*SITUATIONS, *BESIDE_THE_PLAN]) == sorted(named)
    others = [VARIANTS[name] for name in named if name != "reference"]
    assert all(variant.kinds == (BATCH_JOB.name,) and variant.reconciler is Reconciler for variant in others)
    assert VARIANTS["reference"].batch is BatchReconciler


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_fault_shows_in_the_plan_and_not_everywhere(name: str) -> None:
    situation = SITUATIONS[name]()
    assert plan_of(name, situation) != plan_of("reference", situation)
    others = (make() for make in SITUATIONS.values())
    alike = (one for one in others if plan_of(name, one) == plan_of("reference", one))
    assert len(list(islice(alike, 5))) == 5


def test_a_panic_is_about_a_job_that_failed() -> None:
    assert plan_of("batch-panics-after-failure", ended("Complete")) == plan_of("reference", ended("Complete"))
    with pytest.raises(Panic):
        plan_of("batch-panics-after-failure", ended("Failed"))


def test_the_time_of_the_end_is_written_anew_once() -> None:
    early = plan_of("batch-end-rewritten", ended("Failed", seconds=1))
    assert early == Plan(status=early.status, wake_at=NOON + timedelta(seconds=2))
    late = plan_of("batch-end-rewritten", ended("Failed", seconds=3)).status
    assert late["conditions"][0]["lastTransitionTime"] == timestamp(NOON + timedelta(seconds=3))
    again = seen(seconds=9, status=dict(late))
    assert plan_of("batch-end-rewritten", again) == plan_of("reference", again)


def test_one_pod_is_created_after_the_end() -> None:
    again = ended("Failed", pod(1), pod(1, index=1))
    assert plan_of("batch-pod-after-the-end", again) == plan_of("reference", again)
    assert VARIANTS["batch-pod-after-the-end"].batch(backoff=BACKOFF).admits_pods(again.job["status"])


def test_a_replacement_is_late_and_no_first_pod_is() -> None:
    name = "batch-slow-beyond-restart"
    assert plan_of(name, seen(seconds=0)) == plan_of("reference", seen(seconds=0))
    assert [type(one) for one in plan_of(name, seen(pod(137), podFailurePolicy=POLICY)).actions] == [Create]


def test_slowness_holds_everything_back_and_wants_nothing_looked_at_again() -> None:
    slowness = VARIANTS["batch-slow-within-bounds"].slowness
    assert slowness is not None
    assert slowness.seconds == WITHIN
    situation = seen(pod(1), podFailurePolicy=POLICY)
    plan = plan_of("reference", situation)
    assert slowness.early(situation.job, plan) == Plan(status=situation.job["status"])
    idle = Plan(status=situation.job["status"], wake_at=NOON)
    assert slowness.early(situation.job, idle) == idle
