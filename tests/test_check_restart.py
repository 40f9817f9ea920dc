"""RESTART: restarts by the operator under ExitCode, and by the kubelet under the other policies."""

from collections.abc import Callable
from typing import Any

import pytest
from history_builder import Story, story
from job_objects import Json

from exitcode_conformance.scenario import ExitOutcome, ReplicaGroup, Scenario

KILLED = "tfjob-worker-exit137-worker3"
ALONE = "tfjob-worker-exit137-worker1"
WITH_SERVERS = "tfjob-worker-exit137-ps1-worker3"
FINISHED_SIBLING = "tfjob-worker-exit137-sibling0-worker3"
ALWAYS = "tfjob-worker1-always0-worker3"
ON_FAILURE = "tfjob-worker1-onfailure1-worker3"
ON_FAILURE_ZERO = "tfjob-worker1-onfailure0-worker3"
NEVER = "pytorchjob-worker-never137-master1-worker2"
SEED = "tftest"
IN_PLACE = pytest.mark.parametrize(
    ("requirement", "scenario", "code"), [("RESTART-05", ALWAYS, 0), ("RESTART-06", ON_FAILURE, 1)]
)


def killed(scenario: str = KILLED) -> Story:
    """Worker 0 has ended with 137, and the job says Restarting."""
    return story(scenario).begin().wait(0.5).ends("worker-0", 137).says("Restarting")


def restarted(scenario: str = KILLED) -> Story:
    """Worker 0 has been restarted rightly."""
    return killed(scenario).replace("worker-0").says("Running")


# --- RESTART-01 and RESTART-02 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("requirement", ["RESTART-01", "RESTART-02", "RESTART-03", "RESTART-08"])
def test_a_right_restart_passes(requirement: str) -> None:
    restarted().complete().passes(requirement)
    story("pytorchjob-master-sigkill-master1-worker2").begin().restart("master-0", 137).complete().passes(requirement)


def test_a_right_restart_passes_without_a_deletion_timestamp() -> None:
    told = killed().gone("worker-0").create("worker-0").runs("worker-0").says("Running").complete()
    for requirement in ("RESTART-01", "RESTART-02", "RESTART-03", "RESTART-08"):
        told.passes(requirement)


@pytest.mark.parametrize("requirement", ["RESTART-01", "RESTART-02", "RESTART-08"])
def test_without_a_restart_of_the_target_nothing_is_known_of_restarts(requirement: str) -> None:
    killed().wait(11).complete().is_unknown(requirement, "no pod was ever created in place of the failed one")
    told = killed().replace("worker-1").wait(11).complete()
    told.is_unknown(requirement, "no pod was ever created in place of the failed one of worker-0")


def test_a_wrong_restart_of_another_decides_although_the_target_was_never_restarted() -> None:
    told = killed()
    manifest = told.manifest("worker-1")
    manifest["metadata"]["name"] += "-again"
    told.create("worker-1", manifest=manifest).wait(11).complete()
    told.fails("RESTART-01", "was followed by a pod named")
    told.fails("RESTART-02", "was created while the old pod was still there")
    told = killed().asks_deletion("worker-1").gone("worker-1")
    manifest = told.manifest("worker-1")
    manifest["spec"]["containers"][0]["image"] = "other"
    told.create("worker-1", manifest=manifest).wait(11).complete().fails("RESTART-08", "spec of", "changed")


def test_restart_01_fails_on_a_restart_in_place() -> None:
    killed().restarts_in_place("worker-0").says("Running").complete().fails("RESTART-01", "in place")


def test_restart_01_fails_on_another_name_and_on_a_pod_that_stays() -> None:
    told = killed()
    manifest = told.manifest("worker-0")
    manifest["metadata"]["name"] += "-again"
    told.create("worker-0", manifest=manifest).complete()
    told.fails("RESTART-01", "was followed by a pod named")


def test_restart_01_fails_on_a_replacement_that_the_kubelet_restarts() -> None:
    told = restarted()
    status = {"restartCount": 2, "state": {"running": {}}}
    told.touch("worker-0", container=status).complete().fails("RESTART-01", "in place")


