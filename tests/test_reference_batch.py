"""The reference controller and Kubernetes' own Jobs: a process, an embedded cluster, containers that really end.

Not on a real cluster: there the Jobs have their controller, and two would fight.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from embedded_support import embedded_process
from reference_cluster import Stage

from exitcode_reference_controller.batch_job import BatchReconciler
from exitcode_reference_controller.kinds import BATCH_JOB
from exitcode_reference_controller.ledger import ANNOTATION
from exitcode_reference_controller.plan import Create, Observed, Plan

Thing = dict[str, Any]
OPTIONS = ("--kinds", "Job", "--job-backoff", "0.1")
STAY = "trap 'exit 1' TERM; while :; do sleep 0.2; done"
END = f"case $CODE in stay) {STAY};; *) exit $CODE;; esac"
NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


class Jobs:
    """A namespace, and the Jobs in it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def submit(self, name: str, script: str, *, code: int | str = 0, restart: str = "Never", **spec: Any) -> None:
        """A Job whose containers run the script; a ConfigMap of the Job's name tells them CODE."""
        api, namespace = self.stage.api, self.stage.namespace
        config = {"metadata": {"name": name}, "data": {"code": str(code)}}
        api.create(f"/api/v1/namespaces/{namespace}/configmaps", config)
        container = {
            "name": "main",
            "image": "busybox:1.37.0-glibc",
            "command": ["sh", "-c", script],
            "env": [{"name": "CODE", "valueFrom": {"configMapKeyRef": {"name": name, "key": "code"}}}],
        }
        template = {"spec": {"restartPolicy": restart, "containers": [container], "terminationGracePeriodSeconds": 1}}
        manifest = {"metadata": {"name": name}, "spec": {"template": template, **spec}}
        api.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", manifest)

    def ends(self, name: str) -> Thing:
        """The status of a Job that has ended; every condition that it has had is still there."""
        self.stage.until(f"{name} has ended", lambda: self.states(name)[-1:] in (["Complete"], ["Failed"]))
        return dict(self.stage.job(name)["status"])

    def states(self, name: str) -> list[str]:
        """Types of the conditions."""
        return [one["type"] for one in self.stage.job(name).get("status", {}).get("conditions", [])]

    def pods(self, name: str) -> list[str]:
        """Names of all pods that a Job has had."""
        labels = "batch.kubernetes.io/job-name"
        seen = (
            thing["metadata"]
            for resource, _, thing in list(self.stage.history)
            if resource == "pods" and thing["metadata"].get("labels", {}).get(labels) == name
        )
        return list(dict.fromkeys(metadata["name"] for metadata in seen))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kubeconfig of an API server."""
    with embedded_process(tmp_path_factory.mktemp("embedded") / "state") as (kubeconfig, _):
        yield kubeconfig


@pytest.fixture(scope="module")
def bare(server: Path) -> Iterator[Jobs]:
    """A namespace without a controller."""
    stage = Stage(server)
    stage.open()
    yield Jobs(stage)
    stage.close()


@pytest.fixture(scope="module")
def jobs(server: Path) -> Iterator[Jobs]:
    """A namespace with a controller."""
    stage = Stage(server)
    stage.open()
    with stage.controller(*OPTIONS):
        yield Jobs(stage)
    stage.close()


def policy(action: str, **rule: Any) -> Thing:
    return {"rules": [{"action": action, **rule}]}


def codes(*values: int) -> Thing:
    return {"containerName": "main", "operator": "In", "values": list(values)}


def test_a_failed_pod_is_replaced_until_the_backoff_limit(jobs: Jobs) -> None:
    jobs.submit("limited", END, code=1, backoffLimit=1)
    status = jobs.ends("limited")
    assert jobs.states("limited") == ["FailureTarget", "Failed"]
    assert {one["reason"] for one in status["conditions"]} == {"BackoffLimitExceeded"}
    assert (status["failed"], len(jobs.pods("limited"))) == (2, 2)
    assert "completionTime" not in status
    wanted = ["BackoffLimitExceeded", "SuccessfulCreate", "SuccessfulCreate"]
    jobs.stage.until("its events are told", lambda: jobs.stage.reasons("limited") == wanted)


def test_as_many_pods_as_completions_succeed(jobs: Jobs) -> None:
    jobs.submit("three", END, completions=3, parallelism=2)
    status = jobs.ends("three")
    assert jobs.states("three") == ["SuccessCriteriaMet", "Complete"]
    assert (status["succeeded"], len(jobs.pods("three"))) == (3, 3)
    assert status["startTime"] <= status["completionTime"]


def test_one_code_may_fail_the_job_at_once(jobs: Jobs) -> None:
    jobs.submit("fatal", END, code=42, podFailurePolicy=policy("FailJob", onExitCodes=codes(42)))
    status = jobs.ends("fatal")
    (pod,) = jobs.pods("fatal")
    where = f"{jobs.stage.namespace}/{pod}"
    assert [(one["type"], one["reason"]) for one in status["conditions"]] == [
        ("FailureTarget", "PodFailurePolicy"),
        ("Failed", "PodFailurePolicy"),
    ]
    message = f"Container main for pod {where} failed with exit code 42 matching FailJob rule at index 0"
    assert status["conditions"][0]["message"] == message


def test_another_code_may_count_for_nothing(jobs: Jobs) -> None:
    ignored = policy("Ignore", onExitCodes=codes(3))
    jobs.submit("ignored", END, code=3, backoffLimit=0, podFailurePolicy=ignored)
    jobs.stage.until("it was replaced", lambda: len(jobs.pods("ignored")) >= 2)
    jobs.stage.set_code("ignored", 0)
    status = jobs.ends("ignored")
    assert status["conditions"][-1]["type"] == "Complete"
    assert "failed" not in status


def test_restarts_by_the_kubelet_count_against_the_limit(jobs: Jobs) -> None:
    jobs.submit("restarted", END, code=1, restart="OnFailure", backoffLimit=1)
    status = jobs.ends("restarted")
    assert status["conditions"][-1]["reason"] == "BackoffLimitExceeded"
    assert len(jobs.pods("restarted")) == 1


def test_each_index_is_done_once(jobs: Jobs) -> None:
    script = f"case $JOB_COMPLETION_INDEX in 1) {END};; esac"
    jobs.submit("indexed", script, code=7, completionMode="Indexed", completions=3, parallelism=3, backoffLimit=9)
    jobs.stage.until(
        "index 1 was tried again", lambda: sum(n.startswith("indexed-1-") for n in jobs.pods("indexed")) > 1
    )
    jobs.stage.set_code("indexed", 0)
    status = jobs.ends("indexed")
    assert (status["completedIndexes"], status["succeeded"]) == ("0-2", 3)
    others = [name for name in jobs.pods("indexed") if not name.startswith("indexed-1-")]
    assert sorted(name.rpartition("-")[0] for name in others) == ["indexed-0", "indexed-2"]


def test_deadline_and_ttl_are_kept(jobs: Jobs) -> None:
    jobs.submit("late", STAY, activeDeadlineSeconds=1, ttlSecondsAfterFinished=1)
    assert jobs.ends("late")["conditions"][-1]["reason"] == "DeadlineExceeded"
    jobs.stage.until("the Job is gone", lambda: jobs.stage.is_gone("jobs", "late"))


def test_a_pod_deleted_from_outside_counts_and_is_replaced(jobs: Jobs) -> None:
    jobs.submit("evicted", END, code="stay")
    jobs.stage.until("its pod runs", lambda: [jobs.stage.phase(name) for name in jobs.pods("evicted")] == ["Running"])
    jobs.stage.set_code("evicted", 0)
    jobs.stage.delete("pods", jobs.pods("evicted")[0])
    status = jobs.ends("evicted")
    assert (status["failed"], status["succeeded"], len(jobs.pods("evicted"))) == (1, 1, 2)


def test_the_count_of_failures_survives_the_controller(bare: Jobs) -> None:
    with bare.stage.controller(*OPTIONS) as first:
        bare.submit("survivor", END, code=1, backoffLimit=2)
        bare.stage.until("a failure counts", lambda: bare.stage.job("survivor").get("status", {}).get("failed", 0) > 0)
        first.kill()
    with bare.stage.controller(*OPTIONS):
        assert bare.ends("survivor")["failed"] == 3
    assert len(bare.pods("survivor")) == 3


# ---- what takes too long to be waited for --------------------------------------------------------------------------


def observed(pods: list[Thing], seconds: float = 0, annotations: dict[str, str] | None = None, **spec: Any) -> Plan:
    """What is planned for a Job with these pods, `seconds` after noon."""
    job = {
        "metadata": {"namespace": "n", "name": "j", "uid": "u", "annotations": annotations or {}},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 99,
            "template": {"metadata": {}, "spec": {"containers": [{"name": "main"}]}},
            **spec,
        },
        "status": {"startTime": "2024-05-01T12:00:00Z"},
    }
    moment = NOW + timedelta(seconds=seconds)
    return BatchReconciler(backoff=10).reconcile(
        BATCH_JOB, Observed(job=job, pods=tuple(pods), services=(), now=moment)
    )


def failed_pod(number: int, *, condition: str = "Ready") -> Thing:
    """A pod that failed at noon."""
    ended = {"exitCode": 1, "finishedAt": "2024-05-01T12:00:00Z"}
    return {
        "metadata": {
            "namespace": "n",
            "name": f"j-{number}",
            "uid": f"pod-{number}",
            "creationTimestamp": "2024-05-01T11:59:00Z",
            "ownerReferences": [{"controller": True, "uid": "u"}],
        },
        "status": {
            "phase": "Failed",
            "conditions": [{"type": condition, "status": "True"}],
            "containerStatuses": [{"name": "main", "state": {"terminated": ended}}],
        },
    }


@pytest.mark.parametrize(("failures", "delay"), [(1, 10), (2, 20), (3, 40), (7, 600)])
def test_the_delay_doubles_with_each_failure(failures: int, delay: float) -> None:
    pods = [failed_pod(number) for number in range(failures)]
    assert not any(isinstance(one, Create) for one in observed(pods, delay - 0.5).actions)
    assert [type(one) for one in observed(pods, delay).actions] == [Create]


@pytest.mark.parametrize(("action", "failed", "ending"), [("Ignore", None, []), ("FailJob", 1, ["FailureTarget"])])
def test_a_rule_may_be_about_a_condition_of_the_pod(action: str, failed: int | None, ending: list[str]) -> None:
    rules = policy(action, onPodConditions=[{"type": "DisruptionTarget", "status": "True"}])
    plan = observed(
        [failed_pod(0, condition="DisruptionTarget")], podFailurePolicy=rules, podReplacementPolicy="Failed"
    )
    assert plan.status.get("failed") == failed
    assert [one["type"] for one in plan.status.get("conditions", [])] == ending


def test_a_pod_that_counts_as_failed_does_not_succeed_any_more() -> None:
    pod = failed_pod(0)
    pod["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    pod["status"] = {"phase": "Running"}
    counted = observed([pod]).ledger
    assert counted is not None
    job_annotations = {ANNOTATION: counted.annotation()}
    pod["status"] = {"phase": "Succeeded"}
    status = observed([pod], annotations=job_annotations).status
    assert (status.get("failed"), status.get("succeeded")) == (1, None)


def test_the_first_rule_that_a_pod_meets_decides() -> None:
    rules = {"rules": [{"action": "Count", "onExitCodes": codes(1)}, {"action": "FailJob", "onExitCodes": codes(1)}]}
    plan = observed([failed_pod(0)], podFailurePolicy=rules)
    assert (plan.status.get("failed"), plan.status.get("conditions")) == (1, None)
