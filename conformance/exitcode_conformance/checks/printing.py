"""STATE-11: what `kubectl get` prints of a job."""

from exitcode_conformance import selection
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History
from exitcode_conformance.judging import Undecided, failed, passed
from exitcode_conformance.premise import must_have_run
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.verdict import Judgement


def _stays(scenario: Scenario, contract: Contract) -> bool:
    return not selection.deletes_the_job(scenario, contract)


@requirement(
    "STATE-11",
    "The STATE column that kubectl get prints is the job's current state.",
    level="SHOULD",
    feature="job-conditions",
    source="training-operator CRDs: the column State is .status.conditions[-1:].type",
    applies=_stays,
)
def printed_state_is_the_state(history: History, contract: Contract) -> Judgement:
    must_have_run(history)
    table = history.action("table")
    if table is None or "cells" not in table.detail:
        why = table.detail.get("problem") if table else None
        raise Undecided(f"the API server's table of the job was not read{f': {why}' if why else ''}")
    version = next(
        (
            v
            for v in history.job_versions
            if str(v.object["metadata"].get("resourceVersion")) == str(table.detail.get("resource_version"))
        ),
        None,
    )
    if version is None or version.state is None:
        raise Undecided("the table is of a version of the job that was not seen, or that says nothing", table.seq)
    state = history.kind.called(version.state)
    expected = f"a column State that says {state}"
    cells = {str(name).lower(): str(text) for name, text in table.detail["cells"].items()}
    if "state" not in cells:
        return failed(expected, f"there is no column State, but {', '.join(sorted(cells)) or 'none'}", table.seq)
    verdict = passed if cells["state"] == state else failed
    return verdict(expected, f"the column says {cells['state'] or 'nothing'}", version.seq, table.seq)
