"""The experiment that started this kit, as its author wrote it: worker 0 of a job with a parameter server exits 138
again and again, while workers 1 and 2 complete."""

from collections.abc import Iterator
from importlib import resources

import yaml

from exitcode_conformance.scenario import ExitOutcome, ReplicaGroup, Scenario, UntilAttempt, UntilSucceeded


def scenarios() -> Iterator[Scenario]:
    """The one there is."""
    text = (resources.files("exitcode_conformance") / "manifests" / "tftest.yaml").read_text("utf-8")
    manifest = yaml.safe_load(text)
    done = (ExitOutcome(code=0),)
    yield Scenario(
        id="tftest",
        kind="TFJob",
        groups=(
            ReplicaGroup(type="PS", replicas=1, restart_policy="Always"),
            ReplicaGroup(type="Worker", replicas=3, restart_policy="ExitCode"),
        ),
        outcomes={
            "worker-0": (ExitOutcome(code=138),),
            "worker-1": done,
            "worker-2": done,
            "ps-0": done,
        },
        target="worker-0",
        run_policy=manifest["spec"]["runPolicy"],
        steps=(
            UntilAttempt(replica="worker-0", attempt=2, job_running=True),
            UntilAttempt(replica="worker-0", attempt=3, job_running=True),
            UntilAttempt(replica="worker-0", attempt=4, job_running=True),
            UntilSucceeded(replica="worker-1"),
            UntilSucceeded(replica="worker-2"),
        ),
        manifest=manifest,
    )
