"""A story and the driver that looks at it, for the tests of the driver."""

from typing import Any

from history_builder import Story, story

from exitcode_conformance.timeouts import Timeouts
from exitcode_fixtures.scenario_driver import Need, ScenarioDriver

TIMES = Timeouts()
QUIET = max(TIMES.model_dump(exclude={"scenario", "dwell"}).values()) + TIMES.dwell
"""Seconds after which nothing is expected any more of a scenario whose containers run for one unit."""


class Play:
    """A story and the driver that looks at it."""

    def __init__(self, told: Story) -> None:
        self.told = told
        self.driver = ScenarioDriver(scenario=told.scenario, timeouts=told.timeouts, started=told.now)
        self.tables = 0

    def next(self, *, last_event: float | None = None) -> Need:
        """What the driver asks for now. Unless it is said otherwise, something has just happened."""
        now = self.told.now
        need = self.driver.advance(self.told.history(), now, now if last_event is None else last_event)
        if need is Need.READ_TABLE:  # it is asked for once, and nothing waits for the answer
            assert self.settles
            assert not self.tables
            self.tables += 1
            return self.next(last_event=last_event)
        if need in (Need.NOTHING, Need.WITNESS):
            assert self.driver.wake_at > now, "it would be asked again at once"
        return need

    def told_of(self) -> list[tuple[str, Any]]:
        """What was to be recorded: the action, and why or which step."""
        found = [(action, detail.get("why") or detail["kind"]) for action, detail in self.driver.told]
        self.driver.told.clear()
        return found

    @property
    def settles(self) -> bool:
        """Whether no step is left."""
        return self.driver.settling_since is not None


def play(scenario: str, times: Timeouts = TIMES) -> Play:
    """A scenario of the suite from its submission on."""
    return Play(story(scenario, timeouts=times))
