"""Measures the core run against its bounds: each as a ratio, all of one and the same run.

    python bench/core_run.py                                             the embedded cluster
    python bench/core_run.py --repeat 10                                 ten runs in a row, the verdicts compared
    python bench/core_run.py --cluster kubeconfig:PATH -- --install-crds any other cluster

A ratio is measured / bound, so that 1 is the bound. Exit status 0 if every ratio is at most 1 and every run was
conformant with the same verdicts, else 1. Only the public commands and the recording are used; docs/measurements.md
says how to read the numbers.
"""

import argparse
import base64
import json
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml

from exitcode_conformance.entry import Action
from exitcode_reports.recording import Recording, read_recording
from exitcode_reports.results import case_results

FIRST_ANSWER_S = 1.5
RUN_S = 60.0
LONGEST_FACTOR, LONGEST_EXTRA_S = 2.0, 10.0
MEMORY_MB = 600.0
SHARE_OF_SUM = 0.25
SAMPLE_EVERY_S = 1.0
SAMPLING_SHARE = 20
"""A look at the memory may take one part in so many of the time: it runs on the machine that is measured."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One number beside its bound, both in `unit`."""

    what: str
    value: float
    bound: float
    unit: str

    @property
    def ratio(self) -> float:
        """What part of the bound is used."""
        return self.value / self.bound

    def __str__(self) -> str:
        mark = "" if self.ratio <= 1 else "  OVER"
        numbers = f"{self.value:8.1f} of {self.bound:6.1f} {self.unit:<2}"
        return f"  {self.what:<44} {numbers}  ratio {self.ratio:5.2f}{mark}"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run: how long its process lived, what all its processes used at most, and what it recorded."""

    status: int
    wall_s: float
    peak_pss_mb: float
    peak_rss_mb: float
    peak_processes: int
    recording: Recording

    @cached_property
    def durations_s(self) -> dict[str, float]:
        """Scenario → seconds from its submission until its history was complete."""
        submitted, found = {}, {}
        for entry in self.recording.entries:
            if isinstance(entry, Action) and entry.scenario is not None:
                if entry.action == "submit":
                    submitted[entry.scenario] = entry.time
                elif entry.action == "complete" and entry.scenario in submitted:
                    found[entry.scenario] = entry.time - submitted[entry.scenario]
        return found

    @cached_property
    def recorded_s(self) -> float:
        """Seconds from the header to the footer: the run without the start and the end of its cluster."""
        footer = self.recording.footer
        assert footer is not None, "read_recording refuses a recording without a footer"
        return (footer.finished_at - self.recording.header.started_at).total_seconds()

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """Test id → verdict."""
        return {result.name: result.verdict.value for result in case_results(self.recording)}


class Memory(NamedTuple):
    """What some processes use together, in bytes. PSS counts a shared page once, RSS once for each of them."""

    pss: int
    rss: int
    processes: int


class Family:
    """A process and all that came of it. One that has been seen once is followed even when its parent is gone."""

    def __init__(self, root: int) -> None:
        self._known = {root: _born(root)}

    def memory(self) -> Memory:
        """What all of them use now."""
        self._adopt()
        used = [found for pid in self._known if (found := _memory_of(pid)) is not None]
        return Memory(sum(pss for pss, _ in used), sum(rss for _, rss in used), len(used))

    def _adopt(self) -> None:
        parents = dict(_parents())
        self._known = {pid: born for pid, born in self._known.items() if pid in parents and _born(pid) == born}
        while new := {pid for pid, parent in parents.items() if parent in self._known and pid not in self._known}:
            self._known |= {pid: _born(pid) for pid in new}


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            yield int(entry.name), int(fields[1])


def _born(pid: int) -> str:
    """When a process was started, in ticks: with its number, what tells it from every other."""
    fields = _stat(pid)
    return fields[19] if fields else ""


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name; none if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def _memory_of(pid: int) -> tuple[int, int] | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
    except OSError:  # it has ended, or is about to
        return None
    fields = {line.partition(":")[0]: line.partition(":")[2].split() for line in lines[1:]}
    return int(fields["Pss"][0]) * 1024, int(fields["Rss"][0]) * 1024


def first_answer_s(folder: Path) -> float:
    """Seconds from the start of the embedded cluster's process to the first request that it answers."""
    folder.mkdir()
    began = time.monotonic()
    command = [sys.executable, "-m", "exitcode_fixtures.embedded", "--state-dir", str(folder), "--until-stdin-closes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        said = json.loads(process.stdout.readline())
        _ask(Path(said["kubeconfig"]))
        took = time.monotonic() - began
        process.stdin.close()
    return took


def _ask(kubeconfig: Path) -> None:
    """One request, made as lightly as Python can: a client that loads for a second would be measured too."""
    content = yaml.safe_load(kubeconfig.read_text("utf-8"))
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    headers = {"Authorization": f"Bearer {user['token']}"}
    request = urllib.request.Request(f"{cluster['server']}/api/v1/namespaces", headers=headers)
    with urllib.request.urlopen(request, context=_trust(cluster), timeout=30) as answer:
        answer.read()


def _trust(cluster: dict[str, str]) -> ssl.SSLContext | None:
    if "certificate-authority-data" not in cluster:
        return None
    return ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())


