"""The HTML report in a real browser, where the machine has one: no request, no complaint, and the filters work."""

from pathlib import Path

import pytest
from browser_support import browser, visit
from recording_support import HOSTILE, recorded, scenarios

from exitcode_reports.html import render_html
from exitcode_reports.recording import OperatorIdentity

PROGRAM = browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no chromium on this machine")
SHOWN = "[...document.querySelectorAll('#requirements tbody tr')].filter((row) => row.checkVisibility()).length"
UNFOLDED = "[...document.querySelectorAll('.scenario[open]')].map((one) => one.id)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with failures, and hostile text wherever text can be."""
    folder = tmp_path_factory.mktemp("report")
    text = " ".join(text[:200] for text in HOSTILE)
    operator = OperatorIdentity(
        name=text, version="1", project=text, url=text, start="none", kinds=("TFJob",), features=(text,)
    )
    known = scenarios([0, 126, 137])
    recording = recorded(
        folder / "r.jsonl", known=known, restarts=[126, 137], message=text, operator=operator, namespace=text
    )
    path = folder / "index.html"
    path.write_text(render_html(recording), "utf-8")
    return path


def test_the_page_asks_for_nothing_and_has_nothing_to_complain_of(page: Path, tmp_path: Path) -> None:
    assert PROGRAM is not None
    seen = visit(
        PROGRAM,
        page,
        tmp_path,
        (
            "document.querySelectorAll('script').length",
            "document.querySelectorAll('img, iframe, object, embed, [onerror], [onload], [onmouseover]').length",
            "document.querySelectorAll('details').forEach((one) => { one.open = true })",
            f"{SHOWN} === document.querySelectorAll('#requirements tbody tr').length",
            "document.documentElement.scrollWidth <= innerWidth",
        ),
    )
    assert seen.answers == [1, 0, None, True, True]
    assert seen.requests == [page.as_uri()]
    assert seen.complaints == []


def test_the_filters_narrow_what_is_shown(page: Path, tmp_path: Path) -> None:
    assert PROGRAM is not None
    search = "document.querySelector('input').value = '{}';"
    typed = "document.querySelector('input').dispatchEvent(new Event('input'));"
    seen = visit(
        PROGRAM,
        page,
        tmp_path,
        (
            SHOWN,
            f"document.querySelector('[data-verdict=fail]').click(); {SHOWN}",
            "document.querySelector('output').textContent",
            f"{search.format('ps1-w3-ps EXIT-02')} {typed} {SHOWN}",
            f"{search.format('no such words')} {typed} {SHOWN}",
            "document.querySelectorAll('.group:not([hidden])').length",
            f"{search.format('')} {typed} document.querySelector('[data-verdict=fail]').click(); {SHOWN}",
            f"document.querySelector('[data-level=SHOULD]').click(); {SHOWN}",
            "document.querySelectorAll('.req:not([hidden])').length",
        ),
    )
    assert seen.answers == [0, 4, "4 of 113 cases", 1, 0, 0, 0, 0, 1]
    assert seen.complaints == []


def test_a_link_unfolds_what_it_leads_to_and_a_phone_has_room(page: Path, tmp_path: Path) -> None:
    assert PROGRAM is not None
    folded = "s-pt-m1-w2-master-sig137"
    seen = visit(
        PROGRAM,
        page,
        tmp_path,
        (
            f"{UNFOLDED}.includes('{folded}')",
            f"document.querySelector('#{folded} .raw tr[id]').id",
            f"location.hash = '#' + document.querySelector('#{folded} .raw tr[id]').id",
            f"new Promise((done) => setTimeout(() => done({UNFOLDED}.includes('{folded}')), 0))",
            f"document.querySelector('#{folded} .raw').open",
            "document.documentElement.scrollWidth",
        ),
        width=390,
    )
    assert seen.answers[0] is False
    assert seen.answers[4] is True
    assert seen.answers[5] == 390
