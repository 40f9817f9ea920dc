"""IDENT: names, labels, owners and the environment of what an operator creates."""

import json
from collections.abc import Callable, Iterable
from typing import Any, get_args

import pytest
from history_builder import Story, story
from job_objects import Generation, Json

from exitcode_conformance.history import Declared
from exitcode_conformance.scenario import ReplicaGroup, Scenario

ALONE = "tfjob-worker-exit137-worker1"
SERVERS = "tfjob-worker-exit1-ps1-worker3"
CHIEF = "tfjob-chief-exit1-chief1-worker2"
TORCH = "pytorchjob-worker1-exit138-master1-worker2"
GENERATIONS: Iterable[Generation] = get_args(Generation)
Change = Callable[[Json], Any]


def created(scenario: str, replica: str, change: Change, **options: Any) -> Story:
    """Everything is created, one pod with a change."""
    told = story(scenario, **options).submit().says("Created")
    manifest = told.manifest(replica)
    change(manifest)
    others = [r for r in told.replicas if r != replica]
    return told.create(*others).create(replica, manifest=manifest).complete()


# --- IDENT-01 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [ALONE, SERVERS, CHIEF, TORCH])
def test_ident_01_passes_on_one_pod_for_each_index(scenario: str) -> None:
    story(scenario).begin().complete().passes("IDENT-01")


@pytest.mark.parametrize(
    "name", ["worker-0", f"{SERVERS}-worker-3", f"{SERVERS}-Worker-0", f"{SERVERS}-worker-0-x7abc", f"{SERVERS}-ps-1"]
)
def test_ident_01_fails_on_another_name(name: str) -> None:
    told = created(SERVERS, "worker-0", lambda pod: pod["metadata"].update({"name": name}))
    told.fails("IDENT-01", f"a pod named {name}")


def test_ident_01_fails_when_a_pod_is_missing() -> None:
    told = story(SERVERS).submit().says("Created").create("ps-0", "worker-0", "worker-2").wait(11).complete()
    told.fails("IDENT-01", f"no pod named {SERVERS}-worker-1")
    story(SERVERS).submit().says("Created").wait(11).complete().fails("IDENT-01", "no pod named")


def test_ident_01_fails_when_a_pod_is_missing_although_there_was_time_before_the_end() -> None:
    told = story(SERVERS).submit().says("Created").create("ps-0", "worker-0", "worker-2").wait(11).says("Failed")
    told.complete().fails("IDENT-01", "no pod named")


def test_ident_01_is_unknown_when_the_job_ended_or_the_observation_did() -> None:
    told = story(SERVERS).submit().says("Created").create("worker-0").runs("worker-0").ends("worker-0", 1)
    told.says("Failed").wait(11).complete().is_unknown("IDENT-01", "the job ended before")
    story(SERVERS).submit().complete().is_unknown("IDENT-01", "but only")
    told = story(ALONE).submit().wait(12).create("worker-0").complete()
    told.fails("IDENT-01", "the bound `created` is 10 s")


# --- IDENT-02 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("scenario", [ALONE, SERVERS, CHIEF, TORCH])
def test_ident_02_knows_every_generation(scenario: str, generation: Generation) -> None:
    told = story(scenario, generation=generation).begin().complete()
    told.passes("IDENT-02")
    told.passes("IDENT-04")


def test_ident_02_holds_the_operator_to_the_generation_that_it_declares() -> None:
    told = story(SERVERS, generation="v1.6").begin().complete()
    told.declared = Declared(labels="v1.6")
    told.passes("IDENT-02")
    told.declared = Declared(labels="v1.0")
    told.fails("IDENT-02", "label job-name is None")


def test_ident_02_does_not_mind_more_labels_nor_the_case_of_a_type() -> None:
    def change(pod: Json) -> None:
        labels = pod["metadata"]["labels"]
        labels |= {"app": "x", "training.kubeflow.org/replica-type": "Worker"}

    created(SERVERS, "worker-0", change).passes("IDENT-02")