def certify(cluster: str, more: Sequence[str], out: Path) -> Run:
    """One core run, with looks at the memory, SAMPLE_EVERY_S seconds apart or more."""
    command = [sys.executable, "-P", "-m", "exitcode_fixtures.command_line", "run", "--cluster", cluster]
    out.mkdir()
    began = time.monotonic()
    peak = Memory(0, 0, 0)
    with (out / "output.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--out", str(out), *more], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        family = Family(process.pid)
        status: int | None = None
        pause_s = SAMPLE_EVERY_S
        while status is None:
            try:
                status = process.wait(pause_s)
            except subprocess.TimeoutExpired:
                looked = time.process_time()
                peak = Memory(*map(max, peak, family.memory()))
                pause_s = max(SAMPLE_EVERY_S, SAMPLING_SHARE * (time.process_time() - looked))
    wall_s = time.monotonic() - began
    if not (out / "recording.jsonl").exists():
        sys.exit(f"The run ended with status {status} and recorded nothing:\n{(out / 'output.log').read_text('utf-8')}")
    return Run(
        status=status,
        wall_s=wall_s,
        peak_pss_mb=peak.pss / 1e6,
        peak_rss_mb=peak.rss / 1e6,
        peak_processes=peak.processes,
        recording=read_recording(out / "recording.jsonl"),
    )


def measurements(run: Run, first_s: float | None) -> Iterator[Measured]:
    """The bounds that hold for the cluster of the run."""
    durations = run.durations_s.values()
    if first_s is None:
        what = "run, against the sum of its scenarios"
        yield Measured(what=what, value=run.recorded_s, bound=SHARE_OF_SUM * sum(durations), unit="s")
        return
    yield Measured(what="embedded cluster, first answer", value=first_s, bound=FIRST_ANSWER_S, unit="s")
    yield Measured(what="run, against a minute", value=run.wall_s, bound=RUN_S, unit="s")
    bound = LONGEST_FACTOR * max(durations) + LONGEST_EXTRA_S
    yield Measured(what="run, against its longest scenario x 2 + 10 s", value=run.wall_s, bound=bound, unit="s")
    yield Measured(what="memory of all processes together (PSS)", value=run.peak_pss_mb, bound=MEMORY_MB, unit="MB")


def describe(run: Run) -> str:
    """What the ratios do not say."""
    durations = run.durations_s
    longest = max(durations, key=durations.__getitem__)
    return (
        f"  status {run.status}, {len(durations)} scenarios, {len(run.verdicts)} cases; longest scenario {longest} "
        f"{durations[longest]:.1f} s, all together {sum(durations.values()):.1f} s;\n"
        f"  process {run.wall_s:.1f} s, of which {run.recorded_s:.1f} s from the recording's first line to its last;\n"
        f"  at most {run.peak_processes} processes with {run.peak_pss_mb:.0f} MB PSS ({run.peak_rss_mb:.0f} MB RSS)"
    )


def changed(first: Run, other: Run) -> list[str]:
    """The cases on which two runs differ."""
    names = sorted({*first.verdicts, *other.verdicts})
    pairs = [(name, first.verdicts.get(name, "-"), other.verdicts.get(name, "-")) for name in names]
    return [f"    {name}: {before} in run 1, {after} here" for name, before, after in pairs if before != after]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, measure, print; the exit status."""
    parser = argparse.ArgumentParser(description="Measure the core run against its bounds.")
    parser.add_argument("--cluster", default="embedded", metavar="ADDRESS", help="as for `run` (%(default)s)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs in a row (%(default)s)")
    parser.add_argument("more", nargs="*", metavar="-- ARGUMENT", help="passed on to `run`")
    options = parser.parse_args(arguments)
    embedded = options.cluster == "embedded"
    good = True
    first: Run | None = None
    with tempfile.TemporaryDirectory(prefix="exitcode-bench-") as name:
        for number in range(1, options.repeat + 1):
            first_s = first_answer_s(Path(name) / f"cluster-{number}") if embedded else None
            run = certify(options.cluster, options.more, Path(name) / f"run-{number}")
            first = first or run
            found = list(measurements(run, first_s))
            different = changed(first, run)
            print(f"run {number} of {options.repeat} on {options.cluster}")
            print(describe(run))
            print("\n".join(map(str, found)))
            print(f"  verdicts that differ from those of run 1: {len(different)}", *different, sep="\n", flush=True)
            good &= run.status == 0 and not different and all(one.ratio <= 1 for one in found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
