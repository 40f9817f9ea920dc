"""An operator that runs in a real cluster: applied by the run and gone with it, or found and left alone; and a run in a
namespace of others with the rights of its Role and no more."""

import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from cluster_support import command, environment, real_kubeconfig, run_command
from deployment_support import CRD, DEPLOYMENT, LABELS, VERSION, described, kustomized, needs_kubectl, this_very_machine
from test_rights import NAME, RBAC, authority, kubeconfig_of

from exitcode_conformance.entry import Action, Event
from exitcode_fixtures.api import ApiError, Json, KubernetesApi, connected
from exitcode_fixtures.crds import CRDS, LENT_LABEL
from exitcode_fixtures.errors import ExitStatus, HarnessError
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import LEASE, NAMESPACES, RUN_LABEL, leases_of
from exitcode_fixtures.waiting import wait_for_all
from exitcode_reports.recording import Recording, read_recording

pytestmark = pytest.mark.real_cluster

RUN_S: Final = 240.0
DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
SECRETS: Final = "/api/v1/secrets"
PODS: Final = "/api/v1/pods"
SELECTOR: Final = ",".join(f"{key}={value}" for key, value in LABELS.items())
CASES: Final = (
    "EXIT-02[tfjob-worker-exit1-worker1]",
    "EXIT-03[tfjob-worker-exit137-worker1]",
    "STATE-03[tfjob-worker-exit137-worker1]",
    "INV-08[tfjob-worker-exit137-worker1]",
)
"""One code that ends a job, one that is tried again, and that the operator went on all the while."""
DISTURBED: Final = ("EVENT-05[tfjob-touched-when-failed-worker1]", "EXIT-14[tfjob-chief-evicted-ps1-chief1]")
"""Cases of the profile extended in which the harness changes a job, and evicts a pod."""


@pytest.fixture(scope="module")
def api() -> Iterator[KubernetesApi]:
    with connected(real_kubeconfig()) as api:
        this_very_machine(api)
        needs_kubectl()
        assert not api.exists(f"{CRDS}/{CRD}"), "the cluster is to have no CRD of somebody else"
        yield api


def run(folder: Path, operator: Path, *more: str, kubeconfig: Path | None = None) -> tuple[Recording, str]:
    """A part of the plan as a process of its own, all of which has to pass: the recording, and what the run said."""
    words = ["run", "--operator", str(operator), "--cluster", f"kubeconfig:{kubeconfig or real_kubeconfig()}"]
    ran = run_command(*words, *more, "--out", str(folder / "out"), env=environment(folder), cwd=folder, within_s=RUN_S)
    said = ran.stdout + ran.stderr
    assert ran.returncode == ExitStatus.UNDECIDED, f"a part of the plan, all of which passes:\n{said}"
    return read_recording(folder / "out" / "recording.jsonl"), said


def chosen(*cases: str) -> tuple[str, str]:
    """The option that leaves these cases only."""
    return "-k", " or ".join(cases)


def verdicts(recording: Recording) -> dict[str, str]:
    return {f"{line.requirement}[{line.subject}]": str(line.verdict) for line in recording.verdicts}


def noticed(recording: Recording, action: str) -> list[dict[str, Any]]:
    return [dict(e.detail) for e in recording.entries if isinstance(e, Action) and e.action == action]


def seen_since(api: KubernetesApi, path: str, version: str) -> list[Json]:
    """What has happened to a collection of the whole cluster since then."""
    events = api.watch(path, resource_version=version, stop=threading.Event(), timeout_seconds=1)
    return [event for event in events if event["type"] != "BOOKMARK"]


def of_run(events: list[Json], run_id: str) -> list[Json]:
    return [event for event in events if (event["object"]["metadata"].get("labels") or {}).get(RUN_LABEL) == run_id]


def appliers(event: Json) -> set[str]:
    """Who has applied something of an object."""
    fields = event["object"]["metadata"]["managedFields"]
    return {entry["manager"] for entry in fields if entry["operation"] == "Apply"}


