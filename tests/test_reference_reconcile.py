"""What the pure core wants done: each policy and code, restarts, conditions, success, limits, cleaning."""

import copy
from typing import Any

import pytest
from reference_support import Thing, World, job_manifest, replicas, running, workers

from exitcode_reference_controller.ledger import ANNOTATION
from exitcode_reference_controller.plan import Delete

PERMANENT = (1, 2, 3, 64, 125, 126, 127, 128, 139)
RETRYABLE = (129, 130, 137, 138, 143, 200, 255)


# ---- exit codes under each policy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", PERMANENT)
def test_a_permanent_code_fails_the_job(code: int) -> None:
    world = running(workers(2))
    world.exit("j-worker-1", code)
    world.settle()
    assert world.states == ["Created", "Running", "Failed"]
    assert world.deleted == []
    assert world.counts("Worker") == (1, 0, 1)


@pytest.mark.parametrize("code", RETRYABLE)
def test_a_retryable_code_replaces_the_pod_and_nothing_else(code: int) -> None:
    world = running(workers(3))
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    world.exit("j-worker-1", code)
    world.settle()
    world.run("j-worker-1")
    world.settle()
    assert world.states == ["Created", "Running", "Restarting", "Running"]
    assert world.deleted == ["pods/j-worker-1"]
    after = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    assert {name for name in before if before[name] != after[name]} == {"j-worker-1"}


@pytest.mark.parametrize("code", [*PERMANENT, *RETRYABLE])
def test_never_fails_the_job_whatever_the_code(code: int) -> None:
    world = running(workers(1, "Never"))
    world.exit("j-worker-0", code)
    world.settle()
    assert world.state == "Failed"
    assert world.deleted == []


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_a_restart_in_place_is_the_kubelets_and_is_not_spoken_of(policy: str) -> None:
    world = running(workers(1, policy))
    world.phase("j-worker-0", "Running", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=5)
    world.settle()
    assert world.states == ["Created", "Running"]
    assert world.deleted == []


@pytest.mark.parametrize(
    ("policy", "state"),
    [("ExitCode", "Failed"), ("Never", "Failed"), ("Always", "Restarting"), ("OnFailure", "Restarting")],
)
def test_a_pod_that_failed_without_a_code(policy: str, state: str) -> None:
    world = running(workers(1, policy))
    world.pods["j-worker-0"]["status"] = {"phase": "Failed", "reason": "Evicted"}
    world.settle()
    assert world.state == state


def test_the_code_of_a_pod_that_still_runs_counts_for_nothing() -> None:
    world = running(workers(1))
    world.phase("j-worker-0", "Running", {"terminated": {"exitCode": 1}})
    world.settle()
    assert world.state == "Running"


@pytest.mark.parametrize(("code", "sidecar", "state"), [(137, 1, "Restarting"), (1, 137, "Failed")])
def test_only_the_training_containers_code_counts(code: int, sidecar: int, state: str) -> None:
    world = running(workers(2))
    world.exit("j-worker-0", code, sidecar=sidecar)
    world.settle()
    assert world.state == state


def test_an_mpijob_does_not_restart_by_exit_code() -> None:
    specs = {"Launcher": replicas("MPIJob"), "Worker": replicas("MPIJob")}
    world = running(job_manifest("MPIJob", specs))
    world.exit("j-launcher-0", 137)
    world.settle()
    assert world.state == "Failed"


# ---- how a restart is done -------------------------------------------------------------------------------------------


def test_nothing_is_created_before_the_old_pod_is_gone() -> None:
    world = running(workers(1))
    world.exit("j-worker-0", 137)
    world.created.clear()
    assert [type(action) for action in world.step().actions] == [Delete]
    assert world.step().actions == ()
    assert world.state == "Restarting"
    del world.pods["j-worker-0"]
    world.step()
    assert world.created == ["Pod/j-worker-0"]


def test_the_ledger_is_written_with_the_deletion_and_counts_a_pod_once() -> None:
    world = running(workers(1))
    world.exit("j-worker-0", 137)
    crashed = world.plan()
    assert crashed.ledger is not None
    world.job["metadata"]["annotations"] = {ANNOTATION: crashed.ledger.annotation()}
    again = world.plan()
    assert again.ledger is None
    assert again.actions == crashed.actions
    world.settle()
    world.run()
    world.settle()
    assert world.states == ["Created", "Running", "Restarting", "Running"]
    assert '"count":1' in world.job["metadata"]["annotations"][ANNOTATION]


