"""Temporary files in place of memory: the same bytes come out, nothing stays behind, and a full disk is one line."""

from __future__ import annotations

import gzip
import mmap
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from tests import HANG_S
from tests.benchmarks.generate import generate
from tests.golden import ROOT, Case, cases
from traceconv import api
from traceconv.errors import OutputError, UsageError
from traceconv.io import spill
from traceconv.io.source import Source
from traceconv.io.spill import Memory, free_bytes, parse_size
from traceconv.model import columns, event_tables
from traceconv.model.args import Args
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.columns import Column, in_one_file
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import TABLES, SliceId, StackId, Trace
from traceconv.model.track_table import TrackId

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
LOG = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
CLOCK = ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC, 10)
BASE = 96 << 20
ALL = 1  # less than any command takes: everything goes to files


def _one_per_format() -> Iterator[Case]:
    seen = set()
    for case in cases():
        if case.format not in seen and case.format != "merge" and (case.folder / "expect.txt").exists():
            seen.add(case.format)
            yield case


def is_mapped(args: Args) -> bool:
    return any(isinstance(part, mmap.mmap) for part in args.parts)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def few_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns go to a file however few rows there are."""
    monkeypatch.setattr(event_tables, "_WORTH_A_FILE", 1)


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "traceconv", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False, **options)


# -- the outputs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", list(_one_per_format()), ids=lambda case: case.format)
@pytest.mark.usefixtures("few_rows_too")
def test_same_bytes(case: Case, tmp_path: Path, temporary: Path) -> None:
    source = case.named_input(tmp_path)
    for ending in ("pftrace", "json"):
        outputs = []
        for name, budget in (("kept", None), ("spilled", ALL)):
            output = tmp_path / f"{name}.{ending}"
            result = api.convert(source, output, format=case.format, options=case.options, memory=budget)
            args = result.trace.args
            assert is_mapped(args) == (budget is not None and len(args) > 0)
            assert bool(result.trace.mappings) == (budget is not None and any(result.trace.counts().values()))
            outputs.append(output.read_bytes())
        assert outputs[0] == outputs[1]
    assert os.listdir(temporary) == []


@pytest.mark.parametrize(
    "case",
    [
        "furiosa-table/csv",
        "furiosa-table/csv-odd-rows",
    ],
)
@pytest.mark.usefixtures("few_rows_too")
def test_same_bytes_if_rows_wait_in_files(
    case: str, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = (ROOT / case).glob("input.*")
    in_files: list[int] = []

    def spied(found: Any) -> Any:
        in_files.append(len(found))
        return in_one_file(found)

    monkeypatch.setattr(columns, "in_one_file", spied)
    monkeypatch.setattr(event_tables, "_ROWS_BETWEEN_LOOKS", 2)
    outputs = []
    for name, budget in (("kept.pftrace", None), ("spilled.pftrace", ALL)):
        api.convert(source, tmp_path / name, memory=budget)
        outputs.append((tmp_path / name).read_bytes())
    assert outputs[0] == outputs[1]
    assert len(in_files) >= 2  # the rows that the importer keeps, and those of the trace
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("case", ["furiosa-table/printed", "tvm-debugger/two-ranks", "tvm-profile/vm-json"])
def test_all_bytes_of_args_are_args_of_events(case: str) -> None:
    (source,) = (ROOT / case).glob("input.*")
    trace = api.read(source)
    with_args = (trace.slices, trace.instants, trace.logs)
    used = {place for table in with_args for place in zip(table.args_at.tolist(), table.args_len.tolist(), strict=True)}
    assert sum(length for _, length in used) == len(trace.args) > 0


@pytest.mark.usefixtures("few_rows_too")
def test_same_bytes_of_a_merge(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_files: list[int] = []

    def spied(found: Any) -> Any:
        in_files.append(len(found))
        return in_one_file(found)

    monkeypatch.setattr(columns, "in_one_file", spied)
    outputs = []
    for name, budget in (("kept.pftrace", None), ("spilled.pftrace", ALL)):
        result = api.merge([KINETO, LOG], tmp_path / name, memory=budget)
        assert is_mapped(result.trace.args) == (budget is not None)
        outputs.append((tmp_path / name).read_bytes())
    assert len(in_files) == 4  # one for each input, for what is moved in time, and for what comes out
    assert outputs[0] == outputs[1]
    assert os.listdir(temporary) == []


def test_the_command(tmp_path: Path, temporary: Path) -> None:
    source = tmp_path / "trace.json"
    generate(source, 20_000)
    outputs = []
    for name, more in (("kept.pftrace", []), ("spilled.pftrace", ["--memory", "1K"])):
        done = process("convert", source, "-o", tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
        outputs.append((tmp_path / name).read_bytes())
    assert outputs[0] == outputs[1]
    assert os.listdir(temporary) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process by itself")
@pytest.mark.parametrize(("ending", "to"), [("json", "pftrace"), ("json", "json"), ("pftrace", "pftrace")])
def test_less_memory_is_used(ending: str, to: str, tmp_path: Path, temporary: Path) -> None:
    source = tmp_path / "trace.json"
    generate(source, 150_000)  # of half as much, what a process takes otherwise hides the difference
    if ending == "pftrace":
        source = tmp_path / "trace.pftrace"
        api.convert(tmp_path / "trace.json", source)
    args = len(api.read(source).args)
    peaks = [_peak(source, to, budget) for budget in (1 << 40, ALL)]
    assert peaks[0] - peaks[1] > 0.5 * args


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process by itself")
def test_columns_are_let_go_of(tmp_path: Path, temporary: Path) -> None:
    """Without args only columns can go to files: 48 bytes a slice, of which each step looks at some."""
    source, count = tmp_path / "trace.json", 1_500_000
    event = '{"ph":"X","name":"n","pid":1,"tid":%d,"ts":%d,"dur":1}'
    source.write_text(f"[{','.join(event % (i % 4, 2 * i) for i in range(count))}]")
    peaks = [_peak(source, "pftrace", budget) for budget in (1 << 40, ALL)]
    assert peaks[0] - peaks[1] > 24 * count


def _peak(source: Path, to: str, budget: int) -> int:
    """The bytes of memory that a conversion takes at most."""
    code = (
        "import sys; from traceconv import api; api.convert(*sys.argv[1:3], memory=int(sys.argv[3])); "
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, str(source), str(source.with_name(f"{budget}.out.{to}")), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=True)
    return int(done.stdout) << 10


# -- what decides -----------------------------------------------------------------------------------------------------


def _trace(memory: Memory | None = None, count: int = 1000, size: int = 0, tracks: int = 1) -> Trace:
    out = Builder(SourceInfo("a", "test"), CLOCK, memory)
    track = [out.tracks.add("t") for _ in range(tracks)][-1]
    for number in range(count):
        out.slice(track, number, 1, "s", args=_args(number, size))
    return out.finish()


def _args(number: int, size: int = 0) -> bytes:
    return b'{"i":%d,"text":"%s"}' % (number, b"x" * size)


@pytest.mark.parametrize(("budget", "spills"), [(BASE + (1 << 20), False), (BASE + 1000, True)])
def test_the_budget_decides(budget: int, spills: bool) -> None:
    trace = _trace(Memory(budget))
    assert is_mapped(trace.args) == spills
    places = zip(trace.slices.args_at.tolist(), trace.slices.args_len.tolist(), strict=True)
    assert [trace.args.get(*place) for place in places] == [_args(number) for number in range(1000)]


def test_inputs_share_the_budget() -> None:
    memory = Memory(BASE + 900_000)
    assert [is_mapped(_trace(memory, 300, 1000).args) for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(("rows", "tracks", "spills"), [(1000, 1, False), (7000, 1, True), (1000, 1700, True)])
def test_rows_and_tracks_count_too(rows: int, tracks: int, spills: bool) -> None:
    assert is_mapped(_trace(Memory(BASE + 500_000), rows, tracks=tracks).args) == spills


def test_args_that_come_one_by_one_are_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_tables, "_PART_BYTES", 1000)
    kept, spilled = _trace(Memory(1 << 30)), _trace(Memory(ALL))
    assert len(kept.args.parts) > 10
    assert [type(part) for part in spilled.args.parts] == [mmap.mmap]
    assert b"".join(kept.args.parts) == spilled.args.parts[0][:]


def test_args_let_go_come_back() -> None:
    trace = _trace(Memory(ALL))
    view = trace.args.view(0, len(_args(0)))
    for _ in range(3):
        trace.args.forget()
        assert bytes(view) == _args(0)


def test_columns_go_to_files_after_the_args() -> None:
    # 48 bytes a row, and an estimate of 32 for sorting it: 10,000 rows take 0.8 MB.
    for budget, in_files in ((BASE + 900_000, False), (BASE + 700_000, True)):
        trace = _trace(Memory(budget), 10_000, 1000)
        assert (is_mapped(trace.args), bool(trace.mappings)) == (True, in_files)
        assert trace.slices.ts.tolist() == list(range(10_000))


def test_few_rows_stay_in_memory() -> None:
    assert not _trace(Memory(ALL)).mappings


def test_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_SMALL_BYTES", 0)
    for free, spills in ((2 * BASE, True), (4 * BASE, False), (None, False)):
        monkeypatch.setattr(spill, "free_bytes", lambda free=free: free)
        assert is_mapped(_trace().args) == spills


def test_what_the_inputs_have_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is free: 500 MB are above what 1000 rows take, and below what 4 million do."""
    monkeypatch.setattr(spill, "free_bytes", lambda: 1 << 40)
    for size, rows, is_short in (
        (0, 1000, False),
        (0, 4_000_000, False),
        (0, 6_000_000, True),
        (1 << 28, 6_000_000, False),
    ):
        memory = Memory()
        memory.add_input(lambda size=size: size)
        user = memory.parts()
        user.rows, user.row_bytes = rows, 48 * rows
        assert memory.is_short_for_columns() == is_short


