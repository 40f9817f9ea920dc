"""What a census looks like: read back, as a page, in a terminal, and judged again under another contract."""

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser_support import browser, visit
from census_support import by_range, make_census, recorded_census
from history_builder import CONTRACTS
from recording_support import HOSTILE, recorded, scenarios
from rich.console import Console

from exitcode_conformance.contract import ObservedClass
from exitcode_conformance.verdict import Verdict
from exitcode_reports.census import CLASS_WORDS, census_of, is_census, judged_again
from exitcode_reports.census_html import render_census
from exitcode_reports.census_map import print_census
from exitcode_reports.recording import OperatorIdentity, Recording, read_recording
from exitcode_reports.recording_error import RecordingError
from exitcode_reports.reports import write_reports
from exitcode_reports.results import Overall

MIXED = {
    0: "success",
    1: "permanent",
    2: "ignored",
    3: "restarted-in-place",
    126: "restarted-and-failed",
    130: "restarted-in-place",
    137: "permanent",
    138: "retryable",
    200: "unknown",
    201: "retryable",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """All 256 codes under an operator that goes by range: it leaves the documented table with two codes."""
    return recorded_census(tmp_path_factory.mktemp("whole") / "recording.jsonl", by_range())


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A few codes, and every class."""
    return recorded_census(tmp_path_factory.mktemp("mixed") / "recording.jsonl", MIXED)


def printed(recording: Recording) -> str:
    """The census as it stands in a log."""
    file = io.StringIO()
    print_census(census_of(recording), Console(file=file, width=80))
    return file.getvalue()


def test_what_was_seen_of_each_code_is_read_back(mixed: Recording) -> None:
    census = census_of(mixed)
    assert len(census.codes) == 256
    assert {code.code: (code.observed or "unknown") for code in census.asked} == MIXED
    assert [code.code for code in census.codes if code.leaves] == [2, 126, 137]
    assert [code.code for code in census.of_class(None)] == [200]
    assert [code.code for code in census.codes if code.is_defined] == [0, 1, 2, 126, 127, 128, 130, 137, 138, 139, 143]


def test_the_whole_says_what_leaves_the_contract_and_which_one_fits(whole: Recording) -> None:
    census = census_of(whole)
    assert census.overall is Overall.NOT_CONFORMANT
    assert census.heading == "2 codes leave the contract"
    assert census.sentence == (
        "reference 0.1.0 does otherwise than kubeflow-docs 1 says about 2 of the 11 codes that it defines: 128, 139."
    )
    assert census.fit_sentences == (
        "The published contract that fits best is kubeflow-api 1: all 256 codes that it defines agree.",
        "kubeflow-docs 1: 9 of the 11 codes that it defines agree; 128, 139 do not.",
    )


@pytest.mark.parametrize(
    ("behaviours", "overall", "heading", "sentence"),
    [
        (
            {0: "success", 1: "permanent", 3: "retryable"},
            Overall.CONFORMANT,
            "No code leaves the contract",
            "about all 2 codes that it defines; what was seen of 1 code that it does not define is recorded.",
        ),
        (
            {3: "ignored"},
            Overall.CONFORMANT,
            "No code leaves the contract",
            "defines none of the codes that were asked",
        ),
        ({1: "permanent", 3: "unknown"}, Overall.UNDECIDED, "Undecided", "too weak in the job of 1 code: 3."),
        ({1: "permanent", 3: "broken"}, Overall.HARNESS_FAILED, "Harness failed", "failed in the job of 1 code: 3."),
        (
            {1: "retryable", 3: "broken", 4: "unknown", 5: "unknown"},
            Overall.NOT_CONFORMANT,
            "1 code leaves the contract",
            "1. The harness failed in the job of 1 code: 3. The evidence is too weak in the jobs of 2 codes: 4, 5.",
        ),
    ],
)
def test_one_code_that_leaves_is_proof_and_one_that_is_unknown_decides_nothing(
    tmp_path: Path, behaviours: dict[int, str], overall: Overall, heading: str, sentence: str
) -> None:
    recording = recorded_census(tmp_path / "recording.jsonl", behaviours)
    census = census_of(recording)
    assert (census.overall, census.heading) == (overall, heading)
    assert sentence in census.sentence
    assert recording.footer is not None
    assert recording.footer.exit_status == overall


def test_contracts_that_fit_alike_are_both_named(tmp_path: Path) -> None:
    alike = recorded_census(tmp_path / "alike.jsonl", {0: "success", 137: "retryable"})
    assert census_of(alike).fit_sentences == (
        "The published contracts kubeflow-docs 1 and kubeflow-api 1 fit equally well.",
        "kubeflow-docs 1: all 2 codes that it defines agree.",
        "kubeflow-api 1: all 2 codes that it defines agree.",
    )
    nothing = recorded_census(tmp_path / "nothing.jsonl", {137: "unknown"})
    assert census_of(nothing).fit_sentences == (
        "No published contract can be compared: of no code that one of them defines is the class known.",
    )


def test_the_map_of_the_terminal_needs_no_colours(whole: Recording, mixed: Recording) -> None:
    lines = printed(whole).splitlines()
    assert lines[0].split() == [str(column) for column in range(16)]
    assert [line.split()[0] for line in lines[1:17]] == [str(start) for start in range(0, 256, 16)]
    assert lines[1].split()[1:5] == ["S", "F", "F", "f"]
    assert lines[9].split()[1:] == ["!R", "r", "R", *"rrrrrr", "R", "R", "!R", *"rrr", "R"]
    assert max(map(len, lines[:17])) < 80
    assert lines[-1].startswith("2 CODES LEAVE THE CONTRACT: reference 0.1.0 does otherwise")
    text = printed(mixed)
    assert re.search(r"^ +0 +S +F +!N +k( +\.)+$", text, re.MULTILINE)
    assert not re.search(r"^ +16 ", text, re.MULTILINE), "a row of which nothing was asked"
    for word in (*CLASS_WORDS.values(), "not known", "not asked for", "leaves the contract"):
        assert word in text
    assert "\x1b" not in text
    assert "Only 10 codes of 256 were asked for." in text


class _Page(HTMLParser):
    """What a test wants to know of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: dict[str, dict[str, str]] = {}
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        found = {name: value or "" for name, value in attrs}
        self.attributes |= found.keys()
        if "id" in found:
            assert found["id"] not in self.ids, f"two elements are {found['id']}"
            self.ids.add(found["id"])
        if found.get("href", "").startswith("#"):
            self.links.add(found["href"][1:])
        if "byte" in found.get("class", "").split():
            self.cells[found["title"].partition(":")[0]] = found


def test_the_page_has_every_code_with_its_class_in_words(mixed: Recording) -> None:
    page = _Page(render_census(mixed))
    assert list(page.cells) == [str(code) for code in range(256)]
    for code, behaviour in MIXED.items():
        assert f"o-{behaviour}" in page.cells[str(code)]["class"].split()
        assert page.cells[str(code)]["href"] == f"#c{code}"
    assert page.cells["2"]["aria-label"] == "2: seen neither, promised permanent, leaves the contract"
    assert [code for code, cell in page.cells.items() if "leaves" in cell["class"].split()] == ["2", "126", "137"]
    assert "o-not-asked" in page.cells["4"]["class"]
    assert page.links <= page.ids, "a link leads nowhere"


def test_the_page_is_a_function_of_the_recording(whole: Recording) -> None:
    text = render_census(whole)
    assert text == render_census(read_recording(whole.path))
    assert len(text) < 6_000_000
    assert "The published contract that fits best is kubeflow-api 1" in text


def test_nothing_that_a_cluster_sends_gets_into_the_page(tmp_path: Path) -> None:
    for number, hostile in enumerate(HOSTILE):
        operator = OperatorIdentity(
            name=hostile, version=hostile, project=hostile, url=hostile, start="none", kinds=("TFJob",), features=()
        )
        path = tmp_path / f"{number}.jsonl"
        text = render_census(recorded_census(path, {1: "retryable"}, operator=operator, namespace=hostile))
        page = _Page(text)
        assert text.count("<script>") == 1
        assert not {name for name in page.attributes if name.startswith("on")}


def test_under_another_contract_the_same_census_comes_out_otherwise(whole: Recording) -> None:
    api = judged_again(whole, CONTRACTS["kubeflow-api"])
    census = census_of(api)
    assert census.overall is Overall.CONFORMANT
    assert census.sentence == "reference 0.1.0 does what kubeflow-api 1 says about all 256 codes that it defines."
    assert {case.level for case in api.header.plan} == {"MUST"}
    docs = judged_again(api, CONTRACTS["kubeflow-docs"])
    assert docs.header == whole.header
    assert [line.model_copy(update={"seq": 0, "time": 0}) for line in docs.verdicts] == [
        line.model_copy(update={"seq": 0, "time": 0}) for line in whole.verdicts
    ]


def test_of_a_census_that_was_cut_short_the_rest_is_not_known(tmp_path: Path) -> None:
    path = make_census(tmp_path / "recording.jsonl", {1: "permanent", 2: "permanent"}, finish=False)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    partial = read_recording(path, allow_partial=True)
    census = census_of(partial)
    assert census.overall is Overall.UNDECIDED
    assert [code.verdict for code in census.asked] == [Verdict.PASS, Verdict.NOT_RUN]
    assert "partial" in census.notices[0]
    # All events are there: what was not judged then is judged now.
    again = census_of(judged_again(partial, CONTRACTS["kubeflow-docs"]))
    assert {code.observed for code in again.asked} == {ObservedClass.PERMANENT}
    assert again.overall is Overall.UNDECIDED


def test_the_reports_of_a_census_are_its_page_alone(mixed: Recording, tmp_path: Path) -> None:
    assert write_reports(mixed, tmp_path / "out") == (tmp_path / "out" / "census.html",)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["census.html"]


def test_a_certification_is_no_census(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=scenarios([0]))
    assert not is_census(recording)
    with pytest.raises(RecordingError, match="is the recording of a certification, not of a census"):
        census_of(recording)
    pretender = recorded(tmp_path / "p.jsonl", known=scenarios([0]), profile="census")
    with pytest.raises(RecordingError, match="is no census: its case EXIT-01"):
        census_of(pretender)


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine")
def test_in_a_browser_a_code_is_chosen_by_mouse_keys_and_link(mixed: Recording, tmp_path: Path) -> None:
    program = browser()
    assert program is not None
    page = tmp_path / "census.html"
    page.write_text(render_census(mixed), "utf-8")
    shown = "[...document.querySelectorAll('.one')].filter((one) => one.checkVisibility()).map((one) => one.id).join()"
    cell = "document.querySelector('.map a[href=\"#c{}\"]')"
    press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{}', bubbles: true}}));"
    seen = visit(
        program,
        page,
        tmp_path / "profile",
        (
            shown,
            f"{cell.format(137)}.focus(); {cell.format(137)}.click(); {shown}",
            f"{press.format('ArrowRight')} {shown}",
            f"{press.format('ArrowUp')} {shown}",
            f"{cell.format(200)}.click(); {shown}",
            "location.hash",
            "document.querySelectorAll('.map a[tabindex=\"0\"]').length",
            "location.hash = '#s-tfjob-census-exit137-worker1'",
            "new Promise((done) => setTimeout(() => done(document.querySelector('.scenario[open]').id), 0))",
            "document.documentElement.scrollWidth",
        ),
        width=390,
    )
    # The first that leaves the contract is shown from the start. Over 138 stands 122, and so on up: none was asked for.
    assert seen.answers[:6] == ["c2", "c137", "c138", "c138", "c200", "#c200"]
    assert seen.answers[6] == 1
    assert seen.answers[8] == "s-tfjob-census-exit137-worker1"
    assert seen.answers[9] == 390
    assert seen.requests == [page.as_uri()]
    assert seen.complaints == []
