"""Pytest fixtures for the oracle; conftest.py imports them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NoReturn

import pytest
from perfetto.trace_processor import TraceProcessor

from tests import oracle

OpenTrace = Callable[[str | os.PathLike[str]], AbstractContextManager[TraceProcessor]]


#: What may judge a trace besides our own code, by the names that TRACECONV_REQUIRE_JUDGE may list.
JUDGES = {"trace-processor", "ui"}


def do_without(judge: str, missing: oracle.OracleMissing) -> NoReturn:
    """Skip the test, or fail it if the environment variable TRACECONV_REQUIRE_JUDGE names the judge.

    A machine that has installed the judges (CI) sets it, so that their absence does not go unseen. A name that no
    judge has requires all of them.
    """
    required = {name for name in os.environ.get("TRACECONV_REQUIRE_JUDGE", "").split(",") if name}
    if judge in required or required - JUDGES:
        pytest.fail(f"TRACECONV_REQUIRE_JUDGE is {','.join(sorted(required))}: {missing}")
    pytest.skip(str(missing))


@pytest.fixture(scope="session")
def trace_processor() -> Iterator[OpenTrace]:
    """`oracle.open_trace`; does without where Node or the Perfetto UI is missing.

    Each xdist worker is a process of its own and so has its own servers.
    """
    try:
        oracle.node_executable()
        oracle.ui_dir()
    except oracle.OracleMissing as missing:
        do_without("trace-processor", missing)
    yield oracle.open_trace
    oracle.shutdown()