def test_what_a_merge_needs_is_kept_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "free_bytes", lambda: 1 << 40)
    found = []
    for inputs in (1, 2):
        memory = Memory()
        for _ in range(inputs):
            memory.add_input(lambda: 1000)
        user = memory.parts()
        user.rows, user.row_bytes = 4_000_000, 48 * 4_000_000
        found.append(memory.is_short_for_columns())
    assert found == [False, True]


def test_the_size_of_an_input(tmp_path: Path) -> None:
    """Of an archive what was unpacked so far, also while it is read once more; of a file what it has."""
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_bytes(b"[%s]" % (b" " * 1_000_000))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert Source(plain).size == 0
    for path in (plain, packed):
        source = Source(path)
        with source.open() as stream:
            begun = source.size
            stream.read()
        assert begun < 500_000 if path is packed else begun == 1_000_002
        assert source.size == 1_000_002
        source.head()
        assert source.size == 1_000_002


@pytest.mark.usefixtures("few_rows_too")
@pytest.mark.parametrize("ending", ["pftrace", "json"])
def test_same_bytes_whatever_the_order(ending: str, tmp_path: Path, temporary: Path) -> None:
    """Begins and ends, overlaps, ties, flows and times in no order, in files and in memory."""
    events = []
    for number in range(4000):
        at, tid = (number * 7919) % 4001, number % 7
        events.append(f'{{"ph":"X","name":"x{number % 5}","pid":1,"tid":{tid},"ts":{at},"dur":{number % 11}}}')
        events.append(f'{{"ph":"B","name":"b","pid":1,"tid":{9 + tid},"ts":{at}}}')
        events.append(f'{{"ph":"E","pid":1,"tid":{9 + tid},"ts":{at + number % 3},"args":{{"n":{number}}}}}')
        events.append(f'{{"ph":"{"sf"[number % 2]}","id":{number // 2},"name":"f","pid":1,"tid":{tid},"ts":{at}}}')
        events.append(f'{{"ph":"i","name":"i","pid":1,"tid":{tid},"ts":{at}}}')
        events.append(f'{{"ph":"C","name":"c","pid":1,"ts":{at},"args":{{"v":{number}}}}}')
    source = tmp_path / "trace.json"
    source.write_text(f"[{','.join(events)}]")
    outputs = []
    for name, budget in (("kept", 1 << 40), ("spilled", ALL)):
        output = tmp_path / f"{name}.{ending}"
        result = api.convert(source, output, memory=budget)
        assert bool(result.trace.mappings) == (budget == ALL)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
    assert os.listdir(temporary) == []


