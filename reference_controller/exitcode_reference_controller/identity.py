"""Who an object is: names, labels and owner of everything that a job's controller makes."""

from collections.abc import Mapping
from typing import Any

from exitcode_reference_controller.job import Job
from exitcode_reference_controller.kinds import API_VERSION

OPERATOR_LABEL = "training.kubeflow.org/operator-name"
JOB_LABEL = "training.kubeflow.org/job-name"
TYPE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"
ROLE_LABEL = "training.kubeflow.org/job-role"
"""The keys that the training operator uses from v1.6 on."""


class Identity:
    """The rules for names, labels and owner references."""

    def replica_name(self, job: Job, replica_type: str, index: int) -> str:
        """Name of the pod and of the service of a replica."""
        return f"{job.name}-{replica_type.lower()}-{index}"

    def labels(self, job: Job, replica_type: str, index: int) -> dict[str, str]:
        """What pod, service and the service's selector say of a replica."""
        return {
            OPERATOR_LABEL: job.kind.operator_name,
            JOB_LABEL: job.name,
            TYPE_LABEL: replica_type.lower(),
            INDEX_LABEL: str(index),
        }

    def role_labels(self, job: Job, replica_type: str, index: int) -> dict[str, str]:
        """What only the pod says: whether it is the job's master."""
        return {ROLE_LABEL: "master"} if self.is_master(job, replica_type, index) else {}

    def is_master(self, job: Job, replica_type: str, index: int) -> bool:
        """The leader, or worker 0 of a job that has none."""
        if job.leaders:
            return replica_type in job.leaders
        return replica_type == "Worker" and index == 0

    def owner_references(self, job: Job) -> list[dict[str, Any]]:
        """The job as the one controller, so that the garbage collector removes what it owned."""
        return [
            {
                "apiVersion": API_VERSION,
                "kind": job.kind.name,
                "name": job.name,
                "uid": job.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]

    def owns(self, job: Job, thing: Mapping[str, Any]) -> bool:
        """Whether a pod or service is this job's, and not that of an earlier job of the same name."""
        references = thing["metadata"].get("ownerReferences") or []
        return any(ref.get("controller") and ref.get("uid") == job.uid for ref in references)
