"""The one seam between the suite and a job API: what each of them needs to be spoken to, and to be understood."""

from collections.abc import Mapping
from types import MappingProxyType

from exitcode_conformance.adapters.adapter import Adapter as Adapter
from exitcode_conformance.adapters.batch import BatchAdapter
from exitcode_conformance.adapters.kubeflow import KubeflowAdapter
from exitcode_conformance.kinds import KINDS, AdapterName

ADAPTERS: Mapping[AdapterName, Adapter] = MappingProxyType({"kubeflow": KubeflowAdapter(), "batch": BatchAdapter()})


def adapter_of(kind: str) -> Adapter:
    """The adapter of a job kind; KeyError for one that is not known."""
    return ADAPTERS[KINDS[kind].adapter]
