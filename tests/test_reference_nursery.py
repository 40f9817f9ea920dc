"""Controllers that are forked: each is a process of its own, says what any other says, and ends with whoever asked."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster_support import await_no_process, embedded, environment, marked_processes

from exitcode_fixtures.api import connected
from exitcode_fixtures.clusters.cluster import Cluster
from exitcode_fixtures.crds import install_bundled

MODULE = "exitcode_reference_controller"
Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with embedded(tmp_path_factory.mktemp("cluster")) as cluster:
        with connected(cluster.kubeconfig) as api:
            install_bundled(api)
        yield cluster


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path)


@pytest.fixture
def nursery(tmp_path: Path, env: Mapping[str, str]) -> Iterator[Process]:
    """One that listens in a directory whose path is longer than that of a socket may be."""
    directory = tmp_path / ("long" * 30)
    directory.mkdir()
    with started(env, "nursery", str(directory)) as process:
        assert line_of(process) == "ready"
        yield process


@contextmanager
def started(env: Mapping[str, str], module: str, *arguments: str) -> Iterator[Process]:
    command = [sys.executable, "-P", "-m", f"{MODULE}.{module}", *arguments]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def line_of(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def directory_of(nursery: Process) -> str:
    assert isinstance(nursery.args, list)
    return str(nursery.args[-1])


@contextmanager
def controller(env: Mapping[str, str], nursery: Process, cluster: Cluster, *arguments: str) -> Iterator[Process]:
    """A controller that is ready, and the nursling that stands for it."""
    where = ("--kubeconfig", str(cluster.kubeconfig), "--namespace", "default")
    with started(env, "nursling", directory_of(nursery), *where, *arguments) as process:
        assert line_of(process) == "ready"
        yield process


def test_it_says_and_ends_as_the_controller_does(env: Mapping[str, str], nursery: Process) -> None:
    with started(env, "nursling", directory_of(nursery), "--list-variants") as listing:
        said, complaint = listing.communicate(timeout=30)
    assert {"name": "reference", "sentence": "The reference behaviour."} in json.loads(said)
    assert (listing.returncode, complaint) == (0, "")
    with started(env, "nursling", directory_of(nursery), "--variant", "no-such-one") as wrong:
        said, complaint = wrong.communicate(timeout=30)
    assert (wrong.returncode, said) == (4, "")
    assert "no-such-one" in complaint


def test_each_is_a_process_of_its_own_and_ends_when_it_is_told_to(
    env: Mapping[str, str], nursery: Process, cluster: Cluster, tmp_path: Path
) -> None:
    with (
        controller(env, nursery, cluster, "--variant", "null") as one,
        controller(env, nursery, cluster, "--log-level", "warning") as other,
    ):
        assert len(marked_processes(tmp_path)) == 5  # the nursery, two nurslings, two controllers
        one.terminate()
        assert one.wait(30) == 0
        other.send_signal(signal.SIGINT)
        assert other.wait(30) == 0
    nursery.terminate()
    assert nursery.wait(30) == 0
    assert await_no_process(tmp_path, within_s=5) == {}


def test_a_controller_does_not_outlive_its_nursling(
    env: Mapping[str, str], nursery: Process, cluster: Cluster, tmp_path: Path
) -> None:
    with controller(env, nursery, cluster) as killed, controller(env, nursery, cluster) as other:
        killed.kill()
        other.terminate()
        assert other.wait(30) == 0
        nursery.terminate()  # it waits for those that are still there
        assert nursery.wait(30) == 0
        assert await_no_process(tmp_path, within_s=5) == {}


def test_no_controller_outlives_the_nursery(
    env: Mapping[str, str], nursery: Process, cluster: Cluster, tmp_path: Path
) -> None:
    with controller(env, nursery, cluster) as one:
        nursery.kill()
        assert one.wait(30) == 1
    assert await_no_process(tmp_path, within_s=5) == {}