def revision(found: Mapping[str, Any]) -> int:
    return int(found["metadata"]["resourceVersion"])


def is_available(found: Json) -> bool:
    return bool(found.get("status", {}).get("availableReplicas"))


def private_key() -> str:
    """What no report may hold."""
    (user,) = yaml.safe_load(real_kubeconfig().read_text("utf-8"))["users"]
    return str(user["user"].get("client-key-data") or user["user"]["token"])


def test_one_that_the_run_applies_is_certified_and_gone_afterwards(api: KubernetesApi, tmp_path: Path) -> None:
    kustomized(tmp_path / "manifests", real_kubeconfig())
    operator = described(tmp_path / "operator.yaml", mode="manifests", manifests=["manifests"], ready_within_s=90)
    watched = (DEPLOYMENTS, SECRETS, CRDS, PODS)
    before = {path: api.list(path)["metadata"]["resourceVersion"] for path in watched}
    recording, _ = run(tmp_path, operator, *chosen(*CASES))
    header = recording.header
    assert verdicts(recording) == dict.fromkeys(CASES, "pass")
    assert (header.operator.start, header.operator.version) == ("manifests", VERSION)
    assert noticed(recording, "operator-started") == [{"mode": "manifests", "version": VERSION}]
    assert noticed(recording, "operator-exited") == []

    seen = {path: seen_since(api, path, before[path]) for path in watched}
    deployments, secrets, crds = (of_run(seen[path], header.run_id) for path in (DEPLOYMENTS, SECRETS, CRDS))
    crds = [event for event in seen[CRDS] if event["object"]["metadata"]["name"] == CRD]
    ours = {f"exitcode-conformance-{header.run_id}"}
    for events in (deployments, secrets, crds):
        assert (events[0]["type"], events[-1]["type"]) == ("ADDED", "DELETED")
        assert appliers(events[0]) == ours
    assert {event["object"]["metadata"]["name"] for event in deployments} == {DEPLOYMENT}
    assert {event["object"]["metadata"]["namespace"] for event in deployments} == {header.namespace}
    jobs = [e for e in recording.entries if isinstance(e, Event) and e.resource == "tfjobs"]
    first = next(e.object for e in jobs if e.metadata["name"] == "canary")
    ready = next(event["object"] for event in deployments if is_available(event["object"]))
    assert revision(ready) < revision(first), "no job was submitted before it was available"
    stopped = next(event["object"] for event in seen[PODS] if is_manager(event) and event["type"] == "DELETED")
    assert revision(stopped) < revision(deployments[-1]["object"]), "it is over when its Deployment is"
    assert revision(stopped) < revision(crds[-1]["object"]), "it has stopped when its CRD goes"

    assert_log_kept(tmp_path, f"{DEPLOYMENT}-")
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in kept if private_key().encode() in path.read_bytes()]
    assert_nothing_left(api)


def is_manager(event: Json) -> bool:
    """Whether it is of a pod of the controller."""
    return LABELS.items() <= (event["object"]["metadata"].get("labels") or {}).items()


def assert_log_kept(folder: Path, pod: str) -> None:
    """The log of the pod is in the report's folder, or why it is not: not every API server can reach its nodes."""
    log = (folder / "out" / "operator.log").read_text("utf-8")
    assert log.startswith(f"--- pod {pod}")
    assert "\nready\n" in log or "\n--- not to be had: " in log, log


def assert_nothing_left(api: KubernetesApi) -> None:
    for path in (NAMESPACES, DEPLOYMENTS, SECRETS):
        assert api.list(path, label_selector=RUN_LABEL)["items"] == []
    assert api.list(CRDS, label_selector=LENT_LABEL)["items"] == []
    assert api.list(PODS, label_selector=SELECTOR)["items"] == []


