"""A recording that looks like a real one, made by a small simulation: the reports are tested with it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exitcode_conformance.entry import Event, WatchVerb
from exitcode_conformance.scenario import (
    ExitOutcome,
    Outcome,
    ReplicaGroup,
    RestartPolicy,
    RunUntilStopped,
    Scenario,
    SignalName,
    SignalOutcome,
    UntilAttempt,
    outcome_code,
)
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.verdict import Trial
from exitcode_reports.header import Level, Planned
from exitcode_reports.recording import (
    ClusterIdentity,
    ContractIdentity,
    Header,
    OperatorIdentity,
    PlannedCase,
    Recording,
    RecordingWriter,
    read_recording,
)

CLAIMS = {
    0: "success",
    1: "permanent",
    2: "permanent",
    126: "permanent",
    127: "permanent",
    128: "permanent",
    139: "permanent",
    130: "retryable",
    137: "retryable",
    143: "retryable",
    138: "user-retryable",
}
SIGNALS: dict[int, SignalName] = {130: "INT", 137: "KILL", 138: "USR1", 139: "SEGV", 143: "TERM"}
PLURALS = {"TFJob": "tfjobs", "PyTorchJob": "pytorchjobs"}
STARTED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "<svg/onload=alert(3)>",
    "' onmouseover='alert(4)",
    "]]> <!-- --> {{ 7*7 }} {% raw %} &lt;b&gt; &#0;",
    "user\u202egnp.exe\u202c \u2066\u2069",
    "bell\x07 null\x00 escape\x1b[31mred\x1b[0m",
    "zalgo" + "\u0301" * 60,
    "long-" + "A" * 50_000,
    "javascript:alert(5)",
    "\ufffe\uffff \U0001f600 \u2028 \u2029",
)


def scenario(
    name: str,
    kind: str,
    groups: Sequence[tuple[str, int]],
    outcomes: dict[str, tuple[Outcome, ...]],
    target: str | None,
    policy: RestartPolicy = "ExitCode",
) -> Scenario:
    """A scenario whose groups all have one policy."""
    return Scenario(
        id=name,
        kind=kind,
        groups=tuple(ReplicaGroup(type=t, replicas=n, restart_policy=policy) for t, n in groups),
        outcomes=outcomes,
        target=target,
        steps=(UntilAttempt(replica=target, attempt=2),) if target else (UntilAttempt(replica="worker-0", attempt=1),),
    )


def scenarios(codes: Iterable[int] = (*CLAIMS, 3, 129)) -> dict[str, Scenario]:
    """Every code as `exit`, and where it is one of a signal as a signal, in three topologies of two kinds."""
    found = []
    for code in codes:
        ways: dict[str, Outcome] = {"exit": ExitOutcome(code=code)}
        if code in SIGNALS:
            ways["sig"] = SignalOutcome(signal=SIGNALS[code])
        for way, first in ways.items():
            script = (first, RunUntilStopped())
            ps = [("PS", 1), ("Worker", 3)]
            found += [
                scenario(f"tf-w1-worker-{way}{code}", "TFJob", [("Worker", 1)], {"worker-0": script}, "worker-0"),
                scenario(f"tf-ps1-w3-worker-{way}{code}", "TFJob", ps, {"worker-0": script}, "worker-0"),
                scenario(f"tf-ps1-w3-ps-{way}{code}", "TFJob", ps, {"ps-0": script}, "ps-0"),
                scenario(
                    f"pt-m1-w2-master-{way}{code}",
                    "PyTorchJob",
                    [("Master", 1), ("Worker", 2)],
                    {"master-0": script},
                    "master-0",
                ),
            ]
    return {one.id: one for one in found}


@dataclass
class Simulated:
    """Events of one scenario before they have a number: (time, resource, verb, object)."""

    scenario: Scenario
    events: list[tuple[float, str, WatchVerb, dict[str, Any]]] = field(default_factory=list)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    births: int = 0

    def job(self, at: float, state: str | None = None, verb: WatchVerb = "MODIFIED") -> None:
        """The job as it says `state` now."""
        if state:
            self.conditions = [c for c in self.conditions if c["type"] != state]
            over = {"Running": {"Restarting"}, "Restarting": {"Running"}}.get(state, {"Running", "Restarting"})
            for condition in self.conditions:
                if condition["type"] in over and state != "Created":
                    condition["status"] = "False"
            self.conditions.append({"type": state, "status": "True", "reason": f"{self.scenario.kind}{state}"})
        self.events.append(
            (
                at,
                PLURALS[self.scenario.kind],
                verb,
                {
                    "kind": self.scenario.kind,
                    "metadata": {"name": self.scenario.id, "uid": f"job-{self.scenario.id}"},
                    "status": {
                        "conditions": [dict(c) for c in self.conditions],
                        "replicaStatuses": {g.type: {"active": g.replicas} for g in self.scenario.groups},
                    },
                },
            )
        )

    def birth(self, at: float, replica: str) -> str:
        """A new pod of the replica; returns its UID."""
        self.births += 1
        uid = f"{self.births:08x}-{self.scenario.id}"
        self.pod(at, replica, uid, "Pending", verb="ADDED")
        return uid

    def pod(
        self,
        at: float,
        replica: str,
        uid: str,
        phase: str,
        *,
        code: int | None = None,
        deleting: bool = False,
        verb: WatchVerb = "MODIFIED",
        message: str = "",
    ) -> None:
        """A pod as it is now."""
        state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        if code is not None:
            ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
            state = {"terminated": ended | ({"message": message} if message else {})}
        elif phase == "Running":
            state = {"running": {"startedAt": f"{at:.3f}"}}
        kind, _, index = replica.rpartition("-")
        metadata: dict[str, Any] = {
            "name": f"{self.scenario.id}-{replica}",
            "uid": uid,
            "labels": {
                "training.kubeflow.org/replica-type": kind,
                "training.kubeflow.org/replica-index": index,
            },
        }
        if deleting:
            metadata["deletionTimestamp"] = "2026-03-01T09:30:10Z"
        container = {"name": "tensorflow", "restartCount": 0, "state": state, "image": "busybox:1.36"}
        pod = {"metadata": metadata, "status": {"phase": phase, "containerStatuses": [container]}}
        self.events.append((at, "pods", verb, pod))


def simulate(one: Scenario, begin: float, *, restarts: Iterable[int], message: str = "") -> Simulated:
    """What a cluster shows of the scenario under an operator that restarts these codes."""
    run = Simulated(scenario=one)
    run.job(begin, verb="ADDED")
    run.job(begin + 0.05, "Created")
    uids = {}
    for number, replica in enumerate(one.replica_names()):
        uids[replica] = run.birth(begin + 0.1 + number * 0.01, replica)
        run.pod(begin + 0.4 + number * 0.02, replica, uids[replica], "Running")
    run.job(begin + 0.6, "Running")
    target = one.target or "worker-0"
    code = outcome_code(one.outcome_of(target, 1))
    at = begin + 1.1
    if code is None:
        return run
    phase = "Failed" if code else "Succeeded"
    run.pod(at, target, uids[target], phase, code=code, message=message)
    if code in restarts and code:
        run.job(at + 0.05, "Restarting")
        run.pod(at + 0.1, target, uids[target], phase, code=code, deleting=True)
        run.pod(at + 0.2, target, uids[target], phase, code=code, deleting=True, verb="DELETED")
        again = run.birth(at + 0.35, target)
        run.pod(at + 0.6, target, again, "Running")
        run.job(at + 0.7, "Running")
    else:
        run.job(at + 0.1, "Succeeded" if code == 0 else "Failed")
    run.events.sort(key=lambda event: event[0])
    return run


def header(known: dict[str, Scenario], plan: Sequence[PlannedCase], **changes: Any) -> Header:
    """A header over these scenarios."""
    values: dict[str, Any] = {
        "suite_version": "0.1.0",
        "run_id": "r-20260301-093000",
        "operator": OperatorIdentity(
            name="reference",
            version="0.1.0",
            project="exitcode-conformance reference controller",
            url="https://example.org/reference",
            start="process",
            kinds=("TFJob", "PyTorchJob"),
            features=("restart-policy-exit-code", "job-conditions"),
            labels="training.kubeflow.org",
        ),
        "cluster": ClusterIdentity(
            address="embedded", type="embedded", server_version="v1.31.0+embedded", nodes=("embedded-0",)
        ),
        "contract": ContractIdentity(id="kubeflow-docs", version="1", digest="5f" * 32, claims=CLAIMS),
        "profile": "core",
        "namespace": "exitcode-r-20260301",
        "started_at": STARTED,
        "timeouts": Timeouts(),
        "scenarios": known,
        "plan": tuple(plan),
        "reproduce": ("exitcode-conformance", "run", "--operator", "reference", "--cluster", "embedded"),
    }
    return Header(**(values | changes))


REQUIREMENTS: dict[str, tuple[Level, str]] = {
    "EXIT-01": ("MUST", "A container that exits 0 is not restarted, and its replica counts as succeeded."),
    "EXIT-02": ("MUST", "A permanent code is not restarted, and the job fails."),
    "EXIT-03": ("MUST", "A retryable code is restarted, and the job does not fail because of it."),
    "EXIT-04": ("MUST", "138, reserved for the user's own retryable errors, is restarted."),
    "EXIT-05": ("INFO", "The class shown by each undefined code."),
    "RESTART-01": ("MUST", "The operator deletes the failed pod and creates a new one: same name, new UID."),
    "RESTART-09": ("SHOULD", "The replacement is created within the named bound."),
    "STATE-01": ("MUST", "Conditions change only along the documented state machine; Created comes first."),
    "STATE-04": ("MUST", "Running and Restarting are never both True."),
    "INV-01": ("MUST", "At most one terminal condition, never changed."),
    "INV-04": ("MUST", "At most one live pod for each index."),
}


def planned(requirement: str, subject: str, plan: Planned = "run", reason: str | None = None) -> PlannedCase:
    """One case of the plan, of one scenario."""
    level, sentence = REQUIREMENTS[requirement]
    return PlannedCase(
        requirement=requirement,
        subject=subject,
        scenarios=(subject,),
        level=level,
        feature="restart-policy-exit-code",
        sentence=sentence,
        source="Kubeflow documentation, the table of exit codes",
        planned=plan,
        reason=reason,
    )


def code_of(one: Scenario) -> int:
    """The code that a scenario of ours is about."""
    return outcome_code(one.outcome_of(one.target or "worker-0", 1)) or 0


def requirement_of(code: int) -> str:
    """The requirement that speaks of a code."""
    by_class = {
        "success": "EXIT-01",
        "permanent": "EXIT-02",
        "retryable": "EXIT-03",
        "user-retryable": "EXIT-04",
    }
    return by_class.get(CLAIMS.get(code, ""), "EXIT-05")


@dataclass
class Clock:
    """A clock that stands where it is put."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def make_recording(
    path: Path,
    *,
    known: dict[str, Scenario] | None = None,
    restarts: Iterable[int] = (130, 137, 138, 143),
    message: str = "",
    finish: bool = True,
    unjudged: Iterable[str] = (),
    unknown: Iterable[str] = (),
    errors: Iterable[str] = (),
    trials: Sequence[Trial] = (),
    **changes: Any,
) -> Path:
    """Write a whole run in which the operator restarts these codes. Scenarios named in `unjudged`, `unknown`
    and `errors` get no verdict, or that one; each verdict rests on `trials`."""
    known = scenarios() if known is None else known
    plan = [
        planned(requirement, name)
        for name, one in known.items()
        for requirement in (requirement_of(code_of(one)), *list(REQUIREMENTS)[5:])
    ]
    plan += [planned("RESTART-01", "no-such-feature", "not-supported", "The operator claims no such thing.")]
    plan[-1] = plan[-1].model_copy(update={"scenarios": ()})
    clock = Clock()
    restarts = tuple(restarts)
    runs = [simulate(one, 0.2 + n * 0.03, restarts=restarts, message=message) for n, one in enumerate(known.values())]
    lines = sorted(((event, run.scenario.id) for run in runs for event in run.events), key=lambda line: line[0][0])
    seen: dict[str, list[Event]] = {name: [] for name in known}
    with RecordingWriter(path, header(known, plan, **changes), clock=clock, now=lambda: STARTED) as writer:
        for (at, resource, verb, object), name in lines:
            clock.now = at
            if not seen[name]:
                writer.action(scenario=name, action="submit", detail={"name": name})
            seen[name].append(writer.event(scenario=name, resource=resource, verb=verb, object=object))
        for name in known:
            clock.now += 0.02
            writer.action(scenario=name, action="complete")
        for case in plan:
            if case.planned == "run" and case.subject not in unjudged:
                said = "unknown" if case.subject in unknown else "error" if case.subject in errors else None
                _judge(writer, case, known[case.subject], seen[case.subject], restarts, said, message, trials)
        if finish:
            writer.close(0)
    return path


