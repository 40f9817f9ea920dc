"""The embedded cluster answers as a kube-apiserver does: scripts of requests, and every difference accounted for.

With EXITCODE_REAL_KUBECONFIG a script is replayed against a real cluster too, if that is of the version that the script
is about; without, its recorded answers stand in.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_replay_support import SCRIPTS, Script, Server, differences, replay
from embedded_support import embedded_process
from skip_reasons import NO_REAL_CLUSTER

REAL = os.environ.get("EXITCODE_REAL_KUBECONFIG")

Answers = dict[str, Any]
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kubeconfig of an embedded cluster."""
    with embedded_process(tmp_path_factory.mktemp("embedded") / "state") as (kubeconfig, _):
        yield kubeconfig


@pytest.fixture(scope="module")
def embedded(server: Path) -> dict[Script, Answers]:
    return {script: replay(script, server) for script in SCRIPTS}


def recorded(script: Script) -> Answers:
    return dict(json.loads(script.recorded.read_text()))


def kept_differences(script: Script) -> set[str]:
    listed = yaml.safe_load(script.differences.read_text())
    assert all(one["reason"] for one in listed)
    places = [place for one in listed for place in one["places"]]
    assert len(places) == len(set(places)), "a place is listed twice"
    return set(places)


def told_apart(ours: Answers, theirs: Answers) -> dict[str, str]:
    """Place → what differs there."""
    return {
        f"{step} {path}": f"{mine!r} where Kubernetes says {real!r}"
        for step in theirs
        for path, mine, real in differences(ours.get(step), theirs[step])
    }


def check(script: Script, ours: Answers, theirs: Answers) -> None:
    found, kept = told_apart(ours, theirs), kept_differences(script)
    unlisted = [f"{place}: {found[place]}" for place in sorted(set(found) - kept)]
    assert not unlisted, "differences that are not listed:\n" + "\n".join(unlisted)
    assert not kept - set(found), f"listed differences that are none: {sorted(kept - set(found))}"


@each_script
def test_every_step_has_the_code_that_the_script_says(script: Script) -> None:
    answers = recorded(script)
    for step in script.steps():
        if "code" in step:
            assert answers[step["id"]]["code"] == step["code"], step["id"]


@each_script
def test_embedded_answers_as_kubernetes_did(script: Script, embedded: dict[Script, Answers]) -> None:
    theirs = recorded(script)
    assert set(embedded[script]) == set(theirs)
    check(script, embedded[script], theirs)


@pytest.mark.real_cluster
@pytest.mark.skipif(REAL is None, reason=NO_REAL_CLUSTER)
@each_script
def test_embedded_answers_as_kubernetes_does(script: Script, embedded: dict[Script, Answers]) -> None:
    assert REAL is not None
    minor = Server(Path(REAL)).send("GET", "/version", {}, None)[1]["minor"]
    if int(minor) != script.minor:
        pytest.skip(f"the real cluster is a Kubernetes 1.{minor}, and the script is about 1.{script.minor}")
    real = replay(script, Path(REAL))
    check(script, embedded[script], real)
    assert not told_apart(recorded(script), real), "the recorded answers are out of date"