def test_little_is_never_spilled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "free_bytes", lambda: 0)
    assert not is_mapped(_trace().args)


def test_what_is_free_here() -> None:
    free = free_bytes()
    assert free is None or 0 <= free < 1 << 60


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 600\ninactive_file 100"}, 400),
        ({"memory.max": "max", "memory.current": "700", "memory.stat": "anon 600"}, None),
        ({"memory.max": "500", "memory.current": "700", "memory.stat": "anon 700"}, 0),
        (
            {"memory.limit_in_bytes": "1000", "memory.usage_in_bytes": "700", "memory.stat": "total_inactive_file 50"},
            350,
        ),
        ({}, None),
    ],
)
def test_the_limit_of_a_group(files: dict[str, str], free: int | None, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content + "\n")
    assert spill._of_group(tmp_path) == free


@pytest.mark.parametrize(
    ("text", "size"),
    [("2G", 2 << 30), ("500M", 500 << 20), ("1.5GiB", 3 << 29), ("64kb", 64 << 10), ("1t", 1 << 40), ("4096", 4096)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "0G", "-1G", "2X", "half", "1e9", "nan", "G", "٢G"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError, match="not a size of memory"):
        parse_size(text)


def test_a_wrong_size_is_one_line(tmp_path: Path) -> None:
    done = process("convert", KINETO, "-o", tmp_path / "out.pftrace", "--memory", "much")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: --memory much: not a size of memory",
        "hint: give a unit, such as 2G or 500M",
    ]


