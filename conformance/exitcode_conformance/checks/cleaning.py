"""CLEAN: what is left of a job."""

from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History, Moment
from exitcode_conformance.judging import Undecided, judged
from exitcode_conformance.premise import must_have_pods
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import DeleteJob, Scenario
from exitcode_conformance.temporal import eventually, never
from exitcode_conformance.verdict import Judgement


def _deletes_the_job(scenario: Scenario, contract: Contract) -> bool:  # noqa: ARG001 - the signature of every selection
    return any(isinstance(step, DeleteJob) for step in scenario.steps)


@requirement(
    "CLEAN-05",
    "Deleting the job removes everything it owned, and nothing comes back.",
    feature="garbage-collection",
    source="Kubernetes documentation, garbage collection: dependents go with their owner",
    applies=_deletes_the_job,
)
def everything_goes(history: History, contract: Contract) -> Judgement:  # noqa: ARG001 - every check has it
    expected = "every pod and service of the job is removed, and none is created after that"
    must_have_pods(history)
    asked = history.job_deletion
    if asked is None:
        raise Undecided("the scenario never came to the point of deleting the job")
    left: dict[tuple[str, str], str] = {}
    gone: Moment | None = None
    for event in history.events:
        if event.resource not in ("pods", "services"):
            continue
        key = (event.resource, str(event.object["metadata"]["uid"]))
        if event.verb == "DELETED":
            left.pop(key, None)
            if not left and event.seq > asked.seq:
                gone = Moment(seq=event.seq, time=event.time, what="the last of it was removed")
        else:
            left[key] = f"{event.resource[:-1]} {event.object['metadata']['name']}"
            gone = None
    missing = f"{', '.join(sorted(left.values())[:4])} did not go"
    findings = [eventually(history, since=asked, bound="cleanup", found=gone, missing=missing)]
    removed = next((v for v in history.job_versions if v.verb == "DELETED"), None)
    if removed is not None:
        since = Moment(seq=removed.seq, time=removed.time, what="the job was removed")
        late = next(
            (
                Moment(seq=e.seq, time=e.time, what=f"{e.resource[:-1]} {e.object['metadata']['name']} was created")
                for e in history.events
                if e.seq > removed.seq and e.resource in ("pods", "services") and e.verb == "ADDED"
            ),
            None,
        )
        findings.append(never(history, since=since, offence=late, until=gone))
    return judged(expected, findings)
