"""LIMIT: what ends a job, or removes it, that no exit code asks for."""

from exitcode_conformance import selection
from exitcode_conformance.classification import aftermath, restarted_in_time
from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History
from exitcode_conformance.judging import judged
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.temporal import Finding
from exitcode_conformance.verdict import Judgement

RUN_POLICY = "training-operator API, RunPolicy"


def _fails_again_and_again(scenario: Scenario, contract: Contract) -> bool:
    unlimited = "backoffLimit" not in scenario.run_policy and scenario.manifest is None
    under_exit_code = selection.target_policy(scenario) == "ExitCode"
    return unlimited and under_exit_code and selection.retryable_runs(scenario, contract) > 1


@requirement(
    "LIMIT-05",
    "Without a backoffLimit, retryable failures go on being restarted.",
    feature="restart-policy-exit-code",
    source=f"{RUN_POLICY}.backoffLimit: optional, and no default is applied",
    applies=_fails_again_and_again,
)
def restarts_go_on(history: History, contract: Contract) -> Judgement:
    target = history.scenario.target or ""
    runs = selection.retryable_runs(history.scenario, contract)
    expected = f"each of the {runs} retryable failures of {target} in a row is restarted, and the job does not fail"
    findings: list[Finding] = []
    for number in range(1, runs + 1):
        after = aftermath(history, target, number)
        findings.append(restarted_in_time(history, after))
        if after.failed is not None:
            seen = f"the job became Failed after retryable failure {number} in a row"
            findings.append(Finding(holds=False, seen=seen, deciding=(after.ended.seq, after.failed.seq)))
        if after.successor is None:
            break
    return judged(expected, findings)
