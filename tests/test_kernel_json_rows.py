"""The lines that the kernel writes into Chrome JSON are those of the writer without it, byte for byte."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import golden
from tests.kernels import using, variants
from tests.shapes import every_shape
from traceconv.families.chrome import writer as chrome_json
from traceconv.families.chrome.writer import _Columns
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

KERNELS = variants("json_rows")
T = 1_795_245_457_236_000_123
ODD = [
    b"\\u00e9",
    b"\\ud83d\\ude00",
    b'\\\\"',
    b"\\\\u0041",
    b"1e999",
    b"1E+308",
    b"2e10",
    b"\n",
    b" \r\n\t ",
    b"\xc3\xa9",
]
ODD += [
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\\n",
    b"e",
    b"\\",
    b'"',
    b"x",
    b"\x0b",
    b"12",
    b" ",
    b"+",
    b"\x7f",
]


def written(trace: Trace, module: ModuleType | None) -> bytes:
    sink = io.BytesIO()
    with using("json_rows", module):
        chrome_json.ChromeJson().write(trace, sink)
    return sink.getvalue()


def same(trace: Trace) -> bytes:
    general = written(trace, None)
    for name, module in KERNELS.items():
        assert written(trace, module) == general, name
    return general


@every_shape
def test_goldens(case: golden.Case, tmp_path: Path) -> None:
    trace = case.merged(case.traces(tmp_path))
    if sum(trace.counts().values()) < 1000:
        same(trace)


_texts = st.text(st.characters(exclude_categories=()), max_size=6) | st.sampled_from(["", "\\", 'a\\"', "é", "\n"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def _args(draw: st.DrawFn) -> bytes:
    members: dict[str, Any] = draw(st.dictionaries(_texts, _values, max_size=4))
    text = json.dumps(members, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return text.replace("NaN", "1").replace("Infinity", "1e400").encode("utf-8", "surrogatepass") if members else b""


@st.composite
def _traces(draw: st.DrawFn) -> Trace:
    clock = draw(st.sampled_from([REALTIME, ClockDomain("own", Zero.UNKNOWN, Run.MONOTONIC)]))
    out = Builder(SourceInfo("a", "test"), clock)
    process = out.tracks.process("p", pid=draw(st.sampled_from([7, None])))
    tracks = [
        process,
        out.tracks.thread(process, 8, "t"),
        out.tracks.add("other"),
        out.tracks.thread(process, None, 'q"'),
    ]
    counters = [out.tracks.counter("c", process, unit="B"), out.tracks.counter("c", process), out.tracks.counter("é")]
    times = st.integers(-(10**4), 10**7) | st.integers(-(2**62), 2**62)
    durs = st.integers(0, 10**5)
    base = draw(st.sampled_from([0, T, -T]))
    slices = []
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.integers(0, 4))
        ts = min(max(base + draw(times), -(2**62)), 2**62 - 10**6)
        name, category, args = draw(_texts), draw(_texts), draw(_args())
        if kind == 0:
            slices.append(out.slice(draw(st.sampled_from(tracks)), ts, draw(durs), name, category, args))
        elif kind == 1:
            out.instant(draw(st.sampled_from(tracks)), ts, name, category, args)
        elif kind == 2:
            number = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
            out.counter(draw(st.sampled_from(counters)), ts, draw(number))
        elif kind == 3 and slices:
            out.flow(draw(st.sampled_from(slices)), draw(st.sampled_from(slices)), name, category)
        elif kind == 4:
            out.log(tracks[1], ts, name, source=category, args=args)
    out.balance.read = out.balance.written = 0
    return lay_out(out.finish())


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(_traces())
def test_traces(trace: Trace) -> None:
    same(trace)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(ODD) | st.binary(max_size=3), max_size=12).map(b"".join))
def test_args_of_any_bytes(args: bytes) -> None:
    if not args:
        return
    for name, module in KERNELS.items():
        found = _one(module, args)
        if found is not None:
            spliced = chrome_json._spliced(args)
            assert found == b',\n{"ph":"X","name":"n","pid":1,"ts":0,"dur":1.5,"args":' + spliced + b"}", name


def test_plain_args_are_not_left_to_the_caller() -> None:
    plain = b'{"a": [1, 2.5e-3, "ab\\n\\"c\\\\d", null], "\xc3\xa9": {"x": true},\r\n  "hash": "3e12", "b": 1e22}'
    for module in KERNELS.values():
        assert _one(module, plain) is not None


def _one(module: ModuleType, args: bytes, **changed: int) -> bytes | None:
    """The line of a slice with these args; None if the kernel leaves it to the writer."""
    values = {"number": 1500, "task": 1, "category": -1, "args_len": len(args)} | changed
    wide = {name: np.array([values.get(name, 0)], np.int64) for name in ("ts", "number", "args_at")}
    narrow = {name: np.array([values.get(name, 0)], np.int32) for name in ("task", "name", "category", "args_len")}
    kind, value = np.array([module.SLICE], np.uint8), np.zeros(1)
    writer = module.LineWriter(np.frombuffer(b'"n","pid":1', np.uint8), np.array([0, 3, 11], np.int64), [args])
    ends = np.zeros(1, np.int64)
    line = bytes(writer.write(SimpleNamespace(kind=kind, value=value, **wide, **narrow), ends))
    assert (not line) == (ends[0] < 0)
    return line or None


@pytest.mark.parametrize("name", KERNELS)
def test_places_outside_are_refused(name: str) -> None:
    for at in (1, -1, 100_000):
        with pytest.raises(IndexError, match="outside"):
            _one(KERNELS[name], b"{}", args_at=at)
    with pytest.raises(IndexError, match="outside"):
        _one(KERNELS[name], b"{}", args_len=3)
    for task in (-1, 2):
        with pytest.raises(IndexError, match="no such chunk"):
            _one(KERNELS[name], b"{}", task=task)


@pytest.mark.parametrize("name", KERNELS)
def test_columns_must_fit(name: str) -> None:
    columns = _Columns(np.zeros(3, np.int64), KERNELS[name].OTHER)
    writer = KERNELS[name].LineWriter(np.zeros(3, np.uint8), np.array([0, 3], np.int64), [])
    with pytest.raises(IndexError, match="lengths"):
        writer.write(columns, np.zeros(2, np.int64))
    columns.name = columns.name[1:]
    with pytest.raises(IndexError, match="lengths"):
        writer.write(columns, np.zeros(3, np.int64))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("ends", [[0, 4], [2, 1], [-1, 1]])
def test_chunks_outside_are_refused(name: str, ends: list[int]) -> None:
    with pytest.raises(IndexError, match="outside of the chunks"):
        KERNELS[name].LineWriter(np.zeros(3, np.uint8), np.array(ends, np.int64), [])
