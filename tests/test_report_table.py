"""The verdicts in a terminal and in a log."""

import re
from io import StringIO
from pathlib import Path

from recording_support import HOSTILE, recorded, scenarios
from rich.console import Console

from exitcode_reports.recording import OperatorIdentity, Recording
from exitcode_reports.verdict_table import print_verdicts

KNOWN = scenarios([0, 126, 137])
NAMES = list(KNOWN)


def printed(recording: Recording, *, terminal: bool) -> str:
    """What is printed, in 100 columns."""
    file = StringIO()
    console = Console(file=file, force_terminal=terminal, width=100, color_system="standard" if terminal else None)
    print_verdicts(recording, console)
    return file.getvalue()


def test_a_log_gets_plain_lines(tmp_path: Path) -> None:
    lines = printed(recorded(tmp_path / "r.jsonl", known=KNOWN), terminal=False).splitlines()
    assert lines[0] == "EXIT-01     MUST    pass           4 pass"
    assert "RESTART-01  MUST    pass           16 pass, 1 not-supported" in lines
    assert lines[-2].startswith("CONFORMANT: reference 0.1.0 meets 8 MUST requirements of contract kubeflow-docs 1")
    assert lines[-1] == "MUST: 96 pass, 1 not-supported; SHOULD: 16 pass"
    assert "\x1b" not in "".join(lines)


def test_a_terminal_gets_a_table_in_colours(tmp_path: Path) -> None:
    shown = printed(recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137]), terminal=True)
    assert "\x1b[1;31mNOT CONFORMANT\x1b[0m" in shown
    assert "EXIT-02[tf-w1-worker-exit126]" in shown
    assert "not shown here: 1 of EXIT-02" in shown
    assert all(len(re.sub(r"\x1b\[[\d;]*m", "", line)) <= 100 for line in shown.splitlines())


def test_what_did_not_pass_is_told_with_expected_and_seen(tmp_path: Path) -> None:
    told = printed(recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137]), terminal=False)
    assert "fail: EXIT-02[tf-w1-worker-exit126]\n  expected: worker-0 ends with 126: permanent\n  seen:     " in told
    assert told.count("fail: EXIT-02") == 3
    assert "not shown here: 1 of EXIT-02" in told


def test_errors_and_unknowns_come_gravest_first_and_notices_are_there(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN, unknown=NAMES[:1], errors=NAMES[-1:], finish=False)
    told = printed(recording, terminal=False)
    assert told.index("error: EXIT-03") < told.index("unknown: EXIT-01")
    assert "This recording is partial" in told
    assert "no certification is claimed" in told
    assert "HARNESS FAILED: " in told


def test_hostile_text_neither_steers_the_terminal_nor_marks_itself_up(tmp_path: Path) -> None:
    for number, text in enumerate((*HOSTILE, "[bold red]markup[/] [link=https://example.org]x[/link] [/]")):
        operator = OperatorIdentity(name=text, version="1", project="p", start="none", kinds=("TFJob",), features=())
        recording = recorded(
            tmp_path / f"{number}.jsonl", known=scenarios([126]), restarts=[126], message=text, operator=operator
        )
        for terminal in (False, True):
            shown = printed(recording, terminal=terminal)
            assert "\x1b[31m" not in shown or terminal
            assert "\x07" not in shown
            assert "\x1b[31mred" not in shown
            assert "\u202e" not in shown
            assert "NOT CONFORMANT" in shown
            if text.startswith("[bold"):
                assert "[bold red]markup[/]" in shown.replace("\n", " ")
