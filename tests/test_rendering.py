"""What is submitted; and the containers' script, run for real in the shells that have to accept it."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, get_args

import pytest

from exitcode_conformance.adapters.kubeflow import MANIFEST_SECONDS_PER_UNIT
from exitcode_conformance.container import (
    INIT,
    MISSING_COMMAND,
    NO_NODE,
    OUTCOME_VARIABLE,
    SCENARIO_LABEL,
    SCRIPT,
    SIDECAR,
    config_map_name,
    outcome_data,
    outcome_word,
)
from exitcode_conformance.kinds import KINDS, KUBEFLOW_KINDS, KindTraits
from exitcode_conformance.rendering import render_config_map, render_job
from exitcode_conformance.scenario import (
    SIGNAL_NUMBERS,
    ExitOutcome,
    MissingCommand,
    Outcome,
    ReplicaGroup,
    RunUntilStopped,
    Scenario,
    SignalName,
    SignalOutcome,
)
from exitcode_conformance.scenarios import SCENARIOS
from exitcode_conformance.timeouts import Timeouts

TIMEOUTS = Timeouts(dwell=0.01)
SHELLS: dict[str, Sequence[str]] = {"busybox": ("busybox", "sh"), "dash": ("dash",), "sh": ("/bin/sh",)}
CODES = (0, 1, 2, 3, 42, 63, 64, 65, 100, 125, 126, 127, 128, 129, 130, 137, 138, 139, 143, 192, 254, 255)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Sequence[str]:
    """The command line of a shell."""
    command = SHELLS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return command


@contextmanager
def started(shell: Sequence[str], words: str, pod: str = "job-worker-0") -> Iterator["subprocess.Popen[str]"]:
    """The script of a container; its process group, as a container, does not outlive the test."""
    process = subprocess.Popen(
        [*shell, "-c", SCRIPT],
        env={"PATH": os.environ["PATH"], "POD_NAME": pod, OUTCOME_VARIABLE: words},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def said(process: "subprocess.Popen[str]") -> str:
    """The first line of the script: it knows its outcome, and its trap is set."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def status(shell: Sequence[str], words: str, pod: str = "job-worker-0") -> int:
    """The exit status of the script."""
    with started(shell, words, pod) as process:
        return process.wait(timeout=30)


# --- the script --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", CODES)
def test_the_script_ends_with_every_code(shell: Sequence[str], code: int) -> None:
    assert status(shell, f"0={outcome_word(ExitOutcome(code=code), TIMEOUTS)}") == code


@pytest.mark.parametrize("name", get_args(SignalName))
def test_the_script_passes_on_how_a_child_died_of_a_signal(shell: Sequence[str], name: SignalName) -> None:
    assert status(shell, f"0={outcome_word(SignalOutcome(signal=name), TIMEOUTS)}") == 128 + SIGNAL_NUMBERS[name]


@pytest.mark.parametrize(
    "outcome", [RunUntilStopped(), ExitOutcome(code=3, dwell=6e5), SignalOutcome(signal="KILL", dwell=6e5)]
)
def test_the_script_runs_until_it_is_stopped_and_then_ends_with_0(shell: Sequence[str], outcome: Outcome) -> None:
    word = outcome_word(outcome, TIMEOUTS)
    with started(shell, f"0={word}") as process:
        assert said(process) == f"outcome {word}"
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_the_script_finds_its_own_word(shell: Sequence[str]) -> None:
    words = "0=exit:3:0 1=exit:4:0 10=exit:5:0 11=run:0"
    assert [status(shell, words, f"a-job-with-9-worker-{i}") for i in (0, 1, 10)] == [3, 4, 5]


@pytest.mark.parametrize("words", ["", "1=exit:3:0", "00=exit:3:0"])
def test_the_script_runs_where_nothing_is_said(shell: Sequence[str], words: str) -> None:
    with started(shell, words) as process:
        assert said(process) == "outcome run:0"
        assert process.poll() is None


def test_the_script_refuses_an_outcome_that_it_does_not_know(shell: Sequence[str]) -> None:
    with started(shell, "0=dance:1:0") as process:
        output, errors = process.communicate(timeout=30)
    assert process.returncode == 64
    assert output == "outcome dance:1:0\n"
    assert errors == "this outcome is not known: dance:1:0\n"


def test_the_seeds_own_script_ends_as_its_author_meant(shell: Sequence[str]) -> None:
    job = render_job(SCENARIOS["tftest"], "run", TIMEOUTS)
    worker = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"]
    server = job["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["containers"][0]["command"]

    def ended(command: Sequence[str], pod: str) -> int:
        assert command[:2] == ["sh", "-c"]
        environment = {"PATH": os.environ["PATH"], "POD_NAME": pod}
        return subprocess.run([*shell, "-c", command[2]], env=environment, timeout=30, check=False).returncode

    assert ended(worker, "tftest-worker-0") == 138
    assert ended(worker, "tftest-worker-1") == 0
    assert ended(server, "tftest-ps-0") == 0


# --- words and objects -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (ExitOutcome(code=137), "exit:137:0.5"),
        (ExitOutcome(code=0, dwell=0), "exit:0:0"),
        (ExitOutcome(code=1, dwell=6), "exit:1:3"),
        (SignalOutcome(signal="USR1", dwell=0.01), "signal:USR1:0.005"),
        (RunUntilStopped(), "run:0"),
    ],
)
def test_an_outcome_is_a_word(outcome: Outcome, word: str) -> None:
    assert outcome_word(outcome, Timeouts(dwell=0.5)) == word