@pytest.mark.parametrize("crash_after", range(6))
@pytest.mark.parametrize("crashing_pass", range(6))
def test_a_crash_between_any_two_writes_changes_nothing_of_the_outcome(crashing_pass: int, crash_after: int) -> None:
    world = running(workers(2, backoffLimit=1))
    world.exit("j-worker-0", 138)
    for number in range(6):
        world.step(writes=crash_after if number == crashing_pass else None)
        world.let_go()
    world.run()
    world.settle()
    assert world.states == ["Created", "Running", "Restarting", "Running"]
    assert world.deleted.count("pods/j-worker-0") == 1
    assert world.created.count("Pod/j-worker-0") == 2
    assert set(world.pods) == {"j-worker-0", "j-worker-1"}
    world.exit("j-worker-0", 138)
    world.settle()
    assert world.state == "Failed"


def test_the_replacement_is_the_same_but_for_its_uid() -> None:
    specs = {"PS": replicas("TFJob"), "Worker": replicas("TFJob", 2)}
    world = running(job_manifest("TFJob", specs))
    first = copy.deepcopy(world.pods["j-worker-0"])
    world.exit("j-worker-0", 143)
    world.settle()
    second = copy.deepcopy(world.pods["j-worker-0"])
    assert first["metadata"].pop("uid") != second["metadata"].pop("uid")
    assert first["metadata"] == second["metadata"]
    assert first["spec"] == second["spec"]
    assert "TF_CONFIG" in {entry["name"] for entry in second["spec"]["containers"][0]["env"]}


def test_a_completed_replica_is_not_run_again() -> None:
    world = running(workers(3))
    world.exit("j-worker-2", 0)
    world.exit("j-worker-1", 137)
    world.settle()
    world.run("j-worker-1")
    world.settle()
    assert world.deleted == ["pods/j-worker-1"]
    assert world.counts("Worker") == (2, 1, 0)


def test_permanent_and_retryable_at_the_same_moment_fail_the_job() -> None:
    world = running(workers(2))
    world.exit("j-worker-0", 137)
    world.exit("j-worker-1", 1)
    world.settle()
    assert world.states == ["Created", "Running", "Failed"]
    assert world.deleted == []
    assert world.condition("Running") == "False"


def test_a_permanent_code_during_a_restart_leaves_nothing_true_beside_failed() -> None:
    world = running(workers(2))
    world.exit("j-worker-0", 137)
    world.settle()
    world.exit("j-worker-1", 1)
    world.settle()
    assert world.states == ["Created", "Running", "Restarting", "Failed"]
    assert world.condition("Restarting") == "False"


