"""Fixtures and options of the whole test suite."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.oracle.fixtures import trace_processor
from tests.ui.fixtures import ui_shot

__all__ = ["trace_processor", "ui_shot"]

# The same examples in each run, so that a change that fails is the change that broke something; `pytest
# --hypothesis-profile search` looks at new ones. How long an example takes says something about the machine only.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("traceconv", settings.get_profile("search"), derandomize=True)
settings.load_profile("traceconv")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the expectations of the golden cases anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("goldens are not updated in CI: a change of an expectation is read by a person")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are written instead of compared."""
    return bool(request.config.getoption("--update-golden"))
