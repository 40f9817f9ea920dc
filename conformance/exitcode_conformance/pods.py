"""What the pods of a job were seen to do: incarnations (one per UID) and attempts (one per start of a container)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

LABELS: Mapping[str, Mapping[str, str]] = {
    "v1.6": {
        "operator": "training.kubeflow.org/operator-name",
        "job": "training.kubeflow.org/job-name",
        "type": "training.kubeflow.org/replica-type",
        "index": "training.kubeflow.org/replica-index",
        "role": "training.kubeflow.org/job-role",
    },
    "v1.0": {
        "operator": "group-name",
        "job": "job-name",
        "type": "replica-type",
        "index": "replica-index",
        "role": "job-role",
    },
    "v0.5": {
        "operator": "group-name",
        "job": "tf-job-name",
        "type": "tf-replica-type",
        "index": "tf-replica-index",
        "role": "tf-job-role",
    },
}
"""Label keys by generation: training-operator 1.4 on, the releases from 1.0 to 1.5, and 0.5."""
LABEL_GENERATIONS: tuple[Mapping[str, str], ...] = tuple(LABELS.values())

MOST_RUNS = 10_000
"""Runs of a container that are told apart; a kubelet that waits between them takes weeks for as many."""
DISRUPTIONS = frozenset({"Evicted", "Preempting", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
"""status.reason of a pod that was ended by the node or the control plane."""


def labels_of(pod: Mapping[str, Any]) -> Mapping[str, str]:
    """metadata.labels, empty when there are none."""
    return pod["metadata"].get("labels") or {}


@dataclass(frozen=True, kw_only=True, slots=True)
class PodVersion:
    """A pod as one watch event showed it."""

    seq: int
    time: float
    verb: str
    object: Mapping[str, Any]

    @property
    def phase(self) -> str:
        """status.phase."""
        return str((self.object.get("status") or {}).get("phase", ""))

    def container_status(self, name: str) -> Mapping[str, Any] | None:
        """The status of one container, None before the kubelet wrote it."""
        statuses = (self.object.get("status") or {}).get("containerStatuses") or []
        return next((s for s in statuses if s.get("name") == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerEnd:
    """A container seen to have ended."""

    seq: int
    time: float
    code: int
    reason: str
    stopped: bool
    """Whether the pod's deletion had been asked for when the end was seen, so that it may not have ended by itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One start of the training container of a replica, in a new pod or in place."""

    replica: str
    number: int
    """From 1, counted over the replica's pods and their restarts in place."""
    uid: str
    in_place: bool
    """Whether the kubelet started it again in a pod that had run before."""
    created_seq: int
    created_time: float
    """When the pod was seen for the first time; for a restart in place when the restart was seen."""
    started_seq: int | None
    """When it was first seen running; None if that was never seen."""
    started_time: float | None
    ended: ContainerEnd | None


