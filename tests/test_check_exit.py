"""EXIT: each check passes on a right history, fails on each violation, and is unknown where evidence is too weak."""

from collections.abc import Callable

import pytest
from history_builder import Story, compare, story

from exitcode_conformance.scenario import ExitOutcome, ReplicaGroup, Scenario, UntilTerminal
from exitcode_conformance.verdict import Verdict

ZERO = "tfjob-worker-exit0-worker1"
ONE = "tfjob-worker-exit1-worker3"
BESIDE_CHIEF = "tfjob-worker1-exit1-chief1-worker2"
KILLED = "tfjob-worker-exit137-worker3"
USERS_OWN = "pytorchjob-worker1-exit138-master1-worker2"
THEN_ZERO = "tfjob-worker-then-137-0-worker1"
THEN_ONE = "tfjob-worker-then-137-1-worker1"


def ended(scenario: str, code: int) -> Story:
    """The scenario up to the first end of worker 0."""
    return story(scenario).begin().wait(0.5).ends("worker-0", code)


# --- EXIT-01 ---------------------------------------------------------------------------------------------------


def test_exit_01_passes_when_zero_is_final_and_counted() -> None:
    ended(ZERO, 0).says("Succeeded").complete().passes("EXIT-01", "succeeded is 1", "no new attempt")


def test_exit_01_passes_when_the_count_comes_in_a_later_write() -> None:
    told = ended(ZERO, 0)
    counts = told.counts()
    told.status["replicaStatuses"] = {"Worker": {"active": 1}}
    told.put("Succeeded").write(completionTime=told.timestamp()).wait(1).write(replicaStatuses=counts)
    told.complete().passes("EXIT-01")


def test_exit_01_fails_on_a_restart() -> None:
    ended(ZERO, 0).says("Restarting").replace("worker-0").says("Running").complete().fails("EXIT-01", "created again")


@pytest.mark.parametrize("counts", [None, {}, {"Worker": {}}, {"Worker": None}, {"Worker": {"succeeded": "1"}}])
def test_exit_01_fails_when_it_is_never_counted(counts: object) -> None:
    told = ended(ZERO, 0)
    told.says("Succeeded").write(replicaStatuses=counts)
    told.entries.pop(-2)  # the right count of `says` was never written
    told.complete().fails("EXIT-01", "did not count 1 as succeeded")


def test_exit_01_counts_the_target_and_not_a_sibling_that_was_first() -> None:
    done = (ExitOutcome(code=0),)
    workers = ReplicaGroup(type="Worker", replicas=3)
    scenario = Scenario(
        id="two", kind="TFJob", groups=(workers,), target="worker-1", outcomes={"worker-1": done, "worker-2": done}
    )
    told = Story(scenario).begin().wait(0.5).ends("worker-2", 0).says()
    counted_once = told.counts()
    told.ends("worker-1", 0)
    told.write(replicaStatuses=counted_once)
    told.wait(11).complete().fails("EXIT-01", "did not count 2 as succeeded")
    told = Story(scenario).begin().wait(0.5).ends("worker-2", 0).says().ends("worker-1", 0).says()
    told.complete().passes("EXIT-01", "succeeded is 2")


def test_exit_01_is_unknown_without_a_witness_or_a_whole_window() -> None:
    ended(ZERO, 0).says("Succeeded").complete(witnessed=False).is_unknown("EXIT-01", "alive")
    ended(ZERO, 0).says("Succeeded").complete(window=1).is_unknown("EXIT-01", "of the window `never`")


# --- EXIT-02 ---------------------------------------------------------------------------------------------------


def test_exit_02_passes_when_the_job_fails_and_nothing_is_restarted() -> None:
    told = ended(ONE, 1).says("Failed").complete()
    told.passes("EXIT-02", "the job says Failed")
    assert told.judge("EXIT-02").observed_class == "permanent"


