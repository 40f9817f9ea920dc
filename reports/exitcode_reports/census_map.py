"""A census for a terminal: 16 × 16 letters, what they mean, and the sentences that count.

A letter says what was seen, so that nobody needs the colours. Where the output is not a terminal there are none."""

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.text import Text

from exitcode_conformance.contract import ObservedClass
from exitcode_reports.census import CLASS_WORDS, UNKNOWN_WORD, Census, CodeResult, class_counts
from exitcode_reports.printable import printable
from exitcode_reports.verdict_table import HEADING_STYLES

SIDE = 16
LETTERS: Mapping[ObservedClass | None, str] = {
    ObservedClass.SUCCESS: "s",
    ObservedClass.PERMANENT: "f",
    ObservedClass.RETRYABLE: "r",
    ObservedClass.RESTARTED_IN_PLACE: "k",
    ObservedClass.RESTARTED_AND_FAILED: "b",
    ObservedClass.IGNORED: "n",
    None: "?",
}
"""Observed class → its letter; a capital where the contract defines the code."""
STYLES: Mapping[ObservedClass | None, str] = {
    ObservedClass.SUCCESS: "green",
    ObservedClass.PERMANENT: "yellow",
    ObservedClass.RETRYABLE: "blue",
    ObservedClass.RESTARTED_IN_PLACE: "cyan",
    ObservedClass.RESTARTED_AND_FAILED: "magenta",
    ObservedClass.IGNORED: "white",
    None: "dim",
}
NOT_ASKED = "."
LEAVES = "!"
LEAVING_STYLE = "bold red"


def print_census(census: Census, console: Console) -> None:
    """Print the map, its legend, the contracts and the sentence."""
    for line in census_lines(census):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def census_lines(census: Census) -> Iterator[Text]:
    """Everything that is printed, line by line."""
    yield Text("     " + "".join(f"{column:>4}" for column in range(SIDE)), "dim")
    for start in range(0, len(census.codes), SIDE):
        codes = census.codes[start : start + SIDE]
        if any(code.result for code in codes):
            row = Text.assemble((f"{start:>4} ", "dim"), *(_cell(code) for code in codes))
            row.rstrip()
            yield row
    yield Text()
    yield Text(", ").join(_legend(census))
    yield Text()
    for sentence in (*census.fit_sentences, *census.notices):
        yield Text(printable(sentence, limit=1200))
    heading = Text(census.heading.upper(), HEADING_STYLES[census.overall])
    yield Text.assemble(heading, ": ", printable(census.sentence, limit=1200))


def _cell(code: CodeResult) -> Text:
    if code.result is None:
        return Text(f"   {NOT_ASKED}", "dim")
    letter = LETTERS[code.observed]
    if code.leaves:
        return Text(f"  {LEAVES}{letter.upper()}", LEAVING_STYLE)
    return Text(f"{letter.upper() if code.is_defined else letter:>4}", STYLES[code.observed])


def _legend(census: Census) -> Iterator[Text]:
    for observed, number in class_counts(census):
        word = CLASS_WORDS[observed] if observed else UNKNOWN_WORD
        yield Text.assemble((LETTERS[observed], STYLES[observed]), f" {word} ({number})")
    if any(code.result is None for code in census.codes):
        yield Text(f"{NOT_ASKED} not asked for")
    yield Text("capital: the contract defines the code")
    if any(code.leaves for code in census.codes):
        yield Text.assemble((LEAVES, LEAVING_STYLE), " leaves the contract")
