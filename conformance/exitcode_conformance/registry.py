"""How a requirement is declared: one sentence, one check. A check never knows another; a duplicate fails at import."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from exitcode_conformance.contract import Contract
from exitcode_conformance.history import History
from exitcode_conformance.scenario import Profile as Profile
from exitcode_conformance.scenario import Scenario
from exitcode_conformance.verdict import Judgement

Level = Literal["MUST", "SHOULD", "INFO"]
Feature = Literal[
    "restart-policy-exit-code",
    "restart-policy-always",
    "restart-policy-on-failure",
    "restart-policy-never",
    "job-conditions",
    "success-policy",
    "identity",
    "services",
    "cluster-environment",
    "garbage-collection",
    "clean-pod-policy",
    "backoff-limit",
    "active-deadline",
    "ttl-after-finished",
    "events",
    "operator-process",
]
FEATURES: dict[Feature, str] = {
    "restart-policy-exit-code": "restartPolicy ExitCode",
    "restart-policy-always": "restartPolicy Always",
    "restart-policy-on-failure": "restartPolicy OnFailure",
    "restart-policy-never": "restartPolicy Never",
    "job-conditions": "conditions, replicaStatuses and times in the job's status",
    "success-policy": "the kind's documented success rule",
    "identity": "names, labels and owner references of pods and services",
    "services": "a headless service for each replica",
    "cluster-environment": "TF_CONFIG, or MASTER_ADDR and its companions",
    "garbage-collection": "everything owned goes with the job",
    "clean-pod-policy": "runPolicy.cleanPodPolicy",
    "backoff-limit": "runPolicy.backoffLimit",
    "active-deadline": "runPolicy.activeDeadlineSeconds",
    "ttl-after-finished": "runPolicy.ttlSecondsAfterFinished",
    "events": "Kubernetes events about the job",
    "operator-process": "the harness can see the operator's process, and so whether it restarted",
}

SingleCheck = Callable[[History, Contract], Judgement]
ComparisonCheck = Callable[[Sequence[History], Contract], Judgement]
Applies = Callable[[Scenario, Contract], bool]
Grouping = Callable[[Scenario, Contract], str | None]


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One sentence that an operator meets or does not."""

    id: str
    level: Level
    feature: Feature
    sentence: str
    source: str
    profile: Profile = "core"
    applies: Applies | None = None
    """Which scenarios it is judged in, one at a time."""
    check: SingleCheck | None = None
    group_by: Grouping | None = None
    """For a comparison: the name of the group that a scenario belongs to, None if to none."""
    compare: ComparisonCheck | None = None
    minimum: int = field(default=2)
    """For a comparison: how many scenarios a group needs to be worth comparing."""

    @property
    def group(self) -> str:
        """`EXIT` of `EXIT-03`."""
        return self.id.partition("-")[0]


class DuplicateRequirement(Exception):
    """Two requirements have one id."""


REGISTRY: dict[str, Requirement] = {}


def _register(requirement: Requirement) -> None:
    if requirement.id in REGISTRY:
        raise DuplicateRequirement(requirement.id)
    REGISTRY[requirement.id] = requirement


def requirement(
    identifier: str,
    sentence: str,
    *,
    level: Level = "MUST",
    feature: Feature,
    source: str,
    applies: Applies,
    profile: Profile = "core",
) -> Callable[[SingleCheck], SingleCheck]:
    """Declares a requirement that is judged in each scenario to which it applies."""

    def declare(check: SingleCheck) -> SingleCheck:
        _register(
            Requirement(
                id=identifier,
                level=level,
                feature=feature,
                sentence=sentence,
                source=source,
                profile=profile,
                applies=applies,
                check=check,
            )
        )
        return check

    return declare


def comparison(
    identifier: str,
    sentence: str,
    *,
    level: Level = "MUST",
    feature: Feature,
    source: str,
    group_by: Grouping,
    profile: Profile = "core",
) -> Callable[[ComparisonCheck], ComparisonCheck]:
    """Declares a requirement that is judged by comparing the histories of a group of scenarios."""

    def declare(check: ComparisonCheck) -> ComparisonCheck:
        _register(
            Requirement(
                id=identifier,
                level=level,
                feature=feature,
                sentence=sentence,
                source=source,
                profile=profile,
                group_by=group_by,
                compare=check,
            )
        )
        return check

    return declare