def test_exit_02_passes_when_the_failed_pod_is_deleted_but_not_replaced() -> None:
    ended(ONE, 1).says("Failed").asks_deletion("worker-0").gone("worker-0").complete().passes("EXIT-02")


def test_exit_02_passes_when_the_failure_of_the_job_arrives_before_that_of_the_pod() -> None:
    told = story(ONE).begin().wait(0.5)
    with told.held_back("pods"):
        told.ends("worker-0", 1).says("Failed")
    told.complete().passes("EXIT-02")


def test_exit_02_fails_on_a_restart_whatever_the_job_says() -> None:
    ended(ONE, 1).says("Restarting").replace("worker-0").says("Running").complete().fails("EXIT-02", "created again")
    told = ended(ONE, 1).says("Failed").wait(1).replace("worker-0").complete()
    told.fails("EXIT-02", "created again")
    assert told.judge("EXIT-02").observed_class == "restarted-and-failed"


def test_exit_02_fails_on_a_restart_in_place() -> None:
    told = ended(ONE, 1).restarts_in_place("worker-0").says("Failed").complete()
    told.fails("EXIT-02", "in place")


def test_exit_02_fails_when_the_job_does_not_fail() -> None:
    told = ended(ONE, 1).says().wait(11).complete()
    told.fails("EXIT-02", "did not become Failed")
    assert told.judge("EXIT-02").observed_class == "ignored"


def test_exit_02_fails_at_once_when_the_job_succeeds_instead() -> None:
    told = ended(ONE, 1).says("Succeeded").complete()
    told.fails("EXIT-02", "did not become Failed: the job says Succeeded, 0.0 s after attempt 1 of worker-0")
    assert told.judge("EXIT-02").observed_class == "ignored"


def test_exit_02_is_unknown_when_those_who_decide_had_succeeded_by_then() -> None:
    told = story(BESIDE_CHIEF).begin().ends("worker-1", 1).ends("chief-0", 0).says("Succeeded").complete()
    told.is_unknown("EXIT-02", "did not become Failed, but only")
    assert told.judge("EXIT-02").observed_class is None


def test_exit_02_wants_the_failure_in_time_and_is_unknown_when_nobody_watched_that_long() -> None:
    ended(ONE, 1).wait(11).says("Failed").complete().fails("EXIT-02", "the bound `terminal` is 10 s")
    ended(ONE, 1).complete().is_unknown("EXIT-02", "did not become Failed, but only")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda told: told.begin(), "never seen to end"),
        (lambda told: told.submit(), "never created"),
        (lambda told: told.begin().ends("worker-0", 137), "not what its script was told"),
        (lambda told: told.begin().asks_deletion("worker-0").ends("worker-0", 1), "deleted before it was seen to end"),
        (lambda told: told.begin().says("Failed").ends("worker-0", 1), "the job was Failed before"),
        (lambda told: told.begin().says("Succeeded").ends("worker-0", 1), "the job was Succeeded before"),
        (lambda told: told, "never seen in the cluster"),
    ],
)
def test_exit_02_is_unknown_where_its_premise_is_not_reached(spoil: Callable[[Story], Story], why: str) -> None:
    spoil(story(ONE)).wait(20).complete().is_unknown("EXIT-02", why)


def test_exit_02_is_unknown_where_the_watches_had_a_gap_that_matters() -> None:
    def told(resource: str) -> Story:
        gap = ended(ONE, 1).act("watch-gap", of_the_run=True, detail={"resource": resource})
        return gap.says("Failed").complete()

    told("pods").is_unknown("EXIT-02", "the watch on pods was interrupted")
    told("tfjobs").is_unknown("EXIT-02", "the watch on tfjobs was interrupted")
    told("pytorchjobs").passes("EXIT-02")
    told("events").passes("EXIT-02")


def test_exit_02_is_judged_although_a_gap_came_before_or_after() -> None:
    gap = {"resource": "pods"}
    told = story(ONE).act("watch-gap", of_the_run=True, detail=gap).begin().ends("worker-0", 1).says("Failed")
    told.complete().act("watch-gap", of_the_run=True, detail=gap).passes("EXIT-02")


