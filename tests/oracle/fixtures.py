"""Pytest fixtures for the oracle; conftest.py imports them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from perfetto.trace_processor import TraceProcessor

from tests import oracle

OpenTrace = Callable[[str | os.PathLike[str]], AbstractContextManager[TraceProcessor]]


@pytest.fixture(scope="session")
def trace_processor() -> Iterator[OpenTrace]:
    """`oracle.open_trace`; skips the test where Node or the Perfetto UI is missing.

    Each xdist worker is a process of its own and so has its own servers.
    """
    try:
        oracle.node_executable()
        oracle.ui_dir()
    except oracle.OracleMissing as missing:
        pytest.skip(str(missing))
    yield oracle.open_trace
    oracle.shutdown()