@pytest.fixture(scope="module")
def installed(api: KubernetesApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The controller as somebody has installed it, for all namespaces; the namespace that it is in."""
    del api  # it has looked at the cluster
    namespace = f"exitcode-test-{new_run_id()}"
    folder = kustomized(tmp_path_factory.mktemp("installed") / "manifests", real_kubeconfig(), namespace=namespace)
    try:
        kubectl("apply", "--server-side", "-k", str(folder))
        yield namespace
    finally:
        kubectl("delete", "--ignore-not-found", "-k", str(folder))


def kubectl(*words: str) -> None:
    line = ["kubectl", "--kubeconfig", str(real_kubeconfig()), *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_that_is_there_is_certified_and_left_alone(api: KubernetesApi, installed: str, tmp_path: Path) -> None:
    operator = described(tmp_path / "operator.yaml", mode="none", deployment=f"{installed}/{DEPLOYMENT}")
    recording, _ = run(tmp_path, operator, *chosen(*CASES))
    assert verdicts(recording) == dict.fromkeys(CASES, "pass")
    (started,) = noticed(recording, "operator-started")
    assert started == {"mode": "none", "version": VERSION, "deployment": f"{installed}/{DEPLOYMENT}"}
    assert noticed(recording, "operator-exited") == []
    deployment = api.get(f"/apis/apps/v1/namespaces/{installed}/deployments/{DEPLOYMENT}")
    assert deployment["metadata"]["generation"] == 1
    assert RUN_LABEL not in deployment["metadata"].get("labels", {})
    (pod,) = api.list(f"{NAMESPACES}/{installed}/pods", label_selector=SELECTOR)["items"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert_log_kept(tmp_path, f"{pod['metadata']['name']}, container manager\n")
    assert api.list(NAMESPACES, label_selector=RUN_LABEL)["items"] == []


@pytest.fixture
def team(api: KubernetesApi, installed: str) -> Iterator[str]:
    """A namespace that somebody uses, in a cluster in which the operator is installed."""
    del installed
    name = f"exitcode-test-{new_run_id()}"
    try:
        api.create(NAMESPACES, {"metadata": {"name": name}})
        api.create(f"{NAMESPACES}/{name}/configmaps", {"metadata": {"name": "outcome-of-ours"}})
        yield name
    finally:
        api.delete(f"{NAMESPACES}/{name}", missing_ok=True)


@pytest.fixture
def account(api: KubernetesApi, team: str, tmp_path: Path) -> Path:
    """The kubeconfig of an account that has the rights of `rbac-namespace.yaml` in the namespace, and no others."""
    manifest = resources.files("exitcode_fixtures") / "manifests" / "rbac-namespace.yaml"
    for found in yaml.safe_load_all(manifest.read_text("utf-8")):
        collection = f"{NAMESPACES}/{team}/serviceaccounts"
        if found["kind"] != "ServiceAccount":
            collection = f"{RBAC}/namespaces/{team}/{found['kind'].lower()}s"
        if found["kind"] == "RoleBinding":
            found["subjects"][0]["namespace"] = team
        api.create(collection, found)
    token = api.create(f"{NAMESPACES}/{team}/serviceaccounts/{NAME}/token", {"spec": {}})["status"]["token"]
    path = kubeconfig_of(tmp_path, api.server, token, authority=authority())
    with connected(path) as limited, pytest.raises(ApiError, match="403 Forbidden"):
        limited.get(f"{NAMESPACES}/{team}")
    return path


def contents(api: KubernetesApi, namespace: str) -> dict[str, list[str]]:
    """What is in a namespace of what runs and operators make, but for events."""
    folder = f"{NAMESPACES}/{namespace}"
    tfjobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
    paths = [f"{folder}/pods", f"{folder}/services", f"{folder}/configmaps", tfjobs, leases_of(namespace)]
    found = {path.rpartition("/")[2]: [one["metadata"]["name"] for one in api.list(path)["items"]] for path in paths}
    return {key: [name for name in names if name != "kube-root-ca.crt"] for key, names in found.items()}


AS_BEFORE: Final = {"pods": [], "services": [], "configmaps": ["outcome-of-ours"], "tfjobs": [], "leases": []}


def test_the_role_is_enough_for_a_run_in_an_existing_namespace(
    api: KubernetesApi, team: str, account: Path, tmp_path: Path
) -> None:
    operator = described(tmp_path / "operator.yaml", mode="none")
    before = api.list(NAMESPACES)["metadata"]["resourceVersion"]
    recording, _ = run(
        tmp_path, operator, "--namespace", team, "--profile", "extended", *chosen(*DISTURBED), kubeconfig=account
    )
    assert verdicts(recording) == dict.fromkeys(DISTURBED, "pass")
    assert recording.header.namespace == team
    assert {entry.action for entry in recording.entries if isinstance(entry, Action)} >= {"remove-pod", "touch-job"}
    assert contents(api, team) == AS_BEFORE
    assert seen_since(api, NAMESPACES, before) == [], "no namespace was made, changed or removed"


def test_it_removes_what_a_killed_run_has_left_there(
    api: KubernetesApi, team: str, account: Path, tmp_path: Path
) -> None:
    words = ["run", "--operator", str(described(tmp_path / "operator.yaml", mode="none")), "--namespace", team]
    words += ["--cluster", f"kubeconfig:{account}", *chosen(CASES[0]), "--out", str(tmp_path / "out")]
    tfjobs = f"/apis/kubeflow.org/v1/namespaces/{team}/tfjobs"
    pods = f"{NAMESPACES}/{team}/pods"
    with subprocess.Popen(
        command(*words), env=environment(tmp_path), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as killed:
        wait_for_all(
            api,
            pods,
            lambda found: any(name.startswith("canary-") for name in found),
            within_s=RUN_S,
            on_timeout=lambda _: HarnessError("The canary got no pod.", ""),
        )
        killed.send_signal(signal.SIGKILL)
    assert [job["metadata"]["name"] for job in api.list(tfjobs)["items"]] == ["canary"]
    cleanup = ["cleanup", "--kubeconfig", str(account), "--namespace", team]
    cleaned = run_command(*cleanup, env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S)
    assert cleaned.returncode == 0, cleaned.stderr
    assert f"removed Lease {team}/{LEASE}" in cleaned.stdout
    assert f"removed 1 tfjobs in namespace {team}" in cleaned.stdout
    assert contents(api, team) == AS_BEFORE


def test_rights_that_are_missing_are_told_before_anything_is_made(
    api: KubernetesApi, installed: str, team: str, account: Path, tmp_path: Path
) -> None:
    operator = described(tmp_path / "operator.yaml", mode="none", deployment=f"{installed}/{DEPLOYMENT}")
    said = refused(tmp_path, operator, team, account)
    missing = "get deployments.apps, list deployments.apps, watch deployments.apps, list pods, watch pods"
    assert f"lacks rights in the namespace {installed} of {api.server}: {missing}." in said

    role = f"{RBAC}/namespaces/{team}/roles/{NAME}"
    rules = [rule for rule in api.get(role)["rules"] if rule["resources"] != ["services"]]
    api.merge_patch(role, {"rules": rules})
    said = refused(tmp_path, described(tmp_path / "operator.yaml", mode="none"), team, account)
    missing = "list services, watch services, delete services"
    assert f"lacks rights in the namespace {team} of {api.server}: {missing}." in said
    assert contents(api, team) == AS_BEFORE


def refused(folder: Path, operator: Path, namespace: str, account: Path) -> str:
    """What a run says that is not begun."""
    words = ["run", "--operator", str(operator), "--cluster", f"kubeconfig:{account}", "--namespace", namespace]
    ran = run_command(*words, env=environment(folder), cwd=folder)
    said = " ".join((ran.stdout + ran.stderr).split())
    assert ran.returncode == ExitStatus.HARNESS_FAILED, said
    return said
