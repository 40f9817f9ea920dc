"""The recipes of docs/recipes: what can be known of them without the services that they are for."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from cluster_support import embedded, environment, real_kubeconfig, write_kubeconfig
from kubernetes.client import models

from exitcode_conformance.kinds import KINDS
from exitcode_fixtures.command_line import _parser
from exitcode_fixtures.kubeconfig import read_kubeconfig
from exitcode_fixtures.operators.description import load_description
from exitcode_fixtures.outcome import PROGRAM
from exitcode_fixtures.rights import HARNESS_RIGHTS, job_rights

RECIPES = Path(__file__).parent.parent / "docs" / "recipes"
YAMLS = sorted(str(path.relative_to(RECIPES)) for path in RECIPES.rglob("*.yaml"))
SHELL_OPERATORS = re.compile(r"[;&|()<>]+")


class _StrictLoader(yaml.SafeLoader):
    """PyYAML lets the last of two equal keys win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is given twice{node.start_mark}"
        return super().construct_mapping(node, deep)


def documents(name: str) -> list[Any]:
    """The documents of a YAML file."""
    with (RECIPES / name).open(encoding="utf-8") as file:
        return list(yaml.load_all(file, _StrictLoader))


def document(name: str) -> Any:
    """The only one."""
    (found,) = documents(name)
    return found


def github_steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = document("github/exitcode-conformance.yaml")["jobs"]["certify"]["steps"]
    return steps


def prow_containers() -> list[dict[str, Any]]:
    return [one for job in document("prow/prowjobs.yaml")["periodics"] for one in job["spec"]["containers"]]


def job() -> dict[str, Any]:
    (found,) = [one for one in documents("kubernetes/job.yaml") if one["kind"] == "Job"]
    template: dict[str, Any] = found["spec"]["template"]
    return template


def jenkins_strings() -> list[str]:
    """What the Jenkinsfile gives to `sh`."""
    text = (RECIPES / "jenkins" / "Jenkinsfile").read_text("utf-8")
    found = re.findall(r"\bsh '([^'\n]+)'|\bscript: '''(.*?)'''", text, re.DOTALL)
    # Groovy takes a backslash before a line's end for a continuation as well: the shell sees one line.
    return [(one or many).replace("\\\n", " ") for one, many in found]


def containerfile() -> list[tuple[str, str]]:
    """The instructions of the Containerfile."""
    text = (RECIPES / "kubernetes" / "Containerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in whole)]


def scripts() -> Mapping[str, str]:
    """Every shell script of the recipes, by where it stands."""
    gitlab = document("gitlab/gitlab-ci.yaml")["exitcode-conformance"]
    sonobuoy = document("sonobuoy/exitcode-conformance.yaml")["spec"]
    assert sonobuoy["command"] == ["sh", "-c"]
    assert all(one["command"] == ["sh", "-c"] for one in prow_containers())
    readme = (RECIPES / "README.md").read_text("utf-8")
    return {
        "github": "\n".join(step["run"] for step in github_steps() if "run" in step),
        "gitlab": "\n".join([*gitlab["before_script"], *gitlab["script"]]),
        "jenkins": "\n".join(jenkins_strings()),
        "prow": "\n".join(one["args"][0] for one in prow_containers()),
        "sonobuoy": sonobuoy["args"][0],
        "containerfile": "\n".join(rest for name, rest in containerfile() if name == "RUN"),
        "readme": "\n".join(re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)),
    }


SCRIPTS = scripts()


