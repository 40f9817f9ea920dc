"""JUnit as CI readers want it: their schemas' rules are encoded here, and held against hostile recordings as well."""

import re
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest
from recording_support import HOSTILE, recorded, scenarios

from exitcode_reports.junit import render_junit
from exitcode_reports.recording import OperatorIdentity

KNOWN = scenarios([0, 126, 137])
NAMES = list(KNOWN)

NUMBER = re.compile(r"\d+")
SECONDS = re.compile(r"\d+\.\d{3}")
CHILDREN = {
    "testsuites": ("testsuite",),
    "testsuite": ("properties", "testcase", "system-out", "system-err"),
    "properties": ("property",),
    "testcase": ("skipped", "error", "failure"),
}
"""Element → what may stand in it, in this order: the common part of Ant's and Jenkins' schemas."""
REQUIRED = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {
        "name",
        "package",
        "id",
        "timestamp",
        "hostname",
        "tests",
        "failures",
        "errors",
        "skipped",
        "time",
    },
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
}


def check(element: Element) -> None:
    """Hold an element and all in it to the schemas."""
    allowed = CHILDREN.get(element.tag, ())
    order = [allowed.index(child.tag) for child in element]
    assert order == sorted(order), element.tag
    assert REQUIRED.get(element.tag, set()) <= element.attrib.keys(), element.tag
    for name in {"tests", "failures", "errors", "skipped", "id"} & element.attrib.keys():
        assert NUMBER.fullmatch(element.attrib[name])
    if "time" in element.attrib:
        assert SECONDS.fullmatch(element.attrib["time"])
    if element.tag == "testsuite":
        # xs:dateTime without a zone: Ant's schema has a pattern that refuses one.
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.attrib["timestamp"])
        assert element.find("properties") is not None
    if element.tag in ("testsuite", "testsuites"):
        cases = element.findall(".//testcase")
        assert int(element.attrib["tests"]) == len(cases)
        for outcome, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(element.attrib[count]) == len(element.findall(f".//{outcome}"))
    if element.tag == "testcase":
        assert len(element) <= 1
    for child in element:
        check(child)


def parsed(text: str) -> Element:
    """The document, checked."""
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    root = fromstring(text)
    assert root.tag == "testsuites"
    check(root)
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]
    assert len(names) == len(set(names))
    return root


def case(root: Element, name: str) -> Element:
    """The test case of that name."""
    return next(found for found in root.iter("testcase") if found.attrib["name"] == name)


def test_a_good_run_is_green(tmp_path: Path) -> None:
    root = parsed(render_junit(recorded(tmp_path / "r.jsonl", known=KNOWN)))
    assert (root.attrib["failures"], root.attrib["errors"]) == ("0", "0")
    assert [suite.attrib["name"] for suite in root] == ["EXIT", "RESTART", "STATE", "INV"]
    properties = {one.attrib["name"]: one.attrib["value"] for one in root[0].iter("property")}
    assert properties["operator"] == "reference 0.1.0"
    assert properties["cluster"] == "embedded"
    assert properties["contract"] == "kubeflow-docs 1"
    skipped = case(root, "RESTART-01[no-such-feature]").find("skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "MUST not-supported: The operator claims no such thing."


def test_a_failure_tells_the_whole_story(tmp_path: Path) -> None:
    root = parsed(render_junit(recorded(tmp_path / "r.jsonl", known=KNOWN, restarts=[126, 137])))
    assert root.attrib["failures"] == "4"
    failure = case(root, "EXIT-02[tf-w1-worker-exit126]").find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "fail"
    story = failure.text or ""
    assert "EXIT-02 (MUST): A permanent code is not restarted, and the job fails." in story
    assert "Expected: worker-0 ends with 126: permanent" in story
    assert "Seen:     worker-0 ended with 126" in story
    assert "> " in story
    assert "exit code 126" in story


def test_the_other_verdicts_have_their_places(tmp_path: Path) -> None:
    root = parsed(
        render_junit(
            recorded(
                tmp_path / "r.jsonl",
                known=KNOWN,
                unknown=NAMES[:1],
                errors=NAMES[1:2],
                unjudged=NAMES[2:3],
                finish=False,
            )
        )
    )
    assert case(root, f"STATE-01[{NAMES[0]}]")[0].tag == "error"
    assert case(root, f"STATE-01[{NAMES[0]}]")[0].attrib["type"] == "unknown"
    assert case(root, f"RESTART-09[{NAMES[0]}]")[0].tag == "skipped"
    assert case(root, f"RESTART-09[{NAMES[1]}]")[0].tag == "error"
    assert case(root, f"STATE-01[{NAMES[2]}]")[0].tag == "skipped"
    assert {one.attrib["value"] for one in root.iter("property") if one.attrib["name"] == "partial"} == {"yes"}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_leaves_it_well_formed(tmp_path: Path, text: str) -> None:
    operator = OperatorIdentity(name=text, version=text, project=text, start="none", kinds=("TFJob",), features=())
    known = scenarios([126])
    document = render_junit(
        recorded(tmp_path / "r.jsonl", known=known, restarts=[126], message=text, operator=operator)
    )
    root = parsed(document)
    assert root.attrib["failures"] == "4"
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e]", document)
    assert len(document) < 120_000


def test_the_same_recording_gives_the_same_text(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r.jsonl", known=KNOWN)
    assert render_junit(recording) == render_junit(recording)
