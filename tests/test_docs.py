"""The documents are held to the code: whatever they name is there, and whatever a user may name is in them."""

import configparser
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel
from request_log import granted_by

from exitcode_conformance.contract import contract_ids
from exitcode_conformance.entry import Action, Event, VerdictLine
from exitcode_conformance.kinds import KINDS, KUBEFLOW_KINDS
from exitcode_conformance.pods import LABEL_GENERATIONS
from exitcode_conformance.registry import FEATURES
from exitcode_conformance.requirements import REQUIREMENTS
from exitcode_conformance.timeouts import Timeouts
from exitcode_conformance.verdict import Verdict
from exitcode_fixtures.certification_run import plugin_arguments
from exitcode_fixtures.clusters.address import parse_address
from exitcode_fixtures.command_line import main
from exitcode_fixtures.errors import ExitStatus
from exitcode_fixtures.operators.description import (
    PLACEHOLDERS,
    Identity,
    OperatorDescription,
    Readiness,
    StartManifests,
    StartNone,
    StartProcess,
    VersionCommand,
    Waiver,
    bundled_names,
    load_description,
)
from exitcode_fixtures.rights import CRD_RIGHTS, EXTENDED_RIGHTS, GUEST_RIGHTS, HARNESS_RIGHTS, Right, job_rights
from exitcode_fixtures.settings import MAX_PODS
from exitcode_reports.header import (
    ClusterIdentity,
    ContractIdentity,
    Footer,
    Header,
    OperatorIdentity,
    PlannedCase,
    RecordedWaiver,
)

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = {"requirements.md"}
PAGES = sorted(path for path in (ROOT / "README.md", *DOCS.glob("*.md")) if path.name not in GENERATED)
PROGRAM = "exitcode-conformance"


MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|tmp|opt|root|home|farm)\b[^\s`]*")


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def every_text() -> str:
    return "\n".join(path.read_text("utf-8") for path in PAGES)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, without the indentation that a list gives them."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def rows(text: str, *first: str) -> list[list[str]]:
    """The rows of the table whose head begins with these cells."""
    lines = text.splitlines()
    found: list[list[str]] = []
    for number, line in enumerate(lines):
        if cells(line)[: len(first)] == list(first):
            for row in lines[number + 2 :]:
                if not row.startswith("|"):
                    return found
                found.append(cells(row))
            return found
    raise AssertionError(f"there is no table with the columns {first}")


def cells(line: str) -> list[str]:
    if not line.startswith("|"):
        return []
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def code(text: str) -> list[str]:
    """What stands in backquotes, fenced blocks left out."""
    return re.findall(r"`([^`]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE))


@pytest.fixture
def helps(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Command → its help; the empty name is the help of all."""
    monkeypatch.setenv("COLUMNS", "200")

    def help_of(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main([*arguments, "--help"])
        return capsys.readouterr().out

    general = help_of()
    names = re.findall(r"^    ([a-z]+)(?: |$)", general, re.MULTILINE)
    return {"": general, **{name: help_of(name) for name in names}}


def invocations() -> Iterator[list[str]]:
    """Every command line of ours in the documents, as words; those in running text as well."""
    text = every_text()
    fenced = [block for language in ("sh", "text", "yaml") for block in blocks(text, language)]
    for line in [*(line for block in fenced for line in block.splitlines()), *code(text)]:
        found = re.search(rf"(?:^|[$:] ){PROGRAM} (.+?)(?= +#|$)", line.strip())
        if found:
            yield shlex.split(found[1])


def test_every_command_and_option_that_is_shown_exists(helps: dict[str, str]) -> None:
    shown = list(invocations())
    assert len(shown) > 15
    for words in shown:
        command = words[0] if not words[0].startswith("-") else ""
        assert command in helps, words
        own = words[: words.index("--")] if "--" in words else words
        for option in (word.partition("=")[0] for word in own if word.startswith("-")):
            assert re.search(rf"(?<![\w-]){re.escape(option)}\b", helps[command]), (option, words)
    assert {words[0] for words in shown} >= {name for name in helps if name}, "a command is shown nowhere"


def options_in(help_text: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w, )?(-{1,2}[a-z][a-z-]*)", help_text, re.MULTILINE)) - {"--help"}


def test_every_option_of_run_is_explained(helps: dict[str, str]) -> None:
    explained = {code(row[0])[0].split()[0] for row in rows(read("docs/certify.md"), "option")} - {"--"}
    assert explained == options_in(helps["run"])


def test_the_number_of_pods_at_a_time_is_that_of_the_code() -> None:
    (row,) = [row for row in rows(read("docs/certify.md"), "option") if "--max-pods" in row[0]]
    assert [int(number) for number in re.findall(r"\d+", row[1])[:2]] == [MAX_PODS["embedded"], MAX_PODS["real"]]


def test_pytest_takes_the_options_of_run(helps: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", *plugin_arguments(), "--help"]
    offered = subprocess.run(command, capture_output=True, text=True, check=True, cwd=DOCS).stdout
    assert options_in(helps["run"]) <= set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", offered))


@pytest.mark.parametrize("page", ["README.md", "docs/certify.md"])
def test_the_exit_statuses_are_those_of_the_code(page: str, helps: dict[str, str]) -> None:
    text = read(page)
    told = {"CONFORMANT": "conformant", "NOT_CONFORMANT": "not conformant", "UNDECIDED": "undecided"}
    told |= {"HARNESS_FAILED": "the harness failed", "USAGE": "wrong usage"}
    assert set(told) == set(ExitStatus.__members__)
    sentence = ", ".join(f"{status.value} {told[status.name]}" for status in ExitStatus)
    assert sentence in " ".join(helps[""].split())
    if page == "README.md":
        table = {int(row[0]): row[1] for row in rows(text, "status")}
        assert {number: words.startswith(told[ExitStatus(number).name]) for number, words in table.items()} == {
            status.value: True for status in ExitStatus
        }
    else:
        assert sentence in " ".join(text.split())


def test_the_forms_of_an_address_are_told() -> None:
    forms = [form for row in rows(read("README.md"), "`--cluster`") for form in code(row[0])]
    assert {parse_address(form).type for form in forms} == {"embedded", "kind", "kubeconfig", "recording"}


def descriptions() -> list[str]:
    return [block for block in blocks(every_text(), "yaml") if "adapter:" in block]


@pytest.mark.parametrize("number", range(len(descriptions())))
def test_every_description_of_an_operator_can_be_read(number: int, tmp_path: Path) -> None:
    (tmp_path / "operator.yaml").write_text(descriptions()[number], encoding="utf-8")
    assert load_description(str(tmp_path / "operator.yaml")).name == "my-operator"


def test_every_key_of_a_description_is_explained() -> None:
    text = read("docs/operators.md")
    models: tuple[type[BaseModel], ...] = (OperatorDescription, Identity, Readiness, Waiver)
    models += (StartProcess, StartManifests, StartNone, VersionCommand)
    named = {word for part in code(text) for word in re.findall(r"\w+", part)}
    assert not {field for model in models for field in model.model_fields} - named
    assert {f"{{{name}}}" for name in PLACEHOLDERS} <= set(code(text))
    assert set(bundled_names()) <= set(code(text))
    assert set(contract_ids()) <= set(code(text))
    assert set(KINDS) <= set(code(text))


def test_every_feature_is_explained() -> None:
    assert [code(row[0])[0] for row in rows(read("docs/operators.md"), "feature")] == list(FEATURES)


def test_the_label_keys_are_those_of_the_code() -> None:
    table = rows(read("docs/operators.md"), "what")
    told = [{row[0]: code(row[column])[0] for row in table} for column in (3, 2, 1)]
    assert told == [dict(keys) for keys in LABEL_GENERATIONS]


def test_the_verdicts_are_those_of_the_code() -> None:
    assert [code(row[0])[0] for row in rows(read("docs/verdicts.md"), "verdict")] == [str(one) for one in Verdict]


def test_the_durations_are_those_of_the_code() -> None:
    table = {code(row[0])[0]: row for row in rows(read("docs/verdicts.md"), "name")}
    for column, speed in ((1, "embedded"), (2, "real")):
        durations = Timeouts.default(speed).model_dump()  # type: ignore[arg-type] # a tuple's literals are strings
        assert {name: float(row[column]) for name, row in table.items()} == durations


def test_the_format_of_the_recording_is_told() -> None:
    text = read("docs/recording.md")
    models = (
        Header,
        OperatorIdentity,
        ClusterIdentity,
        ContractIdentity,
        PlannedCase,
        RecordedWaiver,
        Event,
        Action,
        VerdictLine,
        Footer,
    )
    named = set(code(text))
    assert not {field for model in models for field in model.model_fields} - named
    assert set(get_args(Action.model_fields["action"].annotation)) <= named
    assert set(get_args(Event.model_fields["verb"].annotation)) <= named


@pytest.mark.parametrize(
    ("name", "kind", "own"),
    [
        ("rbac.yaml", "ClusterRole", [*HARNESS_RIGHTS, *CRD_RIGHTS]),
        ("rbac-namespace.yaml", "Role", [*GUEST_RIGHTS]),
    ],
)
def test_the_role_grants_what_a_run_needs_and_no_more(name: str, kind: str, own: list[Right]) -> None:
    text = read(f"fixtures/exitcode_fixtures/manifests/{name}")
    (role,) = [document for document in yaml.safe_load_all(text) if "rules" in document]
    assert role["kind"] == kind
    needed = [*own, *EXTENDED_RIGHTS]
    certified = [KINDS[name] for name in KUBEFLOW_KINDS if KINDS[name].without_exit_code is None]
    needed += [right for kind in certified for right in job_rights(kind.plural, kind.group)]
    assert granted_by(role) == {(right.verb, right.resource, right.group) for right in needed}


def project() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def test_every_dependency_is_explained() -> None:
    text = read("docs/dependencies.md")
    settings = project()
    wanted = {name_of(one) for one in settings["project"]["dependencies"]}
    assert {code(row[0])[0] for row in rows(text, "dependency", "for", "why not less")} == wanted
    groups = settings["dependency-groups"].values()
    development = {name_of(one) for group in groups for one in group if isinstance(one, str)}
    development |= {name_of(one) for one in settings["build-system"]["requires"]}
    development_part = text.partition("## For development")[2]
    assert {code(row[0])[0] for row in rows(development_part, "dependency")} == development - wanted


def test_every_environment_of_tox_that_is_named_exists() -> None:
    tox = configparser.ConfigParser()
    tox.read_string(read("tox.ini"))
    there = {section.removeprefix("testenv:") for section in tox.sections() if section.startswith("testenv:")}
    named = set(re.findall(r"tox -e (\w+)", every_text() + read(".ci/run")))
    assert named >= {"conformance", "wheel", "bench"}
    assert named <= there
    assert {name.strip() for name in tox["tox"]["env_list"].split(",")} == there - {"conformance", "bench"}


def test_the_two_commands_of_the_readme_are_those_of_ci() -> None:
    first, second = (block.strip() for block in blocks(read("README.md"), "sh")[:2])
    install, certify = first.split(" && ")
    script = read(".ci/run")
    assert install.removeprefix("python3 -m pip install ") == "tox"
    for command in (certify, second):
        assert re.search(rf"{re.escape(command)}( \|\||$)", script, re.MULTILINE), command


def test_every_file_that_is_named_exists() -> None:
    for path in PAGES:
        text = path.read_text("utf-8")
        for name in re.findall(r"`((?:\.?[\w-]+/)+[\w.-]+\.(?:py|yaml|json|md))`", text):
            assert (ROOT / name).is_file(), f"{path.name} names {name}"
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
            assert (path.parent / link).is_file(), f"{path.name} links to {link}"


def test_the_reading_order_leads_through_every_package() -> None:
    named = set(re.findall(r"`(\w+/(exitcode_\w+))/", read("docs/architecture.md")))
    assert len(named) == 4
    for source, package in named:
        assert (ROOT / source).is_dir(), package


def test_the_kept_differences_to_a_real_api_server_are_told() -> None:
    kept = yaml.safe_load(read("tests/data/api_replay_differences.yaml"))
    part = read("docs/embedded.md").partition("## Held to a real cluster")[2].partition("node_statuses.json")[0]
    assert len(re.findall(r"^- ", part, re.MULTILINE)) == len(kept)


def test_the_bounds_are_those_that_are_measured() -> None:
    text, script = read("docs/measurements.md"), read("bench/core_run.py")
    bounds = dict(re.findall(r"^([A-Z_]+) = ([\d.]+)$", script, re.MULTILINE))
    for name, told in (("FIRST_ANSWER_S", "1.5 s"), ("RUN_S", "60 s"), ("MEMORY_MB", "600 MB")):
        assert float(bounds[name]) == float(told.split()[0])
        assert f"| {told} |" in text


@pytest.mark.parametrize(
    "name", ["README.md", "tox.ini", "pyproject.toml", ".ci/run", *(f"docs/{p.name}" for p in PAGES[1:])]
)
def test_no_document_names_a_path_of_one_machine(name: str) -> None:
    if (ROOT / name).exists():
        assert not MACHINE_PATH.findall(read(name))


def test_the_pictures_of_the_report_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", read("README.md"))
    assert "docs/report.png" in pictures
    for picture in pictures:
        assert (ROOT / picture).read_bytes().startswith(b"\x89PNG\r\n")


def test_every_requirement_is_listed() -> None:
    text = read("docs/requirements.md")
    assert set(re.findall(r"\b[A-Z]+-\d\d\b", text)) >= set(REQUIREMENTS)
    assert not [one.id for one in REQUIREMENTS.values() if one.sentence not in " ".join(text.split())]


def test_every_known_finding_is_explained() -> None:
    known = yaml.safe_load(read("docs/findings.yaml"))
    pages = re.split(r"^## ", read("docs/findings.md"), flags=re.MULTILINE)[1:]
    of_operator = {f"training-operator-{re.findall(r'v([0-9.]+)', page)[0]}": page for page in pages}
    assert set(of_operator) == set(known)
    for operator, contracts in ((name, found["contracts"]) for name, found in known.items()):
        assert contracts.keys() <= set(contract_ids())
        explained = {code(row[0])[0] if code(row[0]) else row[0] for row in rows(of_operator[operator], "requirement")}
        broken = {name for one in contracts.values() for name in (*one["always"], *one.get("races", {}))}
        assert explained == broken, operator
