"""The outline of a JSON text: what its head holds, in whatever form it was saved."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from traceconv.api import read
from traceconv.families.registry import identify
from traceconv.io.outline import Outline, outline
from traceconv.io.source import HEAD_BYTES, Head, Source

A, B = {"ph": "X", "ts": 1}, {"ph": "X", "ts": 2}


@pytest.mark.parametrize(
    "text",
    [
        '[{"ph": "X", "ts": 1}, {"ph":"X","ts":2}]',
        '[{"ph": "X", "ts": 1},\n{"ph":"X","ts":2},\n{"ph": "X", "ts',
        '{"ph": "X", "ts": 1}\n{"ph":"X","ts":2}\n',
        ',\n{"ph": "X", "ts": 1},\n{"ph":"X","ts":2}\n]',
        '"ts": 0}, {"ph": "X", "ts": 1}, {"ph":"X","ts":2}]',
        '{"traceEvents": [{"ph": "X", "ts": 1}, {"ph": "X", "ts": 2}]}',
        '{"a": {"b": [1]}, "traceEvents": [{"ph": "X", "ts": 1}, {"ph": "X", "ts": 2}, {"ph": "X", "na',
        '[{"ph": "X", "ts": 1}, {"ph": "X", "name": "a "quote" in it", "args": [{"float": [1]}]}, {"ph":"X", "ts": 2}]',
    ],
)
def test_objects(text: str) -> None:
    assert outline(text.encode()).objects == [A, B]


def test_members_of_a_text_that_is_cut() -> None:
    found = outline(b'{"a": 1, "b": {"c": []}, "d": [1, 2, {"e": 3}, {"f')
    assert found.members == {"a": 1, "b": {"c": []}, "d": [1, 2, {"e": 3}]}
    assert outline(b'{"a": 1, "b": {"c": [').members == {"a": 1, "b": {}}
    assert outline(b'{"a": 1, "b": "tex').members == {"a": 1, "b": None}


@pytest.mark.parametrize("text", ["", "a,b", "12", "{", "[", '{"a"', "{]", "[" * 60_000, '[{"a' * 15_000])
def test_what_is_no_json_has_no_objects(text: str) -> None:
    found = outline(text.encode())
    assert (found.members, found.objects) == ({}, [])
    assert found.is_json == (text[:1] in ("{", "["))


@pytest.mark.parametrize("text", ['{"k":[1,{"k":' * 5000, '[{"a":[{"a":' * 5500, '[{"a": "x' * 7000])
def test_what_never_ends_takes_no_time(text: str) -> None:
    """It takes 20 ms."""
    start = time.process_time()
    outline(text[:HEAD_BYTES].encode())
    assert time.process_time() - start < 5


def test_found_once() -> None:
    head = Head(b'[{"a": 1}]', True, "")
    assert head.json is head.json
    assert head.json == Outline(True, {}, [{"a": 1}])


def large(tmp_path: Path, *, packed: bool = False) -> Source:
    data = b"first" + b" " * (3 * HEAD_BYTES) + b"last"
    path = tmp_path / "large"
    path.write_bytes(gzip.compress(data) if packed else data)
    return Source(path)


@pytest.mark.parametrize("packed", [False, True])
def test_tail(tmp_path: Path, packed: bool) -> None:
    head = large(tmp_path, packed=packed).head()
    assert (len(head.data), head.data[:5], head.data[-4:]) == (HEAD_BYTES, b"first", b"    ")
    assert (len(head.tail), head.tail[-4:]) == (HEAD_BYTES, b"last")


def test_tail_of_a_file_that_cannot_be_read_to_its_end(tmp_path: Path) -> None:
    source = large(tmp_path)
    head = source.head()
    (tmp_path / "large").unlink()
    assert head.tail == b""


def test_tail_of_a_short_file(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"abc")
    assert Source(tmp_path / "short").head().tail == b"abc"


def test_an_archive_is_unpacked_once_if_its_start_says_enough(tmp_path: Path) -> None:
    """The start of Kineto's files is enough; the last bytes, for which an archive is unpacked, are not asked for."""
    event = '{"ph": "X", "cat": "cpu_op", "name": "relu", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    text = '{"schemaVersion": 1, "traceEvents": [' + ", ".join([event] * 1000) + "]}"
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(text.encode()))
    source = Source(tmp_path / "trace.json.gz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "_tail", lambda source: pytest.fail("the last bytes were read"))
        assert identify(source)[0].name == "pytorch-kineto"


# -- formats whose mark stands behind their events, or behind a long value ------------------------------------------


def many(event: dict[str, Any]) -> list[dict[str, Any]]:
    return [event | {"ts": ts} for ts in range(2 * HEAD_BYTES // 50)]


NAMES = {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "a"}}
FILE_INFO = {
    "files": {"/a.py": ["x = 1\n" * 20_000, 20_000]},
    "functions": {f"f{i} (/a.py:{i})": ["/a.py", i] for i in range(HEAD_BYTES // 20)},
}


@pytest.mark.parametrize("sort_keys", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ({"viztracer_metadata": {"version": "1.1.1"}}, "viztracer"),
        ({"viztracer_metadata": {"version": "1.1.1"}, "file_info": FILE_INFO}, "viztracer"),
        ({"otherData": {}}, "chrome-trace"),
    ],
)
def test_viztracer_is_known_by_what_stands_behind_the_events(
    tmp_path: Path, behind: dict[str, Any], expected: str, indent: int | None, sort_keys: bool
) -> None:
    path = tmp_path / "trace.json"
    document = {"traceEvents": many(NAMES)} | behind
    path.write_text(json.dumps(document, indent=indent, sort_keys=sort_keys), encoding="utf-8")
    assert identify(Source(path))[0].name == expected


def test_a_trace_with_a_long_value_before_its_events(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    frames = {str(i): {"name": f"frame {i}"} for i in range(HEAD_BYTES // 10)}
    path.write_text(json.dumps({"stackFrames": frames, "traceEvents": many(NAMES)}), encoding="utf-8")
    assert identify(Source(path))[0].name == "chrome-trace"


def test_long_values_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "f (/a.py:1)", "cat": "fee"}
    path.write_text(json.dumps({"traceEvents": [event], "file_info": FILE_INFO}), encoding="utf-8")
    trace = read(path)
    assert trace.sources[0].format == "viztracer"
    assert trace.metadata["file_info"] == FILE_INFO
    assert not trace.sources[0].diagnostics


def test_a_value_above_the_bound_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [A | {"pid": 1, "dur": 1}], "note": "x" * (17 << 20)}), encoding="utf-8")
    trace = read(path)
    assert "note" not in trace.metadata
    assert [entry.code.name for entry in trace.sources[0].diagnostics] == ["chrome.large_value"]
