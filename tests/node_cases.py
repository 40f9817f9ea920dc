"""The pods that the embedded node and a real kubelet are both given, and what is done to them."""

from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
DWELL = "sleep DWELL"
"""Long enough for a kubelet, which looks at its containers once a second, to see a container run."""
QUIET = "trap 'exit 0' TERM; sleep 300 & wait"
"""A container that runs until it is stopped."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Waits until the newest status holds `until`, then does `then`."""

    until: str
    """`phase:P`, `running:CONTAINER`, `waiting:REASON`, `restarts:N`, `ended:CONTAINER`, `unscheduled`, `gone`."""
    then: Literal["nothing", "delete", "delete-at-once", "put-config"] = "nothing"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One pod. The sequence of its statuses is compared up to the moment the last step is reached."""

    name: str
    spec: Json
    steps: tuple[Step, ...] = ()
    config: Json = field(default_factory=dict)
    """Data of ConfigMap `NAME-config` before the pod is made; none is made if it is empty."""
    next_config: Json = field(default_factory=dict)
    """Its data after `put-config`."""
    labels: Json = field(default_factory=dict)
    annotations: Json = field(default_factory=dict)


def container(script: str, name: str = "main", **rest: Any) -> Json:
    """A busybox container that runs a shell script. A manifest's `$$` is one `$` for the shell."""
    return {"name": name, "image": "busybox:1.36", "command": ["sh", "-c", script], **rest}


def _never(*containers: Json, **rest: Any) -> Json:
    return {"restartPolicy": "Never", "containers": list(containers), **rest}


def _config_value(name: str, key: str, **rest: Any) -> Json:
    reference = {"name": f"{name}-config", "key": key, **rest}
    return {"name": "OUTCOME", "valueFrom": {"configMapKeyRef": reference}}


SUCCEEDED = (Step(until="phase:Succeeded"),)
FAILED = (Step(until="phase:Failed"),)


def _exits() -> list[Case]:
    cases = [
        Case(name=f"exit-{code}", spec=_never(container(f"{DWELL}; exit {code}")), steps=FAILED)
        for code in (1, 3, 127, 128, 137, 255)
    ]
    cases.append(Case(name="exit-0", spec=_never(container(DWELL)), steps=SUCCEEDED))
    for signal in ("INT", "KILL", "USR1", "SEGV", "TERM"):
        script = f"{DWELL}; sh -c 'kill -{signal} $$$$'; exit $?"
        cases.append(Case(name=f"child-dies-of-{signal.lower()}", spec=_never(container(script)), steps=FAILED))
    for signal in ("KILL", "TERM", "SEGV"):
        script = f"{DWELL}; kill -{signal} $$$$; exit 3"
        cases.append(Case(name=f"pid1-spared-{signal.lower()}", spec=_never(container(script)), steps=FAILED))
    trap = f"trap 'exit 9' USR1; {DWELL}; kill -USR1 $$$$; exit 3"
    cases.append(Case(name="pid1-handles-usr1", spec=_never(container(trap)), steps=FAILED))
    return cases


def _start_errors() -> list[Case]:
    def command(*words: str) -> Json:
        return {"name": "main", "image": "busybox:1.36", "command": list(words)}

    return [
        Case(name="command-missing", spec=_never(command("no-such-command", "x")), steps=FAILED),
        Case(name="command-path-missing", spec=_never(command("/no/such")), steps=FAILED),
        Case(name="command-not-executable", spec=_never(command("/etc/passwd")), steps=FAILED),
        Case(name="command-is-directory", spec=_never(command("/tmp")), steps=FAILED),
        Case(
            name="command-missing-beside-another",
            spec=_never(command("no-such-command"), container(f"{DWELL}; {DWELL}; exit 0", "other")),
            steps=FAILED,
        ),
        Case(
            name="command-missing-restarted",
            spec={"restartPolicy": "OnFailure", "containers": [command("no-such-command")]},
            steps=(Step(until="waiting:CrashLoopBackOff"),),
        ),
        Case(
            name="missing-within-shell",
            spec=_never(container(f"{DWELL}; no-such-command")),
            steps=FAILED,
        ),
        Case(
            name="not-executable-within-shell",
            spec=_never(container(f"{DWELL}; /etc/passwd")),
            steps=FAILED,
        ),
    ]