def test_the_config_map_holds_the_next_outcome_of_every_replica() -> None:
    scenario = SCENARIOS["tfjob-worker-then-143-138-137-0-worker3"]
    assert outcome_data(scenario, {}, Timeouts()) == {"worker": "0=exit:143:0.5 1=run:0 2=run:0"}
    assert outcome_data(scenario, {"worker-0": 3}, Timeouts()) == {"worker": "0=exit:137:0.5 1=run:0 2=run:0"}
    assert outcome_data(scenario, {"worker-0": 9}, Timeouts()) == {"worker": "0=exit:0:0.5 1=run:0 2=run:0"}
    servers = outcome_data(SCENARIOS["tfjob-ps0-ps1-worker3"], {}, Timeouts())
    assert servers == {"ps": "0=exit:0:0.5", "worker": "0=run:0 1=run:0 2=run:0"}
    rendered = render_config_map(scenario, "run", Timeouts())
    assert rendered["metadata"] == {"name": f"outcome-{scenario.id}", "namespace": "run"}
    assert rendered["data"] == outcome_data(scenario, {}, Timeouts())


OF_KUBEFLOW = [s for s in SCENARIOS.values() if s.manifest is None and s.kind in KUBEFLOW_KINDS]
OF_BATCH = [s for s in SCENARIOS.values() if s.kind == "Job"]


@pytest.mark.parametrize("scenario", OF_KUBEFLOW[::7], ids=lambda s: s.id)
def test_a_job_is_rendered_as_its_kind_wants_it(scenario: Scenario) -> None:
    kind = KINDS[scenario.kind]
    job = render_job(scenario, "run", Timeouts(), image="registry/busybox:1")
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", scenario.kind)
    assert job["metadata"] == {"name": scenario.id, "namespace": "run"}
    assert job["spec"].get("runPolicy", {}) == scenario.run_policy
    assert job["spec"].get("successPolicy") == scenario.success_policy
    specs = job["spec"][kind.replica_specs]
    assert list(specs) == [group.type for group in scenario.groups]
    for group in scenario.groups:
        spec = specs[group.type]
        assert (spec["replicas"], spec["restartPolicy"]) == (group.replicas, group.restart_policy)
        assert spec["template"]["spec"].get("restartPolicy") == group.template_restart_policy
        assert spec["template"]["metadata"] == {"labels": {SCENARIO_LABEL: scenario.id}}
        container = spec["template"]["spec"]["containers"][0]
        assert (container["name"], container["image"]) == (kind.container, "registry/busybox:1")
        if isinstance(scenario.outcome_of(f"{group.type.lower()}-0", 1), MissingCommand):
            assert container["command"] == [MISSING_COMMAND]
        else:
            assert container["command"][-1].endswith(SCRIPT)
        outcome = next(v for v in container["env"] if v["name"] == OUTCOME_VARIABLE)
        reference = {"name": config_map_name(scenario), "key": group.type.lower()}
        assert outcome["valueFrom"]["configMapKeyRef"] == reference
        assert reference["key"] in outcome_data(scenario, {}, Timeouts())


def rendered(**traits: Any) -> dict[str, Any]:
    """The pod template of two workers with these traits."""
    group = ReplicaGroup.model_validate({"type": "Worker", "replicas": 2, **traits})
    job = render_job(Scenario(id="one", kind="TFJob", groups=(group,)), "run", Timeouts())
    template: dict[str, Any] = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    return template


def test_containers_beside_the_training_container_end_as_they_are_told_in_every_attempt() -> None:
    template = rendered(sidecar=ExitOutcome(code=1, dwell=0), init=ExitOutcome(code=3))
    assert [container["name"] for container in template["containers"]] == ["tensorflow", SIDECAR]
    assert [container["name"] for container in template["initContainers"]] == [INIT]
    for container, words in (
        (template["containers"][1], "0=exit:1:0 1=exit:1:0"),
        (template["initContainers"][0], "0=exit:3:0.5 1=exit:3:0.5"),
    ):
        assert next(v for v in container["env"] if v["name"] == OUTCOME_VARIABLE)["value"] == words
        assert container["command"] == ["sh", "-c", SCRIPT]


def test_a_pod_that_is_to_wait_asks_for_a_node_that_there_is_not() -> None:
    assert rendered(pending=True)["nodeSelector"] == NO_NODE
    assert "nodeSelector" not in rendered()


