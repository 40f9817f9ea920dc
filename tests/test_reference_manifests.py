"""Pods and services of a replica: names, labels, owner, environment, ports."""

import json
from importlib import resources
from typing import Any, get_args

import pytest
import yaml
from reference_support import Thing, World, job_manifest, replicas

from exitcode_reference_controller.job import CleanPodPolicy
from exitcode_reference_controller.kinds import API_VERSION, KINDS, JobKind, RestartPolicy


def settled(kind: str, numbers: Thing, **spec: Any) -> World:
    """A job whose pods and services have been created."""
    world = World(job=job_manifest(kind, {t: replicas(kind, number) for t, number in numbers.items()}, **spec))
    world.settle()
    return world


def environment(world: World, pod: str, container: int = 0) -> dict[str, str]:
    """The variables of a container."""
    return {entry["name"]: entry["value"] for entry in world.pods[pod]["spec"]["containers"][container].get("env", [])}


def test_pods_and_services_carry_name_labels_and_owner() -> None:
    world = settled("TFJob", {"PS": 1, "Worker": 2})
    assert set(world.pods) == set(world.services) == {"j-ps-0", "j-worker-0", "j-worker-1"}
    pod, service = world.pods["j-worker-1"], world.services["j-worker-1"]
    labels = {
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "j",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "1",
    }
    assert pod["metadata"]["labels"] == labels
    assert service["spec"] == {
        "clusterIP": "None",
        "selector": labels,
        "ports": [{"name": "tfjob-port", "port": 2222}],
    }
    for thing in (pod, service):
        assert thing["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "TFJob",
                "name": "j",
                "uid": "job-uid",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


@pytest.mark.parametrize(
    ("kind", "numbers", "master"),
    [
        ("TFJob", {"PS": 1, "Worker": 2}, "j-worker-0"),
        ("TFJob", {"Chief": 1, "Worker": 2}, "j-chief-0"),
        ("TFJob", {"Master": 1, "Worker": 2}, "j-master-0"),
        ("PyTorchJob", {"Master": 1, "Worker": 2}, "j-master-0"),
        ("PyTorchJob", {"Worker": 2}, "j-worker-0"),
        ("JAXJob", {"Worker": 2}, "j-worker-0"),
        ("MPIJob", {"Launcher": 1, "Worker": 1}, "j-launcher-0"),
    ],
)
def test_one_pod_has_the_role_of_master(kind: str, numbers: Thing, master: str) -> None:
    world = settled(kind, numbers)
    marked = {n for n, p in world.pods.items() if p["metadata"]["labels"].get("training.kubeflow.org/job-role")}
    assert marked == {master}


@pytest.mark.parametrize(
    ("policy", "pod_policy"),
    [("ExitCode", "Never"), ("Never", "Never"), ("OnFailure", "OnFailure"), ("Always", "Always"), (None, "OnFailure")],
)
def test_the_replicas_policy_overrules_the_templates(policy: str | None, pod_policy: str) -> None:
    specs = {"Master": replicas("PyTorchJob", 1, policy, restartPolicy="Always")}
    world = World(job=job_manifest("PyTorchJob", specs))
    world.settle()
    assert world.pods["j-master-0"]["spec"]["restartPolicy"] == pod_policy


def test_tf_config_names_the_cluster_to_each_training_container_and_to_no_other() -> None:
    specs = {t: replicas("TFJob", n) for t, n in {"Chief": 1, "PS": 1, "Worker": 2, "Evaluator": 1}.items()}
    for spec in specs.values():
        spec["template"]["spec"]["containers"].append({"name": "sidecar", "image": "busybox"})
    specs["PS"]["template"]["spec"]["containers"][0]["ports"] = [{"name": "tfjob-port", "containerPort": 5000}]
    world = World(job=job_manifest("TFJob", specs))
    world.settle()
    config = json.loads(environment(world, "j-worker-1")["TF_CONFIG"])
    assert config == {
        "cluster": {
            "chief": ["j-chief-0.n.svc:2222"],
            "ps": ["j-ps-0.n.svc:5000"],
            "worker": ["j-worker-0.n.svc:2222", "j-worker-1.n.svc:2222"],
        },
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }
    assert world.services["j-ps-0"]["spec"]["ports"][0]["port"] == 5000
    assert environment(world, "j-worker-1", container=1) == {}


def test_a_tfjob_of_one_replica_has_no_cluster_to_be_told_of() -> None:
    assert environment(settled("TFJob", {"Worker": 1}), "j-worker-0") == {}


@pytest.mark.parametrize(
    ("numbers", "pod", "rank", "size", "address"),
    [
        ({"Master": 1, "Worker": 2}, "j-master-0", "0", "3", "j-master-0"),
        ({"Master": 1, "Worker": 2}, "j-worker-1", "2", "3", "j-master-0"),
        ({"Worker": 2}, "j-worker-1", "1", "2", "j-worker-0"),
    ],
)
def test_pytorch_environment(numbers: Thing, pod: str, rank: str, size: str, address: str) -> None:
    assert environment(settled("PyTorchJob", numbers), pod) == {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": address,
        "MASTER_PORT": "23456",
        "WORLD_SIZE": size,
        "RANK": rank,
    }


@pytest.mark.parametrize(
    ("kind", "numbers", "pod", "expected"),
    [
        ("XGBoostJob", {"Master": 1, "Worker": 1}, "j-worker-0", {"RANK": "1", "WORKER_ADDRS": "j-worker-0"}),
        ("PaddleJob", {"Master": 1, "Worker": 1}, "j-worker-0", {"PADDLE_MASTER": "j-master-0:36543"}),
        ("JAXJob", {"Worker": 2}, "j-worker-1", {"PROCESS_ID": "1", "COORDINATOR_ADDRESS": "j-worker-0"}),
    ],
)
def test_environment_of_the_other_kinds(kind: str, numbers: Thing, pod: str, expected: dict[str, str]) -> None:
    told = environment(settled(kind, numbers), pod)
    assert {name: told[name] for name in expected} == expected


def test_what_the_template_says_is_kept() -> None:
    spec = replicas("PyTorchJob")
    spec["template"]["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    spec["template"]["spec"]["containers"][0]["env"] = [
        {"name": "OWN", "value": "1"},
        {"name": "RANK", "value": "99"},
    ]
    world = World(job=job_manifest("PyTorchJob", {"Master": spec}))
    world.settle()
    pod = world.pods["j-master-0"]
    assert pod["metadata"]["labels"]["team"] == "a"
    assert pod["metadata"]["annotations"] == {"note": "b"}
    assert environment(world, "j-master-0")["OWN"] == "1"
    assert environment(world, "j-master-0")["RANK"] == "0"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_crd_of_a_kind_and_the_controllers_table_say_the_same(kind: JobKind) -> None:
    file = resources.files("exitcode_fixtures") / "manifests" / "crds" / f"{kind.plural}.yaml"
    definition = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec, version = definition["spec"], definition["spec"]["versions"][0]
    assert definition["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert (spec["names"]["kind"], spec["names"]["plural"]) == (kind.name, kind.plural)
    assert f"{spec['group']}/{version['name']}" == API_VERSION
    properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    specs = properties[kind.spec_field]["properties"]
    assert set(specs) == set(kind.replica_types)
    assert all(set(s["properties"]["restartPolicy"]["enum"]) == set(get_args(RestartPolicy)) for s in specs.values())
    policies = properties["runPolicy"]["properties"]["cleanPodPolicy"]["enum"]
    assert set(policies) == set(get_args(CleanPodPolicy))
