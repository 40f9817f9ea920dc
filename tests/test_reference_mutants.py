"""Every variant for training jobs has one fault that can be seen in what it plans, and is otherwise the reference.

A situation is what the reference has made of a job up to a moment; there the variant's plan differs from its own. The
few variants whose fault is not in the plan are held to the very thing that it is in.
"""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any

import pytest
from reference_support import Thing, World, job_manifest, replicas, running, workers

from exitcode_reference_controller.kinds import BATCH_JOB, KINDS
from exitcode_reference_controller.mutants import GROUPS, VARIANTS, Variant
from exitcode_reference_controller.mutants.exit_codes import Panic
from exitcode_reference_controller.mutants.slow import WITHIN
from exitcode_reference_controller.plan import Observed, Plan
from exitcode_reference_controller.reconcile import Reconciler
from exitcode_reference_controller.slowness import Pace, nothing

# ---- situations ------------------------------------------------------------------------------------------------------


def unequal(policy: str = "ExitCode", **run_policy: Any) -> Thing:
    """A TFJob of a chief, a parameter server and two workers."""
    specs = {kind: replicas("TFJob", 2 if kind == "Worker" else 1, policy) for kind in ("Chief", "PS", "Worker")}
    return job_manifest("TFJob", specs, run_policy=run_policy)


def torch(policy: str = "ExitCode") -> Thing:
    """A PyTorchJob of a master and two workers."""
    return job_manifest(
        "PyTorchJob", {"Master": replicas("PyTorchJob", 1, policy), "Worker": replicas("PyTorchJob", 2, policy)}
    )


def named(job: Thing, name: str) -> Thing:
    job["metadata"]["name"] = name
    return job


def ended(job: Thing, *exits: tuple[str, int], settled: bool = False) -> World:
    """All pods ran, and some have ended; `settled`: the controller has seen it."""
    world = running(job)
    world.wait(10)
    for name, code in exits:
        world.exit(name, code)
    if settled:
        world.settle()
    return world


def worker(code: int, *, policy: str = "ExitCode", number: int = 2, **run_policy: Any) -> World:
    """Worker 1 of a TFJob has ended with a code."""
    return ended(workers(number, policy, **run_policy), (f"j-worker-{number - 1}", code))


def restarted(job: Thing, name: str, *, times: int = 1, run: bool = False) -> World:
    """A pod has failed with 137, and is gone; the replacement is not there yet, unless it is to run."""
    world = running(job)
    for left in reversed(range(times)):
        world.wait(10)
        world.exit(name, 137)
        world.step()
        world.let_go()
        if left or run:
            world.settle()
            world.run(name)
    if run:
        world.settle()
    return world


def failed_again(job: Thing, name: str, code: int = 137, *, after: int = 1) -> World:
    """A pod has been restarted, has run, and has failed once more."""
    world = restarted(job, name, times=after, run=True)
    world.wait(10)
    world.exit(name, code)
    return world


def sidecar(training: int, other: int) -> World:
    world = running(workers(1))
    world.exit("j-worker-0", training, sidecar=other)
    return world


def with_message() -> World:
    world = running(workers(1))
    world.phase("j-worker-0", "Failed", {"terminated": {"exitCode": 137, "message": "out of memory"}})
    return world


def without_code() -> World:
    world = running(workers(1))
    world.pods["j-worker-0"]["status"] = {"phase": "Failed", "reason": "Evicted"}
    return world


