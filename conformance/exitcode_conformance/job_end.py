"""The end that a job has to come to, and the other one that it may come to in its stead.

Both are final: a job that says Succeeded has not failed, however little was observed after it said so, and no bound has
to run out before that is known.
"""

from exitcode_conformance.history import History, Moment
from exitcode_conformance.success_rule import deciding_replicas
from exitcode_conformance.temporal import Finding, elapsed, eventually


def comes_to(history: History, wanted: str, *, since: Moment) -> Finding:
    """Whether the job becomes Succeeded or Failed, as `wanted` says, within the bound `terminal` after a moment; one
    that has become the other one instead, and for no other reason that is known, does not."""
    missing = f"the job did not become {wanted}"
    other = ended_otherwise(history, wanted, since=since)
    if other is not None:
        seen = f"{missing}: {other.what}, {elapsed(since.time, other.time):.1f} s after {since.what}"
        return Finding(holds=False, seen=seen, deciding=(since.seq, other.seq))
    found = history.first_state(wanted)
    return eventually(history, since=since, bound="terminal", found=found, missing=missing)


def ended_otherwise(history: History, wanted: str, *, since: Moment) -> Moment | None:
    """When the job became the other of Succeeded and Failed after a moment, with nothing that may be the reason for
    that; None if it did not."""
    terminal = history.terminal
    if terminal is None or terminal[0] == wanted or history.first_state(wanted) is not None:
        return None
    state, ended = terminal
    explained = _may_have_succeeded(history, ended) if state == "Succeeded" else _may_have_failed(history, since, ended)
    return ended if since.seq < ended.seq and not explained else None


def _may_have_succeeded(history: History, ended: Moment) -> bool:
    """Whether all who decide had ended with 0 by then: whoever learnt of that first may have said so."""
    attempts = [history.attempts(replica) for replica in deciding_replicas(history.scenario)]
    return all(any(a.ended and a.ended.code == 0 and a.ended.seq < ended.seq for a in found) for found in attempts)


def _may_have_failed(history: History, since: Moment, ended: Moment) -> bool:
    """Whether something failed in between, or failed unasked at any time before."""
    between = any(since.seq < moment.seq < ended.seq for _, moment in history.own_failures)
    return between or history.unscripted_failure(ended.seq) is not None
