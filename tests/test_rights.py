"""The account of `rbac.yaml` on a real cluster: it is enough for a run, and nothing of it is left unused."""

import base64
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from cluster_support import environment, real_kubeconfig, run_command
from request_log import granted_by, logged, told
from tenacity import Retrying, stop_after_delay, wait_fixed

from exitcode_fixtures.api import KubernetesApi, connected
from exitcode_fixtures.crds import CRDS, LENT_LABEL, bundled_crds
from exitcode_fixtures.errors import ExitStatus
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import LEASE, NAMESPACES, RUN_LABEL

MANIFEST: Final = (resources.files("exitcode_fixtures") / "manifests" / "rbac.yaml").read_text("utf-8")
NAME: Final = "exitcode-conformance"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
RUN_S: Final = 240.0
ASKED_OF_EVERYBODY: Final = {("create", "selfsubjectaccessreviews", "authorization.k8s.io")}
"""Every account of a cluster may ask what it may do."""
SCENARIOS: Final = "tfjob-chief-evicted or tfjob-worker1-deleted or touched-when-failed or touched-when-succeeded"
"""What the harness does to pods and jobs, it does in these."""
AT_ONCE: Final = {("watch", "serviceaccounts", ""), ("watch", "customresourcedefinitions", "apiextensions.k8s.io")}
"""Asked for only where what is waited for is not there at the first look."""
SAMPLE: Final = (
    ("watch", "pods", ""),
    ("create", "pods/eviction", ""),
    ("patch", "tfjobs", "kubeflow.org"),
    ("delete", "customresourcedefinitions", "apiextensions.k8s.io"),
)
LENT: Final = "tfjobs.kubeflow.org"
TFJOBS: Final = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"
JOBS: Final = ("tfjobs", "pytorchjobs")


def documents() -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(MANIFEST)}


@contextmanager
def account(api: KubernetesApi) -> Iterator[str]:
    """The account of the manifest, in a namespace of the test's own; its token."""
    found = documents()
    namespace = f"exitcode-test-{new_run_id()}"
    accounts = f"{NAMESPACES}/{namespace}/serviceaccounts"
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    try:
        api.create(NAMESPACES, {"metadata": {"name": namespace}})
        api.create(accounts, {"metadata": {"name": NAME}})
        api.create(f"{RBAC}/clusterroles", found["ClusterRole"])
        api.create(f"{RBAC}/clusterrolebindings", {**found["ClusterRoleBinding"], "subjects": [subject]})
        yield api.create(f"{accounts}/{NAME}/token", {"spec": {}})["status"]["token"]
    finally:
        api.delete(f"{RBAC}/clusterrolebindings/{NAME}", missing_ok=True)
        api.delete(f"{RBAC}/clusterroles/{NAME}", missing_ok=True)
        api.delete(f"{NAMESPACES}/{namespace}", missing_ok=True)