# -- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.uint8])
@pytest.mark.parametrize("spills", [(), (0,), (3,), (3, 3, 7), (10,)])
def test_a_column_is_what_was_put_in(dtype: Any, spills: tuple[int, ...]) -> None:
    column = Column(dtype)
    for number in range(10):
        for _ in range(spills.count(number)):
            column.spill()
        if number % 2:
            column.append(number)
        else:
            column.frombytes(np.array([number], dtype).tobytes())
        assert len(column) == number + 1
        assert column.numbers().tolist() == list(range(number + 1))
    assert column.numbers().dtype == dtype


def test_columns_in_one_file() -> None:
    columns = [Column(dtype) for dtype in (np.uint8, np.int64, np.int32, np.float64, np.uint8)]
    for number, column in enumerate(columns):
        for value in range(3 + number):
            column.append(value)
        if number % 2:
            column.spill()
        column.append(100)
    columns.append(Column(np.int64))  # without numbers
    arrays, mapping = in_one_file(columns)
    assert [one.tolist() for one in arrays] == [[*range(3 + number), 100] for number in range(5)] + [[]]
    assert all(one.flags.aligned for one in arrays)
    arrays[1][:] = arrays[1][::-1].copy()
    spill.forget(mapping)
    assert arrays[1].tolist() == [100, 3, 2, 1, 0]


def test_columns_in_one_file_that_end_oddly() -> None:
    columns = [Column(np.uint8), Column(np.int64)]
    columns[0].append(1)
    assert [one.tolist() for one in in_one_file(columns)[0]] == [[1], []]


_VERBS: dict[str, Callable[[Builder, TrackId, int], object]] = {
    "slices": lambda out, track, ts: out.slice(track, ts, 1, "s"),
    "instants": lambda out, track, ts: out.instant(track, ts, "i"),
    "counters": lambda out, track, ts: out.counter(track, ts, 1),
    "samples": lambda out, track, ts: out.sample(track, ts, StackId(-1)),
    "logs": lambda out, track, ts: out.log(track, ts, "text"),
    "flows": lambda out, track, ts: out.flow(SliceId(ts), SliceId(ts), "f"),
}


@pytest.mark.usefixtures("few_rows_too")
@pytest.mark.parametrize("table", _VERBS)
def test_columns_spill_while_they_grow(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_tables, "_ROWS_BETWEEN_LOOKS", 100)
    out = Builder(SourceInfo("a", "test"), CLOCK, Memory(ALL))
    track = out.tracks.add("t")
    spilled = []
    for number in range(1000):
        _VERBS[table](out, track, number)
        spilled.append(out.tables.columns[table]["origin"].is_spilled)
    assert spilled.index(True) == 99
    trace = out.finish()
    assert len(getattr(trace, table).origin) == 1000
    assert trace.mappings


def test_what_is_spilled_stays_so() -> None:
    """However few rows wait elsewhere in the end: what comes out of a file alone could not be sorted in place."""
    out = Builder(SourceInfo("a", "test"), CLOCK, Memory(BASE + 2_000_000))
    track = out.tracks.add("t")
    for number in range(10_000):
        out.slice(track, -number, 1, "s")
    out.tables.args_part(b"", waiting=20_000)
    trace = lay_out(out.finish())
    assert trace.mappings
    assert trace.slices.ts.tolist() == list(range(-9_999, 1))


