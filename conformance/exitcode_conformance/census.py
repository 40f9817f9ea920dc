"""A census: what an operator does about each exit code, seen in one small job for each.

It tells more than a certification of the contract's codes and proves less: one job, one replica, one attempt that ends.
What an operator does is classified by the same rules as in the requirements of the group EXIT.
"""

from collections.abc import Collection, Iterable, Mapping

from exitcode_conformance.classification import aftermath, sighting
from exitcode_conformance.contract import CodeClass, Contract, ObservedClass
from exitcode_conformance.frozen import Frozen
from exitcode_conformance.history import History
from exitcode_conformance.judge import judge_by
from exitcode_conformance.kinds import KINDS, KUBEFLOW_KINDS, JobKind
from exitcode_conformance.scenario import ExitOutcome, Scenario, UntilAttempt
from exitcode_conformance.scenarios.topology import RUN, build, smallest
from exitcode_conformance.verdict import Judgement, Verdict

PROFILE = "census"
"""What the header of a census's recording has for a profile."""
NAME = "CENSUS"
"""What stands in the recording's verdicts where a certification has the requirement."""
FEATURE = "restart-policy-exit-code"
"""What an operator has to claim: without it no code means anything."""

EXPECTED: Mapping[CodeClass, str] = {
    CodeClass.SUCCESS: "it is not restarted, and the job does not fail because of it",
    CodeClass.PERMANENT: "it is not restarted, and the job becomes Failed",
    CodeClass.RETRYABLE: "it is restarted, and the job does not fail because of it",
    CodeClass.USER_RETRYABLE: "it is restarted, and the job does not fail because of it",
}


def census_kind(claimed: Collection[str]) -> JobKind | None:
    """The job kind of a census: the first that the operator claims of those that know ExitCode, TFJob before all
    others; None if there is none. What a code does to a Job of batch/v1 is up to the job."""
    known = (kind for kind in map(KINDS.__getitem__, KUBEFLOW_KINDS) if kind.without_exit_code is None)
    return next((kind for kind in known if kind.name in claimed), None)


def census_scenario(kind: JobKind, code: int) -> Scenario:
    """One replica ends with the code; if it is started again it runs on, so that whoever restarts is seen to do so
    once."""
    topology = smallest(kind)
    target = f"{topology.replicas[0][0].lower()}-0"
    return build(
        topology,
        f"census-exit{code}",
        target=target,
        outcomes={target: (ExitOutcome(code=code), RUN)},
        # The end of the job satisfies it as well: whichever comes first, and the window after it is watched.
        steps=(UntilAttempt(replica=target, attempt=2),),
    )


def sentence_of(code: int, contract: Contract) -> str:
    """What the contract says of a code."""
    name, promised = f"{contract.id} {contract.version}", contract.class_of(code)
    if promised is CodeClass.UNDEFINED:
        return f"{name} does not define {code}: whatever is done about it is recorded, and nothing is expected."
    meaning = next((claim.meaning[code] for claim in contract.claims if code in claim.meaning), None)
    return f"{name} calls {code}{f' ({meaning})' if meaning else ''} {promised}: {EXPECTED[promised]}."


def source_of(code: int, contract: Contract) -> str:
    """Where the contract says it; the contract's own source for a code of which it says nothing."""
    return next((claim.source for claim in contract.claims if code in claim.every_code()), contract.source)


def judge_code(history: History, promised: CodeClass) -> Judgement:
    """What the operator was seen to do about the code of a scenario of the census, and whether that keeps the promise.

    Where nothing is promised, whatever was seen passes. It is unknown where the evidence shows no class.
    """
    code, target = census_code(history.scenario), history.scenario.target
    assert target is not None, "a scenario of the census is about one replica"
    expected = f"{target} ends with {code}: {EXPECTED.get(promised, 'nothing is promised')}"

    def check() -> Judgement:
        shown = sighting(history, aftermath(history, target))
        verdict = Verdict.UNKNOWN
        if shown.observed is not None:
            verdict = Verdict.PASS if promised.kept_by(shown.observed) else Verdict.FAIL
        return Judgement(
            verdict=verdict,
            expected=expected,
            seen=shown.seen,
            deciding=tuple(sorted(set(shown.deciding))),
            observed_class=shown.observed.value if shown.observed else None,
        )

    return judge_by(check, expected, [history])


def census_code(scenario: Scenario) -> int:
    """The code that a scenario of the census is about."""
    first = scenario.outcomes[scenario.target or ""][0]
    assert isinstance(first, ExitOutcome), f"{scenario.id} is no scenario of a census"
    return first.code


class Fit(Frozen):
    """How far what was seen agrees with one published contract, over the codes that were asked for."""

    contract: str
    """Its id."""
    version: str
    agreeing: tuple[int, ...]
    differing: tuple[int, ...]
    unknown: tuple[int, ...]
    """Codes that it defines and that showed no class."""

    @property
    def name(self) -> str:
        """`kubeflow-docs 1`."""
        return f"{self.contract} {self.version}"

    @property
    def defined(self) -> int:
        """How many of the codes asked for it defines."""
        return len(self.agreeing) + len(self.differing) + len(self.unknown)

    @property
    def share(self) -> float:
        """The part of the codes it defines that was seen to agree; what is not known does not count for it."""
        return len(self.agreeing) / self.defined if self.defined else 0.0


def fits(
    observed: Mapping[int, ObservedClass | None], contracts: Iterable[Contract], *, claimed: str
) -> tuple[Fit, ...]:
    """How far each contract fits, the best first. `observed` has an entry for each code that was asked for.

    Of two whose codes agree in the same part, the one that says more comes first, then the one that is `claimed`.
    """
    found = [_fit(observed, contract) for contract in contracts]
    return tuple(sorted(found, key=lambda fit: (-fit.share, -fit.defined, fit.contract != claimed, fit.contract)))


def _fit(observed: Mapping[int, ObservedClass | None], contract: Contract) -> Fit:
    parts: dict[bool | None, list[int]] = {True: [], False: [], None: []}
    for code, shown in observed.items():
        promised = contract.class_of(code)
        if promised is not CodeClass.UNDEFINED:
            parts[None if shown is None else promised.kept_by(shown)].append(code)
    return Fit(
        contract=contract.id,
        version=contract.version,
        agreeing=tuple(parts[True]),
        differing=tuple(parts[False]),
        unknown=tuple(parts[None]),
    )