@pytest.mark.parametrize("generation", ["v1.6", "v1.0", "v0.5"])
@pytest.mark.parametrize("position", range(4))
def test_ident_02_fails_when_a_label_is_missing_or_wrong(generation: Generation, position: int) -> None:
    def without(pod: Json) -> None:
        labels = pod["metadata"]["labels"]
        del labels[list(labels)[position]]

    def wrong(pod: Json) -> None:
        labels = pod["metadata"]["labels"]
        labels[list(labels)[position]] = "" if position == 0 else "other"

    created(SERVERS, "worker-1", without, generation=generation).fails("IDENT-02", "label")
    created(SERVERS, "worker-1", wrong, generation=generation).fails("IDENT-02", "label")
    created(SERVERS, "worker-1", lambda pod: pod["metadata"].pop("labels")).fails("IDENT-02", "label")


def test_ident_02_fails_when_half_of_the_labels_are_of_another_generation() -> None:
    def mixed(pod: Json) -> None:
        labels = pod["metadata"]["labels"]
        labels["replica-index"] = labels.pop("training.kubeflow.org/replica-index")

    created(SERVERS, "worker-1", mixed).fails("IDENT-02", "label")


# --- IDENT-03 ----------------------------------------------------------------------------------------------------

OWNERS: dict[str, Change] = {
    "none": lambda item: item["metadata"].pop("ownerReferences"),
    "empty": lambda item: item["metadata"].update({"ownerReferences": []}),
    "null": lambda item: item["metadata"].update({"ownerReferences": None}),
    "two": lambda item: item["metadata"]["ownerReferences"].append(
        {"kind": "Other", "name": "x", "uid": "other", "controller": True}
    ),
    "another uid": lambda item: item["metadata"]["ownerReferences"][0].update({"uid": "earlier"}),
    "not the controller": lambda item: item["metadata"]["ownerReferences"][0].update({"controller": False}),
    "controller not said": lambda item: item["metadata"]["ownerReferences"][0].pop("controller"),
}


def test_ident_03_passes_when_the_job_owns_everything() -> None:
    story(SERVERS).begin().complete().passes("IDENT-03", "8 objects")
    story(SERVERS, has_services=False).begin().complete().passes("IDENT-03", "4 objects")

    def another_one(pod: Json) -> None:
        pod["metadata"]["ownerReferences"].append({"kind": "Queue", "name": "q", "uid": "q", "controller": False})

    created(SERVERS, "worker-0", another_one).passes("IDENT-03")


@pytest.mark.parametrize("change", OWNERS.values(), ids=OWNERS)
def test_ident_03_fails_on_any_other_owner(change: Change) -> None:
    created(SERVERS, "worker-2", change).fails("IDENT-03", "owner")


@pytest.mark.parametrize("change", OWNERS.values(), ids=OWNERS)
def test_ident_03_fails_on_a_service_with_any_other_owner_and_on_a_later_change(change: Change) -> None:
    told = story(SERVERS).begin()
    service = told.service_objects[f"{SERVERS}-ps-0"]
    change(service)
    told.event("services", "MODIFIED", service).complete().fails("IDENT-03", "service", "owner")


# --- IDENT-04 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "leader"), [(ALONE, "worker-0"), (SERVERS, "worker-0"), (CHIEF, "chief-0"), (TORCH, "master-0")]
)
def test_ident_04_wants_the_role_on_the_leader_alone(scenario: str, leader: str) -> None:
    role = "training.kubeflow.org/job-role"
    told = created(scenario, leader, lambda pod: pod["metadata"]["labels"].pop(role))
    told.fails("IDENT-04", "is not marked as master")
    told = created(scenario, leader, lambda pod: pod["metadata"]["labels"].update({role: "worker"}))
    told.fails("IDENT-04", "is not marked as master")
    others = [r for r in story(scenario).replicas if r != leader]
    for other in others:
        told = created(scenario, other, lambda pod: pod["metadata"]["labels"].update({role: "master"}))
        told.fails("IDENT-04", f"{other} is marked as master")


