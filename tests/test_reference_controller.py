"""The reference controller as its users meet it: a process, an API server, jobs whose containers really end."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from reference_cluster import PATIENCE, Stage, kubeconfig

from exitcode_reference_controller.ledger import ANNOTATION

STAY = "trap 'exit 0' TERM; while :; do sleep 0.2; done"
END = f"case $CODE in stay) {STAY};; *) sleep 1; exit $CODE;; esac"
FIRST_WORKER_ENDS = f"case $POD in *-worker-0) {END};; *) {STAY};; esac"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kubeconfig of an API server."""
    with kubeconfig(tmp_path_factory.mktemp("embedded")) as path:
        yield path


@pytest.fixture(scope="module")
def bare_stage(server: Path) -> Iterator[Stage]:
    """A namespace without a controller."""
    stage = Stage(server)
    stage.open()
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def stage(server: Path) -> Iterator[Stage]:
    """A namespace with the reference controller, on which all jobs are submitted at once."""
    stage = Stage(server)
    stage.open()
    with stage.controller():
        ps = {"PS": {"replicas": 1}, "Worker": {"replicas": 3}}
        stage.submit("restarts", FIRST_WORKER_ENDS, ps, code=138)
        stage.submit("permanent", FIRST_WORKER_ENDS, ps, code=1, runPolicy={"cleanPodPolicy": "All"})
        stage.submit("limited", END, {"Master": {}}, kind="PyTorchJob", code=137, runPolicy={"backoffLimit": 1})
        stage.submit(
            "deadline", STAY, {"Worker": {}}, runPolicy={"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 1}
        )
        stage.submit("evicted", STAY, {"Worker": {"replicas": 2}})
        stage.submit("invalid", END, {"Worker": {"template": {"spec": {"containers": [{"name": "tensorflow"}]}}}})
        stage.submit("removed", STAY, {"Worker": {"replicas": 2}})
        yield stage
    stage.close()


def test_a_retryable_code_restarts_one_replica_and_no_other(stage: Stage) -> None:
    stage.until("the first attempt began", lambda: stage.phase("restarts-worker-0") in ("Running", "Failed"))
    stage.set_code("restarts", "stay")
    stage.until("it was restarted", lambda: "Restarting" in stage.states("restarts"))
    assert stage.until_state("restarts", "Running")[:2] == ["Created", "Restarting"]
    pods = stage.pods("restarts")
    replacements = len(pods.pop("restarts-worker-0")) - 1
    assert replacements >= 1
    assert {name: len(uids) for name, uids in pods.items()} == dict.fromkeys(
        ["restarts-ps-0", "restarts-worker-1", "restarts-worker-2"], 1
    )
    told = ["SuccessfulCreatePod"] * (4 + replacements) + ["SuccessfulCreateService"] * 4
    told += [
        reason for reason in ("ExitedWithCode", "SuccessfulDeletePod", "TFJobRestarting") for _ in range(replacements)
    ]
    stage.until("its events are told", lambda: stage.reasons("restarts") == sorted(told))


def test_a_permanent_code_fails_the_job_and_its_pods_are_cleaned_up(stage: Stage) -> None:
    assert stage.until_state("permanent", "Failed") == ["Created", "Failed"]
    names = ["permanent-ps-0", *(f"permanent-worker-{i}" for i in range(3))]
    for name in names:
        stage.until_gone(name)
    assert {name: len(uids) for name, uids in stage.pods("permanent").items()} == dict.fromkeys(names, 1)


def test_the_backoff_limit_bounds_restarts_that_the_controller_makes(stage: Stage) -> None:
    assert stage.until_state("limited", "Failed") == ["Created", "Restarting", "Failed"]
    assert {name: len(uids) for name, uids in stage.pods("limited").items()} == {"limited-master-0": 2}


def test_deadline_and_ttl_are_kept_though_nobody_touches_the_job(stage: Stage) -> None:
    stage.until("the job is gone", lambda: stage.is_gone("tfjobs", "deadline"))
    assert stage.states("deadline")[-1] == "Failed"
    stage.until_gone("deadline-worker-0")


def test_a_pod_deleted_from_outside_is_replaced(stage: Stage) -> None:
    stage.until_state("evicted", "Running")
    stage.delete("pods", "evicted-worker-1")
    stage.until(
        "a new one runs",
        lambda: len(stage.uids("evicted-worker-1")) == 2 and stage.phase("evicted-worker-1") == "Running",
    )
    assert stage.states("evicted") == ["Created", "Running"]
    assert len(stage.uids("evicted-worker-0")) == 1


def test_a_job_whose_pods_the_server_refuses_fails_with_a_sentence(stage: Stage) -> None:
    assert stage.until_state("invalid", "Failed") == ["Created", "Failed"]
    assert "image" in stage.job("invalid")["status"]["conditions"][-1]["message"]


def test_deleting_a_job_removes_what_it_owned_and_nothing_comes_back(stage: Stage) -> None:
    stage.until_state("removed", "Running")
    stage.delete("tfjobs", "removed")
    for name in ("removed-worker-0", "removed-worker-1"):
        stage.until_gone(name)
    stage.submit("witness", END, {"Worker": {}})
    assert stage.until_state("witness", "Succeeded") == ["Created", "Succeeded"]
    assert {len(uids) for uids in stage.pods("removed").values()} == {1}


def test_the_count_of_restarts_survives_the_controller(bare_stage: Stage) -> None:
    stage = bare_stage
    with stage.controller() as first:
        stage.submit("survivor", END, {"Worker": {}}, code=138, runPolicy={"backoffLimit": 2})
        stage.until(
            "a restart is counted", lambda: ANNOTATION in stage.job("survivor")["metadata"].get("annotations", {})
        )
        first.kill()
    with stage.controller():
        stage.until_state("survivor", "Failed")
    assert len(stage.uids("survivor-worker-0")) == 3
    assert '"count":2' in stage.job("survivor")["metadata"]["annotations"][ANNOTATION]


def test_always_restart_replaces_a_pod_whatever_its_code(bare_stage: Stage) -> None:
    with bare_stage.controller("--variant", "always-restart"):
        bare_stage.submit("always", END, {"Worker": {}}, code=1)
        bare_stage.until("a second pod", lambda: len(bare_stage.uids("always-worker-0")) == 2)


def test_null_does_nothing_and_ends_cleanly(bare_stage: Stage) -> None:
    with bare_stage.controller("--variant", "null") as child:
        bare_stage.submit("nothing", END, {"Worker": {}})
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) == 0
    assert bare_stage.states("nothing") == []


@pytest.mark.parametrize(
    ("options", "status", "sentence"),
    [
        (("--kubeconfig", "{directory}/none"), 4, "the kubeconfig {directory}/none cannot be used"),
        (("--kubeconfig", "{unreachable}"), 3, "cannot be reached"),
        (("--variant", "nonsense"), 4, "invalid choice: 'nonsense'"),
        (("--kinds", "CronJob"), 4, "CronJob is no job kind"),
        (("--kinds", "Job", "--variant", "always-restart"), 4, "JAXJob only: --kinds names Job."),
        (("--variant", "batch-message-decides"), 4, "is of Job only: --kinds names TFJob, PyTorchJob."),
        (("--job-backoff", "soon"), 4, "0 or greater"),
        (("--workers", "0"), 4, "1 or greater"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence(
    tmp_path: Path, options: tuple[str, ...], status: int, sentence: str
) -> None:
    unreachable = tmp_path / "unreachable"
    unreachable.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}",
        encoding="utf-8",
    )
    places = {"directory": str(tmp_path), "unreachable": str(unreachable)}
    command = [sys.executable, "-m", "exitcode_reference_controller", *(o.format(**places) for o in options)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == status
    assert sentence.format(**places) in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""