def invocations(script: str) -> Iterator[list[str]]:
    """The arguments of every call of the command in a script. Where it is installed it is not called."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
        lexer.whitespace_split = True
        words = list(lexer)
        for number, word in enumerate(words):
            if Path(word).name == PROGRAM and "install" not in words[:number]:
                own = words[number + 1 :]
                end = next((place for place, one in enumerate(own) if SHELL_OPERATORS.fullmatch(one)), len(own))
                yield own[:end]


@pytest.mark.parametrize("name", YAMLS)
def test_the_yaml_is_strict(name: str) -> None:
    assert all(isinstance(one, dict) for one in documents(name))


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_shell_takes_every_script(name: str) -> None:
    script = SCRIPTS[name]
    assert script.strip()
    ran = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", ["github", "gitlab", "jenkins", "prow", "sonobuoy"])
def test_the_command_takes_its_arguments(name: str) -> None:
    (words,) = invocations(SCRIPTS[name])
    options = _parser().parse_args(words)
    assert words[0] == "run"
    assert Path(options.operator).name == "operator.yaml"
    assert Path(options.out).name in ("conformance-report", "$report")


def test_the_job_calls_the_command_with_what_it_mounts() -> None:
    (container,) = job()["spec"]["containers"]
    assert container["command"] == [PROGRAM]
    options = _parser().parse_args(container["args"])
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert options.operator == f"{mounts['config']}/operator.yaml"
    assert options.cluster == f"kubeconfig:{mounts['config']}/kubeconfig"
    assert options.out.startswith(f"{mounts['report']}/")
    assert {volume["name"] for volume in job()["spec"]["volumes"]} == set(mounts)


def test_a_command_line_that_is_wrong_is_found() -> None:
    (words,) = invocations("pip install exitcode-conformance\nexitcode-conformance run --operater x || status=$?")
    assert words == ["run", "--operater", "x"]
    with pytest.raises(SystemExit):
        _parser().parse_args(words)


def data() -> Mapping[str, Mapping[str, str]]:
    """The files that recipes mount."""
    (config,) = [one for one in documents("kubernetes/job.yaml") if one["kind"] == "ConfigMap"]
    return {"kubernetes": config["data"], "sonobuoy": document("sonobuoy/exitcode-conformance.yaml")["config-map"]}


@pytest.mark.parametrize("recipe", ["kubernetes", "sonobuoy"])
def test_the_mounted_files_can_be_read(recipe: str, tmp_path: Path) -> None:
    for name, content in data()[recipe].items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    described = load_description(str(tmp_path / "operator.yaml"))
    assert described == load_description(str(RECIPES / "operator.yaml"))
    assert described.start.mode == "none"
    read_kubeconfig(tmp_path / "kubeconfig", None)


def test_the_role_is_what_a_run_needs() -> None:
    (role,) = [one for one in documents("kubernetes/rbac.yaml") if one["kind"] == "ClusterRole"]
    granted = {
        (verb, resource, group)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    needed = list(HARNESS_RIGHTS)
    for name in load_description(str(RECIPES / "operator.yaml")).kinds:
        needed += job_rights(KINDS[name].plural, KINDS[name].group, "core")
    assert granted == {(right.verb, right.resource, right.group) for right in needed}


def test_the_names_fit_together() -> None:
    every = [*documents("kubernetes/rbac.yaml"), *documents("kubernetes/job.yaml")]
    named = {(one["kind"], one["metadata"]["name"]) for one in every}
    (binding,) = [one for one in every if one["kind"] == "ClusterRoleBinding"]
    spec = job()["spec"]
    assert ("ClusterRole", binding["roleRef"]["name"]) in named
    assert ("ServiceAccount", binding["subjects"][0]["name"]) in named
    assert ("ServiceAccount", spec["serviceAccountName"]) in named
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert ("ConfigMap", volumes["config"]["configMap"]["name"]) in named
    assert ("PersistentVolumeClaim", volumes["report"]["persistentVolumeClaim"]["claimName"]) in named
    assert {one["metadata"]["namespace"] for one in every if "namespace" in one["metadata"]} == {"conformance"}


def undescribed(value: Any, kind: str, where: str) -> Iterator[str]:
    """What in a value is not as the Kubernetes API describes this kind, by the types of the official client."""
    of_items = re.fullmatch(r"(?:[Ll]ist\[|[Dd]ict[(\[]str, )(.+)[)\]]", kind)
    if of_items:
        items = value.items() if kind[0] in "Dd" else enumerate(value)
        for key, item in items:
            yield from undescribed(item, of_items[1], f"{where}.{key}")
    elif hasattr(models, kind):
        model = getattr(models, kind)
        names = {key: name for name, key in model.attribute_map.items()}
        for key, item in value.items():
            if key in names:
                yield from undescribed(item, model.openapi_types[names[key]], f"{where}.{key}")
            else:
                yield f"{where}.{key}"
    elif not isinstance(value, {"str": str, "int": int, "bool": bool}.get(kind, object)):
        yield f"{where}: {value!r}"


KINDS_OF_OBJECTS = {"Job": "V1Job", "PersistentVolumeClaim": "V1PersistentVolumeClaim", "Pod": "V1Pod"}


def test_the_fields_are_those_of_kubernetes() -> None:
    found = [*documents("kubernetes/job.yaml"), document("kubernetes/report-reader.yaml")]
    known = [one for one in found if one["kind"] in KINDS_OF_OBJECTS]
    assert {one["kind"] for one in known} == set(KINDS_OF_OBJECTS)
    for one in known:
        assert list(undescribed(one, KINDS_OF_OBJECTS[one["kind"]], one["kind"])) == []
    for periodic in document("prow/prowjobs.yaml")["periodics"]:
        assert list(undescribed(periodic["spec"], "V1PodSpec", "prow")) == []
    plugin = document("sonobuoy/exitcode-conformance.yaml")
    assert list(undescribed(plugin["spec"], "V1Container", "sonobuoy")) == []
    assert set(plugin) == {"sonobuoy-config", "config-map", "spec"}
    wrong = {"spec": {"template": {"spec": {"containers": [{"name": "a", "comand": [], "args": [1]}]}}}}
    place = "Job.spec.template.spec.containers.0"
    assert list(undescribed(wrong, "V1Job", "Job")) == [f"{place}.comand", f"{place}.args.0: 1"]


def must_be_taken(one: Any, kubeconfig: Path, folder: Path, *options: str) -> None:
    """Has kubectl create an object."""
    ran = subprocess.run(
        ["kubectl", "--kubeconfig", str(kubeconfig), "create", "--validate=true", *options, "-f", "-"],
        input=json.dumps(one),
        text=True,
        capture_output=True,
        env=environment(folder, HOME=str(folder)),
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, (one["kind"], ran.stderr)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_embedded_api_server_takes_the_objects(tmp_path: Path) -> None:
    """All but the Job and the claim, which it does not know, and pods of images that it does not have."""
    objects = [*documents("kubernetes/rbac.yaml"), *documents("kubernetes/job.yaml")]
    with embedded(tmp_path) as cluster:
        for one in objects:
            if one["kind"] not in ("Job", "PersistentVolumeClaim"):
                must_be_taken(one, cluster.kubeconfig, tmp_path)


@pytest.mark.real_cluster
def test_a_real_api_server_takes_the_objects(tmp_path: Path) -> None:
    """All of them, without creating any."""
    kubeconfig = real_kubeconfig()
    objects = [*documents("kubernetes/rbac.yaml"), *documents("kubernetes/job.yaml")]
    for one in [*objects, document("kubernetes/report-reader.yaml")]:
        one["metadata"]["name"] += "-tried"  # somebody may have the recipe in use
        if "namespace" in one["metadata"]:  # which is not there, and what is only tried needs one that is
            one["metadata"]["namespace"] = "default"
        must_be_taken(one, kubeconfig, tmp_path, "--dry-run=server")


def test_the_containerfile_is_one() -> None:
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}
    instructions = containerfile()
    assert {name for name, _ in instructions} <= known
    assert instructions[0][0] == "FROM"
    stages = [rest.split(" AS ") for name, rest in instructions if name == "FROM"]
    assert all(stage[0] == "python:3.12-slim" for stage in stages)
    named = {stage[1] for stage in stages if len(stage) > 1}
    copied = [re.match(r"--from=(\w+) ", rest) for name, rest in instructions if name == "COPY"]
    assert {found[1] for found in copied if found} == named
    start = [word for name, rest in instructions if name in ("ENTRYPOINT", "CMD") for word in json.loads(rest)]
    assert start == [PROGRAM, "--help"]
    users = [rest for name, rest in instructions if name == "USER"]
    assert users == [str(job()["spec"]["securityContext"]["runAsUser"])]


def test_the_jenkinsfile_has_its_brackets() -> None:
    text = (RECIPES / "jenkins" / "Jenkinsfile").read_text("utf-8")
    bare = re.sub(r"'''.*?'''|\"[^\"\n]*\"|'[^'\n]*'|//[^\n]*", "", text, flags=re.DOTALL)
    assert not re.search(r"['\"]", bare)
    opened: list[str] = []
    for sign in re.findall(r"[(){}\[\]]", bare):
        if sign in "({[":
            opened.append(sign)
        else:
            assert opened, "one is closed too often"
            assert opened.pop() + sign in ("()", "{}", "[]")
    assert not opened
    assert re.findall(r"^    (\w+)", text, re.MULTILINE) == ["agent", "options", "stages", "post"]


def test_every_recipe_tells_the_five_statuses() -> None:
    for name in ("github", "prow", "sonobuoy"):
        assert re.findall(r"^ *([0-9*])\)", SCRIPTS[name], re.MULTILINE) == ["0", "1", "2", "3", "*"]
    jenkins = (RECIPES / "jenkins" / "Jenkinsfile").read_text("utf-8")
    assert re.findall(r"case (\d):|(default):", jenkins) == [
        ("0", ""),
        ("1", ""),
        ("2", ""),
        ("3", ""),
        ("", "default"),
    ]


def test_the_report_is_kept_whatever_comes_out() -> None:
    uploads = [step for step in github_steps() if str(step.get("uses", "")).startswith("actions/upload-artifact@")]
    assert [step["if"] for step in uploads] == ["always()"]
    artifacts = document("gitlab/gitlab-ci.yaml")["exitcode-conformance"]["artifacts"]
    assert artifacts["when"] == "always"
    assert artifacts["reports"]["junit"] == "conformance-report/junit.xml"


def test_the_readme_names_every_recipe() -> None:
    text = (RECIPES / "README.md").read_text("utf-8")
    linked = set(re.findall(r"\]\(([^)#]+)(?:#[a-z-]+)?\)", text))
    assert all((RECIPES / link).exists() for link in linked)
    folders = {path.name for path in RECIPES.iterdir() if path.is_dir()}
    assert {link.split("/")[0] for link in linked} >= folders


@pytest.mark.parametrize("operator", ["operator.yaml", "nothing.yaml"])
def test_the_script_for_sonobuoy_ends_with_results_even_where_nothing_was_judged(operator: str, tmp_path: Path) -> None:
    """Run for real, where there is no cluster, or no description: a failed test, and never silence."""
    config, results, programs = (tmp_path / name for name in ("config", "results", "programs"))
    for folder in (config, results, programs):
        folder.mkdir()
    (config / operator).write_text(data()["sonobuoy"]["operator.yaml"], encoding="utf-8")
    write_kubeconfig(config / "kubeconfig", "http://127.0.0.1:9")
    program = programs / PROGRAM
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m exitcode_fixtures.command_line "$@"\n')
    program.chmod(0o755)
    ran = subprocess.run(
        ["sh", "-c", SCRIPTS["sonobuoy"]],
        env=environment(
            tmp_path,
            PATH=f"{programs}:{os.environ['PATH']}",
            SONOBUOY_RESULTS_DIR=str(results),
            SONOBUOY_CONFIG_DIR=str(config),
        ),
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    archive = Path((results / "done").read_text("utf-8"))
    assert archive.parent == results
    with tarfile.open(archive) as packed:
        inside = packed.extractfile("./outcome.xml")
        assert inside is not None
        failure = ElementTree.parse(inside).getroot().find(".//failure")
    assert failure is not None
    said = "the harness failed" if operator == "operator.yaml" else "wrong usage, exit status 4"
    assert failure.attrib["message"].startswith(said)