def _several_containers() -> list[Case]:
    longer = "; ".join([DWELL] * 5)
    return [
        Case(
            name="two-one-fails-late",
            spec=_never(container(DWELL), container(f"{longer}; exit 4", "side")),
            steps=FAILED,
        ),
        Case(
            name="two-one-fails-early",
            spec=_never(container(longer), container(f"{DWELL}; exit 4", "side")),
            steps=FAILED,
        ),
        Case(name="two-succeed", spec=_never(container(longer), container(DWELL, "also")), steps=SUCCEEDED),
        Case(
            name="onfailure-one-succeeds",
            spec={
                "restartPolicy": "OnFailure",
                "containers": [container(DWELL), container(f"{longer}; exit 0", "side")],
            },
            steps=SUCCEEDED,
        ),
        Case(
            name="always-one-runs",
            spec={
                "restartPolicy": "Always",
                "containers": [container(f"{DWELL}; exit 0"), container(QUIET, "side")],
            },
            steps=(Step(until="waiting:CrashLoopBackOff"),),
        ),
    ]


def _restarts() -> list[Case]:
    again = (Step(until="waiting:CrashLoopBackOff"),)
    return [
        Case(
            name="onfailure-fails",
            spec={"restartPolicy": "OnFailure", "containers": [container(f"{DWELL}; exit 1")]},
            steps=again,
        ),
        Case(
            name="always-succeeds",
            spec={"restartPolicy": "Always", "containers": [container(DWELL)]},
            steps=again,
        ),
        Case(
            name="onfailure-succeeds",
            spec={"restartPolicy": "OnFailure", "containers": [container(DWELL)]},
            steps=SUCCEEDED,
        ),
        Case(
            name="restart-sees-new-config",
            spec={
                "restartPolicy": "OnFailure",
                "containers": [
                    container(
                        f"{DWELL}; {DWELL}; {DWELL}; {DWELL}; exit $OUTCOME",
                        env=[_config_value("restart-sees-new-config", "outcome")],
                    )
                ],
            },
            config={"outcome": "7"},
            next_config={"outcome": "0"},
            steps=(Step(until="running:main", then="put-config"), *SUCCEEDED),
        ),
    ]


def _init_containers() -> list[Case]:
    def case(name: str, policy: str, scripts: list[str], step: str) -> Case:
        init = [container(script, f"init-{i}") for i, script in enumerate(scripts)]
        spec = {"restartPolicy": policy, "initContainers": init, "containers": [container(DWELL)]}
        return Case(name=name, spec=spec, steps=(Step(until=step),))

    return [
        case("init-two-succeed", "Never", [DWELL, DWELL], "phase:Succeeded"),
        case("init-fails", "Never", [DWELL, f"{DWELL}; exit 5"], "phase:Failed"),
        case("init-fails-restarted", "OnFailure", [f"{DWELL}; exit 5", DWELL], "waiting:CrashLoopBackOff"),
        case("init-fails-always", "Always", [f"{DWELL}; exit 5"], "restarts:1"),
    ]


