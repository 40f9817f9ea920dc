"""The first and the last line of a recording: what was about to be run, and what came of it."""

from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, Field

from exitcode_conformance.contract import Contract
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.kinds import KindTraits
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.waiver import Waiver

FORMAT: Literal[1] = 1
"""The version of the format that this module writes, and the only one that it reads."""

Level = Literal["MUST", "SHOULD", "INFO"]
Planned = Literal["run", "not-supported", "waived", "not-run"]


_FIRST_YEAR, _LAST_YEAR = 2000, 9000


def _plausible(when: datetime) -> datetime:
    """A time that every report can write; there was no run before Kubernetes."""
    if not _FIRST_YEAR <= when.year <= _LAST_YEAR:
        raise ValueError(f"{when.year} is no year of a run")
    return when.astimezone(UTC)


def _nothing(waivers: dict[str, str]) -> dict[str, str]:
    """Recordings of before had a reason alone: by whom and until when is not known, so nothing can be judged by it."""
    if waivers:
        raise ValueError("these waivers have neither an owner nor a last day")
    return waivers


class OperatorIdentity(Frozen):
    """Who was certified: what of the operator's description the report shows and the checks judge by."""

    name: str
    version: str
    project: str
    url: str | None = None
    start: Literal["process", "manifests", "none"]
    """How the operator came to run; `none` where it was there already."""
    kinds: tuple[str, ...]
    features: tuple[str, ...]
    labels: str | None = None
    """The generation of label keys that the operator writes."""
    clean_pod_policy: str | None = None
    """The default that its description declares; None where it declares none."""
    clean_pod_policy_of: dict[str, str] = Field(default_factory=dict)
    """Job kind → its default, where that is another."""
    kind_traits: dict[str, KindTraits] = Field(default_factory=dict)
    """Job kind → what the operator has otherwise than the published API."""
    waivers: Annotated[dict[str, str], AfterValidator(_nothing)] = Field(default_factory=dict, exclude=True)
    """Empty, in older recordings: `Header.waivers` has them."""


class RecordedWaiver(Waiver):
    """A waiver of the operator's description."""

    elsewhere: bool = False
    """No case of the plan has its name, and the operator has some: in the profile that was not run, or by the contract
    that it claims and was not judged by."""


class ClusterIdentity(Frozen):
    """What it ran on."""

    address: str
    """As the user gave it: `embedded`, `kind`, `kubeconfig:PATH`."""
    type: Literal["embedded", "kind", "kubeconfig"]
    server_version: str
    nodes: tuple[str, ...] = ()
    note: str | None = None


class ContractIdentity(Frozen):
    """What the operator promised."""

    id: str
    version: str
    digest: str
    """SHA-256 of the contract's file, in hexadecimal."""
    claims: dict[int, str]
    """Exit code → its class. A code that is not here is undefined."""
    no_code: str | None = None
    """The class of a failure that has no code at all; None where the contract is silent."""

    @classmethod
    def of(cls, contract: Contract) -> Self:
        """The identity of a published contract."""
        return cls(
            id=contract.id,
            version=contract.version,
            digest=sha256(contract.model_dump_json().encode()).hexdigest(),
            claims={code: claim.code_class.value for claim in contract.claims for code in claim.every_code()},
            no_code=contract.no_code.value,
        )


class PlannedCase(Frozen):
    """One (requirement, subject) of the plan, and all that a report says of it, registry or not."""

    requirement: str
    subject: str
    """What stands in the brackets of the test id."""
    scenarios: tuple[str, ...]
    level: Level
    feature: str
    sentence: str
    source: str
    planned: Planned = "run"
    reason: str | None = None
    """Why it is not run; None where it is."""


class Header(Frozen):
    """The first line."""

    type: Literal["header"] = "header"
    format: Literal[1] = FORMAT
    suite_version: str
    run_id: str
    operator: OperatorIdentity
    cluster: ClusterIdentity
    contract: ContractIdentity
    profile: str
    namespace: str
    started_at: Annotated[AwareDatetime, AfterValidator(_plausible)]
    timeouts: Timeouts
    scenarios: dict[str, Scenario]
    plan: tuple[PlannedCase, ...]
    reproduce: tuple[str, ...]
    """The command line that runs the same again, one entry an argument."""
    waivers: tuple[RecordedWaiver, ...] = ()
    """What the verdicts rest on beside the events. None in recordings of earlier versions."""
    shown_to_fail: dict[str, tuple[str, ...]] | None = None
    """Requirement → the broken controllers that it was shown to fail on. One that is not here is unproven, and does not
    count. None in recordings of earlier versions: all count."""

    @property
    def day(self) -> date:
        """The day on which the run began, in UTC: that on which a waiver has to hold."""
        return self.started_at.date()

    def is_proven(self, requirement: str) -> bool:
        """Whether the requirement counts: somebody has seen that its check finds something."""
        return self.shown_to_fail is None or bool(self.shown_to_fail.get(requirement))


class Footer(Frozen):
    """The last line. A recording without it was cut short, or is still being written."""

    type: Literal["footer"] = "footer"
    lines: dict[str, int]
    """Line type (`event`, `action`, `verdict`) → how many there are."""
    verdicts: dict[str, int]
    """Value of `verdict.Verdict` → how many verdict lines say so."""
    finished_at: AwareDatetime
    exit_status: int = Field(ge=0, le=255)
    sha256: str
    """Of all bytes before this line, line ends included, in hexadecimal."""