# --- EXIT-03 and EXIT-04 -----------------------------------------------------------------------------------------


def test_exit_03_passes_on_a_restart() -> None:
    told = story(KILLED).begin().restart("worker-0", 137).complete()
    told.passes("EXIT-03", "created again")
    assert told.judge("EXIT-03").observed_class == "retryable"


def test_exit_04_is_the_same_for_the_users_own_code() -> None:
    story(USERS_OWN).begin().restart("worker-1", 138).complete().passes("EXIT-04")
    story(USERS_OWN).begin().ends("worker-1", 138).says("Failed").wait(11).complete().fails("EXIT-04", "Failed")


def test_exit_03_fails_without_a_restart() -> None:
    ended(KILLED, 137).says().wait(11).complete().fails("EXIT-03", "was not restarted within")
    ended(KILLED, 137).says("Failed").wait(11).complete().fails("EXIT-03", "not restarted", "became Failed")


def test_exit_03_fails_when_the_pod_is_deleted_but_not_created_again() -> None:
    told = ended(KILLED, 137).says("Restarting").asks_deletion("worker-0").gone("worker-0")
    told.wait(11).complete().fails("EXIT-03", "was not restarted within", "was removed")


def test_exit_03_fails_when_the_job_fails_although_it_is_restarted() -> None:
    told = story(KILLED).begin().restart("worker-0", 137).says("Failed").complete()
    told.fails("EXIT-03", "the job became Failed")
    assert told.judge("EXIT-03").observed_class == "restarted-and-failed"


def test_exit_03_does_not_blame_the_operator_for_a_slow_node() -> None:
    told = ended(KILLED, 137).says("Restarting").asks_deletion("worker-0").wait(30)
    told.complete().is_unknown("EXIT-03", "the node has not removed it")


def test_exit_03_counts_from_the_removal_where_the_node_was_slow() -> None:
    told = ended(KILLED, 137).says("Restarting").asks_deletion("worker-0").wait(30).gone("worker-0")
    told.create("worker-0").runs("worker-0").says("Running").complete().passes("EXIT-03")


def test_exit_03_fails_when_the_restart_comes_late() -> None:
    ended(KILLED, 137).wait(12).says("Restarting").replace("worker-0").complete().fails(
        "EXIT-03", "the bound `restart` is 10 s"
    )


def test_exit_03_does_not_blame_the_code_for_a_failure_that_has_another_reason() -> None:
    told = story(KILLED).begin().restart("worker-0", 137).ends("worker-1", 1).says("Failed").complete()
    told.passes("EXIT-03")
    told = story(KILLED).begin().ends("worker-2", 1).ends("worker-0", 137).says("Restarting").replace("worker-0")
    told.says("Failed").complete().passes("EXIT-03")


def test_exit_03_fails_at_once_when_the_job_succeeds_instead() -> None:
    told = ended(KILLED, 137).says("Succeeded").complete()
    told.fails("EXIT-03", "worker-0 was not restarted: the job says Succeeded")
    told = ended(THEN_ZERO, 137).says("Succeeded").complete()
    told.fails("EXIT-12", "worker-0 was not restarted: the job says Succeeded, 0.0 s after attempt 1 of worker-0")


def test_exit_03_is_unknown_when_those_who_decide_succeed_before_the_restart() -> None:
    told = story(USERS_OWN).begin().ends("worker-1", 138).ends("master-0", 0).says("Succeeded").complete()
    told.is_unknown("EXIT-04", "worker-1 was not restarted, but only")


def test_exit_03_gives_the_machine_the_time_that_it_lost() -> None:
    def told(seconds: float, observed: float) -> Story:
        slow = ended(KILLED, 137).wait(3)
        slow.act("held-up", of_the_run=True, detail={"seconds": seconds, "what": "a request of the harness"})
        return slow.wait(observed).complete()

    told(3, 4).is_unknown("EXIT-03", "the machine was too slow to tell")
    told(3, 20).fails("EXIT-03", "was not restarted within")


