"""The embedded cluster's small languages: quantities, ages, JSONPath, selectors, patches, shapes and certificates."""

import ssl
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from exitcode_fixtures.embedded.certificate import ServerCertificate, make_server_certificate
from exitcode_fixtures.embedded.column import human_duration
from exitcode_fixtures.embedded.core_shape import SHAPES
from exitcode_fixtures.embedded.json_path import JsonPath, JsonPathError
from exitcode_fixtures.embedded.patch import merge, merge_strategically
from exitcode_fixtures.embedded.protobuf_body import ProtobufError, decode_body
from exitcode_fixtures.embedded.quantity import canonical
from exitcode_fixtures.embedded.refusal import Refusal
from exitcode_fixtures.embedded.selector import Selector, parse_labels
from exitcode_fixtures.embedded.shape import ShapeError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("1", "1"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1000Mi", "1000Mi"),
        ("1024", "1024"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("100k", "100k"),
        ("0", "0"),
        ("-1", "-1"),
        ("1n", "1n"),
        ("0.1n", "1n"),
    ],
)
def test_quantities_have_one_spelling(given: str, shown: str) -> None:
    assert canonical(given) == shown


@pytest.mark.parametrize("given", ["", "a", "1x", "1 Gi", "1Gib", "--1", "1e"])
def test_what_is_no_quantity_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        canonical(given)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-0.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (180 * 60, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)
def test_ages_are_shown_as_kubectl_shows_them(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


JOB = {
    "metadata": {"creationTimestamp": "2026-01-02T03:03:05Z", "annotations": {"a.b/c": "x"}},
    "spec": {"size": 3, "ratio": 0.5, "on": True, "list": [1, 2, 3]},
    "status": {"conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "kind", "cell"),
    [
        (".status.conditions[-1:].type", "string", "Running"),
        (".status.conditions[0].type", "string", "Created"),
        (".status.conditions[*].type", "string", "Created,Running"),
        ('.status.conditions[?(@.type=="Running")].status', "string", "False"),
        (".status.conditions[7:].type", "string", None),
        (".status.absent.type", "string", None),
        (".metadata.creationTimestamp", "date", "60s"),
        (r".metadata.annotations.a\.b/c", "string", "x"),
        (".metadata.annotations['a.b/c']", "string", "x"),
        (".spec.size", "integer", 3),
        (".spec.size", "string", "3"),
        (".spec.ratio", "number", 0.5),
        (".spec.on", "boolean", True),
        (".spec.on", "integer", None),
        (".spec.list", "string", "[1 2 3]"),
        (".spec.list[1:]", "string", "2,3"),
    ],
)
def test_printer_columns_read_their_path(path: str, kind: str, cell: object) -> None:
    assert JsonPath(path).cell(JOB, kind, NOW) == cell


@pytest.mark.parametrize("path", ["", "spec", ".a[", ".a[?(@)]", ".a[x]", ".a..b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("", True),
        ("a", True),
        ("!a", False),
        ("!b", True),
        ("a=1", True),
        ("a==1", True),
        ("a!=1", False),
        ("b!=1", True),
        ("a in (1, 2)", True),
        ("a notin (1)", False),
        ("b notin (1)", True),
        ("a=1,n>4", True),
        ("n<4", False),
        ("x.y/z=", True),
    ],
)
def test_label_selectors_choose(text: str, accepted: bool) -> None:
    value = {"metadata": {"labels": {"a": "1", "n": "5", "x.y/z": ""}}}
    assert Selector(labels=parse_labels(text)).accepts(value) is accepted


@pytest.mark.parametrize("text", ["=", "a=b=c", "a in 1", "!a=b", "a,,b", "a>b"])
def test_what_is_no_label_selector_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        parse_labels(text)


def test_a_merge_patch_removes_with_null() -> None:
    assert merge({"a": 1, "b": {"c": 1, "d": 2}}, {"a": None, "b": {"c": None, "e": {"f": None}}}) == {
        "b": {"d": 2, "e": {}}
    }


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({"env": named("a", "b")}, {"env": [{"name": "b", "value": "1"}]}, ["a", "b"]),
        ({"env": named("a")}, {"env": named("z")}, ["z", "a"]),
        ({"env": named("a", "b")}, {"env": [{"name": "a", "$patch": "delete"}]}, ["b"]),
        ({"env": named("a", "b")}, {"env": [{"$patch": "replace"}, {"name": "c"}]}, ["c"]),
        ({"env": named("a", "b", "c")}, {"$setElementOrder/env": named("c", "a", "b")}, ["c", "a", "b"]),
        ({"env": named("a", "b")}, {"env": None}, None),
        ({}, {"env": named("a")}, ["a"]),
    ],
)
def test_a_strategic_patch_merges_lists_by_key(
    before: dict[str, Any], patch: dict[str, Any], after: list[str] | None
) -> None:
    merged = merge_strategically(before, patch).get("env")
    assert (None if merged is None else [one["name"] for one in merged]) == after


def test_other_lists_are_replaced_by_a_strategic_patch() -> None:
    assert merge_strategically({"command": ["a", "b"]}, {"command": ["c"]}) == {"command": ["c"]}


def test_a_shape_drops_what_go_leaves_out_and_writes_what_it_does_not() -> None:
    value = {
        "metadata": {"name": "p", "labels": {}, "finalizers": [], "nonsense": 1},
        "spec": {
            "nodeName": "",
            "hostNetwork": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c"}],
        },
        "status": {"containerStatuses": [{"name": "c"}]},
    }
    container = {"name": "c", "resources": {}}
    status = {"name": "c", "state": {}, "lastState": {}, "ready": False, "restartCount": 0, "image": "", "imageID": ""}
    assert SHAPES.read("Pod", value) == {
        "metadata": {"name": "p"},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
        "status": {"containerStatuses": [status]},
    }


def test_a_shape_names_the_place_that_is_wrong() -> None:
    with pytest.raises(ShapeError, match=r"^spec\.containers\.env\.value: "):
        SHAPES.read("Pod", {"spec": {"containers": [{"env": [{"name": "A", "value": 1}]}]}})


@pytest.mark.parametrize("body", [b"", b"{}", b"k8s\0", b"k8s\0\x0a", b"k8s\0\x0a\x04\x12\x02xx\x12\x01\x0a"])
def test_what_is_no_protobuf_body_is_refused(body: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_body(body)


def shake_hands(made: ServerCertificate, authority: str, name: str, directory: Path) -> None:
    """A TLS handshake in memory, as strict as OpenSSL can be. Raises ssl.SSLError."""
    chain, key = directory / "chain", directory / "key"
    chain.write_text(made.certificate)
    key.write_text(made.key)
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    accepting.load_cert_chain(chain, key)
    asking = ssl.create_default_context(cadata=authority)
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [asking.wrap_bio(down, up, server_hostname=name), accepting.wrap_bio(up, down, server_side=True)]
    for _ in range(4):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    assert ends[0].cipher() is not None


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_certificate_is_trusted_by_its_own_authority(tmp_path: Path, name: str) -> None:
    made = make_server_certificate("127.0.0.1", datetime.now(UTC))
    shake_hands(made, made.authority, name, tmp_path)


def test_the_certificate_is_good_for_nothing_else(tmp_path: Path) -> None:
    made = make_server_certificate("127.0.0.1", datetime.now(UTC))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, made.authority, "127.0.0.2", tmp_path)
    with pytest.raises(ssl.SSLError):
        shake_hands(made, make_server_certificate("127.0.0.1", datetime.now(UTC)).authority, "localhost", tmp_path)