def test_restart_02_fails_when_the_new_pod_comes_first() -> None:
    told = killed()
    manifest = told.manifest("worker-0")
    manifest["metadata"]["name"] += "-again"
    told.create("worker-0", manifest=manifest)
    told.asks_deletion("worker-0").gone("worker-0").complete()
    told.fails("RESTART-02", "was created while the old pod was still there")


# --- RESTART-03 --------------------------------------------------------------------------------------------------


def test_restart_03_fails_on_each_way_to_touch_a_sibling() -> None:
    killed().replace("worker-0").asks_deletion("worker-1").complete().fails("RESTART-03", "worker-1 was deleted")
    killed().replace("worker-0").gone("worker-2").complete().fails("RESTART-03", "worker-2 was deleted")
    killed().replace("worker-0").replace("worker-2").complete().fails("RESTART-03", "worker-2")
    told = killed().replace("worker-0")
    told.touch("worker-2", container={"restartCount": 1, "state": {"running": {}}})
    told.complete().fails("RESTART-03", "worker-2 was started again in place")


def test_restart_03_looks_at_other_types_too() -> None:
    restarted(WITH_SERVERS).replace("ps-0").complete().fails("RESTART-03", "ps-0")


def test_restart_03_allows_the_kubelet_to_restart_a_sibling_under_always() -> None:
    told = story(SEED).begin().wait(1).ends("worker-0", 138).says("Restarting").replace("worker-0").says("Running")
    told.ends("ps-0", 0).restarts_in_place("ps-0").complete().passes("RESTART-03")


def test_restart_03_allows_cleaning_up_after_the_end_and_right_before_it() -> None:
    told = story("tfjob-worker-sigkill-ps1-worker3").begin().restart("worker-0", 137).wait(0.5).ends("worker-0", 0)
    told.says("Succeeded").asks_deletion("worker-1", "worker-2").gone("worker-1", "worker-2").complete()
    told.passes("RESTART-03")
    told = story(SEED).begin().restart("worker-0", 138).wait(1).ends("worker-0", 138)
    told.asks_deletion("worker-1", "worker-2", "ps-0").ends("ps-0", 143).gone("worker-1", "worker-2", "ps-0")
    told.says("Failed").complete().passes("RESTART-03")


def test_restart_03_is_not_excused_by_an_end_that_comes_later() -> None:
    told = story("tfjob-worker-sigkill-ps1-worker3").begin().wait(0.5).ends("worker-0", 137).says("Restarting")
    told.replace("worker-0").replace("worker-1").says("Running").wait(0.5).ends("worker-0", 0).says("Succeeded")
    told.complete().fails("RESTART-03", "worker-1 was deleted")


def test_restart_03_is_unknown_when_a_sibling_failed_by_itself() -> None:
    told = restarted().ends("worker-1", 137).says("Restarting").replace("worker-1").says("Running").complete()
    told.is_unknown("RESTART-03", "a failure of its own")
    told = restarted()
    told.pod("worker-1").object["status"]["reason"] = "Evicted"
    told.touch("worker-1", phase="Failed").replace("worker-1").complete()
    told.is_unknown("RESTART-03", "a failure of its own")


@pytest.mark.parametrize(("own", "touched"), [("worker-1", "worker-2"), ("worker-2", "worker-1")])
def test_restart_03_fails_for_a_sibling_whatever_another_did(own: str, touched: str) -> None:
    told = restarted().ends(own, 137).says("Restarting").replace(own).asks_deletion(touched).gone(touched)
    told.says("Running").complete().fails("RESTART-03", f"{touched} was deleted")


def test_restart_03_is_unknown_without_a_restart_a_sibling_or_a_witness() -> None:
    killed().wait(11).complete().is_unknown("RESTART-03", "the target was never restarted")
    told = story(KILLED).submit().says("Created").create("worker-0").runs("worker-0").restart("worker-0", 137)
    told.complete().is_unknown("RESTART-03", "was never created")
    restarted().complete(witnessed=False).is_unknown("RESTART-03", "alive")


