"""Why tests that are marked `real_cluster` are skipped. Imports nothing: the tests of the wheel load it without the
dependencies."""

from typing import Final

NO_REAL_CLUSTER: Final = (
    "EXITCODE_REAL_KUBECONFIG names no real cluster: what only a real one can show is not tested here"
)
NO_KIND: Final = "REAL_KIND_IMAGE names no node image, or kind or docker is not on PATH: kind is not tested for real"
