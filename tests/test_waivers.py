"""Waivers: they turn a failure into `waived` for a time, nothing into a pass, and fail the run once they are of no use.

Recordings of a real cluster are judged again under a description that has waivers; a small run is live.
"""

import json
import lzma
import subprocess
import sys
from contextlib import redirect_stdout
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from cluster_support import environment, run_command
from recording_support import STARTED, make_recording, scenarios

from exitcode_conformance.waiver import Waiver
from exitcode_fixtures.certification_run import plugin_arguments
from exitcode_fixtures.command_line import main
from exitcode_reports.recording import RecordedWaiver, read_recording
from exitcode_reports.results import Overall, overall
from exitcode_reports.summary import summarise

CORPUS = Path(__file__).parent / "data" / "corpus"
RAN_ON = date(2026, 11, 29)
"""The day of the recordings."""
FAILED = "EXIT-02[tfjob-worker-exit1-worker1]"
PASSED = "EXIT-03[tfjob-worker-exit137-worker1]"
UNKNOWN = "STATE-11[tfjob-worker-exit137-worker1]"


def waiver(case: str, **changes: object) -> dict[str, object]:
    """A waiver of these test ids."""
    requirement, _, pattern = case.removesuffix("]").partition("[")
    return {
        "requirement": requirement,
        "scenarios": pattern,
        "reason": "Known since spring.",
        "owner": "the batch team",
        "link": "https://example.org/issues/17",
        "expires": RAN_ON + timedelta(days=30),
        **changes,
    }


def describe(folder: Path, name: str, *waivers: dict[str, object], of: str = "reference") -> Path:
    """A description of the operator `name`, like that of a bundled one, with waivers."""
    bundled = yaml.safe_load((files("exitcode_fixtures") / "operators" / f"{of}.yaml").read_text("utf-8"))
    path = folder / "operator.yaml"
    path.write_text(yaml.safe_dump({**bundled, "name": name, "waivers": list(waivers)}), encoding="utf-8")
    return path


def corpus(folder: Path, name: str) -> Path:
    """A recording of the corpus."""
    path = folder / "recorded.jsonl"
    path.write_bytes(lzma.decompress((CORPUS / f"{name}.jsonl.xz").read_bytes()))
    return path


class Judged:
    """A recording that was judged again by the command."""

    def __init__(self, folder: Path, recording: Path, *arguments: str, out: str = "out") -> None:
        self.out = folder / out
        words = ["run", "--cluster", f"recording:{recording}", "--out", str(self.out), *arguments]
        with redirect_stdout(StringIO()) as text:
            self.status = main(words)
        self.text = text.getvalue()
        self.recording = self.out / "recording.jsonl"
        lines = [json.loads(line) for line in self.recording.read_text("utf-8").splitlines()]
        self.header: dict[str, Any] = lines[0]
        given = [line for line in lines if line["type"] == "verdict"]
        self.verdicts = {f"{line['requirement']}[{line['subject']}]": line["verdict"] for line in given}
        self.seen = {f"{line['requirement']}[{line['subject']}]": line["seen"] for line in given}


def under(folder: Path, name: str, *waivers: dict[str, object], arguments: tuple[str, ...] = ()) -> Judged:
    """A recording of the corpus judged under a description with these waivers."""
    description = describe(folder, name, *waivers)
    return Judged(folder, corpus(folder, name), "--operator", str(description), *arguments)


