"""Clocks and delays are measured before the first scenario, told with their bounds, and doubted in words."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_support import embedded_api, environment, run_command
from recording_support import recorded

from exitcode_conformance.entry import Action
from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.api import KubernetesApi
from exitcode_fixtures.calibration import REQUESTS, WRITES, calibrate, node_offset, server_offset
from exitcode_fixtures.errors import ExitStatus
from exitcode_fixtures.image_trial import ImageTrial, try_image
from exitcode_fixtures.run_folder import new_run_id
from exitcode_fixtures.run_namespace import run_namespace
from exitcode_reports.calibration import ACTION, Calibration, Delays, Offset
from exitcode_reports.html import render_html
from exitcode_reports.recording import Recording, read_recording
from exitcode_reports.summary import summarise

IMAGE = "busybox:1.36"
RUN_S = 120.0
SLOW = {
    "round_trip": {"count": 10, "median": 0.5, "maximum": 1.5},
    "watch": {"count": 10, "median": 1.0, "maximum": 4.5},
}
REAL = Timeouts.default("real")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    with embedded_api(tmp_path_factory.mktemp("embedded")) as api:
        yield api


def test_a_run_records_it_and_its_report_shows_it(tmp_path: Path) -> None:
    words = ("run", "-k", "STATE-01 and tfjob-worker-exit0-worker1", "--out", str(tmp_path / "out"))
    ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path, within_s=RUN_S)
    recording = read_recording(tmp_path / "out" / "recording.jsonl")
    (action,) = [entry for entry in recording.entries if isinstance(entry, Action) and entry.action == ACTION]
    names = [entry.action for entry in recording.entries if isinstance(entry, Action)]
    assert names.index(ACTION) < names.index("operator-started")
    assert ran.returncode == ExitStatus.UNDECIDED, ran.stdout + ran.stderr
    measured = Calibration.model_validate(action.detail)
    assert measured.server is not None
    assert measured.server.at_least <= 0 <= measured.server.at_most, "it is one machine, and one clock"
    assert measured.node is not None
    assert measured.node.at_least <= 0 <= measured.node.at_most
    assert (measured.round_trip or none()).count == REQUESTS
    assert (measured.watch or none()).count == 2 * WRITES
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert all(value in page for _, value in measured.rows)
    verified = run_command("verify", str(recording.path), env=environment(tmp_path), cwd=tmp_path)
    assert "1 of 1 verdicts come out again" in verified.stdout


def none() -> Delays:
    return Delays(count=0, median=0, maximum=0)


@pytest.mark.parametrize("ahead", [90.0, -90.0])
def test_a_clock_that_is_wrong_is_found_out(api: KubernetesApi, ahead: float) -> None:
    with run_namespace(api, new_run_id()) as namespace:
        trial = try_image(api, namespace, IMAGE, within_s=RUN_S)
        measured = calibrate(api, namespace, IMAGE, trial, labels={}, wall=lambda: time.time() + ahead)
        assert api.list(f"/api/v1/namespaces/{namespace}/pods")["items"] == []
    assert measured.problem is None
    assert measured.server is not None
    assert measured.server.at_least <= -ahead <= measured.server.at_most
    assert measured.server.at_most - measured.server.at_least <= 1 + RUN_S
    (warning,) = [text for text in measured.warnings(REAL, ()) if "clocks" in text]
    assert "The clocks of this machine and the API server are at least " in warning
    assert "`terminal`, `removal` and `never` may be wrong there" in warning


def test_all_answers_together_give_narrower_bounds() -> None:
    # A server that is 0.3 s ahead, asked at four places of its second; each answer takes 0.1 s.
    asked = [(at, float(int(at + 0.05 + 0.3)), at + 0.1) for at in (100.0, 100.25, 100.5, 100.75)]
    found = server_offset(asked)
    assert found is not None
    assert found.at_least <= 0.3 <= found.at_most
    assert found.at_most - found.at_least < 0.5
    assert server_offset([(100.0, 100.0, 100.1), (101.0, 200.0, 101.1)]) is None, "somebody has set the clock"


def test_what_is_known_of_a_node_rests_on_what_must_have_come_first() -> None:
    server = Offset(at_least=-0.2, at_most=0.2)
    trial = ImageTrial(seconds=2, created=100, started=101, seen=102.5)
    assert node_offset(trial, server) == Offset(at_least=-1.7, at_most=2.0)
    ahead = node_offset(trial.model_copy(update={"started": 161.0}), server)
    assert ahead is not None
    assert ahead.certain == pytest.approx(58.3)
    assert node_offset(trial.model_copy(update={"started": None}), server) is None
    assert node_offset(trial, None) is None


@pytest.mark.parametrize(
    ("reproduce", "scale"), [((), 4), (("exitcode-conformance", "run", "--timeout-scale", "2"), 8)]
)
def test_delays_that_eat_up_a_bound_are_doubted_with_a_way_out(reproduce: tuple[str, ...], scale: int) -> None:
    (warning,) = Calibration.model_validate(SLOW).warnings(REAL, reproduce)
    assert warning == (
        "News of a change takes up to 4.50 s here and an answer up to 1.50 s: `dwell` and `never` may be too short to "
        f"tell a slow cluster from a slow operator. Run with --timeout-scale {scale}."
    )
    assert Calibration.model_validate(SLOW).warnings(Timeouts.default("real", scale=4), ()) == ()


def with_action(recording: Recording, detail: dict[str, Any]) -> Recording:
    action = Action(seq=len(recording.entries) + 1, time=0, scenario=None, action="calibration", detail=detail)
    return recording.model_copy(update={"entries": (*recording.entries, action)})


def test_a_report_opens_with_the_doubt_and_decides_nothing_by_it(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording.jsonl")
    doubted = with_action(recording, SLOW)
    before, after = summarise(recording), summarise(doubted)
    assert (before.overall, before.tallies) == (after.overall, after.tallies)
    (notice,) = set(after.notices) - set(before.notices)
    assert notice.startswith("News of a change takes up to 4.50 s here")
    assert "--timeout-scale" in render_html(doubted)
    assert "write to watch" in render_html(doubted)


def test_older_recordings_and_strange_ones_have_none(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording.jsonl")
    assert Calibration.of(recording.entries) is None
    assert "write to watch" not in render_html(recording)
    strange = with_action(recording, {"server": "ahead"})
    assert Calibration.of(strange.entries) is None
    assert summarise(strange).notices == summarise(recording).notices


def test_what_could_not_be_measured_is_said() -> None:
    found = Calibration.model_validate({"problem": "The API server refused a request"})
    assert found.rows == (("not measured", "The API server refused a request"),)
    assert found.warnings(REAL, ()) == ()
    assert json.loads(found.model_dump_json(exclude_none=True)) == {"problem": "The API server refused a request"}
