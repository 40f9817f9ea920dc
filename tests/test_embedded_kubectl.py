"""The embedded cluster under the real kubectl: what a user types works, and prints what a real cluster prints."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_support import embedded_process

import exitcode_fixtures

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

CRDS = Path(exitcode_fixtures.__file__).parent / "manifests" / "crds"
WAIT = "60s"
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "job"},
    "spec": {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": []}}}}},
}


class Kubectl:
    def __init__(self, kubeconfig: Path) -> None:
        self._command = ["kubectl", "--kubeconfig", str(kubeconfig)]
        self._environment = {**os.environ, "HOME": str(kubeconfig.parent)}

    def __call__(self, *arguments: str, stdin: object = None, code: int = 0) -> str:
        done = subprocess.run(
            [*self._command, *arguments],
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen([*self._command, *arguments], stdout=subprocess.PIPE, text=True, env=self._environment)

    def status(self, name: str, *conditions: str) -> None:
        """Say of a TFJob that it has the conditions, as an operator would."""
        patch = {"status": {"conditions": [{"type": one, "status": "True"} for one in conditions]}}
        self("patch", "tfjob", name, "--subresource=status", "--type=merge", "-p", json.dumps(patch))


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with embedded_process(tmp_path_factory.mktemp("embedded") / "state") as (kubeconfig, _):
        command = Kubectl(kubeconfig)
        command("apply", "-f", str(CRDS / "tfjobs.yaml"))
        command("wait", "--for=condition=Established", "crd/tfjobs.kubeflow.org", f"--timeout={WAIT}")
        yield command


def columns(table: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in table.strip().splitlines()]


def pod(name: str, script: str) -> dict[str, object]:
    container = {"name": "main", "image": "busybox:1.37.0-glibc", "command": ["sh", "-c", script]}
    metadata = {"name": name, "labels": {"app": name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def test_watching_jobs_prints_name_state_and_age(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=JOB)
    watching = kubectl.start("get", "tfjob", "-w")
    assert watching.stdout is not None
    try:
        lines = [watching.stdout.readline().split() for _ in range(2)]
        kubectl.status("job", "Created")
        lines.append(watching.stdout.readline().split())
        kubectl.status("job", "Created", "Running")
        lines.append(watching.stdout.readline().split())
    finally:
        watching.terminate()
        watching.wait()
        watching.stdout.close()
    assert lines[0] == ["NAME", "STATE", "AGE"]
    assert [line[:-1] for line in lines[1:]] == [["job"], ["job", "Created"], ["job", "Running"]]
    assert all(re.fullmatch(r"\d+s", line[-1]) for line in lines[1:])
    assert "Running" in kubectl("describe", "tfjob", "job")
    assert kubectl("delete", "tfjob", "job") == 'tfjob.kubeflow.org "job" deleted\n'
    assert "not found" in kubectl("get", "tfjob", "job", code=1)


def test_a_pod_runs_and_tells_of_itself(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=pod("ends", "echo first; echo second; exit 3"))
    kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/ends", f"--timeout={WAIT}")
    header, row = columns(kubectl("get", "pod", "ends"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["ends", "0/1", "Error", "0"]
    header, row = columns(kubectl("get", "pods", "-l", "app=ends", "-o", "wide"))
    assert header[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert row[6:] == ["embedded-node", "<none>", "<none>"]
    assert kubectl("logs", "ends") == "first\nsecond\n"
    assert kubectl("logs", "ends", "--tail=1") == "second\n"
    described = kubectl("describe", "pod", "ends")
    assert re.search(r"Exit Code:\s+3\n", described)
    assert re.search(r"Normal\s+Scheduled\s", described)
    events = columns(kubectl("get", "events", "--field-selector=involvedObject.name=ends"))
    assert events[0] == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert {"Scheduled", "Started"} <= {line[2] for line in events[1:]}
    kubectl("delete", "pod", "ends")


def test_logs_are_followed_to_the_end_of_the_container(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=pod("talks", "for i in 1 2 3; do echo $i; sleep 0.2; done"))
    kubectl("wait", "--for=jsonpath={.status.startTime}", "pod/talks", f"--timeout={WAIT}")
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].containerID}", "pod/talks", f"--timeout={WAIT}")
    assert kubectl("logs", "-f", "talks") == "1\n2\n3\n"
    kubectl("delete", "pod", "talks")


def test_applying_again_changes_what_has_changed_and_no_more(kubectl: Kubectl) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "two"}}
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    assert "created" in kubectl("apply", "-f", "-", stdin={**service, "spec": {"ports": ports}})
    assert "unchanged" in kubectl("apply", "-f", "-", stdin={**service, "spec": {"ports": ports}})
    assert "configured" in kubectl("apply", "-f", "-", stdin={**service, "spec": {"ports": ports[1:]}})
    left = json.loads(kubectl("get", "svc", "two", "-o", "json"))["spec"]["ports"]
    assert left == [{"name": "b", "port": 81, "protocol": "TCP", "targetPort": 81}]
    assert "created" in kubectl("apply", "-f", "-", stdin=JOB)
    again = {**JOB, "spec": {**JOB["spec"], "runPolicy": {"backoffLimit": 4}}}  # type: ignore[dict-item]
    assert "configured" in kubectl("apply", "-f", "-", stdin=again)
    kubectl("delete", "svc/two", "tfjob/job")


def test_a_job_waits_for_a_controller_and_says_what_the_controller_says(kubectl: Kubectl) -> None:
    assert kubectl("create", "job", "batch", "--image=busybox", "--", "true") == "job.batch/batch created\n"
    header, row = columns(kubectl("get", "jobs"))
    assert header == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert row[:3] == ["batch", "Running", "0/1"]
    assert columns(kubectl("get", "job", "batch", "-o", "wide"))[0][5:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    kept = json.loads(kubectl("get", "job", "batch", "-o", "json"))
    uid = kept["metadata"]["uid"]
    assert kept["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert kept["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "batch"
    said = [{"type": one, "status": "True"} for one in ("SuccessCriteriaMet", "Complete")]
    times = {"startTime": "2024-05-01T12:00:00Z", "completionTime": "2024-05-01T12:00:07Z"}
    patch = json.dumps({"status": {**times, "succeeded": 1, "conditions": said}})
    kubectl("patch", "job", "batch", "--subresource=status", "--type=merge", "-p", patch)
    kubectl("wait", "--for=condition=Complete", "job/batch", f"--timeout={WAIT}")
    assert columns(kubectl("get", "job", "batch"))[1][1:4] == ["Complete", "1/1", "7s"]
    assert "is invalid: [metadata.name" in kubectl("create", "job", "Batch", "--image=busybox", code=1)
    assert "podFailurePolicy" in kubectl("explain", "job.spec")
    assert kubectl("delete", "job", "batch") == 'job.batch "batch" deleted\n'


def test_a_misspelt_manifest_is_refused(kubectl: Kubectl) -> None:
    manifest = pod("misspelt", "exit 0")
    manifest["spec"]["restartPolicies"] = "Never"  # type: ignore[index]
    assert 'unknown field "restartPolicies"' in kubectl("apply", "-f", "-", stdin=manifest, code=1)


def test_what_the_cluster_cannot_give_is_refused_with_the_reason(kubectl: Kubectl) -> None:
    manifest = pod("greedy", "exit 0")
    manifest["spec"]["hostNetwork"] = True  # type: ignore[index]
    manifest["spec"]["containers"][0]["image"] = "python:3"  # type: ignore[index]
    refused = kubectl("create", "-f", "-", stdin=manifest, code=1)
    assert "spec.hostNetwork" in refused
    assert '"python:3" (only busybox is there)' in refused


def test_labels_annotations_and_edits_reach_the_object(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "plain", "--from-literal=first=1")
    kubectl("label", "configmap", "plain", "a=b")
    kubectl("annotate", "configmap", "plain", "note=text")
    kubectl("patch", "configmap", "plain", "-p", '{"data": {"key": "value"}}')
    found = json.loads(kubectl("get", "configmap", "plain", "-o", "json"))
    assert (found["metadata"]["labels"], found["metadata"]["annotations"], found["data"]) == (
        {"a": "b"},
        {"note": "text"},
        {"first": "1", "key": "value"},
    )
    assert columns(kubectl("get", "cm", "plain"))[1][:2] == ["plain", "2"]


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "brief")
    kubectl("wait", "--for=jsonpath={.metadata.name}", "-n", "brief", "serviceaccount/default", f"--timeout={WAIT}")
    kubectl("apply", "-n", "brief", "-f", "-", stdin=pod("runs", "trap 'exit 0' TERM; sleep 100 & wait"))
    assert kubectl("delete", "namespace", "brief") == 'namespace "brief" deleted\n'
    assert "not found" in kubectl("get", "namespace", "brief", code=1)
    assert kubectl("get", "pods", "-n", "brief", "-o", "name") == ""


def test_kinds_are_listed_and_explained(kubectl: Kubectl) -> None:
    listed = columns(kubectl("api-resources"))
    assert ["tfjobs", "kubeflow.org/v1", "true", "TFJob"] in listed
    assert "terminationGracePeriodSeconds" in kubectl("explain", "pod.spec")
    assert "tfReplicaSpecs" in kubectl("explain", "tfjob.spec")
    assert "v1.20.2-embedded" in kubectl("version")
    assert columns(kubectl("get", "nodes"))[1][:3] == ["embedded-node", "Ready", "<none>"]
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