def leave_a_run_that_was_killed(api: KubernetesApi) -> str:
    """What a run that was killed long ago on another machine leaves: a namespace, and a CRD that somebody uses by now;
    the namespace's name."""
    run_id = new_run_id()
    name = f"exitcode-{run_id}"
    api.create(NAMESPACES, {"metadata": {"name": name, "labels": {RUN_LABEL: run_id}}})
    lease = {"metadata": {"name": LEASE}, "spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}
    api.create(f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases", lease)
    crd = bundled_crds()[LENT]
    api.create(CRDS, {**crd, "metadata": {**crd["metadata"], "labels": {LENT_LABEL: "true"}}})
    spec = {"tfReplicaSpecs": {"Worker": {"replicas": 0, "template": {"spec": {"containers": []}}}}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "somebody-else"}, "spec": spec}
    for attempt in Retrying(stop=stop_after_delay(20), wait=wait_fixed(0.2), reraise=True):
        with attempt:  # a CRD is served some time after it was created
            api.create(TFJOBS, job)
    return name


def kubeconfig_of(folder: Path, server: str, token: str, *, authority: str = "") -> Path:
    path = folder / "account"
    trust = {"certificate-authority-data": base64.b64encode(authority.encode()).decode()} if authority else {}
    content = {
        "clusters": [{"name": "c", "cluster": {"server": server, **trust}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def authority() -> str:
    """Who has signed the server's certificate, as PEM."""
    entry = yaml.safe_load(real_kubeconfig().read_text("utf-8"))["clusters"][0]["cluster"]
    if "certificate-authority-data" in entry:
        return base64.b64decode(entry["certificate-authority-data"]).decode()
    return Path(entry["certificate-authority"]).read_text("utf-8")


def operator_of_its_own(folder: Path) -> Path:
    """The reference controller, whose rights are the administrator's: they are not those of the run."""
    bundled = yaml.safe_load((resources.files("exitcode_fixtures") / "operators" / "reference.yaml").read_text("utf-8"))
    module = [sys.executable, "-P", "-m", "exitcode_reference_controller"]
    bundled["start"]["command"] = [*module, "--kubeconfig", str(real_kubeconfig()), "--namespace", "{namespace}"]
    bundled["kinds"] = ["TFJob", "PyTorchJob"]
    bundled["clean_pod_policy_default"] = "None"
    path = folder / "operator.yaml"
    path.write_text(yaml.safe_dump(bundled), encoding="utf-8")
    return path


@pytest.mark.real_cluster
def test_the_account_is_enough_for_a_run_and_none_of_its_rights_is_unused(tmp_path: Path) -> None:
    role = granted_by(documents()["ClusterRole"])
    with connected(real_kubeconfig()) as api, account(api) as token, logged(api.server, authority()) as log:
        left = leave_a_run_that_was_killed(api)
        path = kubeconfig_of(tmp_path, log.url, token)
        words = ["run", "--operator", str(operator_of_its_own(tmp_path)), "--cluster", f"kubeconfig:{path}"]
        words += ["--install-crds", "--profile", "extended", "-k", SCENARIOS, "--out", str(tmp_path / "out")]
        try:
            ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S)
            assert not api.exists(f"{NAMESPACES}/{left}"), "what the killed run has left is removed"
            assert api.exists(f"{TFJOBS}/somebody-else"), "what somebody else uses is not"
        finally:
            api.delete(f"{CRDS}/{LENT}", missing_ok=True)
    assert ran.returncode == ExitStatus.UNDECIDED, f"a part of the plan, all of which passes:\n{ran.stdout}{ran.stderr}"
    assert not log.refused - {("list", "nodes", "")}, "nodes are counted where that is allowed"
    asked_for = {right for right in role if right[2] != "kubeflow.org" or right[1] in JOBS}
    assert log.used - asked_for <= ASKED_OF_EVERYBODY, told(log.used - asked_for)
    assert not asked_for - log.used - AT_ONCE, f"granted and never used: {told(asked_for - log.used)}"
    of_kinds = [
        {verb for verb, name, _ in role if name == plural}
        for plural in {name for _, name, g in role if g == "kubeflow.org"}
    ]
    assert all(verbs == of_kinds[0] for verbs in of_kinds), "every kind is asked for the same"


@pytest.mark.real_cluster
def test_a_run_without_one_of_them_names_it(tmp_path: Path) -> None:
    role = granted_by(documents()["ClusterRole"])
    with connected(real_kubeconfig()) as api, account(api) as token:
        path = kubeconfig_of(tmp_path, api.server, token, authority=authority())
        for missing in SAMPLE:
            assert missing in role
            rules = [{"apiGroups": [g], "resources": [r], "verbs": [v]} for v, r, g in sorted(role - {missing})]
            api.merge_patch(f"{RBAC}/clusterroles/{NAME}", {"rules": rules})
            words = ["run", "--cluster", f"kubeconfig:{path}", "--install-crds", "--profile", "extended"]
            ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path)
            assert ran.returncode == ExitStatus.HARNESS_FAILED
            verb, resource, group = missing
            named = f"lacks rights in the cluster {api.server}: {verb} {resource}{'.' + group if group else ''}."
            assert named in " ".join((ran.stdout + ran.stderr).split())