def test_a_pod_deleted_from_outside_is_replaced_without_a_restart_being_spoken_of() -> None:
    world = running(workers(2))
    world.exit("j-worker-1", 143)
    world.pods["j-worker-1"]["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    assert world.step().actions == ()
    world.settle()
    assert world.states == ["Created", "Running"]
    assert world.created[-1] == "Pod/j-worker-1"


def test_a_pod_of_an_earlier_job_of_this_name_is_waited_for() -> None:
    world = World(job=workers(2))
    stranger = {
        "kind": "Pod",
        "metadata": {"name": "j-worker-0", "ownerReferences": [{"controller": True, "uid": "another"}]},
        "spec": {},
    }
    world.create(copy.deepcopy(stranger))
    world.settle()
    assert world.created[1:] == ["Service/j-worker-1", "Pod/j-worker-1"]
    del world.pods["j-worker-0"]
    world.settle()
    assert set(world.created[3:]) == {"Service/j-worker-0", "Pod/j-worker-0"}


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    world = running(workers(1))
    world.exit("j-worker-0", 137)
    world.job["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    plan = world.plan()
    assert (plan.ledger, plan.actions, plan.announcements) == (None, (), ())
    assert plan.status == world.job["status"]


# ---- what the job says -----------------------------------------------------------------------------------------------


def test_a_job_says_running_only_when_every_replica_runs_or_has_completed() -> None:
    world = World(job=workers(2))
    world.settle()
    world.run("j-worker-0")
    world.settle()
    assert world.state == "Created"
    world.exit("j-worker-0", 137)
    world.run("j-worker-1")
    world.settle()
    assert world.states == ["Created", "Restarting"]


def test_times_move_only_when_a_status_does() -> None:
    world = running(workers(2))
    start = world.job["status"]["startTime"]
    running_since = world.job["status"]["conditions"][-1]["lastTransitionTime"]
    world.wait(5)
    world.settle()
    assert world.job["status"]["conditions"][-1]["lastTransitionTime"] == running_since
    world.wait(5)
    world.exit("j-worker-1", 137)
    world.settle()
    world.wait(5)
    world.run()
    world.settle()
    world.wait(5)
    world.exit("j-worker-0", 0)
    world.settle()
    status = world.job["status"]
    assert status["startTime"] == start == "2024-05-01T12:00:00Z"
    assert status["completionTime"] == "2024-05-01T12:00:20Z"
    assert [(c["type"], c["status"], c["lastTransitionTime"][-3:-1]) for c in status["conditions"]] == [
        ("Created", "True", "00"),
        ("Running", "False", "20"),
        ("Succeeded", "True", "20"),
    ]
    ended = copy.deepcopy(status)
    world.wait(100)
    world.exit("j-worker-1", 1)
    world.settle()
    assert world.job["status"]["conditions"] == ended["conditions"]
    assert world.job["status"]["completionTime"] == ended["completionTime"]


# ---- success ---------------------------------------------------------------------------------------------------------

TF, TORCH = "TFJob", "PyTorchJob"
SUCCESS: list[tuple[str, Thing, Thing, list[str], str]] = [
    (TF, {"Worker": 2}, {}, ["worker-0"], "Succeeded"),
    (TF, {"Worker": 2}, {}, ["worker-1"], "Running"),
    (TF, {"Worker": 2}, {"successPolicy": "AllWorkers"}, ["worker-0"], "Running"),
    (TF, {"Worker": 2}, {"successPolicy": "AllWorkers"}, ["worker-0", "worker-1"], "Succeeded"),
    (TF, {"Chief": 1, "Worker": 2}, {}, ["worker-0", "worker-1"], "Running"),
    (TF, {"Chief": 1, "Worker": 2}, {}, ["chief-0"], "Succeeded"),
    (TF, {"Master": 1, "Worker": 1}, {}, ["master-0"], "Succeeded"),
    (TF, {"PS": 1, "Worker": 1}, {}, ["ps-0"], "Running"),
    (TF, {"PS": 1, "Worker": 1}, {}, ["worker-0"], "Succeeded"),
    (TF, {"PS": 1, "Worker": 1, "Evaluator": 1}, {}, ["evaluator-0"], "Running"),
    (TORCH, {"Master": 1, "Worker": 2}, {}, ["worker-0", "worker-1"], "Running"),
    (TORCH, {"Master": 1, "Worker": 2}, {}, ["master-0"], "Succeeded"),
    (TORCH, {"Worker": 2}, {}, ["worker-0"], "Running"),
    (TORCH, {"Worker": 2}, {}, ["worker-0", "worker-1"], "Succeeded"),
    ("PaddleJob", {"Worker": 2}, {}, ["worker-0", "worker-1"], "Succeeded"),
    ("XGBoostJob", {"Master": 1, "Worker": 1}, {}, ["master-0"], "Succeeded"),
    ("MPIJob", {"Launcher": 1, "Worker": 1}, {}, ["launcher-0"], "Succeeded"),
    ("JAXJob", {"Worker": 2}, {}, ["worker-0"], "Running"),
    ("JAXJob", {"Worker": 2}, {}, ["worker-0", "worker-1"], "Succeeded"),
]


@pytest.mark.parametrize(("kind", "numbers", "spec", "completed", "state"), SUCCESS)
def test_the_success_rule_of_the_kind(kind: str, numbers: Thing, spec: Thing, completed: list[str], state: str) -> None:
    specs = {replica_type: replicas(kind, number) for replica_type, number in numbers.items()}
    world = running(job_manifest(kind, specs, **spec))
    for replica in completed:
        world.exit(f"j-{replica}", 0)
    world.settle()
    assert world.state == state


@pytest.mark.parametrize("replica", ["ps-0", "evaluator-0", "worker-0"])
def test_a_failed_replica_of_any_type_fails_the_job(replica: str) -> None:
    numbers = {"Chief": 1, "PS": 1, "Worker": 1, "Evaluator": 1}
    world = running(job_manifest("TFJob", {t: replicas("TFJob", n) for t, n in numbers.items()}))
    world.exit(f"j-{replica}", 1)
    world.settle()
    assert world.state == "Failed"


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_as_many_restarts_as_the_backoff_limit_are_made(limit: int) -> None:
    world = running(workers(2, backoffLimit=limit))
    for _ in range(limit):
        world.exit("j-worker-0", 138)
        world.settle()
        world.run()
        world.settle()
    world.exit("j-worker-0", 138)
    world.settle()
    assert world.states == ["Created", "Running", *["Restarting", "Running"] * limit, "Failed"]
    assert len(world.deleted) == limit


def test_the_backoff_limit_is_the_jobs_and_not_each_replicas() -> None:
    world = running(workers(2, backoffLimit=1))
    world.exit("j-worker-0", 138)
    world.settle()
    world.run()
    world.exit("j-worker-1", 138)
    world.settle()
    assert world.state == "Failed"


def test_without_a_limit_restarts_go_on() -> None:
    world = running(workers(1))
    for _ in range(20):
        world.exit("j-worker-0", 137)
        world.settle()
        world.run()
        world.settle()
    assert world.state == "Running"
    assert len(world.deleted) == 20


@pytest.mark.parametrize(
    ("limit", "restarts", "state"), [(0, 0, "Running"), (0, 1, "Failed"), (3, 2, "Running"), (3, 3, "Failed")]
)
@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_restarts_in_place_reach_the_backoff_limit(policy: str, limit: int, restarts: int, state: str) -> None:
    world = running(workers(2, policy, backoffLimit=limit))
    world.phase("j-worker-1", "Running", {"running": {}}, restarts=restarts)
    world.settle()
    assert world.state == state


def test_restarts_in_place_are_counted_apart_from_the_controllers_own() -> None:
    specs = {"PS": replicas("TFJob", 1, "Always"), "Worker": replicas("TFJob", 1)}
    world = running(job_manifest("TFJob", specs, run_policy={"backoffLimit": 2}))
    world.phase("j-ps-0", "Running", {"running": {}}, restarts=1)
    for _ in range(2):
        world.exit("j-worker-0", 138)
        world.settle()
        world.run("j-worker-0")
        world.settle()
    assert world.state == "Running"


def test_a_job_is_ended_at_its_deadline_and_not_before() -> None:
    world = running(workers(1, activeDeadlineSeconds=10))
    wake_at = world.plan().wake_at
    assert wake_at is not None
    assert 10 <= (wake_at - world.now).total_seconds() <= 11
    world.wait(9.9)
    world.settle()
    assert world.state == "Running"
    world.now = wake_at
    world.settle()
    assert world.state == "Failed"


def test_a_finished_job_is_deleted_after_its_ttl_and_not_before() -> None:
    world = running(workers(1, ttlSecondsAfterFinished=5))
    assert world.plan().wake_at is None
    world.exit("j-worker-0", 0)
    world.settle()
    wake_at = world.plan().wake_at
    assert wake_at is not None
    world.wait(4.9)
    world.settle()
    assert not world.job_is_deleted
    world.now = wake_at
    world.step()
    assert world.job_is_deleted


# ---- cleaning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (None, {"j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3"}),
        ("None", {"j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3"}),
        ("Running", {"j-worker-0", "j-worker-1"}),
        ("All", set()),
    ],
)
def test_clean_pod_policy(policy: str | None, kept: set[str], failing: bool) -> None:
    world = World(job=workers(4, **({} if policy is None else {"cleanPodPolicy": policy})))
    world.settle()
    world.run("j-worker-0", "j-worker-1", "j-worker-2")
    world.settle()
    world.exit("j-worker-1", 0)
    world.exit("j-worker-0", 1 if failing else 0)
    world.settle()
    assert world.state == ("Failed" if failing else "Succeeded")
    assert set(world.pods) == set(world.services) == kept
    active = 1 if policy in (None, "None") else 0
    assert world.counts("Worker") == ((active, 1, 1) if failing else (active, 2, 0))


