"""Pytest fixture for pictures of traces in the Perfetto UI; conftest.py imports it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests import oracle
from tests.oracle.fixtures import do_without
from tests.ui import shot

Shot = Callable[..., shot.Report]


@pytest.fixture
def ui_shot() -> Iterator[Shot]:
    """`shot.shot`; does without where Chromium, Node or the Perfetto UI is missing."""
    try:
        oracle.node_executable()
        oracle.ui_dir()
        shot.chromium_executable()
    except oracle.OracleMissing as missing:
        do_without("ui", missing)
    with shot.browser():
        yield shot.shot
