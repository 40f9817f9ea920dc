"""The HTML report: a pure function from a recording to one page that needs nothing else and lets nothing in.

Whatever a cluster sent is hostile. Three things stand against it: the template escapes every value, `finalize` makes
each one fit to be shown, and the page's own policy forbids every script but ours and every request."""

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from exitcode_reports.header import Header, PlannedCase
from exitcode_reports.page import NEEDS_ATTENTION, page_of
from exitcode_reports.printable import printable
from exitcode_reports.recording import Recording

LONGEST = 1200
"""Characters of a single value that are shown; the recording has the rest."""
MOST_LINKS = 6
"""Links to scenarios, and to deciding entries, that one case has."""
MOST_NAMES = 3
"""Broken controllers that are named beside a requirement."""
CLASSES = (
    ("success", "succeeded"),
    ("retryable", "restarted"),
    ("permanent", "job failed"),
    ("restarted-in-place", "restarted in place"),
    ("restarted-and-failed", "restarted, and job failed"),
    ("ignored", "neither"),
)
"""Observed class → what it means, for the legend."""
STATES = ("Created", "Running", "Restarting", "Succeeded", "Failed", "Pending")


def render_html(recording: Recording) -> str:
    """The page. The same recording gives the same page, byte for byte."""
    style, script = part("style.css"), part("script.js")
    template = environment().get_template("index.html.j2")
    return template.render(
        p=page_of(recording),
        head=recording.header,
        style=style,
        script=script,
        policy=policy_for(style, script),
        most_links=MOST_LINKS,
        most_names=MOST_NAMES,
        classes=CLASSES,
        states=STATES,
        loud=NEEDS_ATTENTION,
    )


def anchor_of(case: PlannedCase, header: Header) -> str:
    """The fragment of the page where the evidence of a case begins: its first time line, else its requirement."""
    drawn = next((name for name in case.scenarios if name in header.scenarios), None)
    return f"s-{_slug(drawn)}" if drawn is not None else f"r-{_slug(case.requirement)}"


@cache
def environment() -> Environment:
    """Where every page of ours is made: nothing that is not marked as ours gets in as it is."""
    environment = Environment(
        loader=PackageLoader("exitcode_reports"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_fit,
        trim_blocks=True,
    )
    environment.filters |= {"slug": _slug, "look": _look, "short": _short, "seen": _seen}
    return environment


def part(name: str) -> Markup:
    """A file of our own, trusted as it is."""
    return Markup((resources.files("exitcode_reports") / "templates" / name).read_text("utf-8"))


def policy_for(style: str, script: str) -> str:
    """The page's own policy: this style, this script, and no request."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _fit(value: object) -> object:
    """Every value that the template prints passes here before it is escaped."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return printable(value, limit=LONGEST, lines=True)
    return value


def _slug(name: str) -> str:
    """The name as a fragment identifier."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:80]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _look(name: str | None) -> str:
    """The icon of a class, observed or promised."""
    known = {name for name, _ in CLASSES} | {"undefined"}
    plain = (name or "none").removeprefix("user-")
    return plain if plain in known else "none"


def _seen(observed: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(name or "undecided" for name in observed))