@pytest.fixture(scope="module")
def waived(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """The one failure of `general-error-retried`, waived."""
    return under(tmp_path_factory.mktemp("waived"), "general-error-retried", waiver(FAILED))


def test_a_failure_is_waived_and_everything_else_is_as_it_was(waived: Judged, tmp_path: Path) -> None:
    without = under(tmp_path, "general-error-retried")
    assert without.status == 1
    assert without.verdicts[FAILED] == "fail"
    assert waived.verdicts == {**without.verdicts, FAILED: "waived"}
    assert waived.seen[FAILED] == (
        f"{without.seen[FAILED]} (waived until 2026-12-29 by the batch team: Known since spring., "
        "https://example.org/issues/17)"
    )
    # Most of the plan was not recorded: nothing fails now, and nothing is decided.
    assert waived.status == 2
    assert "CONFORMANT" not in waived.text
    assert "1 waiver (1 in force): 1 failed case is waived." in waived.text
    assert "EXIT-02     MUST    not-run" in waived.text


def test_every_field_stands_in_the_header(waived: Judged) -> None:
    assert waived.header["waivers"] == [{**waiver(FAILED, expires="2026-12-29"), "elsewhere": False}]
    assert "waivers" not in waived.header["operator"]


def test_without_the_description_the_recorded_waivers_give_the_same(waived: Judged, tmp_path: Path) -> None:
    again = Judged(tmp_path, waived.recording)
    assert again.header["waivers"] == waived.header["waivers"]
    assert again.verdicts == waived.verdicts
    assert again.status == waived.status
    assert again.text.partition("report: ")[0] == waived.text.partition("report: ")[0]


def test_a_description_without_waivers_takes_the_recorded_ones_away(waived: Judged, tmp_path: Path) -> None:
    again = Judged(tmp_path, waived.recording, "--operator", str(describe(tmp_path, "general-error-retried")))
    assert again.header["waivers"] == []
    assert again.verdicts[FAILED] == "fail"
    assert again.status == 1


def test_the_reports_count_it(waived: Judged) -> None:
    page = (waived.out / "index.html").read_text("utf-8")
    assert "1 waiver (1 in force): 1 failed case is waived." in page
    assert f"{FAILED} until 2026-12-29 by the batch team: Known since spring. (https://example.org/issues/17)" in page
    assert properties(waived) == {"": "1", ".in-force": "1", ".expired": "0", ".stale": "0", ".cases": "1"}
    assert ElementTree.parse(waived.out / "junit.xml").getroot().attrib["failures"] == "0"


def properties(judged: Judged) -> dict[str, str]:
    """What the JUnit file says of waivers."""
    found = ElementTree.parse(judged.out / "junit.xml").getroot().iter("property")
    values = {one.attrib["name"]: one.attrib["value"] for one in found}
    return {name.removeprefix("waivers"): value for name, value in values.items() if name.startswith("waivers")}


def test_it_waives_its_own_cases_alone(tmp_path: Path) -> None:
    # `restart-in-place` fails three requirements.
    judged = under(tmp_path, "restart-in-place", waiver("RESTART-0?[*]", requirement="RESTART-01"))
    failed = {name.partition("[")[0] for name, verdict in judged.verdicts.items() if verdict == "fail"}
    given = {name.partition("[")[0] for name, verdict in judged.verdicts.items() if verdict == "waived"}
    assert (failed, given) == ({"EXIT-02", "RESTART-04"}, {"RESTART-01"})
    assert judged.status == 1
    assert "breaks 2 MUST requirements" in judged.text


def test_patterns_that_do_not_fit_waive_nothing(tmp_path: Path) -> None:
    patterns = ("tfjob-worker-exit1-worker2", "TFJOB-*", "exit1", "tfjob-worker-exit[2-9]-*")
    judged = under(tmp_path, "general-error-retried", *(waiver(f"EXIT-02[{one}]") for one in patterns))
    assert judged.verdicts[FAILED] == "fail"
    assert judged.status == 1


@pytest.mark.parametrize("pattern", ["*", "tfjob-worker-exit1-*", "tfjob-worker-exit?-worker[1-3]"])
def test_a_pattern_is_one_of_a_shell(pattern: str) -> None:
    one = Waiver.model_validate(waiver(f"EXIT-02[{pattern}]"))
    assert one.names("EXIT-02", "tfjob-worker-exit1-worker1")
    assert not one.names("EXIT-03", "tfjob-worker-exit1-worker1")


def test_it_holds_on_its_last_day(tmp_path: Path) -> None:
    judged = under(tmp_path, "general-error-retried", waiver(FAILED, expires=RAN_ON))
    assert judged.verdicts[FAILED] == "waived"
    assert judged.status == 2


def test_an_expired_one_waives_nothing_and_is_named(tmp_path: Path) -> None:
    judged = under(tmp_path, "general-error-retried", waiver(FAILED, expires=RAN_ON - timedelta(days=1)))
    assert judged.verdicts[FAILED] == "fail"
    assert judged.status == 1
    assert f"The waiver of {FAILED} by the batch team has expired: its last day was 2026-11-28." in judged.text
    assert "1 waiver (1 expired): 0 failed cases are waived." in judged.text


def test_an_expired_one_fails_a_run_that_nothing_else_fails(tmp_path: Path) -> None:
    judged = under(tmp_path, "reference", waiver(FAILED, expires=RAN_ON - timedelta(days=1)), waiver(PASSED))
    assert "fail" not in judged.verdicts.values()
    assert judged.status == 1
    assert (
        "NOT CONFORMANT: reference 0.1.0 fails by its waivers alone, of which 2 have expired or are stale: "
        in judged.text
    )
    root = ElementTree.parse(judged.out / "junit.xml").getroot()
    (suite,) = [one for one in root if one.attrib["name"] == "WAIVERS"]
    assert [one.attrib["type"] for one in suite.iter("failure")] == ["expired", "stale"]
    assert root.attrib["failures"] == "2"
    page = (judged.out / "index.html").read_text("utf-8")
    assert '<p class="notice loud">The waiver of EXIT-02[tfjob-worker-exit1-worker1] by the batch team has' in page
    # The report is a function of the recording: it comes to the same.
    recording = read_recording(judged.recording)
    assert overall(recording) is Overall.NOT_CONFORMANT
    assert recording.footer is not None
    assert recording.footer.exit_status == 1
    again = Judged(tmp_path, judged.recording, out="again")
    assert (again.status, again.verdicts) == (1, judged.verdicts)


def test_a_stale_one_fails_the_run(tmp_path: Path) -> None:
    judged = under(tmp_path, "reference", waiver(PASSED))
    assert judged.verdicts[PASSED] == "pass"
    assert judged.status == 1
    assert (
        f"The waiver of {PASSED} by the batch team, until 2026-12-29, is stale: the only case that it names passed. "
        "Remove it."
    ) in judged.text
    assert properties(judged)[".stale"] == "1"


def test_one_that_names_nothing_is_stale(tmp_path: Path) -> None:
    judged = under(tmp_path, "reference", waiver("EXIT-03[nowhere-*]"))
    assert judged.status == 1
    assert "EXIT-03[nowhere-*] by the batch team, until 2026-12-29, is stale: no case of the plan has" in judged.text


def test_what_was_not_run_may_still_need_it(tmp_path: Path) -> None:
    # The recording holds a few scenarios of EXIT-03, and all of those pass. EXIT-02 is left out.
    left_out = under(tmp_path, "reference", waiver("EXIT-03[*]"), waiver(FAILED), arguments=("-k", "EXIT-03"))
    assert set(left_out.verdicts.values()) == {"pass"}
    assert FAILED not in left_out.verdicts
    assert left_out.status == 2
    assert "stale" not in left_out.text


def test_unknown_stays_unknown_and_is_no_proof_of_staleness(tmp_path: Path) -> None:
    judged = under(tmp_path, "always-restart", waiver(UNKNOWN), waiver("EXIT-02[*]"))
    assert judged.verdicts[UNKNOWN] == "unknown"
    assert "stale" not in judged.text
    assert judged.status == 2


def test_plain_pytest_fails_by_a_stale_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--pyargs", "exitcode_conformance", *plugin_arguments()]
    command += ["--cluster", f"recording:{corpus(tmp_path, 'reference')}", "-k", "EXIT-03 or RESTART-01", "-q"]
    command += ["--operator", str(describe(tmp_path, "reference", waiver(PASSED)))]
    ran = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 1, ran.stdout
    assert "is stale: the only case that it names passed. Remove it." in ran.stdout
    assert " failed" not in ran.stdout


def test_one_for_the_larger_profile_is_no_fault_of_the_smaller(tmp_path: Path) -> None:
    description = describe(tmp_path, "reference", waiver("LIMIT-02[*]"), waiver("EXIT-03[nowhere]"), waiver(PASSED))
    said = {}
    for profile in ("core", "extended"):
        with redirect_stdout(StringIO()) as text:
            assert main(["plan", "--operator", str(description), "--profile", profile]) == 0
        said[profile] = text.getvalue().splitlines()
    assert "names 0 cases, and others in another profile or by the claimed contract." in said["core"][2]
    assert "stale: no case of the plan" in said["core"][3]
    assert said["core"][4] == f"The waiver of {PASSED}, until 2026-12-29 by the batch team, names 1 case."
    assert "another profile" not in said["extended"][2]
    judged = under(tmp_path, "reference", waiver("LIMIT-02[*]"))
    assert judged.status == 2
    assert judged.header["waivers"][0]["elsewhere"] is True
    assert Judged(tmp_path, judged.recording, out="again").status == 2


@pytest.mark.parametrize(("elsewhere", "expected"), [(True, Overall.CONFORMANT), (False, Overall.NOT_CONFORMANT)])
def test_one_that_may_be_needed_elsewhere_is_not_stale(elsewhere: bool, expected: Overall, tmp_path: Path) -> None:
    one = RecordedWaiver.model_validate({**waiver("EXIT-02[*]"), "elsewhere": elsewhere})
    recording = read_recording(make_recording(tmp_path / "r.jsonl", known=scenarios([0, 1, 137]), waivers=(one,)))
    assert overall(recording) is expected


def test_a_waiver_for_the_claimed_contract_is_known_to_be_when_another_is_judged_by(tmp_path: Path) -> None:
    # 128 and 139 are permanent by the documentation only; EXIT-02 has other cases by either contract.
    judged = under(tmp_path, "reference", waiver("EXIT-02[*]"), arguments=("--contract", "kubeflow-api"))
    assert judged.header["waivers"][0]["elsewhere"] is True


def test_a_requirement_that_is_waived_somewhere_is_not_met(tmp_path: Path) -> None:
    path = make_recording(tmp_path / "r.jsonl", known=scenarios([0, 2, 126]), restarts=[126])
    lines = path.read_text("utf-8").replace('"verdict":"fail"', '"verdict":"waived"').splitlines(keepends=True)
    footer = json.loads(lines[-1])
    footer["verdicts"] = {name.replace("fail", "waived"): count for name, count in footer["verdicts"].items()}
    path.write_text("".join(sealed(lines[:-1], footer)), encoding="utf-8")
    summary = summarise(read_recording(path))
    (exit_02,) = [one for group in summary.groups for one in group.requirements if one.id == "EXIT-02"]
    assert exit_02.verdict == "waived"
    assert set(exit_02.counts) == {"pass", "waived"}
    assert "meets 6 MUST requirements" in summary.sentence
    assert summary.sentence.endswith("EXIT-02 failed and is waived.")


def sealed(lines: list[str], footer: dict[str, Any]) -> list[str]:
    """These lines under a footer that has their digest."""
    return [*lines, json.dumps({**footer, "sha256": sha256("".join(lines).encode()).hexdigest()}) + "\n"]


@pytest.mark.parametrize(
    ("expires", "expected"), [(STARTED.date(), Overall.CONFORMANT), (date(2026, 2, 28), Overall.NOT_CONFORMANT)]
)
def test_the_day_of_the_run_decides_whenever_it_is_judged(expires: date, expected: Overall, tmp_path: Path) -> None:
    known = scenarios([0, 137])
    values = waiver("STATE-99[*]", expires=expires)
    one = RecordedWaiver.model_validate({**values, "elsewhere": True})
    recording = read_recording(make_recording(tmp_path / "r.jsonl", known=known, waivers=(one,)))
    assert overall(recording) is expected


def test_waivers_of_an_older_recording_are_refused(tmp_path: Path) -> None:
    header, *rest, footer = corpus(tmp_path, "reference").read_text("utf-8").splitlines(keepends=True)
    assert '"operator":{' in header
    source = tmp_path / "older.jsonl"
    for waivers in ("{}", '{"EXIT-02":"known"}'):  # the first is read
        older = header.replace('"operator":{', f'"operator":{{"waivers":{waivers},', 1)
        source.write_text("".join(sealed([older, *rest], json.loads(footer))), encoding="utf-8")
        if waivers == "{}":
            assert read_recording(source).header.waivers == ()
    words = ["run", "--cluster", f"recording:{source}", "--out", str(tmp_path / "out")]
    ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path)
    assert ran.returncode == 4
    assert "'operator.waivers': value error, these waivers have neither an owner nor a last day." in ran.stderr


def test_live(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    description = describe(
        tmp_path, "my-operator", waiver(FAILED, expires=today + timedelta(days=2)), of="always-restart"
    )
    words = ["run", "--operator", str(description), "-k", "EXIT-02 and tfjob-worker-exit1-worker1", "--out", "live"]
    ran = run_command(*words, env=environment(tmp_path), cwd=tmp_path)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "1 waiver (1 in force): 1 failed case is waived." in ran.stdout
    again = Judged(tmp_path, tmp_path / "live" / "recording.jsonl")
    assert again.verdicts[FAILED] == "waived"
    assert again.status == 2