# ---- events ----------------------------------------------------------------------------------------------------------


def test_what_happens_is_told_once_however_often_it_is_looked_at() -> None:
    specs = {"Worker": replicas("TFJob", 2, "ExitCode", restartPolicy="Always")}
    world = running(job_manifest("TFJob", specs))
    world.exit("j-worker-1", 137)
    world.settle()
    world.run("j-worker-1")
    world.settle()
    world.exit("j-worker-0", 0)
    for _ in range(3):
        world.settle()
    assert sorted(world.reasons()) == [
        "ExitedWithCode",
        "ExitedWithCode",
        "SettedPodTemplateRestartPolicy",
        "TFJobRestarting",
        "TFJobSucceeded",
    ]
    messages = [announcement.message for announcement in world.told.values()]
    assert "Pod: n.j-worker-1 exited with code 137" in messages
    assert all(pod["spec"]["restartPolicy"] == "Never" for pod in world.pods.values())


# ---- jobs that cannot be run -----------------------------------------------------------------------------------------


def _spoilt(change: Any) -> Thing:
    manifest = workers(1)
    change(manifest)
    return manifest


def _worker(manifest: Thing) -> Thing:
    worker: Thing = manifest["spec"]["tfReplicaSpecs"]["Worker"]
    return worker


INVALID = {
    "no replicas": (lambda m: m["spec"].pop("tfReplicaSpecs"), "names no replicas"),
    "unknown policy": (lambda m: _worker(m).update(restartPolicy="Sometimes"), "'Sometimes'"),
    "unknown type": (lambda m: m["spec"]["tfReplicaSpecs"].update(Wroker=_worker(m)), "Wroker"),
    "no training container": (
        lambda m: _worker(m)["template"]["spec"]["containers"][0].update(name="main"),
        "no container named tensorflow",
    ),
    "no template": (lambda m: _worker(m).pop("template"), "no container named tensorflow"),
    "nothing decides": (lambda m: _worker(m).update(replicas=0), "nothing else decides"),
    "negative number": (lambda m: _worker(m).update(replicas=-1), "0 or greater"),
    "unknown clean policy": (lambda m: m["spec"].update(runPolicy={"cleanPodPolicy": "Some"}), "'Some'"),
    "limit of a wrong type": (lambda m: m["spec"].update(runPolicy={"backoffLimit": "3"}), "backoffLimit"),
    "name too long": (lambda m: m["metadata"].update(name="j" * 60), "longer than 63"),
    "name no label": (lambda m: m["metadata"].update(name="a.b"), "not a DNS label"),
    "spec of another shape": (lambda m: m.update(spec=[1]), "has to be an object"),
    "template of another shape": (lambda m: _worker(m).update(template="x"), "has to be an object"),
    "containers of another shape": (
        lambda m: _worker(m)["template"]["spec"].update(containers=["x"]),
        "has to be an object",
    ),
    "nameless sidecar": (lambda m: _worker(m)["template"]["spec"]["containers"].append({}), "without a name"),
    "nameless variable": (
        lambda m: _worker(m)["template"]["spec"]["containers"][0].update(env=[{"value": "1"}]),
        "without a name",
    ),
    "port of another shape": (
        lambda m: _worker(m)["template"]["spec"]["containers"][0].update(ports=[{"containerPort": "x"}]),
        "containerPort",
    ),
    "labels of another shape": (
        lambda m: _worker(m)["template"].update(metadata={"labels": ["x"]}),
        "has to be an object",
    ),
    "broken ledger": (lambda m: m["metadata"].update(annotations={ANNOTATION: "[1]"}), "cannot be read"),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_job_fails_with_a_sentence(case: str) -> None:
    change, sentence = INVALID[case]
    world = World(job=_spoilt(change))
    world.settle()
    assert world.states == ["Failed"]
    assert [c["type"] for c in world.job["status"]["conditions"]] == ["Created", "Failed"]
    assert sentence in world.job["status"]["conditions"][-1]["message"]
    assert "completionTime" in world.job["status"]
    assert world.created == []


def test_a_job_whose_pod_the_server_calls_invalid_fails_with_its_words() -> None:
    world = World(job=workers(1), rejection="spec.containers[0].image: Required value")
    world.settle()
    assert world.state == "Failed"
    assert "Required value" in world.job["status"]["conditions"][-1]["message"]