# --- EXIT-06, EXIT-07, EXIT-09 -----------------------------------------------------------------------------------


def killed(scenario: str, replica: str) -> Story:
    """A scenario with a retryable code, rightly dealt with."""
    return story(scenario).begin().restart(replica, 137).complete()


@pytest.mark.parametrize("requirement", ["EXIT-06", "EXIT-07", "EXIT-09"])
def test_comparisons_pass_on_one_class_fail_on_two_and_wait_for_all(requirement: str) -> None:
    alone, beside = killed("tfjob-worker-exit137-worker1", "worker-0"), killed(KILLED, "worker-0")
    assert compare(requirement, alone, beside).verdict is Verdict.PASS
    ignored = ended(KILLED, 137).says().wait(11).complete()
    judgement = compare(requirement, alone, ignored)
    assert judgement.verdict is Verdict.FAIL
    assert "retryable in tfjob-worker-exit137-worker1, ignored in" in judgement.seen
    failed = ended(KILLED, 137).says("Failed").complete()
    assert compare(requirement, alone, failed).verdict is Verdict.FAIL
    open_one = ended(KILLED, 137).complete()
    assert compare(requirement, alone, open_one).verdict is Verdict.UNKNOWN
    never_ended = story(KILLED).begin().complete()
    judgement = compare(requirement, alone, never_ended)
    assert judgement.verdict is Verdict.UNKNOWN
    assert "never seen to end" in judgement.seen
    assert compare(requirement, never_ended, open_one).verdict is Verdict.UNKNOWN


def test_exit_02_fails_when_a_pod_of_no_replica_takes_the_place() -> None:
    told = ended(ONE, 1)
    manifest = told.manifest("worker-0")
    manifest["metadata"] |= {"name": f"{ONE}-worker-0-retry", "uid": "u-retry", "labels": {}}
    told.event("pods", "ADDED", manifest).says("Failed")
    told.complete().fails("EXIT-02", f"pod {ONE}-worker-0-retry, which stands for no replica, was created")


def test_exit_02_is_unknown_when_a_pod_of_nobody_was_made_meanwhile() -> None:
    told = ended(ONE, 1).says("Failed")
    told.event("pods", "ADDED", {"metadata": {"name": "zz-retry", "uid": "u-zz"}, "spec": {}}, scenario=None)
    told.complete().is_unknown("EXIT-02", "pod zz-retry, which belongs to no job, was created")


def test_exit_07_needs_a_scenario_whose_siblings_were_up() -> None:
    alone = killed("tfjob-worker-exit137-worker1", "worker-0")
    told = story(KILLED).submit().says("Created").create("worker-0", "worker-1", "worker-2").runs("worker-0")
    early = told.restart("worker-0", 137).runs("worker-1", "worker-2").complete()
    judgement = compare("EXIT-07", alone, early)
    assert judgement.verdict is Verdict.UNKNOWN
    assert "all siblings seen up" in judgement.seen
    assert compare("EXIT-06", alone, early).verdict is Verdict.PASS


def missing(code: int) -> Story:
    """A command that is not there ends with this code, and the job fails of it."""
    told = story("tfjob-missing-command-worker1").begin().wait(0.5).ends("worker-0", code)
    return told.says("Failed").complete()


def test_exit_07_leaves_out_a_command_that_ended_with_another_code_than_the_rest() -> None:
    exits = [story(f"tfjob-worker-exit128-{place}").begin() for place in ("worker1", "ps1-worker3")]
    told = [one.restart("worker-0", 128).complete() for one in exits]
    judgement = compare("EXIT-07", *told, missing(127), contract="kubeflow-api")
    assert judgement.verdict is Verdict.PASS
    assert "tfjob-missing-command-worker1 ended with 127" in judgement.seen
    judgement = compare("EXIT-07", told[0], missing(127), contract="kubeflow-api")
    assert judgement.verdict is Verdict.UNKNOWN
    assert compare("EXIT-07", *told, missing(128), contract="kubeflow-api").verdict is Verdict.FAIL


