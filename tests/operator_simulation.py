"""A whole run of a scenario, simulated: the real driver, a kubelet, and a conforming operator in one of several styles.

What two operators do differently, and both rightly, is a `Style`. No verdict may depend on it.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal, Self

from history_builder import ENDS, Story
from job_objects import Generation, Json

from exitcode_conformance.contract import Contract
from exitcode_conformance.history import Declared, History
from exitcode_conformance.pods import Incarnation
from exitcode_conformance.run_record import RunRecord
from exitcode_conformance.scenario import (
    ExitOutcome,
    MissingCommand,
    RunUntilStopped,
    Scenario,
    SignalOutcome,
    outcome_code,
)
from exitcode_conformance.success_rule import deciding_replicas
from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.scenario_driver import Need, ScenarioDriver
from exitcode_fixtures.scenario_requests import TOUCHED


@dataclass(frozen=True, kw_only=True)
class Style:
    """How an operator does what it does. The defaults are those of the reference controller."""

    generation: Generation = "v1.6"
    has_services: bool = True
    cleans: Literal["None", "Running", "All"] = "None"
    cleans_first: bool = False
    """Whether it cleans up before it says that the job has failed."""
    completion: Literal["with", "after", "before"] = "with"
    """In which write the completionTime comes, seen from the terminal condition."""
    starts_late: bool = False
    """Whether startTime comes with the end only."""
    says_running_early: bool = False
    """Whether siblings that run make it say Running before the replacement runs."""
    newest_first: bool = False
    """The order of the list of conditions."""
    foreign: bool = False
    """Whether it keeps a condition of its own, beside the documented ones."""
    pods_are_late: bool = False
    """Whether the watch on pods tells of an end only after the watch on jobs has told what came of it."""
    omits_zeros: bool = False
    """Whether counts of 0 are left out of replicaStatuses."""


class SimulatedStory(Story):
    """A story whose operator writes its status in a style of its own."""

    def __init__(self, scenario: Scenario, style: Style, timeouts: Timeouts) -> None:
        super().__init__(scenario, timeouts=timeouts, generation=style.generation, has_services=style.has_services)
        self.style = style
        self.last_counts: Json | None = None
        """Counts that were taken before the pods were cleaned up, and stand."""

    def says(self, *names: str) -> Self:
        """Makes conditions True, as the style has it."""
        for name in names:
            if not self.is_true(name):
                self.turns(name)
        ends = any(name in ENDS for name in names)
        if ends or not self.style.starts_late:
            self.status.setdefault("startTime", self.timestamp())
        if ends and self.style.completion != "after":
            self.status.setdefault("completionTime", self.timestamp())
        if self.style.foreign:
            self.put("Healthy", "False" if ends else "True", at=None if ends else "2026-01-01T00:00:00Z")
        if self.style.newest_first:
            self.conditions().reverse()
        if self.style.completion == "before" and ends:
            conditions = self.conditions()
            self.status["conditions"] = self.job["status"]["conditions"] if self.job else []
            self.write()
            self.status["conditions"] = conditions
        self.write(replicaStatuses=self.counts())
        if self.style.completion == "after" and ends:
            self.write(completionTime=self.timestamp())
        if self.style.newest_first:
            self.conditions().reverse()
        return self

    def create(self, *replicas: str, manifest: Json | None = None) -> Self:
        """Creates pods, and tells of each."""
        super().create(*replicas, manifest=manifest)
        for replica in replicas:
            self.tells("SuccessfulCreatePod", f"Created pod: {self.scenario.id}-{replica}")
        return self

    def counts(self) -> Json:
        """replicaStatuses, as the style has it."""
        if self.last_counts is not None:
            return self.last_counts
        full = super().counts()
        return {t: {k: v for k, v in c.items() if v or not self.style.omits_zeros} for t, c in full.items()}


class Simulation:
    """One scenario, from its submission to its `complete`."""

    story_class = SimulatedStory

    def __init__(self, scenario: Scenario, contract: Contract, style: Style, timeouts: Timeouts) -> None:
        self.scenario, self.contract, self.style, self.timeouts = scenario, contract, style, timeouts
        self.story = self.story_class(scenario, style, timeouts)
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()
        declared = Declared(clean_pod_policy=style.cleans)
        self.record = RunRecord(scenarios={scenario.id: scenario}, timeouts=timeouts, declared=declared)
        self.recorded = 0
        self.attempts: dict[str, int] = {}
        self.restarts = 0
        self.ended = False

    def run(self) -> History:
        """The history of it all."""
        story = self.story
        story.act("operator-started", of_the_run=True, detail={"mode": "process", "pid": 1})
        self.begin()
        driver = ScenarioDriver(scenario=self.scenario, timeouts=self.timeouts, started=story.now)
        while self.drive(driver):
            wake_at = driver.wake_at if driver.wake_at > story.now else story.now + self.timeouts.never / 8
            if self.agenda and (self.agenda[0][0] <= wake_at or driver.settling_since is None):
                at, _, function = heapq.heappop(self.agenda)
                story.now = max(story.now, at)
                function()
            else:
                story.now = wake_at
        return self.history()

    def begin(self) -> None:
        """A job is submitted, and gets what it needs."""
        story = self.story.submit().says("Created")
        if self.style.has_services:
            story.services(*story.replicas)
        story.create(*story.replicas)
        if any(group.template_restart_policy for group in self.scenario.groups):
            story.tells("SettedPodTemplateRestartPolicy", "Restart policy in pod template will be overwritten")
        for replica in self.scenario.running_replicas():
            self.start(replica)
        if self.scenario.running_replicas() == story.replicas and not self.ended:
            story.says("Running")
        deadline = self.scenario.run_policy.get("activeDeadlineSeconds")
        if deadline is not None:
            self.later(deadline, lambda: None if self.ended else self.finish("Failed"))

    def history(self) -> History:
        """The history as far as it has come."""
        for entry in self.story.entries[self.recorded :]:
            self.record.add(entry)
        self.recorded = len(self.story.entries)
        return self.record.history(self.scenario.id)

    def drive(self, driver: ScenarioDriver) -> bool:
        """Lets the driver look at what there is; whether there is more to come."""
        story = self.story
        while True:
            history = self.history()
            if driver.outcomes_due(history):
                story.act("set-outcome", detail={"attempts": dict(driver.next_attempt)})
                self.attempts |= driver.next_attempt
            need = driver.advance(history, story.now, story.now)
            for action, detail in driver.told:
                story.act(action, detail=detail)
            driver.told.clear()
            match need:
                case Need.DELETE_JOB:
                    self.agenda.clear()
                    story.delete_job().collect()
                case Need.RECREATE_JOB:
                    self.agenda.clear()
                    story.delete_job().collect().forget()
                    self.begin()
                case Need.REMOVE_POD:
                    assert driver.victim is not None
                    self.lose(driver.victim)
                case Need.TOUCH_JOB:
                    story.act("touch-job", detail={"number": driver.touched}).annotated(TOUCHED, str(driver.touched))
                case Need.READ_TABLE:
                    story.prints(State=history.job_versions[-1].state or "")
                case Need.WITNESS:
                    story.witness()
                    return True
                case Need.COMPLETE:
                    story.act("complete")
                    return False
                case Need.NOTHING:
                    return True

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """Puts something on the agenda."""
        heapq.heappush(self.agenda, (self.story.now + seconds, next(self.order), function))

    # --- the kubelet -------------------------------------------------------------------------------------------

    def start(self, replica: str, *, in_place: bool = False) -> None:
        """Starts a container; it reads its outcome now."""
        if self.scenario.group_of(replica).fails_without_code:
            self.story.fails_early(replica)
            self.finish("Failed")
            return
        outcome = self.scenario.outcome_of(replica, self.attempts.get(replica, 1))
        if in_place:
            self.story.restarts_in_place(replica)
        elif not isinstance(outcome, MissingCommand):
            self.story.runs(replica)
        if isinstance(outcome, RunUntilStopped):
            return
        code = outcome_code(outcome)
        assert code is not None
        pod = self.story.pod(replica).object["metadata"]["uid"]
        dwell = outcome.dwell if isinstance(outcome, ExitOutcome | SignalOutcome) else 0
        self.later(dwell * self.timeouts.dwell, lambda: self.end(replica, pod, code))

    def end(self, replica: str, pod: str, code: int) -> None:
        """A container ends, and whoever has to do something about it does it."""
        name = f"{self.scenario.id}-{replica}"
        if name not in self.story.pods or self.story.pod(replica).object["metadata"]["uid"] != pod:
            return
        if self.style.pods_are_late:
            with self.story.held_back("pods"):
                self.story.ends(replica, code)
                self.react(replica, code)
        else:
            self.story.ends(replica, code)
            self.react(replica, code)
        self.story.tells("ExitedWithCode", f"Pod: run.{name} exited with code {code}")

    # --- the operator ------------------------------------------------------------------------------------------

    def react(self, replica: str, code: int) -> None:
        """What follows from an end."""
        policy = self.scenario.group_of(replica).restart_policy
        if policy == "Always" or (policy == "OnFailure" and code != 0):
            self.in_place(replica)
        elif self.ended:
            return  # what comes after the end changes nothing
        elif code == 0 and not self.scenario.group_of(replica).sidecar_fails:
            self.finish("Succeeded") if self.is_successful() else self.story.says()
        elif policy == "ExitCode" and self.is_retryable(code):
            self.restart(replica)
        else:
            self.finish("Failed")

    def is_successful(self) -> bool:
        """Whether those who decide have succeeded."""
        deciding = [self.story.pod(r).object["status"]["phase"] for r in deciding_replicas(self.scenario)]
        return set(deciding) == {"Succeeded"}

    def is_retryable(self, code: int) -> bool:
        """The class of a code under ExitCode."""
        return self.contract.class_of(code).restarts

    def in_place(self, replica: str) -> None:
        """The kubelet restarts a container, at once or after a while, and the operator counts."""
        first = self.story.pod(replica).runs == 1
        if not first:
            self.story.waits_for_restart(replica)
        uid = self.story.pod(replica).object["metadata"]["uid"]

        def again() -> None:
            pod = self.story.pods.get(f"{self.scenario.id}-{replica}")
            if pod is None or pod.object["metadata"]["uid"] != uid:
                return
            self.start(replica, in_place=True)
            limit = self.scenario.run_policy.get("backoffLimit")
            policies = {r: self.scenario.group_of(r).restart_policy for r in self.scenario.replica_names()}
            counted = sum(
                p.runs - 1
                for name, p in self.story.pods.items()
                if policies[name.removeprefix(f"{self.scenario.id}-")] in ("Always", "OnFailure")
            )
            if limit is not None and counted >= max(limit, 1) and not self.ended:
                self.finish("Failed")

        self.later(0 if first else 10, again)

    def restart(self, replica: str) -> None:
        """Replaces a failed pod, or fails the job where the limit is reached."""
        limit = self.scenario.run_policy.get("backoffLimit")
        if limit is not None and self.restarts >= limit:
            self.finish("Failed")
            return
        self.restarts += 1
        story = self.story
        kind, name = self.scenario.kind, f"{self.scenario.id}-{replica}"
        story.tells(f"{kind}Restarting", f"{kind} {self.scenario.id} is restarting", kind="Warning")
        story.says("Restarting").asks_deletion(replica).tells("SuccessfulDeletePod", f"Deleted pod: {name}")
        story.gone(replica).create(replica)
        if self.style.says_running_early and len(story.pods) > 1:
            story.says("Running")
        self.later(0.1, lambda: self.started_again(replica))

    def lose(self, pod: Incarnation) -> None:
        """A pod is taken away from outside, and the operator puts another in its place."""
        replica = pod.replica or ""
        told = self.scenario.outcome_of(replica, 1)
        assert isinstance(told, RunUntilStopped)
        self.story.act("remove-pod", detail={"pod": pod.name, "uid": pod.uid, "how": "delete"})
        self.story.asks_deletion(replica).ends(replica, told.code).gone(replica).create(replica)
        self.later(0.1, lambda: self.started_again(replica))

    def started_again(self, replica: str) -> None:
        """The replacement runs."""
        if f"{self.scenario.id}-{replica}" in self.story.pods:
            self.start(replica)
            all_run = self.scenario.running_replicas() == self.story.replicas
            if not self.ended:
                self.story.says(*(("Running",) if all_run else ()))

    def finish(self, state: str) -> None:
        """The job ends."""
        self.ended = True
        first = self.style.cleans_first and state == "Failed"
        if first:
            self.story.last_counts = self.story.counts()
            self.clean()
        self.story.says(state)
        if not first:
            self.clean()
        time_to_live = self.scenario.run_policy.get("ttlSecondsAfterFinished")
        if time_to_live is not None:
            self.later(time_to_live, self.expire)

    def expire(self) -> None:
        """The job has stayed long enough."""
        self.story.job_removed().collect()

    def clean(self) -> None:
        """cleanPodPolicy: the job's own, or the style's default."""
        policy = self.scenario.run_policy.get("cleanPodPolicy", self.style.cleans)
        for name in list(self.story.pods):
            replica = name.removeprefix(f"{self.scenario.id}-")
            running = self.story.pod(replica).object["status"]["phase"] in ("Pending", "Running")
            if policy == "All" or (policy == "Running" and running):
                self.story.asks_deletion(replica).gone(replica).drops_service(replica)
