"""The account of `rbac.yaml` on a real cluster: it is enough for a run, and nothing of it is left unused."""

import base64
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml
from cluster_support import environment, real_kubeconfig, run_command
from request_log import granted_by, logged, told

from exitcode_fixtures.api import KubernetesApi, connected
from exitcode_fixtures.errors import ExitStatus

MANIFEST: Final = (resources.files("exitcode_fixtures") / "manifests" / "rbac.yaml").read_text("utf-8")
NAME: Final = "exitcode-conformance"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNT: Final = f"/api/v1/namespaces/{NAME}/serviceaccounts"
RUN_S: Final = 240.0
ASKED_OF_EVERYBODY: Final = {("create", "selfsubjectaccessreviews", "authorization.k8s.io")}
"""Every account of a cluster may ask what it may do."""
SCENARIOS: Final = "tfjob-chief-evicted or tfjob-worker1-deleted or pytorchjob-touched-when-succeeded"
"""What the harness does to pods and jobs, it does in these."""
SAMPLE: Final = (
    ("watch", "pods", ""),
    ("create", "pods/eviction", ""),
    ("patch", "tfjobs", "kubeflow.org"),
    ("delete", "customresourcedefinitions", "apiextensions.k8s.io"),
)
JOBS: Final = ("tfjobs", "pytorchjobs")


def documents() -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(MANIFEST)}


@contextmanager
def account(api: KubernetesApi) -> Iterator[str]:
    """The account of the manifest, as `kubectl apply` makes it; its token."""
    found = documents()
    api.create("/api/v1/namespaces", {"metadata": {"name": NAME}})
    try:
        api.create(ACCOUNT, found["ServiceAccount"])
        api.create(f"{RBAC}/clusterroles", found["ClusterRole"])
        api.create(f"{RBAC}/clusterrolebindings", found["ClusterRoleBinding"])
        yield api.create(f"{ACCOUNT}/{NAME}/token", {"spec": {}})["status"]["token"]
    finally:
        api.delete(f"{RBAC}/clusterrolebindings/{NAME}", missing_ok=True)
        api.delete(f"{RBAC}/clusterroles/{NAME}", missing_ok=True)
        api.delete(f"/api/v1/namespaces/{NAME}", missing_ok=True)


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
    content = yaml.safe_load(real_kubeconfig().read_text("utf-8"))
    return Path(content["clusters"][0]["cluster"]["certificate-authority"]).read_text("utf-8")


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


def test_the_account_is_enough_for_a_run_and_none_of_its_rights_is_unused(tmp_path: Path) -> None:
    role = granted_by(documents()["ClusterRole"])
    with connected(real_kubeconfig()) as api, account(api) as token, logged(api.server, authority()) as log:
        path = kubeconfig_of(tmp_path, log.url, token)
        words = ["run", "--operator", str(operator_of_its_own(tmp_path)), "--cluster", f"kubeconfig:{path}"]
        words += ["--install-crds", "--profile", "extended", "-k", SCENARIOS, "--out", str(tmp_path / "out")]
        ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S)
    assert ran.returncode == ExitStatus.UNDECIDED, (
        f"a part of the plan, and all of it passes:\n{ran.stdout}{ran.stderr}"
    )
    assert not log.refused - {("list", "nodes", "")}, "nodes are counted where that is allowed"
    asked_for = {right for right in role if right[2] != "kubeflow.org" or right[1] in JOBS}
    assert log.used - asked_for <= ASKED_OF_EVERYBODY, told(log.used - asked_for)
    assert not asked_for - log.used, f"granted and never used: {told(asked_for - log.used)}"
    of_kinds = [
        {verb for verb, name, _ in role if name == plural}
        for plural in {name for _, name, g in role if g == "kubeflow.org"}
    ]
    assert all(verbs == of_kinds[0] for verbs in of_kinds), "every kind is asked for the same"


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