def _configuration() -> list[Case]:
    def case(name: str, env: list[Json], steps: tuple[Step, ...], **rest: Any) -> Case:
        return Case(name=name, spec=_never(container(f"{DWELL}; exit 6", env=env)), steps=steps, **rest)

    waiting = Step(until="waiting:CreateContainerConfigError")
    secret = {"name": "S", "valueFrom": {"secretKeyRef": {"name": "no-such-secret", "key": "k"}}}
    return [
        case("config-map-missing", [_config_value("config-map-missing", "k")], (waiting,)),
        case(
            "config-map-missing-deleted",
            [_config_value("config-map-missing-deleted", "k")],
            (Step(until="waiting:CreateContainerConfigError", then="delete"), Step(until="gone")),
        ),
        case(
            "config-map-comes-late",
            [_config_value("config-map-comes-late", "k")],
            (Step(until="waiting:CreateContainerConfigError", then="put-config"), *FAILED),
            next_config={"k": "v"},
        ),
        case("config-key-missing", [_config_value("config-key-missing", "k")], (waiting,), config={"other": "v"}),
        case("config-optional", [_config_value("config-optional", "k", optional=True)], FAILED),
        case("secret-missing", [secret], (waiting,)),
    ]


def _environment() -> list[Case]:
    fields = {
        "NAME": "metadata.name",
        "LABEL": "metadata.labels['example.com/role']",
        "ANNOTATION": "metadata.annotations['note']",
    }
    env: list[Json] = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    env += [
        {"name": "PLAIN", "value": "a b"},
        {"name": "EXPANDED", "value": "$(PLAIN)/$(MISSING)/$$(PLAIN)/$$/$(NAME)"},
        {"name": "EMPTY"},
    ]
    limits = {"cpu": "1500m", "memory": "100Mi"}
    for name, resource, divisor in (("CPU", "limits.cpu", "1m"), ("CORES", "limits.cpu", "0")):
        reference = {"resource": resource, "divisor": divisor}
        env.append({"name": name, "valueFrom": {"resourceFieldRef": reference}})
    env.append({"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}})
    names = [*fields, "PLAIN", "EXPANDED", "EMPTY", "CPU", "CORES", "MEMORY", "HOSTNAME", "HOME", "PREFIX_k"]
    tell = " ".join(f'"{name}=$${{{name}-unset}}"' for name in names)
    script = f"{DWELL}; printf '%s;' {tell} \"$$0 $$1 $(PLAIN) $(NOPE)\" > /dev/termination-log"
    spec = _never(
        {
            **container(script, args=["zero", "$(NAME)"]),
            "env": env,
            "envFrom": [{"prefix": "PREFIX_", "configMapRef": {"name": "environment-config"}}],
            "resources": {"limits": limits},
        }
    )
    about = (
        "id -u; pwd; hostname; cat /dev/stdin; tty; grep Sig[BIC] /proc/self/status; ps | wc -l; kill -0 1 && echo 1"
    )
    plain = {"name": "main", "image": "busybox:1.36"}
    return [
        Case(
            name="environment",
            spec=spec,
            steps=SUCCEEDED,
            config={"k": "from-map"},
            labels={"example.com/role": "r"},
            annotations={"note": "n"},
        ),
        Case(
            name="surroundings",
            spec=_never(container(f"({about}) > /dev/termination-log 2>&1; {DWELL}", workingDir="/made/for/it")),
            steps=SUCCEEDED,
        ),
        Case(name="args-only", spec=_never({**plain, "args": ["sh", "-c", f"{DWELL}; exit 11"]}), steps=FAILED),
    ]


def _messages() -> list[Case]:
    say = f"echo out; echo err >&2; {DWELL}; "
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    return [
        Case(name="message", spec=_never(container(f"{say} echo why > /dev/termination-log; exit 2")), steps=FAILED),
        Case(
            name="message-elsewhere",
            spec=_never(container(f"{say} echo why > /tmp/why; exit 2", terminationMessagePath="/tmp/why")),
            steps=FAILED,
        ),
        Case(name="message-from-log", spec=_never(container(f"{say} exit 2", **fallback)), steps=FAILED),
        Case(
            name="message-from-long-log",
            spec=_never(container(f"{say} seq 1 200; exit 2", **fallback)),
            steps=FAILED,
        ),
        Case(
            name="message-from-wide-log",
            spec=_never(container(f"{say} seq -s, 1 2000; echo end; exit 2", **fallback)),
            steps=FAILED,
        ),
        Case(name="no-message-on-success", spec=_never(container(say, **fallback)), steps=SUCCEEDED),
        Case(
            name="long-message",
            spec=_never(container(f"{say} seq 1 2000 > /dev/termination-log; exit 2")),
            steps=FAILED,
        ),
    ]


def _deletions() -> list[Case]:
    def case(name: str, script: str, policy: str = "Never", grace: int = 30, **rest: Any) -> Case:
        spec = {
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": grace,
            "containers": [container(script)],
            **rest,
        }
        return Case(name=name, spec=spec, steps=(Step(until="running:main", then="delete"), Step(until="gone")))

    # Not here: a pod deleted in its init container. A kubelet 1.20 has always removed the container before it reads
    # how it ended, and says 137 ContainerStatusUnknown of it; the embedded node tells its code, as later kubelets do.
    slow = "trap 'sleep 1; exit 4' TERM; sleep 300 & wait"
    return [
        case("deleted-handles-term", QUIET),
        case("deleted-handles-term-code", "trap 'exit 7' TERM; sleep 300 & wait"),
        case("deleted-onfailure", "trap 'exit 7' TERM; sleep 300 & wait", policy="OnFailure"),
        case("deleted-always", QUIET, policy="Always"),
        case("deleted-ignores-term", "sleep 300", grace=3),
        case("deleted-ignores-term-grace-1", "sleep 300", grace=1),
        Case(
            name="deleted-two",
            spec=_never(container(QUIET), container(slow, "slow")),
            steps=(Step(until="running:slow", then="delete"), Step(until="gone")),
        ),
        Case(
            name="deleted-finished",
            spec=_never(container(f"{DWELL}; exit 1")),
            steps=(Step(until="phase:Failed", then="delete"), Step(until="gone")),
        ),
        Case(
            name="deleted-at-once",
            spec=_never(container(QUIET)),
            steps=(Step(until="running:main", then="delete-at-once"), Step(until="gone")),
        ),
    ]


def _placements() -> list[Case]:
    nowhere = {"nodeSelector": {"example.com/no": "where"}}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "example.com/no", "operator": "Exists"}]}]
        }
    }
    gpu = {"limits": {"example.com/gpu": "1"}}
    waits = (Step(until="unscheduled"),)
    return [
        Case(name="no-node-selected", spec=_never(container(DWELL), **nowhere), steps=waits),
        Case(
            name="no-node-by-affinity",
            spec=_never(container(DWELL), affinity={"nodeAffinity": affinity}),
            steps=waits,
        ),
        Case(name="no-node-with-gpu", spec=_never(container(DWELL, resources=gpu)), steps=waits),
        Case(
            name="no-node-deleted",
            spec=_never(container(DWELL), **nowhere),
            steps=(Step(until="unscheduled", then="delete"), Step(until="gone")),
        ),
        Case(
            name="linux-selected",
            spec=_never(container(DWELL), nodeSelector={"kubernetes.io/os": "linux"}),
            steps=SUCCEEDED,
        ),
        Case(
            name="deadline",
            spec=_never(container(QUIET), activeDeadlineSeconds=3),
            steps=FAILED,
        ),
        Case(
            name="deadline-deleted",
            spec=_never(container(QUIET), activeDeadlineSeconds=3),
            steps=(Step(until="phase:Failed", then="delete"), Step(until="gone")),
        ),
    ]


NEED_NAMESPACES = frozenset(
    {
        "pid1-spared-kill",
        "pid1-spared-term",
        "pid1-spared-segv",
        "environment",
        "surroundings",
        "message",
        "message-elsewhere",
        "long-message",
        "deleted-ignores-term",
        "deleted-ignores-term-grace-1",
    }
)
"""Cases that only a PID 1, or a root file system of a container's own, can show."""

CASES: tuple[Case, ...] = (
    *_exits(),
    *_start_errors(),
    *_several_containers(),
    *_restarts(),
    *_init_containers(),
    *_configuration(),
    *_environment(),
    *_messages(),
    *_deletions(),
    *_placements(),
)
