"""A contract: a versioned, sourced promise of what each exit code means. Published ones are in contracts/*.yaml."""

from enum import StrEnum
from importlib import resources
from typing import Self

from pydantic import Field, model_validator

from exitcode_conformance.frozen import Frozen
from exitcode_conformance.yaml_model import read_yaml


class CodeClass(StrEnum):
    """What a contract promises for a code."""

    SUCCESS = "success"
    PERMANENT = "permanent"
    RETRYABLE = "retryable"
    USER_RETRYABLE = "user-retryable"
    UNDEFINED = "undefined"

    @property
    def restarts(self) -> bool:
        """Whether the contract promises a restart."""
        return self in (CodeClass.RETRYABLE, CodeClass.USER_RETRYABLE)

    def kept_by(self, observed: "ObservedClass") -> bool:
        """Whether what an operator did keeps the promise; what is undefined promises nothing. A restart is promised,
        not how it is done: that is the subject of other requirements."""
        match self:
            case CodeClass.SUCCESS:
                return observed is ObservedClass.SUCCESS
            case CodeClass.PERMANENT:
                return observed is ObservedClass.PERMANENT
            case CodeClass.RETRYABLE | CodeClass.USER_RETRYABLE:
                return observed in (ObservedClass.RETRYABLE, ObservedClass.RESTARTED_IN_PLACE)
            case CodeClass.UNDEFINED:
                return True


class ObservedClass(StrEnum):
    """What an operator was seen to do about a code."""

    SUCCESS = "success"
    PERMANENT = "permanent"
    """Not restarted, and the job failed."""
    RETRYABLE = "retryable"
    """Deleted and created again, and the job did not fail."""
    RESTARTED_AND_FAILED = "restarted-and-failed"
    RESTARTED_IN_PLACE = "restarted-in-place"
    IGNORED = "ignored"
    """Neither restarted nor failed for the whole window."""


class Claim(Frozen):
    """One sentence of a source, and the codes that it speaks of."""

    code_class: CodeClass = Field(alias="class")
    codes: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    """First and last code, both included."""
    meaning: dict[int, str] = {}
    source: str

    @model_validator(mode="after")
    def _codes_are_bytes(self) -> Self:
        for code in self.every_code():
            if not 0 <= code <= 255:
                raise ValueError(f"{code} is no exit code: they go from 0 to 255")
        return self

    def every_code(self) -> tuple[int, ...]:
        """All codes of the claim, those of its ranges included."""
        return self.codes + tuple(c for first, last in self.ranges for c in range(first, last + 1))


class Contract(Frozen):
    """What is promised. A code that no claim names is undefined: no guarantee, nothing to judge."""

    id: str
    version: str
    title: str
    source: str
    claims: tuple[Claim, ...]
    no_code: CodeClass = CodeClass.UNDEFINED
    """What is promised for a failure that has no exit code at all."""

    @model_validator(mode="after")
    def _no_code_twice(self) -> Self:
        seen: set[int] = set()
        for claim in self.claims:
            for code in claim.every_code():
                if code in seen:
                    raise ValueError(f"contract {self.id} names code {code} twice")
                seen.add(code)
        return self

    def class_of(self, code: int) -> CodeClass:
        """The promise for a code from 0 to 255."""
        for claim in self.claims:
            if code in claim.every_code():
                return claim.code_class
        return CodeClass.UNDEFINED


class UnknownContract(Exception):
    """There is no published contract of that name."""


def contract_ids() -> tuple[str, ...]:
    """Names of the published contracts, sorted."""
    folder = resources.files("exitcode_conformance") / "contracts"
    return tuple(sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml")))


def load_contract(identifier: str) -> Contract:
    """The published contract of that name; raises UnknownContract with the names there are."""
    if identifier not in contract_ids():
        raise UnknownContract(f"There is no contract {identifier!r}; there are {', '.join(contract_ids())}.")
    return _read(identifier)


def _read(identifier: str) -> Contract:
    text = (resources.files("exitcode_conformance") / "contracts" / f"{identifier}.yaml").read_text("utf-8")
    contract = read_yaml(text, Contract)
    if contract.id != identifier:
        raise ValueError(f"contracts/{identifier}.yaml says it is {contract.id}")
    return contract