def test_a_message_is_what_the_container_prints(shell: Sequence[str]) -> None:
    (container,) = rendered(message="it's $(no) code")["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    environment = {"PATH": os.environ["PATH"], "POD_NAME": "job-worker-0", OUTCOME_VARIABLE: "0=exit:7:0"}
    command = [*shell, "-c", container["command"][2]]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (found.returncode, found.stdout.splitlines()[0]) == (7, "it's $(no) code")


@pytest.mark.parametrize("code", [0, 143])
def test_the_script_ends_with_the_code_that_a_stop_is_to_give(shell: Sequence[str], code: int) -> None:
    word = outcome_word(RunUntilStopped(code=code), TIMEOUTS)
    with started(shell, f"0={word}") as process:
        assert said(process) == f"outcome {word}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == code


def test_a_restart_policy_of_the_template_is_rendered_where_a_scenario_has_one() -> None:
    group = ReplicaGroup(type="Worker", replicas=1, template_restart_policy="Always")
    job = render_job(Scenario(id="one", kind="TFJob", groups=(group,)), "run", Timeouts())
    assert job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["restartPolicy"] == "Always"


def test_the_seed_is_submitted_as_it_stands_but_for_its_name_times_and_limits() -> None:
    scenario = SCENARIOS["tftest"]
    assert scenario.manifest is not None
    before = repr(scenario.manifest)
    job = render_job(scenario, "run", Timeouts(dwell=0.5), image="busybox:1.36")
    assert repr(scenario.manifest) == before, "rendering changes nothing but its own copy"
    assert job["metadata"] == {"name": "tftest", "namespace": "run"}
    assert job["spec"]["runPolicy"] == {"backoffLimit": 3}

    def container(spec: dict[str, Any], kind: str) -> dict[str, Any]:
        (found,) = spec["spec"]["tfReplicaSpecs"][kind]["template"]["spec"]["containers"]
        assert isinstance(found, dict)
        return found

    for kind in ("PS", "Worker"):
        seen, wanted = container(job, kind), container(scenario.manifest, kind)
        assert seen["resources"] == {"limits": {"cpu": "50m", "memory": "100Mi"}}
        assert seen["image"] == "busybox:1.36"
        assert {k: v for k, v in seen.items() if k not in ("resources", "image", "command")} == {
            k: v for k, v in wanted.items() if k not in ("resources", "image", "command")
        }
        short, long = (f"{n * 0.5 / MANIFEST_SECONDS_PER_UNIT:g}" for n in (10, 30))
        scaled = [word.replace("30s", long).replace("10s", short) for word in wanted["command"]]
        assert seen["command"] == scaled


@pytest.mark.parametrize("scenario", OF_BATCH, ids=lambda s: s.id)
def test_a_job_of_kubernetes_asks_for_what_the_scenario_means(scenario: Scenario) -> None:
    job = render_job(scenario, "run", Timeouts(), image="registry/busybox:1")
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["metadata"] == {"name": scenario.id, "namespace": "run"}
    spec = job["spec"]
    (group,) = scenario.groups
    assert (spec["parallelism"], spec["completions"]) == (group.replicas, group.replicas)
    assert spec.get("completionMode") == ("Indexed" if group.replicas > 1 else None)
    policies = {"ExitCode": "Never", "Never": "Never", "OnFailure": "OnFailure"}
    assert spec["template"]["spec"]["restartPolicy"] == policies[group.restart_policy]
    assert spec.get("backoffLimit") == scenario.run_policy.get(
        "backoffLimit", 0 if group.restart_policy == "Never" else None
    )
    for limit in ("activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        assert spec.get(limit) == scenario.run_policy.get(limit)
    rules = spec.get("podFailurePolicy", {}).get("rules", [])
    expected = [("FailJob", [1, 2, 126, 127, 128, 139]), ("Ignore", [130, 137, 138, 143])]
    told = [(rule["action"], rule["onExitCodes"]["values"]) for rule in rules]
    assert told == (expected if group.restart_policy == "ExitCode" else [])
    training = spec["template"]["spec"]["containers"][0]
    assert {rule["onExitCodes"]["containerName"] for rule in rules} <= {training["name"]}


@pytest.mark.parametrize(("index", "code"), [("0", 3), ("1", 4)])
def test_the_script_takes_its_index_from_wherever_it_is_told(shell: Sequence[str], index: str, code: int) -> None:
    with started(shell, "0=exit:3:0 1=exit:4:0", pod=index) as process:
        assert process.wait(5) == code


def test_an_operator_may_call_the_training_container_otherwise() -> None:
    scenario = SCENARIOS["tfjob-worker-exit1-worker1"]
    kind = KINDS["TFJob"].with_traits(KindTraits(container="trainer"))
    spec = render_job(scenario, "run", Timeouts(), kind=kind)["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    assert [container["name"] for container in spec["containers"]] == ["trainer"]
