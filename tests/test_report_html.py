"""The HTML report: complete, self-contained, and closed to whatever a cluster may have sent."""

import re
from base64 import b64encode
from datetime import date
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from recording_support import HOSTILE, header, make_recording, recorded, scenarios

from exitcode_reports.html import render_html
from exitcode_reports.recording import (
    ClusterIdentity,
    OperatorIdentity,
    RecordedWaiver,
    RecordingError,
    read_recording,
)
from exitcode_reports.reports import write_reports

KNOWN = scenarios([0, 126, 137])
NAMES = list(KNOWN)
VOID = {"meta", "link", "input", "br", "img"}
ALLOWED = {
    *("html", "head", "meta", "title", "link", "style", "body", "header", "nav", "main", "section", "script"),
    *("div", "p", "span", "b", "small", "a", "bdi", "h1", "h2", "h3", "code", "pre", "dl", "dt", "dd", "button"),
    *("input", "output", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "symbol", "use", "path", "rect", "circle", "g", "text"),
}


class Page(HTMLParser):
    """What stands in a page: every element with its attributes, and its text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.inline: dict[str, str] = {}
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.inline[self.open[-1]] = self.inline.get(self.open[-1], "") + data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All text, with white space made one."""
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every element of that name."""
        return [attributes for name, attributes in self.elements if name == tag]


def checked(content: str) -> Page:
    """The page, after every rule that holds for any recording."""
    page = Page(content)
    assert page.open == []
    assert {tag for tag, _ in page.elements} <= ALLOWED
    assert len(page.all("script")) == len(page.all("style")) == 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("style", "src", "srcset", "srcdoc", "action", "formaction", "xlink:href"), (tag, name)
            if name == "href":
                assert value == "data:," if tag == "link" else value.startswith("#"), value
                assert tag == "link" or value[1:] in ids, value
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        digest = b64encode(sha256(page.inline[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "http:" not in page.inline["style"] + page.inline["script"]
    assert "url(" not in page.inline["style"]
    return page


def test_a_good_run_in_one_glance(tmp_path: Path) -> None:
    page = checked(render_html(recorded(tmp_path / "r.jsonl", known=KNOWN)))
    assert "reference 0.1.0 × kubeflow-docs 1 Conformant reference 0.1.0 meets 8 MUST requirements" in page.text
    assert "no certification is claimed from it" in page.text
    assert "MUST 8 of 8 requirements" in page.text
    assert "Not passed" not in page.text
    assert "exitcode-conformance run --operator reference --cluster embedded" in page.text
    assert "v1.31.0+embedded" in page.text


def test_a_wrong_run_says_what_was_expected_and_seen(tmp_path: Path) -> None:
    page = checked(render_html(recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137])))
    assert "Not conformant reference 0.1.0 breaks 1 MUST requirement" in page.text
    assert (
        "tf-w1-worker-exit126 fail worker-0 ends with 126: permanent worker-0 ended with 126 at 1.420 s and "
        "was seen to be retryable time line #"
    ) in page.text
    opened = [one["id"] for one in page.all("details") if "open" in one]
    assert opened == [f"s-{name}" for name in NAMES if "126" in name]


def test_the_matrix_has_a_cell_for_each_code_and_replica_type(tmp_path: Path) -> None:
    page = checked(render_html(recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137])))
    assert "code promised TFJob PS TFJob Worker PyTorchJob Master 0 success" in page.text
    assert "137 SIGKILL retryable" in page.text
    chips = [one for one in page.all("a") if "chip" in one.get("class", "")]
    assert len(chips) == len(KNOWN)
    assert {one["href"] for one in chips} == {f"#s-{name}" for name in NAMES}
    wrong = [one for one in chips if "v-fail" in one["class"]]
    assert [one["aria-label"] for one in wrong] == [
        "tf-ps1-w3-ps-exit126: retryable, fail",
        "tf-w1-worker-exit126: retryable, fail",
        "tf-ps1-w3-worker-exit126: retryable, fail",
        "pt-m1-w2-master-exit126: retryable, fail",
    ]
    assert sum("sig" in one["class"].split() for one in chips) == 4


def test_each_scenario_has_its_evidence(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN)
    page = checked(render_html(recording))
    assert len([one for one in page.all("svg") if one.get("class") == "drawn"]) == len(KNOWN)
    rows = {one["id"] for one in page.all("tr") if "id" in one}
    assert rows == {f"e{entry.seq}" for entry in recording.entries}
    assert "TFJob of 1 PS (ExitCode) + 3 Worker (ExitCode). worker-0 dies of SIGKILL, then runs" in page.text
    assert "job says Restarting from 1.15 s to 1.80 s" in page.text
    assert "worker-0 ended with code 137, Error at 1.10 s" in page.text


def test_a_partial_recording_says_so_loudly(tmp_path: Path) -> None:
    page = checked(render_html(recorded(tmp_path / "r.jsonl", known=KNOWN, unjudged=NAMES[3:], finish=False)))
    assert "Undecided Nothing is decided about reference 0.1.0" in page.text
    assert "This recording is partial" in page.text
    assert {"class": "notice loud"} in page.all("p")


def test_a_recording_that_ends_with_its_header_has_a_page(tmp_path: Path) -> None:
    path = make_recording(tmp_path / "r.jsonl", known=KNOWN)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    page = checked(render_html(read_recording(path, allow_partial=True)))
    assert "no MUST was judged" in page.text
    assert "Nothing was recorded of this scenario." in page.text


def test_an_empty_plan_has_a_page(tmp_path: Path) -> None:
    page = checked(render_html(recorded(tmp_path / "r.jsonl", known={})))
    assert "Undecided" in page.text
    assert "No case of this recording tells the class of an exit code." in page.text


def test_only_an_embedded_cluster_gets_the_note(tmp_path: Path) -> None:
    cluster = ClusterIdentity(address="kind", type="kind", server_version="v1.31.0", note="1 node(s)")
    page = checked(render_html(recorded(tmp_path / "r.jsonl", known=KNOWN, cluster=cluster)))
    assert "no certification" not in page.text
    assert "1 node(s)" in page.text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path, text: str) -> None:
    operator = OperatorIdentity(
        name=text,
        version=text,
        project=text,
        url=text,
        start="none",
        kinds=(text,),
        features=(text,),
    )
    waiver = RecordedWaiver(
        requirement="EXIT-02", scenarios=text, reason=text, owner=text, link=text, expires=date(2030, 1, 31)
    )
    cluster = ClusterIdentity(address=text, type="kubeconfig", server_version=text, nodes=(text,), note=text)
    recording = recorded(
        tmp_path / "r.jsonl",
        known=scenarios([126]),
        restarts=[126],
        message=text,
        operator=operator,
        waivers=(waiver,),
        cluster=cluster,
        run_id=text,
        namespace=text,
        profile=text,
        reproduce=(text,),
        contract=header({}, []).contract.model_copy(update={"id": text, "claims": {126: text}, "no_code": text}),
    )
    content = render_html(recording)
    page = checked(content)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]", content)
    assert len(content) < 500_000
    # Text that is fit to be shown is shown as it is.
    plain = " ".join(text.split())
    if plain.isprintable() and len(plain) < 100 and "\u0301" not in plain:
        assert plain in page.text


def test_the_same_recording_gives_the_same_page(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN)
    assert render_html(recording) == render_html(recording)


def test_the_reports_are_written_whole_and_replaced(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN)
    directory = tmp_path / "new" / "report"
    paths = write_reports(recording, directory)
    assert [path.name for path in paths] == ["index.html", "junit.xml"]
    (directory / "index.html").write_text("old")
    write_reports(recording, directory)
    assert (directory / "index.html").read_text("utf-8") == render_html(recording)
    assert sorted(path.name for path in directory.iterdir()) == ["allure-results", "index.html", "junit.xml"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert (directory / "index.html").stat().st_mode == plain.stat().st_mode


def test_a_directory_that_cannot_be_written_to_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN)
    with pytest.raises(RecordingError, match=r"The reports cannot be written to .*\. Choose a directory"):
        write_reports(recording, tmp_path / "file")
