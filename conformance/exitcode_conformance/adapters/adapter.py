"""What the suite asks of an adapter. Everything that is data stands in the job kind; this is the rest."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from exitcode_conformance.kinds import AdapterName, JobKind
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.timeouts import Timeouts

Change = Callable[[dict[str, Any], JobKind], None]
"""Changes the spec of a job's manifest."""


class Adapter(Protocol):
    """One job API."""

    @property
    def name(self) -> AdapterName:
        """As a description names it."""

    @property
    def contracts(self) -> tuple[str, ...] | None:
        """The contracts that can be held against it; None for any."""

    @property
    def without(self) -> Mapping[str, str]:
        """Requirements that make no sense for this API → why, as a clause. They are not supported by declaration."""

    @property
    def nonsense(self) -> Mapping[str, Change]:
        """Name → the change that makes a job into one that nobody may run."""

    @property
    def prunes(self) -> bool:
        """Whether an API server that is too old for a field takes the job and leaves the field out."""

    def spec(self, scenario: Scenario, kind: JobKind, timeouts: Timeouts, image: str) -> dict[str, Any]:
        """The spec of the scenario's job."""

    def replica_of(self, pod: Mapping[str, Any], job: str, /) -> str | None:
        """The replica that a pod of the job stands for, `<type in lower case>-<index>`; None where nothing says it.
        That it is the job's is known from its owner."""

    def replica_statuses(self, status: Mapping[str, Any], kind: JobKind, /) -> Mapping[str, Mapping[str, Any]]:
        """Replica type → `active`, `succeeded`, `failed`; empty where the status has none."""
