"""Processes that are ready to run and have no processor are told from those that sleep."""

import os
import queue
import subprocess
import sys

import pytest

from exitcode_fixtures.processor_waits import ProcessorWaits

WITHIN_S = 60


def spinner() -> "subprocess.Popen[bytes]":
    """A process that always wants the first processor of those that this one may use."""
    first = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, [{first}])\nwhile True: pass"
    return subprocess.Popen([sys.executable, "-c", code])


def test_what_waits_for_a_processor_is_told() -> None:
    told: queue.SimpleQueue[float] = queue.SimpleQueue()
    rivals = [spinner() for _ in range(3)]
    try:
        with ProcessorWaits(told.put) as waits:
            waits.watch(rivals[0].pid)
            assert told.get(timeout=WITHIN_S) >= 0.25
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()


def test_what_sleeps_or_has_ended_is_not() -> None:
    told: queue.SimpleQueue[float] = queue.SimpleQueue()
    sleeper = subprocess.Popen(["sleep", "60"])
    ended = subprocess.Popen(["true"])
    ended.wait()
    rivals = [spinner() for _ in range(2)]
    try:
        with ProcessorWaits(told.put) as waits:
            waits.watch(sleeper.pid)
            waits.watch(ended.pid)
            with pytest.raises(queue.Empty):
                told.get(timeout=2.5)
    finally:
        for process in (sleeper, *rivals):
            process.kill()
            process.wait()