def test_what_is_told_in_the_wrong_order_takes_no_time_and_never_less() -> None:
    told = story(KILLED).begin()
    with told.held_back("pods"):
        told.ends("worker-0", 137).says("Failed").wait(2)
    told.complete().fails("EXIT-03", "became Failed 0.0 s after attempt 1 of worker-0 ended with 137")


def test_comparisons_point_at_lines_of_the_recording() -> None:
    late = story(KILLED).begin()
    with late.held_back("pods"):
        late.ends("worker-0", 137).says("Failed")
    late.complete()
    (end,) = [e.seq for e in late.entries if getattr(e, "resource", "") == "pods" and "'exitCode': 137" in str(e)]
    judgement = compare("EXIT-06", killed("tfjob-worker-exit137-worker1", "worker-0"), late)
    assert judgement.verdict is Verdict.FAIL
    assert end in judgement.deciding


# --- EXIT-12 -----------------------------------------------------------------------------------------------------


def test_exit_12_passes_when_the_last_code_decides() -> None:
    told = story(THEN_ZERO).begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 0).says("Succeeded")
    told.complete().passes("EXIT-12")
    told = story(THEN_ONE).begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 1).says("Failed")
    told.complete().passes("EXIT-12")


def test_exit_12_fails_on_one_restart_too_many() -> None:
    told = story(THEN_ZERO).begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 0)
    told.says("Restarting").replace("worker-0").says("Running").says("Succeeded").complete()
    told.fails("EXIT-12", "created again")


def test_exit_12_fails_where_the_sequence_breaks_off() -> None:
    told = story(THEN_ZERO).begin().ends("worker-0", 137).wait(11)
    told.complete().fails("EXIT-12", "was not restarted")
    told = story(THEN_ZERO).begin().restart("worker-0", 137).says("Failed").complete()
    told.fails("EXIT-12", "broke off after attempt 1")


def test_exit_12_fails_on_the_wrong_end() -> None:
    told = story(THEN_ONE).begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 1).says("Succeeded")
    told.complete().fails("EXIT-12", "did not become Failed: the job says Succeeded")
    told = story(THEN_ZERO).begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 0).says("Failed")
    told.complete().fails("EXIT-12", "did not become Succeeded: the job says Failed, 0.0 s after attempt 2")
    told = story(THEN_ONE).begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 1).says().wait(11)
    told.complete().fails("EXIT-12", "did not become Failed within")
    told = story(THEN_ZERO).begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 0).says().wait(11)
    told.complete().fails("EXIT-12", "did not become Succeeded")


def test_exit_12_is_unknown_when_an_attempt_read_an_outdated_outcome() -> None:
    told = story(THEN_ZERO).begin().restart("worker-0", 137).restart("worker-0", 137)
    told.ends("worker-0", 0).says("Succeeded").complete().is_unknown("EXIT-12", "the outcome was set too late")


def test_the_contract_decides_what_is_expected() -> None:
    told = ended("tfjob-worker-exit139-worker1", 139).says("Failed").complete()
    told.passes("EXIT-02", contract="kubeflow-docs")
    told.wait(11).complete()
    scenario = Scenario(
        id="segv",
        kind="TFJob",
        groups=(ReplicaGroup(type="Worker", replicas=1),),
        target="worker-0",
        outcomes={"worker-0": (ExitOutcome(code=139),)},
        steps=(UntilTerminal(),),
    )
    again = Story(scenario).begin().restart("worker-0", 139).restart("worker-0", 139).complete()
    again.passes("EXIT-03", contract="kubeflow-api")