def test_ident_04_marks_every_leader_where_there_are_several() -> None:
    groups = (ReplicaGroup(type="Master", replicas=2), ReplicaGroup(type="Worker", replicas=1))
    told = Story(Scenario(id="two", kind="TFJob", groups=groups)).begin().complete()
    told.passes("IDENT-04", "master-0, master-1")


def test_ident_04_is_unknown_without_the_leader() -> None:
    told = story(CHIEF).submit().create("worker-0", "worker-1").complete()
    told.is_unknown("IDENT-04", "chief-0 was never created")


# --- IDENT-05 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [ALONE, SERVERS, CHIEF, TORCH, "tftest"])
def test_ident_05_passes_on_a_right_environment(scenario: str) -> None:
    story(scenario).begin().complete().passes("IDENT-05")


def variable(pod: Json, name: str) -> Json:
    """The variable of that name."""
    found: Json = next(v for v in pod["spec"]["containers"][0]["env"] if v["name"] == name)
    return found


def tf_config(change: Callable[[Json], Any]) -> Change:
    """Changes TF_CONFIG."""

    def apply(pod: Json) -> None:
        config = json.loads(variable(pod, "TF_CONFIG")["value"])
        change(config)
        variable(pod, "TF_CONFIG")["value"] = json.dumps(config)

    return apply


TENSORFLOW: dict[str, Change] = {
    "no variables": lambda pod: pod["spec"]["containers"][0].pop("env"),
    "null variables": lambda pod: pod["spec"]["containers"][0].update({"env": None}),
    "in another container": lambda pod: pod["spec"]["containers"][0].update({"name": "other"}),
    "not JSON": lambda pod: variable(pod, "TF_CONFIG").update({"value": "{"}),
    "a list": lambda pod: variable(pod, "TF_CONFIG").update({"value": "[]"}),
    "no value": lambda pod: variable(pod, "TF_CONFIG").pop("value"),
    "no task": tf_config(lambda config: config.pop("task")),
    "no cluster": tf_config(lambda config: config.pop("cluster")),
    "cluster is null": tf_config(lambda config: config.update({"cluster": None})),
    "another index": tf_config(lambda config: config["task"].update({"index": 2})),
    "another type": tf_config(lambda config: config["task"].update({"type": "ps"})),
    "a worker too few": tf_config(lambda config: config["cluster"]["worker"].pop()),
    "a worker too many": tf_config(lambda config: config["cluster"]["worker"].append("x:2222")),
    "in another order": tf_config(lambda config: config["cluster"]["worker"].reverse()),
    "no server": tf_config(lambda config: config["cluster"].pop("ps")),
    "a type too many": tf_config(lambda config: config["cluster"].update({"chief": ["c:2222"]})),
    "another port": tf_config(lambda config: config["cluster"].update({"ps": [f"{SERVERS}-ps-0.run.svc:80"]})),
    "no port": tf_config(lambda config: config["cluster"].update({"ps": [f"{SERVERS}-ps-0"]})),
    "another host": tf_config(lambda config: config["cluster"].update({"ps": ["other-ps-0:2222"]})),
}


@pytest.mark.parametrize("change", TENSORFLOW.values(), ids=TENSORFLOW)
def test_ident_05_fails_on_a_wrong_tf_config(change: Change) -> None:
    created(SERVERS, "worker-1", change).fails("IDENT-05", f"{SERVERS}-worker-1: ", "TF_CONFIG")


