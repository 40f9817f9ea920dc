"""What comes from a cluster, made fit to be shown: no text moves a cursor, turns writing round or runs on."""

import re

_UNFIT = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but not tab and line feed; ESC steers terminals
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # invisible, or changing the direction of writing
    "\u2028\u2029"  # line ends that only some programs take for one
    "\ud800-\udfff\ufff9-\ufffb\ufffe\uffff"  # no characters at all; XML refuses them
    "]"
)
_PILES = re.compile(
    "([\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})[\u0300-\u036f\u1ab0-\u1aff]+"
)
"""More than three marks on one letter: they are drawn over the lines above and below."""


def printable(text: str, *, limit: int, lines: bool = False) -> str:
    """The text with a middle dot for each character that is not fit to be shown, cut to `limit` characters.
    Line feeds and tabs stay where `lines` says so."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isascii() and cut.isprintable():
        return cut
    cut = _PILES.sub(r"\1", _UNFIT.sub("·", cut))
    return cut if lines else cut.replace("\n", "·").replace("\t", " ")
