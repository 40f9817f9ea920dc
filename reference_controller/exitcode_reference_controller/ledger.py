"""The count of operator-made restarts, kept where it outlives the controller: in an annotation of the job.

A replacement pod begins again at restartCount 0, so nothing in the cluster remembers that there was another
before it. The ledger is written, under optimistic concurrency, before the failed pod is deleted, and keeps
the UID of the last pod counted for each replica. So a crash, a conflict or a stale cache between the two
writes counts no pod twice, and no pod disappears uncounted.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

ANNOTATION = "exitcode-reference-controller/restarts"


class BrokenLedger(ValueError):
    """Somebody else wrote the annotation, and the count is lost."""


@dataclass(frozen=True, kw_only=True)
class Restarts:
    """How often one replica was restarted, and the UID of the pod that was counted last."""

    count: int
    pod_uid: str


@dataclass(frozen=True, kw_only=True)
class RestartLedger:
    """Replica (`worker-0`) → its restarts."""

    replicas: Mapping[str, Restarts] = field(default_factory=dict)

    @classmethod
    def read(cls, job: Mapping[str, Any]) -> Self:
        """The ledger of a job, empty if it has none. Raises BrokenLedger."""
        text = job["metadata"].get("annotations", {}).get(ANNOTATION)
        if text is None:
            return cls()
        try:
            return cls(
                replicas={
                    replica: Restarts(count=int(entry["count"]), pod_uid=str(entry["podUID"]))
                    for replica, entry in json.loads(text).items()
                }
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BrokenLedger(f"the annotation {ANNOTATION} cannot be read: {text!r}") from error

    def annotation(self) -> str:
        """The ledger as the annotation's value."""
        entries = {name: {"count": r.count, "podUID": r.pod_uid} for name, r in sorted(self.replicas.items())}
        return json.dumps(entries, separators=(",", ":"))

    @property
    def total(self) -> int:
        """Restarts of all replicas together."""
        return sum(restarts.count for restarts in self.replicas.values())

    def holds(self, replica: str, pod_uid: str) -> bool:
        """Whether this very pod has been counted."""
        return replica in self.replicas and self.replicas[replica].pod_uid == pod_uid

    def with_restart(self, replica: str, pod_uid: str) -> "RestartLedger":
        """A ledger that counts this pod too; the same one if it has been counted."""
        if self.holds(replica, pod_uid):
            return self
        before = self.replicas[replica].count if replica in self.replicas else 0
        return RestartLedger(replicas={**self.replicas, replica: Restarts(count=before + 1, pod_uid=pod_uid)})
