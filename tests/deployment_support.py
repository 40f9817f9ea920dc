"""The reference controller as a Deployment of a real cluster, without an image of its own: a container of busybox
enters the file system of the machine, and runs what the tests run. So the node has to be this very machine."""

import shutil
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from exitcode_fixtures.api import Json, KubernetesApi
from exitcode_fixtures.crds import bundled_crds

DEPLOYMENT: Final = "tested-controller"
VERSION: Final = "1.36"
"""The tag of the image, and so what the harness takes for the version of the operator."""
CRD: Final = "tfjobs.kubeflow.org"
LABELS: Final = {"app.kubernetes.io/name": "exitcode-test-controller"}
_MODULE: Final = "exitcode_reference_controller"
_SCRIPT: Final = """
mkfifo /tmp/said
while read -r line; do echo "$line"; [ "$line" = ready ] && touch /tmp/ready; done </tmp/said &
exec </kubeconfig/config >/tmp/said
exec chroot /machine "$PYTHON" -P -m "$MODULE" --kubeconfig /dev/stdin --kinds TFJob $WHERE
"""
"""The controller itself is the first process of the container, which gets the signals; it is ready when it says so."""


def this_very_machine(api: KubernetesApi) -> None:
    """Skips the test where the pods of the cluster run elsewhere."""
    here = {
        "machineID": Path("/etc/machine-id"),
        "bootID": Path("/proc/sys/kernel/random/boot_id"),
    }
    read = {key: path.read_text("ascii").strip() if path.exists() else None for key, path in here.items()}
    for node in api.list("/api/v1/nodes")["items"]:
        if any(node["status"]["nodeInfo"][key] != found for key, found in read.items()):
            pytest.skip(
                f"the node {node['metadata']['name']} is another machine: it cannot run this environment's Python"
            )


def needs_kubectl() -> None:
    """Skips the test where nothing renders a kustomization."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")


def kustomized(folder: Path, kubeconfig: Path, *, namespace: str | None = None) -> Path:
    """A kustomization of all that the controller needs: CRD, Secret with its kubeconfig, Deployment; with a namespace
    of its own from which it looks at all of them, or none: then it goes where it is put, and looks at nothing else.

    The name of the Deployment gets a prefix by the kustomization, except beside a namespace: whether that is renamed
    too depends on the version of kubectl."""
    folder.mkdir(mode=0o700)
    _write(folder / "crd.yaml", bundled_crds()[CRD])
    (folder / "config").write_text(kubeconfig.read_text("utf-8"), encoding="utf-8")
    where = "--namespace $(NAMESPACE)" if namespace is None else ""
    prefix = "tested-" if namespace is None else ""
    _write(folder / "deployment.yaml", _deployment(DEPLOYMENT.removeprefix(prefix), where))
    content: Json = {
        "resources": ["crd.yaml", "deployment.yaml"],
        "namePrefix": prefix,
        "images": [{"name": "busybox", "newTag": VERSION}],
        "secretGenerator": [{"name": "kubeconfig", "files": ["config"]}],
    }
    if namespace is not None:
        _write(folder / "namespace.yaml", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        content = {**content, "namespace": namespace, "resources": ["namespace.yaml", *content["resources"]]}
    _write(folder / "kustomization.yaml", content)
    return folder


def described(path: Path, **start: Any) -> Path:
    """The description of it, for a start."""
    bundled = yaml.safe_load((resources.files("exitcode_fixtures") / "operators" / "reference.yaml").read_text("utf-8"))
    features = [name for name in bundled["features"] if name != "operator-process" or start != {"mode": "none"}]
    identity = {**bundled["identity"], "version": VERSION}
    _write(path, {**bundled, "identity": identity, "start": start, "kinds": ["TFJob"], "features": features})
    return path


def _deployment(name: str, where: str) -> Json:
    source = find_spec(_MODULE)
    assert source is not None
    assert source.origin is not None
    environment = {
        "PYTHON": sys.executable,
        "MODULE": _MODULE,
        "PYTHONPATH": str(Path(source.origin).parents[1]),
        "PYTHONUNBUFFERED": "1",
    }
    own = {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    container = {
        "name": "manager",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _SCRIPT],
        "env": [
            *({"name": key, "value": value} for key, value in environment.items()),
            own,
            {"name": "WHERE", "value": where},
        ],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 2},
        "volumeMounts": [
            {"name": "machine", "mountPath": "/machine"},
            {"name": "kubeconfig", "mountPath": "/kubeconfig"},
        ],
    }
    spec = {
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 10,
        "containers": [container],
        "volumes": [
            {"name": "machine", "hostPath": {"path": "/"}},
            {"name": "kubeconfig", "secret": {"secretName": "kubeconfig"}},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": spec},
        },
    }


def _write(path: Path, content: Json) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
