"""What holds of every test."""

from collections.abc import Generator

import pytest
from skip_reasons import NO_KIND, NO_REAL_CLUSTER


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped where there is no real cluster is marked `real_cluster`: what is run on one is chosen by
    that mark."""
    report = yield
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    wants_one = any(reason in why for reason in (NO_REAL_CLUSTER, NO_KIND))
    if report.skipped and wants_one and item.get_closest_marker("real_cluster") is None:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} needs a real cluster: mark it with pytest.mark.real_cluster"
    return report