def test_a_view_outlives_a_spill() -> None:
    column = Column(np.int64)
    column.append(1)
    view = column.numbers()
    column.spill()
    column.append(2)
    assert (view.tolist(), column.numbers().tolist()) == ([1], [1, 2])
    kept = Column(np.int64)
    kept.append(3)
    view = kept.numbers()
    assert in_one_file([kept])[0][0].tolist() == view.tolist() == [3]


@pytest.mark.usefixtures("few_rows_too")
def test_events_beside_spilled_columns() -> None:
    traces = []
    for memory in (Memory(), Memory(ALL)):
        out = Builder(SourceInfo("a", "test"), CLOCK, memory)
        track = out.tracks.add("t")
        for number in range(100):
            out.slice(track, 3 * number, 2, "s")
            out.begin(track, 1000 + number, "b")
            out.end(track, 1000 + number)
            out.instant(track, number, "i")
            if number % 10 == 0:
                out.tables.args_part(b"")
        assert (out.tables.slice_count, out.tables.first_ts(), out.tables.last_ts()) == (100, 0, 1099)
        assert out.tables.slice_columns("ts")[0].tolist() == [3 * number for number in range(100)]
        traces.append(out.finish())
    kept, spilled = traces
    assert spilled.mappings
    assert not kept.mappings
    for name in TABLES:
        table, other = getattr(kept, name), getattr(spilled, name)
        for column in fields(table):
            assert getattr(other, column.name).tolist() == getattr(table, column.name).tolist()


# -- a disk that is full ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -1, "2G", 1.5])
def test_no_budgets(size: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a number of bytes"):
        api.convert(KINETO, tmp_path / "out.pftrace", memory=size)


def test_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(OutputError, match=r"temporary file in .*/none: No such file or directory") as failed:
        api.convert(KINETO, tmp_path / "out.pftrace", memory=ALL)
    assert "TMPDIR" in failed.value.hint
    assert os.listdir(tmp_path) == []


def _no_larger_files(size: int) -> Callable[[], None]:
    return partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("has_args", [False, True])
@pytest.mark.parametrize(
    ("command", "size"), [("convert", 1 << 16), ("convert", 651_264), ("convert", 1_000_000), ("merge", 651_264)]
)
def test_a_file_that_cannot_grow(command: str, has_args: bool, size: int, tmp_path: Path, temporary: Path) -> None:
    source = tmp_path / "trace.json"
    if has_args:
        generate(source, 20_000)
    else:
        event = '{"ph":"X","name":"n","pid":1,"tid":1,"ts":%d,"dur":1}'
        source.write_text(f"[{','.join(event % (2 * i) for i in range(200_000))}]")
    output = tmp_path / "out.pftrace"
    done = process(command, source, "-o", output, "--memory", "1K", preexec_fn=_no_larger_files(size))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: temporary file in {temporary}: File too large",
        "hint: name a folder with room by TMPDIR, or allow more by --memory",
    ]
    assert sorted(os.listdir(tmp_path)) == ["temporary", "trace.json"]
    assert os.listdir(temporary) == []


def test_copies_of_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes through a pipe, and the lines of each writer of a log, lie in temporary files, too."""
    monkeypatch.setattr(spill, "_SPOOL_BYTES", 1000)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    for source in (KINETO, _of_two_writers(tmp_path)):
        pipe = tmp_path / f"{source.name}.pipe"
        os.mkfifo(pipe)
        writer = Thread(target=pipe.write_bytes, args=(source.read_bytes(),))
        writer.start()
        with pytest.raises(OutputError, match=r"temporary file in .*/none: No such file or directory"):
            api.read(pipe)
        writer.join()
    with pytest.raises(OutputError, match=r"temporary file in .*/none: No such file or directory"):
        api.read(_of_two_writers(tmp_path))


def _of_two_writers(folder: Path) -> Path:
    log = folder / "two.log"
    lines = LOG.read_text().splitlines()
    log.write_text("".join(f"[rank{rank}]: {line}\n" for line in lines for rank in (0, 1)))
    return log