def deleted_pod() -> World:
    world = running(workers(2))
    world.pods["j-worker-1"]["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    return world


def restarted_in_place(job: Thing, restarts: int, *names: str) -> World:
    world = running(job)
    for name in names or ("j-worker-0",):
        world.phase(name, "Running", {"running": {}}, restarts=restarts)
    return world


def seen_at_its_end(policy: str, *exits: tuple[str, int]) -> World:
    """A job of three workers whose last one is pending; the first has ended and so has, perhaps, the second."""
    world = ended(workers(3, cleanPodPolicy=policy), *exits)
    world.phase("j-worker-2", "Pending", {"waiting": {}})
    return world


def cleaned_up() -> World:
    world = ended(workers(2, cleanPodPolicy="All"), ("j-worker-0", 0), settled=True)
    assert not world.pods
    return world


def after_the_end(*late: tuple[str, int], first: tuple[str, int]) -> World:
    """The job has ended, and more of its pods have ended since."""
    world = ended(unequal(), first, settled=True)
    world.wait(10)
    for name, code in late:
        world.exit(name, code)
    return world


def waited(job: Thing, seconds: float, *exits: tuple[str, int]) -> World:
    world = ended(job, *exits, settled=True)
    world.wait(seconds)
    return world


def all_running() -> World:
    """All pods run, and the controller has not seen it."""
    world = World(job=workers())
    world.settle()
    world.run()
    return world


def replacement_runs() -> World:
    """A replacement runs, and the controller has not seen it."""
    world = restarted(workers(2), "j-worker-1")
    world.settle()
    world.run("j-worker-1")
    return world


def templated() -> World:
    return World(job=job_manifest("TFJob", {"Worker": replicas("TFJob", 2, "ExitCode", restartPolicy="OnFailure")}))


def labelled() -> World:
    job = workers(2)
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"] = {"labels": {"team": "vision"}}
    return restarted(job, "j-worker-1")


def every_worker(code: int = 0) -> World:
    job = job_manifest("TFJob", {"Worker": replicas("TFJob", 2)}, successPolicy="AllWorkers")
    return ended(job, ("j-worker-0", code))


FIRST, SECOND = ("j-worker-0", 0), ("j-worker-1", 0)
LONG = "a-job-whose-name-is-long-and-is-not-to-be-cut"

SITUATIONS: dict[str, Callable[[], World]] = {
    "always-restart": lambda: worker(1),
    "null": lambda: World(job=workers()),
    # exit codes
    "general-error-retried": lambda: worker(1),
    "not-found-retried": lambda: worker(127),
    "exit-argument-retried": lambda: worker(128),
    "segfault-retried": lambda: worker(139),
    "sigkill-permanent": lambda: worker(137),
    "sigterm-permanent": lambda: worker(143),
    "sigint-permanent": lambda: worker(130),
    "user-code-permanent": lambda: worker(138),
    "class-by-range": lambda: worker(139),
    "half-rolled-out": lambda: ended(named(workers(1), "d"), ("d-worker-0", 137)),
    "only-workers-retried": lambda: ended(unequal(), ("j-ps-0", 137)),
    "kinds-disagree": lambda: ended(torch(), ("j-worker-0", 139)),
    "first-container-decides": lambda: sidecar(137, 1),
    "any-container-decides": lambda: sidecar(1, 137),
    "termination-message-decides": with_message,
    "running-sibling-fails-job": lambda: worker(137),
    "completed-sibling-fails-job": lambda: ended(unequal(), ("j-worker-0", 0), ("j-worker-1", 137)),
    "second-retry-fails": lambda: failed_again(workers(2), "j-worker-1"),
    "restart-outweighs-failure": lambda: ended(workers(3), ("j-worker-1", 1), ("j-worker-2", 137)),
    "success-restarted": lambda: worker(0),
    # restarts
    "restart-in-place": lambda: World(job=workers()),
    "pod-policy-unset": lambda: World(job=workers()),
    "always-as-on-failure": lambda: World(job=workers(1, "Always")),
    "on-failure-as-always": lambda: World(job=workers(1, "OnFailure")),
    "on-failure-as-never": lambda: World(job=workers(1, "OnFailure")),
    "never-restarted-once": lambda: worker(137, policy="Never"),
    "template-policy-wins": templated,
    "all-replicas-restarted": lambda: worker(137),
    "completed-replica-restarted": lambda: ended(unequal(), ("j-worker-0", 0), ("j-worker-1", 137)),
    "restart-waits-for-siblings": lambda: worker(137),
    "deleted-pod-fails-job": deleted_pod,
    "create-before-delete": lambda: worker(137),
    "environment-lost-on-restart": lambda: restarted(workers(2), "j-worker-1"),
    "environment-wrong-after-restart": lambda: restarted(torch(), "j-worker-1"),
    "labels-lost-on-restart": labelled,
    "restarts-after-the-end": lambda: after_the_end(("j-worker-1", 137), first=("j-chief-0", 0)),
    # states
    "created-never-said": lambda: World(job=workers()),
    "running-never-said": all_running,
    "restarting-never-shown": lambda: worker(137),
    "restarting-for-good": replacement_runs,
    "permanent-says-restarting": lambda: worker(1),
    "kubelet-restart-says-restarting": lambda: restarted_in_place(workers(1, "OnFailure"), 1),
    "running-beside-restarting": lambda: worker(137),
    "restarting-beside-failed": lambda: ended_while_restarting(),
    "running-beside-terminal": lambda: worker(1),
    "failed-then-running": lambda: after_the_end(first=("j-worker-0", 1)),
    "failed-becomes-succeeded": lambda: after_the_end(("j-chief-0", 0), first=("j-worker-0", 1)),
    "succeeded-and-failed": lambda: after_the_end(("j-chief-0", 0), first=("j-worker-0", 1)),
    "newest-condition-first": lambda: worker(1),
    "transition-time-kept": lambda: worker(1),
    "condition-repeated": lambda: failed_again(workers(2), "j-worker-1"),
    "replica-statuses-stale": lambda: ended(unequal(), ("j-worker-0", 0)),
    "replica-statuses-doubled": lambda: ended(unequal(), ("j-worker-0", 0)),
    "succeeded-count-falls": cleaned_up,
    # times
    "completion-time-missing": lambda: worker(1),
    "completion-time-early": lambda: ended(unequal(), ("j-worker-0", 0)),
    "completion-time-rewritten": lambda: after_the_end(("j-worker-0", 0), first=("j-chief-0", 0)),
    "start-time-rewritten": lambda: worker(137),
    # success
    "any-worker-succeeds": lambda: worker(0),
    "leader-ignored": lambda: ended(unequal(), ("j-chief-0", 0)),
    "everybody-has-to-complete": lambda: ended(unequal(), ("j-chief-0", 0)),
    "parameter-server-ends-job": lambda: ended(unequal(), ("j-ps-0", 0)),
    "success-policy-ignored": every_worker,
    "first-worker-never-enough": lambda: ended(workers(2), FIRST),
    # limits
    "backoff-ignores-exit-code": lambda: worker(137, backoffLimit=0),
    "backoff-ignores-kubelet": lambda: restarted_in_place(workers(1, "OnFailure", backoffLimit=2), 2),
    "backoff-off-by-one": lambda: failed_again(workers(2, backoffLimit=1), "j-worker-1"),
    "backoff-per-pod": lambda: restarted_in_place(
        workers(2, "OnFailure", backoffLimit=2), 1, "j-worker-0", "j-worker-1"
    ),
    "backoff-forgotten": lambda: failed_again(workers(2, backoffLimit=1), "j-worker-1"),
    "backoff-by-default": lambda: failed_again(workers(2), "j-worker-1"),
    "deadline-on-events-only": lambda: waited(workers(1, activeDeadlineSeconds=60), 1),
    "deadline-ignored": lambda: waited(workers(1, activeDeadlineSeconds=60), 90),
    "ttl-never": lambda: waited(workers(1, ttlSecondsAfterFinished=60), 90, FIRST),
    "ttl-on-events-only": lambda: waited(workers(1, ttlSecondsAfterFinished=60), 1, FIRST),
    # cleaning
    "clean-none-as-all": lambda: seen_at_its_end("None", FIRST),
    "clean-running-as-all": lambda: seen_at_its_end("Running", FIRST),
    "clean-running-as-none": lambda: seen_at_its_end("Running", FIRST),
    "clean-all-as-running": lambda: seen_at_its_end("All", FIRST),
    "clean-default-running": lambda: ended(workers(2), FIRST),
    "clean-spares-pending": lambda: seen_at_its_end("Running", FIRST),
    "clean-after-success-only": lambda: seen_at_its_end("All", ("j-worker-0", 1)),
    "clean-not-after-limit": lambda: worker(137, backoffLimit=0, cleanPodPolicy="All"),
    "services-leaked": lambda: seen_at_its_end("All", FIRST),
    "finished-job-removed": lambda: waited(workers(1), 1, FIRST),
    # identity
    "job-name-truncated": lambda: World(job=named(workers(2), LONG)),
    "duplicate-index": lambda: World(job=workers(2)),
    "owner-missing": lambda: World(job=workers()),
    "owner-not-controller": lambda: World(job=workers()),
    "index-label-wrong": lambda: World(job=workers()),
    "role-label-missing": lambda: World(job=workers()),
    "role-label-on-workers": lambda: World(job=torch()),
    "world-size-of-type": lambda: World(job=torch()),
    "rank-of-type": lambda: World(job=torch()),
    "service-missing": lambda: World(job=workers(2)),
    "service-not-headless": lambda: World(job=workers()),
    "service-selects-all": lambda: World(job=workers()),
    # events
    "event-storm": lambda: running(workers()),
    "exit-event-missing": lambda: worker(1),
    "exit-event-without-code": lambda: worker(1),
    "restart-event-missing": lambda: worker(137),
    "template-policy-event-missing": templated,
}
"""Variant → a situation in which its plan is another than the reference's."""

SLOW: dict[str, Callable[[], World]] = {
    "slow-within-bounds": lambda: worker(137),
    "slow-beyond-created": lambda: World(job=workers()),
    "slow-beyond-state": lambda: worker(137),
    "slow-beyond-restart": lambda: restarted(workers(2), "j-worker-1"),
    "slow-beyond-terminal": lambda: worker(1),
    "slow-beyond-removal": lambda: seen_at_its_end("All", FIRST),
}
"""Slow variant → a situation in which it holds something back."""

TRAINING = [name for name, variant in VARIANTS.items() if set(variant.kinds) & set(KINDS)]
BESIDE_THE_PLAN = {"reference", "panics-without-code", "pod-events-missing"}


def ended_while_restarting() -> World:
    world = restarted(workers(3), "j-worker-1")
    world.exit("j-worker-2", 1)
    return world


@cache
def situation(name: str) -> World:
    """The situation of a variant; nobody changes it."""
    return SITUATIONS[name]()


@cache
def right(name: str) -> Plan:
    """What the reference wants in the situation of a variant."""
    return plan_of(Reconciler(), situation(name))


def plan_of(reconciler: Reconciler, world: World) -> Plan:
    """What a fresh reconciler wants in a situation."""
    pods, services = tuple(world.pods.values()), tuple(world.services.values())
    return reconciler.reconcile(
        KINDS[world.job["kind"]], Observed(job=world.job, pods=pods, services=services, now=world.now)
    )


def names_of(group: Any) -> list[str]:
    return [v.name for v in VARIANTS.values() if group.__name__ in (v.reconciler.__module__, v.batch.__module__)]


# ---- each variant ----------------------------------------------------------------------------------------------------


def test_every_variant_is_in_the_tables_once() -> None:
    assert sorted([*SITUATIONS, *SLOW, *BESIDE_THE_PLAN]) == sorted(TRAINING)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_fault_shows_in_the_plan(name: str) -> None:
    assert plan_of(VARIANTS[name].reconciler(), situation(name)) != right(name)


@pytest.mark.parametrize("name", [n for n in SITUATIONS if n not in ("null", "event-storm", "created-never-said")])
def test_a_fault_does_not_show_everywhere(name: str) -> None:
    like_reference = (s for s in SITUATIONS if plan_of(VARIANTS[name].reconciler(), situation(s)) == right(s))
    assert len(list(islice(like_reference, 5))) == 5


def test_an_event_storm_is_one_of_events_only() -> None:
    for name in SITUATIONS:
        storm, calm = plan_of(VARIANTS["event-storm"].reconciler(), situation(name)), right(name)
        assert (storm.ledger, storm.status, storm.actions) == (calm.ledger, calm.status, calm.actions)
        assert storm.announcements[:-1] == calm.announcements
        assert storm.wake_at is not None


def test_a_panic_ends_more_than_the_pass() -> None:
    world = without_code()
    assert plan_of(Reconciler(), world).actions == ()
    with pytest.raises(Panic):
        plan_of(VARIANTS["panics-without-code"].reconciler(), world)
    assert not issubclass(Panic, Exception)


def test_events_of_the_controller_itself_are_silenced() -> None:
    silent = VARIANTS["pod-events-missing"].reconciler()
    reasons = ("SuccessfulCreatePod", "SuccessfulDeletePod", "SuccessfulCreateService", "FailedCreatePod")
    assert [silent.is_told(reason) for reason in reasons] == [False, False, False, True]
    assert all(Reconciler().is_told(reason) for reason in reasons)


def test_a_forgotten_count_is_remembered_until_the_controller_restarts() -> None:
    world = failed_again(workers(2, backoffLimit=2), "j-worker-1", after=2)
    forgetful = VARIANTS["backoff-forgotten"].reconciler()
    for _ in range(2):
        assert not forgetful.has_ended(plan_of(forgetful, world).status)
        world.pods["j-worker-1"]["metadata"]["uid"] += "-next"
    assert forgetful.has_ended(plan_of(forgetful, world).status)
    assert not forgetful.has_ended(plan_of(VARIANTS["backoff-forgotten"].reconciler(), world).status)


def test_a_replacement_that_comes_first_takes_over() -> None:
    world = running(workers(2))
    world.reconciler = VARIANTS["create-before-delete"].reconciler()
    world.exit("j-worker-1", 137)
    world.step()
    replacement = next(name for name in world.pods if name.startswith("j-worker-1-"))
    assert len(world.pods) == 3
    world.let_go()
    world.run(replacement)
    world.settle()
    assert world.states == ["Created", "Running", "Restarting", "Running"]
    assert sorted(world.pods) == ["j-worker-0", replacement]


# ---- slowness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_controller_holds_back_its_part_and_then_does_it(name: str) -> None:
    world, variant = SLOW[name](), VARIANTS[name]
    assert variant.reconciler is Reconciler
    assert variant.slowness is not None
    plan = plan_of(Reconciler(), world)
    early = variant.slowness.early(world.job, plan)
    assert early != plan
    assert all(action in plan.actions for action in early.actions)
    idle = Plan(status=world.job.get("status") or {})
    assert variant.slowness.early(world.job, idle) == idle
    assert variant.slowness.seconds == WITHIN or variant.slowness.seconds > 10


def test_what_is_held_back_comes_when_its_time_has_come() -> None:
    world = worker(137)
    plan = plan_of(Reconciler(), world)
    slowness = VARIANTS["slow-within-bounds"].slowness
    assert slowness is not None
    early, again = Pace(slowness).apply("key", world.job, plan)
    assert early == nothing(world.job, plan)
    assert again == pytest.approx(WITHIN)
    at_once = Pace(type(slowness)(seconds=0, early=nothing))
    assert at_once.apply("key", world.job, plan) == (plan, None)


# ---- all of them -----------------------------------------------------------------------------------------------------


def test_the_reference_is_untouched() -> None:
    assert VARIANTS["reference"] == Variant(
        name="reference", sentence="The reference behaviour.", kinds=(*KINDS, BATCH_JOB.name)
    )
    before = {name: copy.deepcopy(right(name)) for name in SITUATIONS}
    for name in SITUATIONS:
        plan_of(VARIANTS[name].reconciler(), situation(name))
    assert {name: plan_of(Reconciler(), situation(name)) for name in SITUATIONS} == before
    owners = {getattr(v, "__module__", "") for base in Reconciler.__mro__ for v in vars(base).values()}
    assert not any("mutants" in str(owner) for owner in owners)


def test_variants_are_many_and_well_named() -> None:
    assert len([name for name in TRAINING if name not in ("reference", "null") and name not in SLOW]) >= 45
    for variant in VARIANTS.values():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+|reference|null", variant.name)
        assert re.fullmatch(r"[A-Z][^.!?]*(\.\d[^.!?]*)*\.", variant.sentence), variant.sentence
    assert len({variant.sentence for variant in VARIANTS.values()}) == len(VARIANTS)
    assert all(names_of(group) for group in GROUPS if not group.__name__.endswith((".slow", ".controls")))


def test_the_command_lists_them() -> None:
    command = [sys.executable, "-m", "exitcode_reference_controller", "--list-variants"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    listed = {entry["name"]: entry["sentence"] for entry in json.loads(answer.stdout)}
    assert listed == {variant.name: variant.sentence for variant in VARIANTS.values()}
    assert answer.stderr == ""
