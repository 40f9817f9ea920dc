"""`eventually` and `never`: what holds, what does not, and what cannot be known."""

from collections.abc import Callable

from history_builder import Story, story

from exitcode_conformance.history import History, Moment
from exitcode_conformance.temporal import CLUSTERS_WORK, eventually, first_creation_after, never

DELETED = "tfjob-deleted-ps1-worker3"


def observed(seconds: float, *, witness_at: float | None = None, held_up: tuple[float, float] | None = None) -> History:
    """A history of so many seconds from 0 on, with a witness and a delay (when, for how long)."""
    told = story(DELETED)
    told.now = 0.0
    told.submit()
    marks: list[tuple[float, Callable[[], Story]]] = []
    if witness_at is not None:
        marks.append((witness_at, told.witness))
    if held_up is not None:
        detail = {"seconds": held_up[1], "what": "a request of the harness"}
        marks.append((held_up[0], lambda: told.act("held-up", of_the_run=True, detail=detail)))
    for at, act in sorted(marks, key=lambda mark: mark[0]):
        told.now = at
        act()
    told.now = seconds
    return told.act("complete").history()


def moment(time: float) -> Moment:
    """Something that happened then."""
    return Moment(seq=1, time=time, what="it happened")


BEGIN = Moment(seq=1, time=0.0, what="it began")


def test_what_comes_in_time_holds() -> None:
    for time in (0.0, 5.0, 10.0):
        finding = eventually(observed(20), since=BEGIN, bound="restart", found=moment(time), missing="nothing")
        assert finding.holds is True
        assert finding.delay == time
    early = Moment(seq=9, time=7.0, what="it began")
    finding = eventually(observed(20), since=early, bound="restart", found=moment(6.0), missing="nothing")
    assert (finding.holds, finding.delay) == (True, 0.0)
    assert finding.seen == "it happened, before it began"


def test_what_came_later_and_was_told_sooner_did_not_come_before() -> None:
    began, told_first = Moment(seq=1, time=7.0, what="it began"), Moment(seq=2, time=6.0, what="it happened")
    finding = eventually(observed(20), since=began, bound="restart", found=told_first, missing="nothing")
    assert (finding.holds, finding.seen) == (True, "it happened, 0.0 s after it began")


def test_what_comes_late_fails_and_names_the_bound() -> None:
    finding = eventually(observed(20), since=BEGIN, bound="restart", found=moment(10.5), missing="nothing")
    assert finding.holds is False
    assert "10.5 s after it began; the bound `restart` is 10 s" in finding.seen


def test_what_comes_late_is_no_proof_where_the_operator_may_be_innocent() -> None:
    slow = observed(20, held_up=(5, 1))
    finding = eventually(slow, since=BEGIN, bound="restart", found=moment(10.5), missing="nothing")
    assert finding.holds is None
    assert "the machine was too slow" in finding.seen
    for bound in CLUSTERS_WORK:
        finding = eventually(observed(30), since=BEGIN, bound=bound, found=moment(20.5), missing="nothing")
        assert finding.holds is None
        assert "the cluster alone did it" in finding.seen


def test_what_never_comes_fails_only_if_the_whole_bound_was_observed() -> None:
    assert eventually(observed(10.5), since=BEGIN, bound="restart", found=None, missing="nothing").holds is False
    finding = eventually(observed(9.5), since=BEGIN, bound="restart", found=None, missing="nothing")
    assert finding.holds is None
    assert "but only 9.5 s of the 10 s" in finding.seen


def test_the_time_that_the_machine_lost_is_not_counted() -> None:
    def holds(seconds: float, held_up: tuple[float, float]) -> bool | None:
        history = observed(seconds, held_up=held_up)
        return eventually(history, since=BEGIN, bound="restart", found=None, missing="nothing").holds

    assert holds(11, (5, 3)) is None
    assert holds(13.5, (5, 3)) is False
    assert holds(11, (10.8, 0.5)) is False, "after the bound nothing was lost"
    history = observed(21, held_up=(5, 3))
    later = Moment(seq=1, time=6.0, what="it began")
    assert eventually(history, since=later, bound="restart", found=None, missing="nothing").holds is False