# --- RESTART-04 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "right"), [(KILLED, "Never"), (ALWAYS, "Always"), (ON_FAILURE, "OnFailure"), (NEVER, "Never")]
)
def test_restart_04_wants_the_pod_policy_that_belongs_to_the_replicas(scenario: str, right: str) -> None:
    told = story(scenario).begin().complete()
    told.passes("RESTART-04")
    for policy in ("Never", "Always", "OnFailure", "ExitCode", None):
        wrong = story(scenario).submit().says("Created")
        replica = wrong.replicas[-1]
        manifest = wrong.manifest(replica)
        manifest["spec"]["restartPolicy"] = policy
        wrong.create(*wrong.replicas[:-1]).create(replica, manifest=manifest).complete()
        if policy == right:
            wrong.passes("RESTART-04")
        else:
            wrong.fails("RESTART-04", f"has restartPolicy {policy}")


def test_restart_04_is_unknown_when_no_pod_stands_for_a_replica() -> None:
    told = story(ALONE).submit()
    manifest = told.manifest("worker-0")
    manifest["metadata"] |= {"name": "somebody", "labels": {}}
    told.create("worker-0", manifest=manifest).complete().is_unknown("RESTART-04", "no pod stands for a replica")


# --- RESTART-05, RESTART-06, RESTART-07 ----------------------------------------------------------------------------


def ended(scenario: str, replica: str, code: int) -> Story:
    """The replica has ended."""
    return story(scenario).begin().wait(0.5).ends(replica, code)


@IN_PLACE
def test_a_restart_in_place_passes_and_nothing_else_does(requirement: str, scenario: str, code: int) -> None:
    ended(scenario, "worker-1", code).restarts_in_place("worker-1").complete().passes(requirement)
    told = ended(scenario, "worker-1", code).waits_for_restart("worker-1").wait(10).restarts_in_place("worker-1")
    told.complete().passes(requirement)
    ended(scenario, "worker-1", code).replace("worker-1").complete().fails(requirement, "got a new pod")
    told = ended(scenario, "worker-1", code).asks_deletion("worker-1").gone("worker-1").complete()
    told.fails(requirement, "was not started again: it is deleted")
    told = ended(scenario, "worker-1", code).says("Failed").complete()
    told.fails(requirement, "the job became Failed")
    told = ended(scenario, "worker-1", code).restarts_in_place("worker-1").says("Failed").complete()
    told.fails(requirement, "the job became Failed")
    told = story(scenario).begin().ends("worker-1", code, phase="Failed").complete()
    told.fails(requirement, "it is Failed")


@IN_PLACE
def test_a_kubelet_that_is_slow_says_nothing_of_the_operator(requirement: str, scenario: str, code: int) -> None:
    told = ended(scenario, "worker-1", code).waits_for_restart("worker-1").wait(60).complete()
    told.is_unknown(requirement, "its pod is still there")