@dataclass(frozen=True, kw_only=True)
class Incarnation:
    """One pod: one UID, from its creation to its removal."""

    replica: str | None
    """None where neither the name nor the labels say which replica the pod stands for."""
    versions: tuple[PodVersion, ...]

    @property
    def uid(self) -> str:
        """metadata.uid."""
        return str(self.first["metadata"]["uid"])

    @property
    def name(self) -> str:
        """metadata.name."""
        return str(self.first["metadata"]["name"])

    @property
    def first(self) -> Mapping[str, Any]:
        """The pod as it was first seen."""
        return self.versions[0].object

    @property
    def created(self) -> PodVersion:
        """The version that the watch showed first."""
        return self.versions[0]

    @property
    def deletion_asked(self) -> PodVersion | None:
        """The first version with a deletionTimestamp, or the deletion itself where there was none before."""
        for version in self.versions:
            if version.object["metadata"].get("deletionTimestamp") or version.verb == "DELETED":
                return version
        return None

    @property
    def deleted(self) -> PodVersion | None:
        """The removal of the object; None while it exists."""
        return next((v for v in self.versions if v.verb == "DELETED"), None)

    def phase_reached(self, *phases: str) -> PodVersion | None:
        """The first version whose phase is one of these."""
        return next((v for v in self.versions if v.phase in phases), None)

    @property
    def finished(self) -> PodVersion | None:
        """The first version in a terminal phase."""
        return self.phase_reached("Succeeded", "Failed")

    @property
    def failed_by_itself(self) -> PodVersion | None:
        """The first version in phase Failed, if nobody had asked for the pod's deletion by then."""
        failed, asked = self.phase_reached("Failed"), self.deletion_asked
        return failed if failed is not None and (asked is None or failed.seq < asked.seq) else None

    @property
    def was_disrupted(self) -> bool:
        """Whether the cluster itself took the pod away: evicted it, preempted it, or lost its node."""
        statuses = [version.object.get("status") or {} for version in self.versions]
        conditions = [c for status in statuses for c in status.get("conditions") or []]
        return any(status.get("reason") in DISRUPTIONS for status in statuses) or any(
            c.get("type") == "DisruptionTarget" and c.get("status") == "True" for c in conditions
        )

    @property
    def not_live(self) -> int | None:
        """The line at which the pod was seen to have ended or to be gone, whichever came first; None while it lives."""
        lines = [v.seq for v in (self.finished, self.deleted) if v is not None]
        return min(lines) if lines else None

    def restart_count(self) -> int:
        """The highest restartCount of any container of the pod."""
        counts = [
            int(status.get("restartCount") or 0)
            for version in self.versions
            for status in (version.object.get("status") or {}).get("containerStatuses") or []
        ]
        return max(counts, default=0)

    @cached_property
    def _runs(self) -> dict[str, "_Runs"]:
        return {}

    def attempts(self, container: str, *, first: int) -> list[Attempt]:
        """The starts of one container, numbered from `first`. A pod whose container never started has one as well."""
        runs = self._runs.get(container)
        if runs is None:
            runs = self._runs[container] = _Runs.seen_in(self.versions, container)
        result = []
        for position in range(runs.count()):
            begin = self.created if position == 0 else runs.sign_of(position)
            started = runs.started.get(position)
            result.append(
                Attempt(
                    replica=self.replica or "",
                    number=first + position,
                    uid=self.uid,
                    in_place=position > 0,
                    created_seq=begin.seq,
                    created_time=begin.time,
                    started_seq=started.seq if started else None,
                    started_time=started.time if started else None,
                    ended=runs.ended.get(position),
                )
            )
        return result


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """The runs of one container of one pod by their number from 0, which is the restartCount while they last."""

    first_sign: dict[int, PodVersion]
    started: dict[int, PodVersion]
    ended: dict[int, ContainerEnd]
    containers: set[str]
    """Runtime ids of the runs that have ended, so that none of them is taken for two."""

    def count(self) -> int:
        return max([0, *self.first_sign, *self.started, *self.ended]) + 1

    def sign_of(self, position: int) -> PodVersion:
        """The first sign of a run, or of one after it: the kubelet may tell of two restarts at once."""
        return self.first_sign[min(number for number in self.first_sign if number >= position)]

    @classmethod
    def seen_in(cls, versions: Sequence[PodVersion], container: str) -> "_Runs":
        runs = cls(first_sign={}, started={}, ended={}, containers=set())
        stopped = False
        for version in versions:
            stopped = stopped or version.verb == "DELETED" or bool(version.object["metadata"].get("deletionTimestamp"))
            status = version.container_status(container)
            if status is None:
                continue
            number = min(int(status.get("restartCount") or 0), MOST_RUNS)
            state = status.get("state") or {}
            runs.first_sign.setdefault(number, version)
            if "running" in state:
                runs.started.setdefault(number, version)
            if "terminated" in state:
                runs._end(number, version, state["terminated"], stopped)
            last = (status.get("lastState") or {}).get("terminated")
            if last is not None:
                # The kubelet counts a restart when it happens. While it waits, the last run has the current number;
                # a state without any key is one of waiting.
                began = "running" in state or "terminated" in state
                runs._end(number - 1 if began else number, version, last, stopped)
        return runs

    def _end(self, number: int, version: PodVersion, terminated: Mapping[str, Any], stopped: bool) -> None:
        container = str(terminated.get("containerID", ""))
        if number >= 0 and number not in self.ended and (not container or container not in self.containers):
            self.containers.add(container)
            self.ended[number] = ContainerEnd(
                seq=version.seq,
                time=version.time,
                code=int(terminated.get("exitCode", -1)),
                reason=str(terminated.get("reason", "")),
                stopped=stopped,
            )
