"""What a user gets from the package index: the sdist, the wheel made of it, and the suite installed from that wheel.

`tox -e wheel` runs this file by its name; it is not among the tests that run by themselves, since it builds and
installs. Every command of the installed suite runs outside the tree, where nothing of it can be imported by accident.
"""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ("conformance", "fixtures", "reference_controller", "reports")
IN_SDIST = ("README.md", "LICENSE", "pyproject.toml", "tox.ini", "docs/architecture.md", "tests/installed_wheel.py")
NOT_CODE = """
import json
from importlib import resources
def data(folder, path=""):
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from data(entry, name)
        elif not name.endswith((".py", ".pyc")):
            yield name
packages = ["exitcode_conformance", "exitcode_fixtures", "exitcode_reference_controller", "exitcode_reports"]
print(json.dumps(sorted(name for package in packages for name in data(resources.files(package), package))))
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A place outside the tree."""
    with TemporaryDirectory(prefix="exitcode-wheel-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def built(folder: Path) -> Path:
    """The folder of the sdist and of the wheel, which is built from the sdist and not from the tree."""
    run(sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT), cwd=folder)
    return folder / "dist"


@pytest.fixture(scope="module")
def python(folder: Path, built: Path) -> Path:
    """The interpreter of an environment with nothing in it but the wheel and what it depends on."""
    venv.create(folder / "clean", with_pip=True)
    python = folder / "clean" / "bin" / "python"
    run(str(python), "-m", "pip", "install", "--quiet", str(only(built, "*.whl")), cwd=folder)
    return python


@pytest.fixture
def outside(folder: Path, request: pytest.FixtureRequest) -> Path:
    """An empty working directory outside the tree, one for each test."""
    path = folder / str(request.node.name)
    path.mkdir()
    return path


def run(*command: str, cwd: Path, status: int = 0) -> str:
    """The output of a command, with the errors in it, whose exit status has to be the one given."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHON"))}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == status, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def only(folder: Path, pattern: str) -> Path:
    """The one file of that pattern."""
    (found,) = folder.glob(pattern)
    return found


def command_of(python: Path) -> str:
    """The command as the installation has made it."""
    return str(python.with_name("exitcode-conformance"))


def source_files() -> set[str]:
    """Every file of the four packages as the wheel is to hold it: `exitcode_reports/templates/style.css`."""
    return {
        str(path.relative_to(ROOT / source))
        for source in SOURCES
        for path in (ROOT / source).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_sdist_has_what_is_needed_to_build_and_to_test(built: Path) -> None:
    with tarfile.open(only(built, "*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names >= set(IN_SDIST)
    assert {name.partition("/")[2] for name in names if name.partition("/")[0] in SOURCES} == source_files()
    assert not [name for name in names if "__pycache__" in name or name.startswith((".tox", "conformance-report"))]


def test_the_wheel_has_every_file_of_the_packages_and_no_other(built: Path) -> None:
    with zipfile.ZipFile(only(built, "*.whl")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == source_files()


def test_the_installed_packages_find_their_data(python: Path, outside: Path) -> None:
    found = set(json.loads(run(str(python), "-c", NOT_CODE, cwd=outside)))
    assert found == {name for name in source_files() if not name.endswith(".py")}
    for kind in (
        "contracts/kubeflow-docs.yaml",
        "manifests/tftest.yaml",
        "manifests/crds/",
        "operators/reference.yaml",
    ):
        assert any(f"/{kind}" in name for name in found), kind
    assert any(name.startswith("exitcode_reports/templates/") for name in found)


def test_what_is_installed_fits_together(python: Path, outside: Path) -> None:
    assert "No broken requirements found" in run(str(python), "-m", "pip", "check", cwd=outside)


def test_the_command_says_its_version(python: Path, outside: Path, built: Path) -> None:
    version = only(built, "*.whl").name.split("-")[1]
    assert run(command_of(python), "--version", cwd=outside) == f"exitcode-conformance {version}\n"


def test_the_plan_is_printed(python: Path, outside: Path) -> None:
    listing = run(command_of(python), "plan", cwd=outside)
    assert "EXIT-03" in listing
    assert "tftest" in listing


def test_pytest_finds_the_suite_by_the_package_name(python: Path, outside: Path) -> None:
    collected = run(str(python), "-m", "pytest", "--pyargs", "exitcode_conformance", "--co", "-q", cwd=outside)
    assert "::EXIT-03[tfjob-" in collected


def test_an_operator_is_certified_from_there(python: Path, outside: Path) -> None:
    # A part of the cases passes, which decides nothing about the operator: exit status 2.
    said = run(
        command_of(python), "run", "-k", "EXIT-03 and exit137 and worker1", "--out", "report", cwd=outside, status=2
    )
    assert "UNDECIDED" in said
    assert " pass" in said
    assert " fail" not in said
    written = {path.name for path in (outside / "report").iterdir()}
    assert written >= {"index.html", "recording.jsonl", "junit.xml", "allure-results"}
    run(command_of(python), "report", "report/recording.jsonl", "--out", "again", cwd=outside)
    assert (outside / "again" / "index.html").read_bytes() == (outside / "report" / "index.html").read_bytes()


def test_an_editable_installation_works_as_well(folder: Path, built: Path, python: Path, outside: Path) -> None:
    """From the unpacked sdist, in the same environment: it comes last, since it replaces the wheel."""
    with tarfile.open(only(built, "*.tar.gz")) as sdist:
        sdist.extractall(folder / "source", filter="data")
    source = only(folder / "source", "*")
    run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--editable", str(source), cwd=outside)
    where = run(str(python), "-c", "import exitcode_fixtures as f; print(f.__file__)", cwd=outside).strip()
    assert Path(where).is_relative_to(source)
    assert "EXIT-03" in run(command_of(python), "plan", cwd=outside)
