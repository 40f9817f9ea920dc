"""Operators with one fault each: the requirements that forbid it fail, and no other is blamed for it."""

from collections.abc import Mapping
from typing import Any, Self

import pytest
from history_builder import CONTRACTS
from job_objects import Json
from operator_simulation import SimulatedStory, Simulation, Style

from exitcode_conformance.judge import judge
from exitcode_conformance.kinds import KUBEFLOW_KINDS
from exitcode_conformance.plan import Claims, build_plan
from exitcode_conformance.registry import FEATURES
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.verdict import Verdict

DOCS = CONTRACTS["kubeflow-docs"]
PLAN = build_plan(claims=Claims(kinds=KUBEFLOW_KINDS, features=tuple(FEATURES)), contract=DOCS, profile="core")
NAMES = (
    "tfjob-worker-exit0-worker1",
    "tfjob-worker1-exit0-chief1-worker2",
    "tfjob-worker-exit1-worker3",
    "tfjob-worker-exit137-worker3",
    "tfjob-worker-sigkill-ps1-worker3",
    "tfjob-worker-exit137-sibling0-worker3",
    "pytorchjob-worker1-exit138-master1-worker2",
    "pytorchjob-master-then-138-138-0-master1-worker2",
    "tfjob-worker-then-137-1-worker1",
    "tfjob-worker1-never1-worker3",
    "tfjob-others0-worker3",
    "tfjob-deleted-ps1-worker3",
)


class IgnoresRetryable(Simulation):
    """Does nothing about a retryable code."""

    def restart(self, replica: str) -> None:  # noqa: ARG002
        self.story.says()


class FailsOnRetryable(Simulation):
    """Takes every code for a permanent one."""

    def is_retryable(self, code: int) -> bool:  # noqa: ARG002
        return False


class RestartsPermanent(Simulation):
    """Takes every code for a retryable one."""

    def is_retryable(self, code: int) -> bool:  # noqa: ARG002
        return True


class IgnoresPermanent(Simulation):
    """Never fails a job."""

    def finish(self, state: str) -> None:
        if state != "Failed":
            super().finish(state)


class RestartsSiblings(Simulation):
    """Restarts all of a job's pods when one is to be restarted."""

    def restart(self, replica: str) -> None:
        super().restart(replica)
        for sibling in self.scenario.replica_names():
            if sibling != replica:
                self.story.asks_deletion(sibling).gone(sibling).create(sibling)
                self.start(sibling)


class AnyWorkerDecides(Simulation):
    """Takes a job for successful as soon as one replica is."""

    def is_successful(self) -> bool:
        return True


class NobodyDecides(Simulation):
    """Never ends a job in success."""

    def is_successful(self) -> bool:
        return False


class ComesBack(Simulation):
    """Creates pods of a job that is gone."""

    def drive(self, *arguments: Any) -> bool:
        more = super().drive(*arguments)
        if self.story.job is not None and not self.story.pods:
            self.story.wait(2.1).create("worker-0").collect()
        return more


class Telling(SimulatedStory):
    """An operator that may not say every condition."""

    silent: tuple[str, ...] = ()

    def says(self, *names: str) -> Self:
        return super().says(*(name for name in names if name not in self.silent))


class SilentOnRestarting(Telling):
    """Never says Restarting."""

    silent = ("Restarting",)


class SilentOnCreated(Telling):
    """Never says Created."""

    silent = ("Created",)


class KeepsRunning(SimulatedStory):
    """Says Restarting beside Running."""

    def turns(self, name: str) -> Self:
        running = [c for c in self.conditions() if c["type"] == "Running" and name == "Restarting"]
        super().turns(name)
        self.status["conditions"] = [*running, *self.conditions()]
        return self


class NoCompletionTime(SimulatedStory):
    """Never writes a completionTime."""

    def write(self, **fields: Any) -> Self:
        self.status.pop("completionTime", None)
        return super().write(**fields)


class MovesTimes(SimulatedStory):
    """Moves lastTransitionTime with every write."""

    def write(self, **fields: Any) -> Self:
        self.now += 1
        for condition in self.conditions():
            condition["lastTransitionTime"] = self.timestamp()
        return super().write(**fields)


class CountsNothing(SimulatedStory):
    """Always counts no success."""

    def counts(self) -> Json:
        return {kind: {**count, "succeeded": 0} for kind, count in super().counts().items()}


