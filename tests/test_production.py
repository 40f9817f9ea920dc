"""A context that looks like production is refused before anything is asked of its cluster."""

from pathlib import Path

import pytest
import yaml
from cluster_support import environment, run_command

from exitcode_fixtures.errors import ExitStatus, UsageError
from exitcode_fixtures.production import refuse_production


def written(folder: Path, *, context: str = "c", cluster: str = "k", user: str = "u", host: str = "127.0.0.1") -> Path:
    path = folder / "kubeconfig"
    content = {
        "clusters": [{"name": cluster, "cluster": {"server": f"https://{host}:9"}}],
        "users": [{"name": user, "user": {}}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("names", "its"),
    [
        ({"context": "prod"}, "its name is 'prod'"),
        ({"context": "gke_team_PRODUCTION_1"}, "its name is 'gke_team_PRODUCTION_1'"),
        ({"context": "gkeprod-eu"}, "its name is 'gkeprod-eu'"),
        ({"cluster": "acmeproduction"}, "its cluster is 'acmeproduction'"),
        ({"cluster": "eu-live"}, "its cluster is 'eu-live'"),
        ({"user": "admin@prd2"}, "its user is 'admin@prd2'"),
        ({"host": "api.prod.example.org"}, "its server is 'api.prod.example.org'"),
    ],
)
def test_it_is_refused(tmp_path: Path, names: dict[str, str], its: str) -> None:
    path = written(tmp_path, **names)
    with pytest.raises(UsageError, match="looks like production") as refused:
        refuse_production(path, None, known=None)
    assert its in str(refused.value)
    context = names.get("context", "c")
    assert f"--i-know-this-cluster {context}" in refused.value.advice
    refuse_production(path, None, known=context)


@pytest.mark.parametrize("name", ["kind-ci", "non-prod", "preprod", "pre-production", "products", "delivery", "alive"])
def test_others_are_not(tmp_path: Path, name: str) -> None:
    refuse_production(written(tmp_path, context=name), None, known=None)


def test_the_name_has_to_be_that_of_the_context(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--i-know-this-cluster other is not the context 'prod'"):
        refuse_production(written(tmp_path, context="prod"), "prod", known="other")


def test_a_run_ends_with_one_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, context="prod")
    told = run_command("run", "--cluster", f"kubeconfig:{path}", env=environment(tmp_path), cwd=tmp_path)
    assert told.returncode == ExitStatus.USAGE
    assert "looks like production (its name is 'prod'" in told.stdout + told.stderr
    assert "Traceback" not in told.stdout + told.stderr
    named = ("--i-know-this-cluster", "prod")
    tried = run_command("run", "--cluster", f"kubeconfig:{path}", *named, env=environment(tmp_path), cwd=tmp_path)
    assert tried.returncode == ExitStatus.HARNESS_FAILED, "it asks the cluster, and nobody answers"
