"""Args of events, by keys that may hold anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import traceconv
from traceconv.answers import Questions


@pytest.mark.parametrize("key", ["plain", 'a"b', "a\\b", "a\nb", "\u202e"])
def test_operations_by_any_key(tmp_path: Path, key: str) -> None:
    path = tmp_path / "a.json"
    events = [{"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 9 * i, "dur": 1 + i, "args": {key: i}} for i in (0, 1)]
    path.write_text(json.dumps({"traceEvents": events}))
    (section,) = traceconv.report([path], Questions(("operations",), (f"arg:{key}",)))
    assert [row[0] for row in section.rows] == ["1", "0"]