class Forgets(SimulatedStory):
    """Counts a success only until the next write."""

    def counts(self) -> Json:
        self.seen = getattr(self, "seen", 0) + 1
        return {k: {**c, "succeeded": c["succeeded"] and self.seen % 2} for k, c in super().counts().items()}


class AllAreMasters(SimulatedStory):
    """Marks every pod as the master's."""

    def labels(self, replica: str) -> dict[str, str]:
        return {**super().labels(replica), "training.kubeflow.org/job-role": "master"}


class NoLabels(SimulatedStory):
    """Labels nothing."""

    def labels(self, replica: str) -> dict[str, str]:
        return {k: v for k, v in super().labels(replica).items() if k.endswith("job-role")}


class OwnedByNobody(SimulatedStory):
    """Sets no controller."""

    def owners(self) -> list[Json]:
        return [{**owner, "controller": False} for owner in super().owners()]


class KnowsNoCluster(SimulatedStory):
    """Tells no replica of the others."""

    def environment(self, replica: str) -> list[Json]:  # noqa: ARG002
        return []


class ForgetsTheCluster(SimulatedStory):
    """Tells replacements nothing of the others."""

    def environment(self, replica: str) -> list[Json]:
        return [] if self.is_true("Restarting") else super().environment(replica)


class PassesThePolicyThrough(SimulatedStory):
    """Gives pods a restartPolicy that is not theirs."""

    def manifest(self, replica: str) -> Json:
        pod = super().manifest(replica)
        pod["spec"]["restartPolicy"] = "ExitCode"
        return pod


def with_story(told: type[SimulatedStory]) -> type[Simulation]:
    """An operator that acts rightly and tells it so."""
    return type(told.__name__, (Simulation,), {"story_class": told, "__doc__": told.__doc__})


BLAME: Mapping[type[Simulation], set[str]] = {
    Simulation: set(),
    IgnoresRetryable: {"EXIT-03", "EXIT-04", "EXIT-12", "LIMIT-05"},
    FailsOnRetryable: {"EXIT-03", "EXIT-04", "EXIT-12", "LIMIT-05"},
    RestartsPermanent: {"EXIT-02", "EXIT-12"},
    IgnoresPermanent: {"EXIT-02", "EXIT-12", "RESTART-07", "STATE-08"},
    RestartsSiblings: {"RESTART-03", "RESTART-10", "INV-04", "INV-06"},
    AnyWorkerDecides: {"STATE-09"},
    NobodyDecides: {"STATE-09", "EXIT-12"},
    ComesBack: {"CLEAN-05", "INV-03"},
    with_story(SilentOnRestarting): {"STATE-03"},
    with_story(SilentOnCreated): {"STATE-01"},
    with_story(KeepsRunning): {"STATE-04"},
    with_story(NoCompletionTime): {"STATE-07"},
    with_story(MovesTimes): {"STATE-12"},
    with_story(CountsNothing): {"EXIT-01", "STATE-08"},
    with_story(Forgets): {"INV-06", "STATE-08"},
    with_story(AllAreMasters): {"IDENT-04"},
    with_story(NoLabels): {"IDENT-02", "IDENT-06"},
    with_story(OwnedByNobody): {"IDENT-03"},
    with_story(KnowsNoCluster): {"IDENT-05"},
    with_story(ForgetsTheCluster): {"IDENT-05", "RESTART-08"},
    with_story(PassesThePolicyThrough): {"RESTART-04"},
}


@pytest.mark.parametrize(("operator", "blamed"), BLAME.items(), ids=[operator.__name__ for operator in BLAME])
def test_a_fault_is_found_and_nothing_else_is_blamed_for_it(operator: type[Simulation], blamed: set[str]) -> None:
    histories = {name: operator(SCENARIOS[name], DOCS, Style(), Timeouts()).run() for name in NAMES}
    failed: dict[str, str] = {}
    for case in PLAN:
        if set(case.scenarios) <= set(NAMES):
            judgement = judge(case, [histories[name] for name in case.scenarios], DOCS)
            assert judgement.verdict is not Verdict.ERROR, f"{case.name}: {judgement.seen}"
            if judgement.verdict is Verdict.FAIL:
                failed[case.requirement] = f"{case.name}: {judgement.seen}"
    assert set(failed) == blamed, failed