def test_an_offence_is_an_offence_whenever_it_is_seen() -> None:
    finding = never(observed(1), since=BEGIN, offence=moment(30.0))
    assert finding.holds is False
    assert "it happened, 30.0 s after it began" in finding.seen


def test_never_needs_the_whole_window_and_a_witness_in_its_second_half() -> None:
    assert never(observed(3.9, witness_at=3), since=BEGIN, offence=None).holds is None
    assert never(observed(4.1), since=BEGIN, offence=None).holds is None
    assert never(observed(4.1, witness_at=1.5), since=BEGIN, offence=None).holds is None
    assert never(observed(4.1, witness_at=2.5), since=BEGIN, offence=None).holds is True
    late = never(observed(9, witness_at=8), since=BEGIN, offence=None)
    assert late.holds is True
    assert "created pod witness-1-worker-0" in late.seen


def test_a_window_may_begin_later_than_the_cause() -> None:
    until = moment(5.0)
    assert never(observed(8, witness_at=7.5), since=BEGIN, offence=None, until=until).holds is None
    assert never(observed(9.1, witness_at=6), since=BEGIN, offence=None, until=until).holds is None
    assert never(observed(9.1, witness_at=8), since=BEGIN, offence=None, until=until).holds is True
    assert never(observed(4.1, witness_at=3), since=BEGIN, offence=None, until=moment(-5)).holds is True


def after_removal(told: Story) -> bool | None:
    """What is to be said of creations after the job's removal; True if there was none."""
    removed = told.complete().history().job_removal
    assert removed is not None
    finding = first_creation_after(told.history(), removed, "pods", "services")
    return True if finding is None else finding.holds


def test_what_is_created_at_once_after_a_removal_may_have_been_on_its_way() -> None:
    def removed() -> Story:
        return story(DELETED).begin().delete_job()

    assert after_removal(removed()) is True
    assert after_removal(removed().create("worker-0")) is None
    assert after_removal(removed().create("worker-0", "worker-1").services("worker-0")) is None
    assert after_removal(removed().create("worker-0").gone("worker-0").create("worker-0")) is False
    assert after_removal(removed().wait(2.5).create("worker-0")) is False
    assert after_removal(removed().create("worker-0").wait(2.5).create("worker-1")) is False


def short_of_processors(seconds: float, *waits: tuple[float, float]) -> History:
    """A history of so many seconds; of each wait it says when it was told, and how long it was."""
    told = story(DELETED)
    told.now = 0.0
    told.submit()
    for at, lasted in waits:
        told.now = at
        told.act("starved", of_the_run=True, detail={"seconds": lasted})
    told.now = seconds
    return told.act("complete").history()


def test_what_was_late_for_want_of_a_processor_is_no_proof() -> None:
    starved = short_of_processors(20, (3, 0.6), (4, 0.6), (15, 9.0))
    finding = eventually(starved, since=BEGIN, bound="restart", found=moment(11.0), missing="nothing")
    assert finding.holds is None
    assert "for 1.2 s of that time there was no processor for the operator" in finding.seen
    finding = eventually(starved, since=BEGIN, bound="restart", found=moment(11.5), missing="nothing")
    assert finding.holds is False, "it was later than it had to wait"
    assert "the bound `restart` is 10 s" in finding.seen


def test_what_never_came_had_to_have_the_whole_bound_with_a_processor() -> None:
    starved = short_of_processors(11, (3, 0.6), (4, 0.6))
    assert eventually(starved, since=BEGIN, bound="restart", found=None, missing="nothing").holds is None
    starved = short_of_processors(12, (3, 0.6), (4, 0.6))
    assert eventually(starved, since=BEGIN, bound="restart", found=None, missing="nothing").holds is False


def test_a_look_that_began_before_counts_in_part() -> None:
    missed = eventually(
        short_of_processors(10.2, (0.1, 0.9)), since=BEGIN, bound="restart", found=None, missing="nothing"
    )
    assert missed.holds is False, "0.09 s of its 0.9 s were lost"
