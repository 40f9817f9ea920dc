"""The embedded cluster answers as a kube-apiserver does: one script of requests, and every difference accounted for.

With EXITCODE_REAL_KUBECONFIG the script is replayed against a real cluster too; without, its recorded answers stand in.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_replay_support import DIFFERENCES, RECORDED, differences, load_script, replay
from embedded_support import embedded_process

REAL = os.environ.get("EXITCODE_REAL_KUBECONFIG")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with embedded_process(tmp_path_factory.mktemp("embedded") / "state") as (kubeconfig, _):
        return dict(replay(kubeconfig))


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text()))


def kept_differences() -> set[str]:
    listed = yaml.safe_load(DIFFERENCES.read_text())
    assert all(one["reason"] for one in listed)
    places = [place for one in listed for place in one["places"]]
    assert len(places) == len(set(places)), "a place is listed twice"
    return set(places)


def told_apart(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, str]:
    """Place → what differs there."""
    return {
        f"{step} {path}": f"{mine!r} where Kubernetes says {real!r}"
        for step in theirs
        for path, mine, real in differences(ours.get(step), theirs[step])
    }


def check(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    found, kept = told_apart(ours, theirs), kept_differences()
    unlisted = [f"{place}: {found[place]}" for place in sorted(set(found) - kept)]
    assert not unlisted, "differences that are not listed:\n" + "\n".join(unlisted)
    assert not kept - set(found), f"listed differences that are none: {sorted(kept - set(found))}"


def test_every_step_has_the_code_that_the_script_says(recorded: dict[str, Any]) -> None:
    for step in load_script():
        if "code" in step:
            assert recorded[step["id"]]["code"] == step["code"], step["id"]


def test_embedded_answers_as_kubernetes_did(embedded: dict[str, Any], recorded: dict[str, Any]) -> None:
    assert set(embedded) == set(recorded)
    check(embedded, recorded)


@pytest.mark.skipif(REAL is None, reason="EXITCODE_REAL_KUBECONFIG names no real cluster")
def test_embedded_answers_as_kubernetes_does(embedded: dict[str, Any], recorded: dict[str, Any]) -> None:
    assert REAL is not None
    real = dict(replay(Path(REAL)))
    check(embedded, real)
    assert not told_apart(recorded, real), "the recorded answers are out of date"
