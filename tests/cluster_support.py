"""What the tests of clusters, launcher and command line share: an embedded cluster, real ones, processes told apart."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from skip_reasons import NO_REAL_CLUSTER

from exitcode_fixtures.api import KubernetesApi, connected
from exitcode_fixtures.clusters.address import ClusterAddress, parse_address
from exitcode_fixtures.clusters.cluster import Cluster, ClusterIdentity, OpenCluster, open_cluster

MARK = "EXITCODE_TEST_MARK"
"""Environment variable that every process of a test inherits, so that it can be told from all others."""
PATIENCE_S = 60.0


@contextmanager
def embedded(folder: Path) -> Iterator[Cluster]:
    """An embedded cluster of the test's own."""
    with open_cluster(parse_address("embedded"), state=folder) as cluster:
        yield cluster


@contextmanager
def embedded_api(folder: Path) -> Iterator[KubernetesApi]:
    """An embedded cluster and the way to it."""
    with embedded(folder) as cluster, connected(cluster.kubeconfig) as api:
        yield api


def real_kubeconfig() -> Path:
    """The kubeconfig of a real cluster, where the environment names one; else the test is skipped, and says why."""
    named = os.environ.get("EXITCODE_REAL_KUBECONFIG")
    if not named:
        pytest.skip(NO_REAL_CLUSTER)
    return Path(named)


def unconnected(folder: Path) -> Cluster:
    """A cluster that is never asked anything."""
    path = write_kubeconfig(folder / "unconnected", "http://127.0.0.1:9")
    identity = ClusterIdentity(address="kubeconfig", type="kubeconfig", server_version="v1", nodes=1, speed="real")
    return OpenCluster(kubeconfig=path, context=None, identity=identity)


def write_kubeconfig(path: Path, server: str, **user: Any) -> Path:
    """A kubeconfig with one context, `test`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def address_of(kubeconfig: Path) -> ClusterAddress:
    """The address that leads to a kubeconfig."""
    return ClusterAddress(type="kubeconfig", path=kubeconfig)


def command(*arguments: str) -> list[str]:
    """The command line of the suite, as a process."""
    return [sys.executable, "-P", "-m", "exitcode_fixtures.command_line", *arguments]


def run_command(
    *arguments: str, env: Mapping[str, str], cwd: Path, within_s: float = PATIENCE_S
) -> "subprocess.CompletedProcess[str]":
    """Run it to its end."""
    return subprocess.run(
        command(*arguments), env=dict(env), cwd=cwd, capture_output=True, text=True, timeout=within_s, check=False
    )


def environment(folder: Path, **more: str) -> dict[str, str]:
    """An environment whose runtime directory and temporary directory are the test's own, and whose processes are
    marked with the folder."""
    for name in ("runtime", "temporary"):
        (folder / name).mkdir(exist_ok=True, mode=0o700)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "KUBECONFIG"))}
    own = {"XDG_RUNTIME_DIR": str(folder / "runtime"), "TMPDIR": str(folder / "temporary"), MARK: str(folder)}
    return {**kept, **own, **more}


def marked_processes(folder: Path) -> dict[int, str]:
    """The processes that carry the folder's mark, with their command lines; those that are only waited for do not
    count, since they have no environment any more."""
    mark = f"{MARK}={folder}".encode()
    found = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                if mark in (directory / "environ").read_bytes().split(b"\0"):
                    words = (directory / "cmdline").read_bytes().split(b"\0")
                    found[int(directory.name)] = b" ".join(words).decode("utf-8", "replace")
            except OSError:
                continue
    return found


def await_no_process(folder: Path, *, within_s: float) -> dict[int, str]:
    """Look until no process carries the mark, or the time is over; those that are left."""
    deadline = time.monotonic() + within_s
    while (left := marked_processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)  # nobody tells of the end of a process that is not one's child
    return left
