"""Operator descriptions: what the bundled ones say, and one sentence with file, line and key for each mistake."""

from pathlib import Path

import pytest

from exitcode_conformance.kinds import KINDS
from exitcode_conformance.registry import FEATURES
from exitcode_fixtures.errors import ExitStatus, UsageError
from exitcode_fixtures.operators.description import (
    StartManifests,
    StartNone,
    StartProcess,
    bundled_names,
    load_description,
)

WHOLE = """\
name: mine
identity: {organization: o, project: p, url: https://example.org, version: "1"}
adapter: kubeflow
start:
  mode: process
  command: ["{python}", -c, "print('{{}}', '{namespace}')"]
  environment: {KUBECONFIG: "{kubeconfig}", CONTEXT: "{context}"}
  ready: {log_line: up$, stream: stderr}
  ready_within_s: 5
kinds: [TFJob]
label_generation: v1.6
clean_pod_policy_default: None
features: [identity]
contract: kubeflow-docs
timeouts: {terminal: 20}
waivers:
  - {requirement: EXIT-01, reason: r, owner: me, expires: 2030-01-31}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "operator.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_bundled_ones_are_valid_and_claim_what_they_are_judged_by() -> None:
    controls = ("always-restart", "null", "reference")
    published = ("kubernetes-job", "reference-jobs", "training-operator-1.4.0", "training-operator-1.9.0")
    assert bundled_names() == tuple(sorted((*controls, *published)))
    reference, null, always = (load_description(name) for name in ("reference", "null", "always-restart"))
    assert isinstance(reference.start, StartProcess)
    assert isinstance(null.start, StartNone)
    assert isinstance(always.start, StartProcess)
    assert always.start.command[-2:] == ("--variant", "always-restart")
    assert set(reference.features) == set(FEATURES)
    assert set(always.features) == set(reference.features)
    assert set(reference.features) - set(null.features) == {"operator-process"}


def test_a_whole_description_is_read(tmp_path: Path) -> None:
    description = load_description(written(tmp_path, WHOLE))
    assert isinstance(description.start, StartProcess)
    assert description.start.ready.log_line == "up$"
    assert description.clean_pod_policy_default == "None"
    assert description.timeouts == {"terminal": 20}
    assert description.waivers[0].scenarios == "*"
    assert description.waivers[0].expires.isoformat() == "2030-01-31"


def test_an_operator_that_is_a_part_of_the_cluster_has_its_version(tmp_path: Path) -> None:
    assert load_description("kubernetes-job").version_on("v1.34.4") == "v1.34.4"
    assert load_description(written(tmp_path, WHOLE)).version_on("v1.34.4") == "1"


def test_two_names_may_change_places(tmp_path: Path) -> None:
    traits = "{TFJob: {conditions: {Running: Restarting, Restarting: Running}}}"
    text = WHOLE.replace("kinds: [TFJob]", f"kinds: [TFJob]\nkind_traits: {traits}")
    assert load_description(written(tmp_path, text)).kind("TFJob").documented("Running") == "Restarting"


def test_what_an_operator_has_otherwise_makes_its_kinds(tmp_path: Path) -> None:
    traits = "{TFJob: {container: trainer, replica_types: [PS, Worker], conditions: {Succeeded: Complete}}}"
    text = WHOLE.replace("kinds: [TFJob]", f"kinds: [TFJob]\nkind_traits: {traits}")
    kind = load_description(written(tmp_path, text)).kind("TFJob")
    assert (kind.container, kind.replica_types, kind.called("Succeeded")) == ("trainer", ("PS", "Worker"), "Complete")
    assert load_description(written(tmp_path, WHOLE)).kind("TFJob") == KINDS["TFJob"]


def test_paths_start_at_the_descriptions_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "manifests").mkdir()
    start = "start: {mode: manifests, manifests: [manifests]}\n"
    path = written(tmp_path, WHOLE[: WHOLE.index("start:")] + start + WHOLE[WHOLE.index("kinds:") :])
    monkeypatch.chdir("/")
    description = load_description(path)
    assert isinstance(description.start, StartManifests)
    assert description.start.manifests == (str(tmp_path / "manifests"),)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("adapter: kubeflow\n", "", "line 1, lacks the key `adapter`"),
        ("adapter:", "adaptor:", "line 3, has an unknown key `adaptor`"),
        (
            "log_line: up$, stream: stderr",
            "http: '127.0.0.1:8081/readyz'",
            "line 8, is wrong at `start.ready.http`: it is no URL",
        ),
        ("contract: kubeflow-docs", "contract: kubeflow-docs\nextra: 1", "line 15, has an unknown key `extra`"),
        ("contract: kubeflow-docs", "contract: kubeflow-docs\nname: b", "line 15, has the key `name` twice"),
        (
            "contract: kubeflow-docs",
            "contract: nobody",
            "line 14, is wrong at `contract`: 'nobody' is unknown; known are",
        ),
        ("[TFJob]", "[TFJob, FooJob]", "line 10, is wrong at `kinds.1`: 'FooJob' is unknown; known are"),
        ("[TFJob]", "TFJob", 'line 10, is wrong at `kinds`: expected a list, found "TFJob"'),
        ("[TFJob]", "[]", "line 10, is wrong at `kinds`: it may not be empty"),
        ("[TFJob]", "[TFJob, TFJob]", "line 10, is wrong at `kinds`: `TFJob` is named twice"),
        ("[identity]", "[identity, magic]", "line 13, is wrong at `features.1`: 'magic' is unknown; known are"),
        ('version: "1"', "version: cluster", "line 2, is wrong at `identity.version`: it may be `cluster` only with"),
        ("[TFJob]", "[Job]", "line 10, is wrong at `kinds.0`: `Job` is no kind of the adapter kubeflow"),
        (
            "adapter: kubeflow",
            "adapter: batch",
            "line 10, is wrong at `kinds.0`: `TFJob` is no kind of",
        ),
        ("label_generation: v1.6\n", "", "line 3, is wrong at `adapter`: kubeflow needs the key `label_generation`"),
        ("clean_pod_policy_default: None\n", "", "`adapter`: kubeflow needs the key `clean_pod_policy_default`"),
        (
            "[TFJob]",
            "[TFJob]\nkind_traits: {PyTorchJob: {container: torch}}",
            "line 11, is wrong at `kind_traits.PyTorchJob`: PyTorchJob is not among the kinds",
        ),
        (
            "[TFJob]",
            "[TFJob]\nkind_traits: {TFJob: {replica_types: [Worker, Nobody]}}",
            "at `kind_traits.TFJob.replica_types`: TFJob has no replica type Nobody; it has PS, Worker, Chief, ",
        ),
        (
            "[TFJob]",
            "[TFJob]\nkind_traits: {TFJob: {conditions: {Done: Complete}}}",
            "line 11, is wrong at `kind_traits.TFJob.conditions",
        ),
        (
            "[TFJob]",
            "[TFJob]\nkind_traits: {TFJob: {events: {ExitedWithCode: E, SuccessfulCreatePod: E}}}",
            "line 11, is wrong at `kind_traits.TFJob.events`: `E` cannot stand for two",
        ),
        (
            "[TFJob]",
            "[TFJob]\nkind_traits: {TFJob: {conditions: {Succeeded: Running}}}",
            "line 11, is wrong at `kind_traits.TFJob.conditions`: `Running` cannot stand for two",
        ),
        (
            "[TFJob]",
            "[TFJob]\nkind_traits: {TFJob: {pods: many}}",
            "line 11, has an unknown key `kind_traits.TFJob.pods`",
        ),
        ('version: "1"', "version: 1.10", "line 2, is wrong at `identity.version`: expected a text"),
        ('version: "1"', "version: latest", "line 2, is wrong at `identity.version`: 'latest' is a name that moves"),
        (
            'version: "1"',
            "version: release-1.9",
            "at `identity.version`: 'release-1.9' is a name that moves",
        ),
        ("name: mine", "name: My Operator", "line 1, is wrong at `name`: expected a text that matches"),
        ("mode: process", "mode: magic", "line 5, is wrong at `start.mode`: expected 'process', 'manifests', 'none'"),
        ("  mode: process\n", "", "line 4, lacks the key `start.mode`"),
        ("mode: process", "mode: none", "has an unknown key `start.command`"),
        (
            "ready_within_s: 5",
            "ready_within_s: soon",
            'line 9, is wrong at `start.ready_within_s`: expected number, found "soon"',
        ),
        (
            "ready_within_s: 5",
            "ready_within_s: 0",
            "line 9, is wrong at `start.ready_within_s`: expected greater than 0",
        ),
        ("up$", "'(['", "line 8, is wrong at `start.ready.log_line`: '([' is no regular expression"),
        ("log_line: up$, ", "", "line 8, is wrong at `start.ready`: exactly one of log_line, http, lease"),
        ("log_line: up$", "http: http://x", "line 8, is wrong at `start.ready.stream`: stream belongs to log_line"),
        (
            "{context}",
            "{cluster}",
            "line 7, is wrong at `start.environment.CONTEXT`: '{cluster}' has the unknown placeholder",
        ),
        ("'{{}}'", "'{'", "line 6, is wrong at `start.command.2`: "),
        (
            "  ready_within_s: 5",
            "  working_directory: absent",
            "line 9, is wrong at `start.working_directory`: there is no",
        ),
        ("{terminal: 20}", "{patience: 20}", "line 15, is wrong at `timeouts.patience`: there is no such timeout"),
        (
            "{terminal: 20}",
            "{never: 1}",
            "line 15, is wrong at `timeouts.never`: it may not be shorter than",
        ),
        ("EXIT-01", "EXIT-99", "line 17, is wrong at `waivers.0.requirement`: 'EXIT-99' is unknown; known are CLEAN-0"),
        ("[identity]", "[]", "line 13, is wrong at `features`: it may not be empty"),
        ("2030-01-31", "2030-02-31", "line 17, is wrong at `waivers.0.expires`: expected date"),
        ("owner: me, ", "", "line 17, lacks the key `waivers.0.owner`"),
        ("label_generation: v1.6", "label_generation: v2", "line 11, is wrong at `label_generation`: expected 'v0.5'"),
        (WHOLE, "", "is empty"),
        (WHOLE, "- a", "line 1, is wrong: expected a mapping"),
        (WHOLE, "a: [", "is not the YAML that it should be"),
        (WHOLE, WHOLE + "---\na: b\n", "is not the YAML that it should be: it has a second document"),
        (WHOLE, "? [a]\n: b\n", "line 1, has a key that is no text"),
        (WHOLE, "a: &a [*a]", "is nested too deeply, or contains itself"),
        (WHOLE, "a: !!python/name:os.system x", "line 1, is not the YAML that it should be"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in WHOLE
    path = written(tmp_path, WHOLE.replace(old, new, 1))
    with pytest.raises(UsageError) as problem:
        load_description(path)
    assert sentence in problem.value.problem
    assert path in problem.value.problem
    assert "\n" not in str(problem.value)
    assert problem.value.exit_status is ExitStatus.USAGE


@pytest.mark.parametrize(
    "version", ["2", "v1.9.0", "1.9.0-rc.1+k8s", "v1-855e096", "2026-11-30", "6f74c7f", "sha256:" + "0a" * 32]
)
def test_a_version_that_stays_is_taken(tmp_path: Path, version: str) -> None:
    text = WHOLE.replace('version: "1"', f'version: "{version}"')
    assert load_description(written(tmp_path, text)).identity.version == version


@pytest.mark.parametrize("version", ["main", "v1-branch", "feature/issue-12", "facade", "1.x", "sha256:0a"])
def test_one_that_moves_is_not(tmp_path: Path, version: str) -> None:
    with pytest.raises(UsageError, match="is a name that moves"):
        load_description(written(tmp_path, WHOLE.replace('version: "1"', f'version: "{version}"')))


def test_a_process_that_nobody_sees_is_not_claimed(tmp_path: Path) -> None:
    start, kinds = WHOLE.index("  mode: process"), WHOLE.index("kinds:")
    text = f"{WHOLE[:start]}  mode: none\n{WHOLE[kinds:]}".replace("[identity]", "[identity, operator-process]")
    with pytest.raises(
        UsageError, match=r"line 9, is wrong at `features\.1`: .* name `start\.deployment`, or do not claim it"
    ):
        load_description(written(tmp_path, text))
    named = load_description(
        written(tmp_path, text.replace("mode: none", "mode: none\n  deployment: kubeflow/operator"))
    )
    assert named.start == StartNone(mode="none", deployment="kubeflow/operator")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nobody", "There is no operator 'nobody'."),
        ("absent/operator.yaml", "absent/operator.yaml does not exist."),
        ("/", "is not a regular file"),
    ],
)
def test_a_wrong_name_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(UsageError) as problem:
        load_description(name)
    assert sentence in problem.value.problem


def test_bytes_that_are_no_text_are_found(tmp_path: Path) -> None:
    path = tmp_path / "operator.yaml"
    path.write_bytes(b"name: mine\nidentity: \xff\n")
    with pytest.raises(UsageError, match="line 2, is not UTF-8"):
        load_description(str(path))
