"""The published contracts, and what may not be one."""

from typing import Any

import pytest
from pydantic import ValidationError

from exitcode_conformance.contract import CodeClass, Contract, UnknownContract, contract_ids, load_contract

DOCS = {
    0: "success",
    1: "permanent",
    2: "permanent",
    126: "permanent",
    127: "permanent",
    128: "permanent",
    139: "permanent",
    130: "retryable",
    137: "retryable",
    143: "retryable",
    138: "user-retryable",
}
"""The table of Kubeflow's documentation."""


def test_the_documented_table_is_the_contract() -> None:
    contract = load_contract("kubeflow-docs")
    assert {code: contract.class_of(code).value for code in range(256)} == {
        code: DOCS.get(code, "undefined") for code in range(256)
    }


def test_the_comment_on_the_type_is_the_other_contract() -> None:
    contract = load_contract("kubeflow-api")
    assert contract.class_of(0) is CodeClass.SUCCESS
    assert {contract.class_of(code) for code in range(1, 128)} == {CodeClass.PERMANENT}
    assert {contract.class_of(code) for code in range(128, 256)} == {CodeClass.RETRYABLE}


def test_the_two_disagree_where_the_catalogue_says_so() -> None:
    docs, api = load_contract("kubeflow-docs"), load_contract("kubeflow-api")
    defined = [code for code in range(256) if docs.class_of(code) is not CodeClass.UNDEFINED]
    disagreed = [c for c in defined if docs.class_of(c).restarts != api.class_of(c).restarts]
    assert disagreed == [128, 139]


@pytest.mark.parametrize("name", contract_ids())
def test_every_claim_of_a_published_contract_has_a_source(name: str) -> None:
    contract = load_contract(name)
    assert contract.id == name
    assert all(claim.source and claim.every_code() for claim in contract.claims)
    assert contract.no_code is CodeClass.UNDEFINED
    assert all(set(claim.meaning) <= set(claim.every_code()) for claim in contract.claims)


def test_only_two_classes_promise_a_restart() -> None:
    assert {c for c in CodeClass if c.restarts} == {CodeClass.RETRYABLE, CodeClass.USER_RETRYABLE}


def test_an_unknown_contract_is_refused_with_those_there_are() -> None:
    for name in ("nothing", "", "../contract", "kubeflow-docs.yaml"):
        with pytest.raises(UnknownContract, match="there are kubeflow-api, kubeflow-docs"):
            load_contract(name)


def contract(**claim: Any) -> Contract:
    """A contract with this claim beside one on 0."""
    zero = {"class": "success", "codes": [0], "source": "s"}
    claims = [zero, {"class": "permanent", "source": "s", **claim}]
    return Contract.model_validate({"id": "c", "version": "1", "title": "t", "source": "s", "claims": claims})


def test_ranges_hold_both_their_ends() -> None:
    found = contract(ranges=[[1, 3]], codes=[7])
    assert [c for c in range(10) if found.class_of(c) is CodeClass.PERMANENT] == [1, 2, 3, 7]


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"codes": [0]}, "names code 0 twice"),
        ({"codes": [5, 5]}, "names code 5 twice"),
        ({"codes": [5], "ranges": [[1, 9]]}, "names code 5 twice"),
        ({"codes": [256]}, "256 is no exit code"),
        ({"ranges": [[-1, 3]]}, "-1 is no exit code"),
        ({"codes": ["x"]}, "valid integer"),
        ({"codes": [1], "class": "sometimes"}, "Input should be"),
        ({"codes": [1], "colour": "red"}, "Extra inputs are not permitted"),
        ({"codes": [1], "source": None}, "valid string"),
    ],
)
def test_what_is_no_contract_is_refused(claim: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        contract(**claim)