@pytest.mark.parametrize("name", ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"])
@pytest.mark.parametrize("value", ["", "7", "other-master-0", None])
def test_ident_05_fails_on_a_wrong_variable_of_pytorch(name: str, value: str | None) -> None:
    def change(pod: Json) -> None:
        if value is None:
            pod["spec"]["containers"][0]["env"].remove(variable(pod, name))
        else:
            variable(pod, name)["value"] = value

    created(TORCH, "worker-1", change).fails("IDENT-05", name)


def test_ident_05_allows_what_old_releases_did() -> None:
    def says_localhost(pod: Json) -> None:
        variable(pod, "MASTER_ADDR")["value"] = "localhost"

    created(TORCH, "master-0", says_localhost).passes("IDENT-05")
    created(TORCH, "worker-0", says_localhost).fails("IDENT-05", "MASTER_ADDR")
    config = {"cluster": {"worker": [f"{ALONE}-worker-0:2222"]}, "task": {"type": "worker", "index": 0}}

    def gets_one(pod: Json) -> None:
        pod["spec"]["containers"][0]["env"] = [{"name": "TF_CONFIG", "value": json.dumps(config)}]

    created(ALONE, "worker-0", gets_one).passes("IDENT-05")


def test_ident_05_does_not_want_evaluators_in_the_cluster() -> None:
    groups = (ReplicaGroup(type="Worker", replicas=1), ReplicaGroup(type="Evaluator", replicas=1))
    scenario = Scenario(id="watched", kind="TFJob", groups=groups)
    told = Story(scenario).submit()
    for replica in told.replicas:
        manifest = told.manifest(replica)
        tf_config(lambda config: config["cluster"].pop("evaluator"))(manifest)
        told.create(replica, manifest=manifest)
    told.complete().passes("IDENT-05")


def test_ident_05_looks_at_replacements_too() -> None:
    told = story(TORCH).begin().ends("worker-1", 138).asks_deletion("worker-1").gone("worker-1")
    manifest = told.manifest("worker-1")
    variable(manifest, "RANK")["value"] = "3"
    told.create("worker-1", manifest=manifest).complete().fails("IDENT-05", "RANK is '3', expected '2'")


def test_ident_05_is_unknown_where_the_environment_comes_from_elsewhere() -> None:
    def from_elsewhere(pod: Json) -> None:
        pod["spec"]["containers"][0]["env"] = [{"name": "TF_CONFIG", "valueFrom": {"configMapKeyRef": {}}}]

    def all_from_elsewhere(pod: Json) -> None:
        pod["spec"]["containers"][0] |= {"env": [], "envFrom": [{"configMapRef": {"name": "environment"}}]}

    created(SERVERS, "worker-1", from_elsewhere).is_unknown("IDENT-05", "from elsewhere")
    created(SERVERS, "worker-1", all_from_elsewhere).is_unknown("IDENT-05", "from elsewhere")


def test_ident_05_fails_for_one_pod_whatever_is_not_known_of_another() -> None:
    told = story(SERVERS).submit()
    for replica in told.replicas:
        manifest = told.manifest(replica)
        own = [{"name": "TF_CONFIG", "valueFrom": {"configMapKeyRef": {}}}] if replica == told.replicas[0] else []
        manifest["spec"]["containers"][0]["env"] = own
        told.create(replica, manifest=manifest)
    told.complete().fails("IDENT-05", "no TF_CONFIG")


@pytest.mark.parametrize("requirement", ["IDENT-02", "IDENT-03", "IDENT-04", "IDENT-05"])
def test_without_a_pod_nothing_is_known(requirement: str) -> None:
    story(SERVERS).submit().says("Created").wait(11).complete().is_unknown(requirement, "never created a pod")


def test_ident_05_is_unknown_when_no_pod_stands_for_a_replica() -> None:
    told = story(ALONE).submit()
    manifest = told.manifest("worker-0")
    manifest["metadata"] |= {"name": "somebody", "labels": {}}
    told.create("worker-0", manifest=manifest).complete().is_unknown("IDENT-05", "no pod stands for a replica")
