"""STATE-10: parameter servers serve; they decide nothing."""

from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History
from exitcode_conformance.job_end import comes_to
from exitcode_conformance.judging import Undecided, judged
from exitcode_conformance.premise import must_have_ended, must_have_pods
from exitcode_conformance.registry import requirement
from exitcode_conformance.scenario import RunUntilStopped, Scenario, outcome_code
from exitcode_conformance.success_rule import deciders_succeed, deciding_replicas
from exitcode_conformance.temporal import Finding, never
from exitcode_conformance.verdict import Judgement


def _servers(scenario: Scenario) -> list[str]:
    return [r for r in scenario.replica_names() if scenario.group_of(r).type == "PS"]


def _is_about_servers(scenario: Scenario, contract: Contract) -> bool:
    """Parameter servers that run on while those who decide succeed, or the other way round."""
    if scenario.manifest is not None or not _servers(scenario):
        return False
    others_decide = deciders_succeed(scenario)
    scripts = {replica: scenario.outcome_of(replica, 1) for replica in scenario.replica_names()}
    if any(outcome_code(outcome) for outcome in scripts.values()):
        return False
    servers_run = all(isinstance(scripts[server], RunUntilStopped) for server in _servers(scenario))
    servers_end = all(outcome_code(scripts[server]) == 0 for server in _servers(scenario))
    deciders_run = all(isinstance(scripts[r], RunUntilStopped) for r in deciding_replicas(scenario))
    return (others_decide and servers_run) or (servers_end and deciders_run)


@requirement(
    "STATE-10",
    "A parameter server that runs on does not keep a successful job from ending, and one that ends does not end the "
    "job.",
    feature="success-policy",
    source="Kubeflow documentation, TFJob: parameter servers run until the job ends; the chief or worker 0 decides",
    applies=_is_about_servers,
)
def servers_decide_nothing(history: History, contract: Contract) -> Judgement:
    must_have_pods(history)
    scenario = history.scenario
    if deciders_succeed(scenario):
        deciders = deciding_replicas(scenario)
        expected = f"Succeeded once {' and '.join(deciders)} ended with 0, while {' and '.join(_servers(scenario))} run"
        last = max((must_have_ended(history, r)[2] for r in deciders), key=lambda moment: moment.seq)
        return judged(expected, [comes_to(history, "Succeeded", since=last)])
    expected = f"the job goes on although {' and '.join(_servers(scenario))} ended with 0"
    last = max((must_have_ended(history, r)[2] for r in _servers(scenario)), key=lambda moment: moment.seq)
    terminal = history.terminal
    if terminal is None:
        return judged(expected, [never(history, since=last, offence=None)])
    unasked = history.unscripted_failure(terminal[1].seq)
    if unasked is not None:
        raise Undecided(f"{unasked.what}, which nobody asked for", unasked.seq)
    return judged(expected, [Finding(holds=False, seen=terminal[1].what, deciding=(last.seq, terminal[1].seq))])