@IN_PLACE
def test_a_pod_that_the_cluster_takes_away_says_nothing_of_the_operator(
    requirement: str, scenario: str, code: int
) -> None:
    told = ended(scenario, "worker-1", code)
    told.pod("worker-1").object["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    told.asks_deletion("worker-1").gone("worker-1").complete().is_unknown(requirement, "taken away by the cluster")


def test_restart_06_wants_no_restart_after_zero() -> None:
    ended(ON_FAILURE_ZERO, "worker-1", 0).says().complete().passes("RESTART-06", "no new attempt")
    told = ended(ON_FAILURE_ZERO, "worker-1", 0).restarts_in_place("worker-1").complete()
    told.fails("RESTART-06", "in place")
    ended(ON_FAILURE_ZERO, "worker-1", 0).replace("worker-1").complete().fails("RESTART-06", "created again")


def test_restart_07_wants_failure_and_no_restart() -> None:
    ended(NEVER, "worker-0", 137).says("Failed").complete().passes("RESTART-07")
    ended(NEVER, "worker-0", 137).says().wait(11).complete().fails("RESTART-07", "did not become Failed")
    ended(NEVER, "worker-0", 137).says("Succeeded").complete().fails("RESTART-07", "the job says Succeeded")
    told = ended(NEVER, "worker-0", 137).says("Restarting").replace("worker-0").says("Running").wait(11).complete()
    told.fails("RESTART-07", "created again", "did not become Failed")
    ended(NEVER, "worker-0", 137).says("Failed").complete(witnessed=False).is_unknown("RESTART-07", "alive")


# --- RESTART-08 --------------------------------------------------------------------------------------------------


def replaced_by(change: Callable[[Json], Any], scenario: str = KILLED) -> Story:
    """Worker 0 is restarted with a pod that was changed."""
    told = killed(scenario).asks_deletion("worker-0").gone("worker-0")
    manifest = told.manifest("worker-0")
    change(manifest)
    return told.create("worker-0", manifest=manifest).runs("worker-0").says("Running").complete()


CHANGES: dict[str, Callable[[Json], Any]] = {
    "a label more": lambda pod: pod["metadata"]["labels"].update({"attempt": "2"}),
    "a label less": lambda pod: pod["metadata"]["labels"].popitem(),
    "another owner": lambda pod: pod["metadata"]["ownerReferences"][0].update({"uid": "somebody"}),
    "no owner": lambda pod: pod["metadata"].pop("ownerReferences"),
    "another policy": lambda pod: pod["spec"].update({"restartPolicy": "Always"}),
    "another image": lambda pod: pod["spec"]["containers"][0].update({"image": "other"}),
    "no environment": lambda pod: pod["spec"]["containers"][0].pop("env"),
    "another environment": lambda pod: pod["spec"]["containers"][0]["env"][0].update({"value": "{}"}),
    "a container more": lambda pod: pod["spec"]["containers"].append({"name": "sidecar"}),
    "a volume": lambda pod: pod["spec"].update({"volumes": [{"name": "data", "emptyDir": {}}]}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_restart_08_fails_when_the_replacement_is_another(change: Callable[[Json], Any]) -> None:
    replaced_by(change).fails("RESTART-08", "changed in the restart")


def _as_admission_does(pod: Json) -> None:
    pod["spec"]["volumes"] = [
        {"name": "kube-api-access-x7abc", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    ]
    mount = {"name": "kube-api-access-x7abc", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    pod["spec"]["containers"][0]["volumeMounts"] = [mount]
    pod["spec"] |= {"nodeName": "node-2", "tolerations": [{"key": "node.kubernetes.io/not-ready"}]}


def _in_another_order(pod: Json) -> None:
    container = pod["spec"]["containers"][0]
    container["env"].reverse()
    for variable in container["env"]:
        if variable["name"] == "TF_CONFIG":
            variable["value"] = variable["value"].replace(": ", " :  ")


@pytest.mark.parametrize("change", [_as_admission_does, _in_another_order])
def test_restart_08_does_not_mind_what_others_add_or_how_it_is_written(change: Callable[[Json], None]) -> None:
    replaced_by(change).passes("RESTART-08")


# --- RESTART-10 --------------------------------------------------------------------------------------------------


def sibling_done() -> Story:
    """Worker 1 has succeeded when worker 0 is killed."""
    told = story(FINISHED_SIBLING).begin().wait(0.5).ends("worker-1", 0).says().wait(2.5)
    return told.ends("worker-0", 137).says("Restarting")


def test_restart_10_passes_when_the_completed_replica_is_left_alone() -> None:
    sibling_done().replace("worker-0").says("Running").complete().passes("RESTART-10")


def test_restart_10_fails_when_the_completed_replica_is_run_again() -> None:
    sibling_done().replace("worker-0").replace("worker-1").says("Running").complete().fails("RESTART-10", "worker-1")


def test_restart_10_is_unknown_when_the_sibling_was_not_done_before_a_restart() -> None:
    told = story(FINISHED_SIBLING).begin().restart("worker-0", 137).ends("worker-1", 0).complete()
    told.is_unknown("RESTART-10", "no restart was seen after worker-1 had succeeded")
    sibling_done().wait(11).complete().is_unknown("RESTART-10", "no pod was ever created")
    told = sibling_done().replace("worker-0").says("Running").complete(witnessed=False)
    told.is_unknown("RESTART-10", "alive")


def test_a_sibling_under_always_is_never_completed() -> None:
    scenario = Scenario(
        id="always",
        kind="TFJob",
        groups=(ReplicaGroup(type="PS", replicas=1, restart_policy="Always"), ReplicaGroup(type="Worker", replicas=1)),
        target="worker-0",
        outcomes={"worker-0": (ExitOutcome(code=137),), "ps-0": (ExitOutcome(code=0),)},
    )
    told = Story(scenario).begin().ends("ps-0", 0).restarts_in_place("ps-0").restart("worker-0", 137).complete()
    told.passes("RESTART-10")