def _judge(
    writer: RecordingWriter,
    case: PlannedCase,
    one: Scenario,
    events: list[Event],
    restarts: tuple[int, ...],
    said: str | None,
    message: str,
    trials: Sequence[Trial],
) -> None:
    code = code_of(one)
    ended = next(e for e in events if e.object["status"].get("phase") in ("Failed", "Succeeded"))
    after = next(e for e in events if e.seq > ended.seq and e.resource != "pods")
    observed = "success" if code == 0 else "retryable" if code in restarts else "permanent"
    promised = CLAIMS.get(code, "undefined").removeprefix("user-")
    exit_case = case.requirement.startswith("EXIT")
    holds = not exit_case or promised in (observed, "undefined")
    writer.verdict(
        requirement=case.requirement,
        subject=case.subject,
        scenarios=case.scenarios,
        verdict=said or ("pass" if holds else "fail"),
        expected=f"{one.target} ends with {code}: {promised}",
        seen=f"{one.target} ended with {code} at {ended.time:.3f} s and was seen to be {observed}{message}",
        deciding=(ended.seq, after.seq) if exit_case or case.requirement.startswith("RESTART") else (),
        observed_class=observed if exit_case else None,
        trials=trials,
    )


def recorded(path: Path, **options: Any) -> Recording:
    """Write a recording and read it back."""
    return read_recording(make_recording(path, **options), allow_partial=True)
