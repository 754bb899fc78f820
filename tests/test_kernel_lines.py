"""Lines found by their bytes become what they become when read one by one, in the kernel as compiled and as Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.benchmarks import onednn
from tests.benchmarks import perf_script as perf
from tests.golden import cases
from tests.kernels import using, variants
from traceconv.api import read
from traceconv.errors import TraceconvError
from traceconv.families.onednn import verbose as _onednn_verbose
from traceconv.families.perf import samples as _perf_events
from traceconv.io import source
from traceconv.model.trace import TABLES, Trace

FORMATS = ("onednn-verbose", "perf-script")
CASES = [case for case in cases() if case.format in FORMATS]
RUN = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


KERNELS: dict[str, ModuleType | None] = {"off": None, **variants("lines")}


@contextmanager
def reading(module: ModuleType | None, chunk: int, limit: int) -> Iterator[None]:
    """Reading with this kernel, in chunks of so many bytes, with so little room in its tables (0: as usual)."""
    with pytest.MonkeyPatch.context() as patch, using("lines", module):
        for repeated in (_onednn_verbose, _perf_events):
            for name in ("_ROWS", "_MOST_ENTRIES", "_MOST_KNOWN", "_MOST_FRAMES") if limit else ():
                if hasattr(repeated, name):
                    patch.setattr(repeated, name, limit)
        if chunk:
            patch.setattr(source, "CHUNK_BYTES", chunk)
        yield


def _said(path: Path, format: str, options: dict[str, str]) -> Any:
    """All that a reader tells, args by what they say and not by where they are kept."""
    try:
        trace = read(path, format=format, options=options)
    except TraceconvError as error:
        return error.message, error.hint
    about = trace.sources[0]
    problems = [(one.code.name, one.count, one.places) for one in about.diagnostics]
    info = (trace.strings, trace.tracks, trace.clocks, trace.snapshots, trace.frames, trace.metadata)
    return info, about.balance, problems, about.notes, {name: _rows(trace, name) for name in TABLES}


def _rows(trace: Trace, name: str) -> dict[str, Any]:
    table = getattr(trace, name)
    columns = {column.name: getattr(table, column.name).tolist() for column in fields(table)}
    if "args_at" in columns:
        places = zip(columns.pop("args_at"), columns["args_len"], strict=True)
        columns["args"] = [trace.args.get(*place) for place in places]
    return columns


def same_everywhere(path: Path, format: str, options: dict[str, str] | None = None) -> None:
    for chunk, limit in ((0, 0), (150, 0), (1000, 5)):
        said = {}
        for name, module in KERNELS.items():
            with reading(module, chunk, limit):
                said[name] = _said(path, format, options or {})
        for name in said:
            assert said[name] == said["off"], (name, chunk, limit)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_inputs(case: Any) -> None:
    same_everywhere(case.input, case.format, case.options)


class Counting(ModuleType):
    """The kernel, which counts how often it is asked for something."""

    def __init__(self) -> None:
        super().__init__("lines")
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        self.calls += 1
        found = getattr(KERNELS["compiled"], name)
        return (lambda *arguments: Counted(self, found(*arguments))) if name in ("Timed", "Samples") else found


class Counted:
    """A reader of the kernel, whose calls are counted."""

    def __init__(self, counting: Counting, reader: Any) -> None:
        self._counting, self._reader = counting, reader

    def __getattr__(self, name: str) -> Any:
        self._counting.calls += name == "read"
        return getattr(self._reader, name)


def test_many_lines_are_read_by_the_kernel(tmp_path: Path) -> None:
    """Otherwise all of the above would hold for a kernel that reads nothing."""
    for module, name in ((onednn, "a.log"), (perf, "a.txt")):
        path = tmp_path / name
        module.generate(path, 3000)
        counting = Counting()
        with reading(counting, 0, 0):
            trace = read(path)
        assert len(trace.slices.ts) + len(trace.samples.ts) == 3000
        assert counting.calls < 12_000
        same_everywhere(path, {"a.log": "onednn-verbose", "a.txt": "perf-script"}[name])


_MIDDLE = b"primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:abcd::f0 dst:f32::blocked:Acdb16a::f0,,,16x3x3x3"
ONEDNN_LINES = [
    b"onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71049cd69a3df32adcccb623b12cd7baa22)\n",
    b"dnnl_verbose,info,oneDNN v2.6.3 (commit 52b5f107dd9cf10910aaa19cb47f3abf9b349815)\n",
    *[
        b"%b,%b%b,%b%b" % (marker, ts, middle, duration, end)
        for marker in (b"onednn_verbose,v1", b"onednn_verbose,v2", b"dnnl_verbose")
        for ts in (
            b"1795244023916.781006,",
            b"1795244023917.5,",
            b"1795244020000.781006,",
            b"16.781,",
            b"9999999999999.5,",
            b"",
        )
        for middle in (_MIDDLE, _MIDDLE.replace(b"cpu", b"gpu"), b"primitive,exec,cpu,matmul")
        for duration in (b"0.003", b"0.00390625", b"7.5", b"-0.5", b"12", b"1e+300", b"nan", b"")
        for end in (b"\n", b"\r\n", b" 12%\r\n", b"")
    ],
    b"program output\n",
    b"\n",
    b"\x1b[31monednn_verbose,v1,1795244023916.781006," + _MIDDLE + b",0.003\x1b[0m\n",
    b"onednn_verbose,v1,1795244023916.781006," + _MIDDLE + b",0.003onednn_verbose,v1,1795244023916.781006,\n",
]
PERF_LINES = [
    *[
        b"%b%b%b%b\n" % (head, time, period, event)
        for head in (b"python 7 [000] ", b"python 7/8 [001] ", b"  a b 3  ", b"", b"p 9 1.000001: ", b"2026-01-02 ")
        for time in (b" 1.000001:", b" 12.000000001:", b"1.000002:", b" 1234567890.000001:", b" 1.0000011:")
        for period in (b"   1001 ", b" ", b" 99999999999999999999 ", b"")
        for event in (
            b"cycles: ",
            b"cpu-clock:u:",
            b"cycles:  10f main (/bin/a)",
            b"cycles: 5 10f main (/bin/a)",
            b"sched:sched_switch: prev_comm=python prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=9 "
            b"next_prio=120",
            b"PERF_RECORD_COMM: python:7/7",
        )
    ],
    *[b"\t      %x f%d+0x1 (/lib/x.so)\n" % (address, address % 3) for address in range(16, 22)],
    b"\tffff [unknown] ([unknown])\n",
    b"\tno frame\n",
    b"\t\n",
    b"  main.c:12\n",
    b"\n",
    b"\n",
    b"# captured on : now\n",
    b"warning\n",
    b"\r\n",
]


_SELDOM = st.sampled_from((0, 0, 1)).flatmap(lambda n: st.integers(0, n * 10**6))


def texts(pool: list[bytes]) -> st.SearchStrategy[bytes]:
    """Lines of a small choice from the pool, so that they repeat; sometimes cut, sometimes with a byte changed."""

    def damaged(parts: tuple[list[bytes], int, int]) -> bytes:
        text, cut, change = b"".join(parts[0]), parts[1], parts[2]
        if change and text:
            at = change % len(text)
            text = text[:at] + bytes([change % 251]) + text[at + 1 :]
        return text[: cut % (len(text) + 1)] if cut else text

    few = st.lists(st.sampled_from(pool), min_size=1, max_size=6)
    lists = few.flatmap(lambda some: st.lists(st.sampled_from(some), max_size=40))
    return st.tuples(lists, st.sampled_from((0, 0, 1)).flatmap(lambda n: st.integers(0, n * 10**6)), _SELDOM).map(
        damaged
    )


@RUN
@given(text=texts(ONEDNN_LINES))
def test_any_onednn_lines(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.log"
    path.write_bytes(text)
    same_everywhere(path, "onednn-verbose")


@RUN
@given(text=texts(PERF_LINES))
def test_any_perf_lines(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(text)
    same_everywhere(path, "perf-script")


@RUN
@given(data=st.binary(max_size=60), at=st.integers(0, 60))
def test_any_bytes(data: bytes, at: int) -> None:
    """Nothing is read beyond the end, whatever the bytes are."""
    for module in KERNELS.values():
        if module is not None:
            module.Timed(np.empty((3, 4), np.int64)).read(data, at, 1)
            module.Samples({b"": 1}, {b"\n": 0}, {}, {}, 4, np.empty((6, 4), np.int64)).read(data, at, 1)


def test_places_outside_are_refused() -> None:
    three, six = np.zeros((3, 4), np.int64), np.zeros((6, 4), np.int64)
    for module in filter(None, KERNELS.values()):
        for reader in (module.Timed(three), module.Samples({}, {}, {}, {}, 4, six)):
            with pytest.raises(ValueError, match="before the first"):
                reader.read(b"a\n", -1, 1)
        with pytest.raises(ValueError, match="3 columns"):
            module.Timed(six)
        with pytest.raises(ValueError, match="6 columns"):
            module.Samples({}, {}, {}, {}, 4, three)
        with pytest.raises(ValueError, match="no room"):
            module.Samples({}, {}, {}, {}, 0, six)
