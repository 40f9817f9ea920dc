"""The controller as a process: options, what is said when it cannot start, and a clean end on a signal.

Standard output gets one line, `ready`, when everything has been listed and is followed; the log goes to
standard error. Exit status: 0 after SIGTERM or SIGINT, 3 if the cluster cannot be used, 4 for wrong options,
1 for a fault of its own.
"""

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import load_kube_config

from exitcode_reference_controller.api import Api, Unreachable
from exitcode_reference_controller.controller import BATCH, TRAINING, Controller
from exitcode_reference_controller.informer import CannotList
from exitcode_reference_controller.kinds import BATCH_JOB, GROUP, KINDS, BatchKind, JobKind
from exitcode_reference_controller.mutants import VARIANTS

log = logging.getLogger(__name__)

_BROKEN, _CLUSTER_UNUSABLE, _USAGE = 1, 3, 4
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404


_REFERENCE = "reference"
_KNOWN = (*KINDS, BATCH_JOB.name)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_USAGE, f"{self.prog}: {message}. See --help.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the controller until it is told to stop; answers with the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list_variants:
        print(json.dumps([{"name": v.name, "sentence": v.sentence} for v in VARIANTS.values()], indent=2))
        return 0
    served = VARIANTS[options.variant].kinds
    strange = [kind for kind in options.kinds if kind not in served]
    if strange:
        parser.error(f"variant {options.variant} is of {', '.join(served)} only: --kinds names {', '.join(strange)}")
    logging.basicConfig(
        stream=sys.stderr,
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(threadName)s %(message)s",
    )
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    configuration = Configuration()
    try:
        load_kube_config(options.kubeconfig, options.context, configuration, persist_config=False)
    except (ConfigException, OSError, ValueError) as problem:
        return _give_up(f"the kubeconfig {options.kubeconfig} cannot be used: {problem}", _USAGE)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    threading.excepthook = _end_with_thread
    api = Api(configuration, connections=2 * (options.workers + 4) + len(options.kinds))
    controllers = _controllers(api, options)
    try:
        for controller in controllers:
            controller.start()
    except CannotList as problem:
        return _give_up(_explain(api, problem))
    except Unreachable as problem:
        return _give_up(f"the API server {api.host} cannot be reached: {problem}")
    print("ready", flush=True)
    stopped.wait()
    for controller in controllers:
        controller.stop()
    return 0


def _controllers(api: Api, options: argparse.Namespace) -> list[Controller[JobKind] | Controller[BatchKind]]:
    """One for each family of kinds that is asked for: nothing of the other is watched."""
    variant = VARIANTS[options.variant]
    found: list[Controller[JobKind] | Controller[BatchKind]] = []
    kinds = {name: KINDS[name] for name in options.kinds if name in KINDS}
    if kinds:
        found.append(
            Controller(
                api,
                variant.reconciler(),
                family=TRAINING,
                kinds=kinds,
                namespace=options.namespace,
                workers=options.workers,
                slowness=variant.slowness,
            )
        )
    if BATCH_JOB.name in options.kinds:
        found.append(
            Controller(
                api,
                variant.batch(backoff=options.job_backoff),
                family=BATCH,
                kinds={BATCH_JOB.name: BATCH_JOB},
                namespace=options.namespace,
                workers=options.workers,
                slowness=variant.slowness,
            )
        )
    return found


def _end_with_thread(ended: threading.ExceptHookArgs) -> None:
    """A controller that has lost a thread would go on half alive; it ends, so that whoever started it can see it."""
    log.critical(
        "a thread has ended", exc_info=(ended.exc_type, ended.exc_value or ended.exc_type(), ended.exc_traceback)
    )
    os._exit(_BROKEN)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="exitcode_reference_controller",
        description="A minimal operator for Kubeflow training jobs, and for Kubernetes' own Jobs.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG", "~/.kube/config"), metavar="PATH")
    parser.add_argument("--context", help="of the kubeconfig; its current one if none is named")
    parser.add_argument("--namespace", help="the only one to look at; all if none is named")
    parser.add_argument(
        "--variant",
        default=_REFERENCE,
        choices=sorted(VARIANTS),
        metavar="NAME",
        help="which controller to be; --list-variants names all",
    )
    parser.add_argument("--list-variants", action="store_true", help="print name and sentence of each as JSON, and end")
    parser.add_argument("--workers", type=_positive, default=4, metavar="N", help="jobs worked on at one time")
    parser.add_argument(
        "--kinds", type=_kinds, default="TFJob,PyTorchJob", metavar="KIND,…", help="of: " + ", ".join(_KNOWN)
    )
    parser.add_argument(
        "--job-backoff",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="delay of the next pod after the first failure in a Job, doubled by each further one",
    )
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or greater")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 0 or greater")
    return seconds


def _kinds(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in _KNOWN]
    if unknown or not names:
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown) or 'nothing'} is no job kind; known are {', '.join(_KNOWN)}"
        )
    return names


def _explain(api: Api, problem: CannotList) -> str:
    resource, refusal = problem.resource, problem.refusal
    if refusal.status == _NOT_FOUND and resource == BATCH_JOB.plural:
        return f"the API server {api.host} does not serve {resource} of {BATCH_JOB.api_version}"
    if refusal.status == _NOT_FOUND:
        return f"the API server {api.host} knows no {resource}; apply the CRD {resource}.{GROUP} first"
    if refusal.status in (_UNAUTHORIZED, _FORBIDDEN):
        return f"the API server {api.host} does not permit to list {resource}: {refusal.message}"
    return f"the API server {api.host} refused to list {resource}: {refusal}"


def _give_up(sentence: str, status: int = _CLUSTER_UNUSABLE) -> int:
    print(f"exitcode_reference_controller: {' '.join(sentence.split())}", file=sys.stderr, flush=True)
    return status
