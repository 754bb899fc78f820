"""What the goldens of nvprof do not pin: sums, hostile values, the safety of the database, merging, odd texts."""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.golden import ROOT
from tests.make_nvprof import ASSUMED, EPOCH, PID, PREFIX, SCHEMA, THREAD, Profile, make, vector_add
from traceconv.api import read
from traceconv.errors import MalformedInput, TraceconvError
from traceconv.families.common.cupti import DRIVER_CALLS, RUNTIME_CALLS
from traceconv.families.nvprof.activities import DAMAGED, metric_value
from traceconv.families.nvprof.console import MOVED_START, cells_of, header_of, time_ns, value_of
from traceconv.families.registry import identify
from traceconv.io.source import Source
from traceconv.io.sqlite import quoted
from traceconv.model.diagnostics import Severity
from traceconv.model.layout import lay_out, validate
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

VECTOR_ADD = "vectorAdd(float const*, float const*, float*, int)"


def sums(trace: Trace, *categories: str) -> dict[str, tuple[int, int]]:
    """For each name the number of slices and the sum of their lengths in ns."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    table = trace.slices
    for name, category, dur in zip(table.name, table.category, table.dur.tolist(), strict=True):
        if trace.strings[category] in categories:
            count, total = found[trace.strings[name]]
            found[trace.strings[name]] = count + 1, total + dur
    return dict(found)


def printed(ns: int) -> str:
    """A time as nvprof prints it: five digits and a unit."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.{4 - len(str(ns // size)) + 1}f}{unit}"
    return f"{ns}ns"


def summary(groups: dict[str, dict[str, tuple[int, int]]]) -> str:
    """The summary that nvprof would print about these counts and sums."""
    lines = ["==4711== Profiling result:"]
    lines += ["            Type  Time(%)      Time     Calls       Avg       Min       Max  Name"]
    for group, rows in groups.items():
        whole = sum(total for _, total in rows.values())
        label = f"{group}:"
        for name, (count, total) in rows.items():
            times = "  ".join(f"{printed(ns):>8}" for ns in (total // count,) * 3)
            share = f"{100 * total / whole:.2f}%"
            lines += [f"{label:>16}  {share:>7}  {printed(total):>8}  {count:>8}  {times}  {name}"]
            label = ""
    return "\n".join(lines) + "\n"


def totals(trace: Trace) -> dict[str, dict[str, Any]]:
    """The args of the rows of totals by name."""
    import msgspec

    table = trace.instants
    return {
        trace.strings[name]: msgspec.json.decode(trace.args.get(at, length))
        for name, at, length in zip(table.name, table.args_at, table.args_len, strict=True)
    }


def test_totals_agree_with_the_summary(tmp_path: Path) -> None:
    """The same program as a database and as a summary: equal counts, and times equal to the digits printed."""
    rng = random.Random(7)
    profile = Profile(tmp_path / "run.nvvp")
    true: dict[str, dict[str, tuple[int, int]]] = {"GPU activities": {}, "API calls": {}}

    def add(group: str, name: str, dur: int) -> None:
        count, total = true[group].get(name, (0, 0))
        true[group][name] = count + 1, total + dur

    for step in range(500):
        start, dur, call = step * 1_000_000, rng.randint(1_000, 900_000), rng.randint(2_000, 20_000)
        name = rng.choice(("gemm", "relu", "softmax"))
        profile.kernel(name, start + 30_000, dur, profile.call("cudaLaunchKernel", start, call))
        add("GPU activities", name, dur)
        add("API calls", "cudaLaunchKernel", call)
    profile.close()
    (tmp_path / "run.log").write_text(summary(true))
    trace, text = read(tmp_path / "run.nvvp"), read(tmp_path / "run.log")
    rows = totals(text)
    for group, categories in (("GPU activities", ("kernel",)), ("API calls", ("cuda_runtime", "cuda_driver"))):
        found = sums(trace, *categories)
        assert found == true[group]
        for name, (count, total) in found.items():
            assert rows[name]["calls"] == count
            assert rows[name]["time_ns"] == pytest.approx(total, rel=1e-4)
            assert rows[name]["avg_ns"] == pytest.approx(total / count, rel=1e-4)


def test_gpu_trace_text_keeps_its_durations() -> None:
    """Coarse starts are moved, lengths never."""
    trace = read(Path("golden/nvprof-text/gpu-trace/input.log"))
    assert sums(trace, "kernel")["void gemm<float, int=4>(float*, int)"] == (2, 9_000)
    assert sums(trace, "memcpy") == {"[CUDA memcpy HtoD]": (2, 44_128), "[CUDA memcpy DtoH]": (1, 20_000)}


def test_moved_starts_are_said_without_asking() -> None:
    said = read(Path("golden/nvprof-text/gpu-trace/input.log")).sources[0].diagnostics
    (moved,) = [one for one in said if one.code is MOVED_START]
    assert moved.code.severity > Severity.INFO


def test_csv_keeps_its_durations_where_starts_are_coarser() -> None:
    """Copies of unified memory overlap by less than the last digit of their starts."""
    trace = read(Path("golden/nvprof-text/unified-memory-csv/input.csv"))
    assert trace.clocks[0].resolution_ns == 1000
    assert sums(trace, "unified_memory") == {
        "[Unified Memory Memcpy HtoD]": (3, 1_728 + 5_760 + 1_696),
        "[Unified Memory Memcpy DtoH]": (2, 1_056 + 5_312),
    }
    starts = [int(ts) for ts in trace.slices.ts if ts > 485_400_000]
    assert sorted(starts) == [485_470_000, 485_471_000, 485_476_000, 486_060_000, 486_061_000]


def test_rows_without_a_duration_are_instants() -> None:
    trace = read(Path("golden/nvprof-text/unified-memory/input.log"))
    assert trace.instants.ts.tolist() == [477_300_000, 477_600_000, 486_040_000]
    assert trace.sources[0].balance.skipped == {"lines of the program": 1}


@pytest.mark.parametrize(("value", "version"), [("X'fffe'", None), ("1.5", None), ("'11'", 11), ("NULL", None)])
def test_the_version_of_a_database_can_be_anything(tmp_path: Path, value: str, version: int | None) -> None:
    path = tmp_path / "profile.nvvp"
    path.write_bytes(Path("golden/nvprof/vector-add/input.nvvp").read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE Version SET version = {value}")
        connection.commit()
    assert read(path).metadata["nvprof"].get("schema_version") == version


def test_the_names_of_calls_are_at_their_numbers() -> None:
    """Known ids, so that a shifted table cannot pass."""
    known = {13: "cudaLaunch", 135: "cudaEventRecord", 197: "cudaStreamAddCallback", 211: "cudaLaunchKernel"}
    known |= {
        214: "cudaLaunchKernel_ptsz",
        284: "cudaLaunchHostFunc",
        311: "cudaGraphLaunch",
        336: "cudaGetFuncBySymbol",
    }
    assert {number: RUNTIME_CALLS[number] for number in known} == known
    driver = {
        1: "cuInit",
        3: "cuDeviceGet",
        10: "cuCtxCreate",
        115: "cuLaunch",
        307: "cuLaunchKernel",
        514: "cuGraphLaunch",
    }
    assert {number: DRIVER_CALLS[number] for number in driver} == driver
    assert RUNTIME_CALLS[ASSUMED["cbid cudaMemset"]] == "cudaMemset"


ODD = (None, -1, 0, 2**63 - 1, -(2**63), 1.5, float("inf"), "text", "", b"", b"\xff" * 7, 2**32, EPOCH)


@pytest.mark.parametrize("table", SCHEMA)
def test_any_value_in_any_column(table: str, tmp_path: Path) -> None:
    """SQLite stores what it is given: nothing but our own errors, counted losses, and an even balance."""
    rng = random.Random(table)
    profile = Profile(tmp_path / "odd.nvvp")
    vector_add(profile)
    columns = [name.rstrip("!") for name in SCHEMA[table].split()]
    for _ in range(60):
        sound = {"start": EPOCH + 5, "end": EPOCH + 9, "timestamp": EPOCH + 7, "correlationId": 104, "processId": PID}
        row = {name: sound.get(name, 1) for name in columns}
        row |= {rng.choice(columns): rng.choice(ODD) for _ in range(rng.randint(1, 3))}
        profile.add(table, **row)
    profile.close()
    trace = read(tmp_path / "odd.nvvp")
    assert trace.sources[0].balance.even
    validate(trace)
    assert sums(trace, "kernel")[VECTOR_ADD][0] >= 1


def test_work_without_an_id_is_of_none_of_several_processes(tmp_path: Path) -> None:
    (source,) = (ROOT / "nvprof" / "two-processes").glob("input.*")
    shutil.copyfile(source, path := tmp_path / "odd.nvvp")
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("CONCURRENT_KERNEL", "MEMCPY"):
            database.execute(f"update CUPTI_ACTIVITY_KIND_{table} set correlationId = ?", (EPOCH,))
    trace = read(path)
    validate(trace)
    categories = [trace.strings[number] for number in trace.slices.category.tolist()]
    tracks = {track for track, cat in zip(trace.slices.track.tolist(), categories, strict=True) if cat == "kernel"}
    assert tracks
    for track in tracks:
        while trace.tracks[track].parent >= 0:
            track = trace.tracks[track].parent
        assert trace.tracks[track].kind is not TrackKind.PROCESS


@pytest.mark.slow
def test_a_table_may_lack_any_column(tmp_path: Path) -> None:
    """Other versions: every second column of each table is left out in turn."""
    for table, text in SCHEMA.items():
        for left_out in text.split()[::2]:
            kept = " ".join(name for name in text.split() if name != left_out)
            profile = Profile(tmp_path / "old.nvvp", {table: kept})
            other = "DRIVER" if table == "RUNTIME" else "RUNTIME"  # of what holds no row that can be read nothing comes
            for name, columns in ((table, kept), (other, SCHEMA[other])):
                names = [column.rstrip("!") for column in columns.split()]
                profile.bulk(name, names, [tuple(EPOCH if one in ("start", "end") else 1 for one in names)])
            profile.close()
            trace = read(tmp_path / "old.nvvp")
            assert trace.sources[0].balance.even, (table, left_out)
            (tmp_path / "old.nvvp").unlink()


def test_the_database_is_only_read(tmp_path: Path) -> None:
    """Same bytes afterwards, nothing beside it; views and triggers under the names of tables stay without effect."""
    path = make("vector-add", tmp_path / "run.nvvp")
    connection = sqlite3.connect(path)
    connection.execute(f"DROP TABLE {PREFIX}MEMSET")
    connection.execute(f"CREATE VIEW {PREFIX}MEMSET AS SELECT load_extension('evil') AS start, 1 AS end")
    connection.execute(f"CREATE TRIGGER t AFTER INSERT ON {PREFIX}MEMCPY BEGIN DELETE FROM StringTable; END")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    trace = read(path)
    assert sums(trace, "kernel", "memset") == {VECTOR_ADD: (1, 4_321)}
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.nvvp"]


@pytest.mark.parametrize("name", ['quo"te', f'X", "{PREFIX}X" a, "{PREFIX}X" b -- ', "a'; b", "ключ"])
def test_names_of_tables_are_only_names(name: str, tmp_path: Path) -> None:
    """Made by hand: no name becomes a part of a statement, such as a join of tables that would run for ever."""
    path = make("vector-add", tmp_path / "run.nvvp")
    expected = read(path)
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE {PREFIX}X(_id_ INTEGER PRIMARY KEY)")
    connection.executemany(f"INSERT INTO {PREFIX}X VALUES(?)", [(number,) for number in range(1, 21)])
    connection.execute(f"CREATE TABLE {quoted(PREFIX + name)}(a)")
    connection.execute(f"INSERT INTO {quoted(PREFIX + name)} VALUES(1)")
    connection.commit()
    connection.close()
    trace = read(path)
    assert trace.counts() == expected.counts()
    assert trace.sources[0].balance.read == expected.sources[0].balance.read + 21
    assert DAMAGED.name not in {entry.code.name for entry in trace.sources[0].diagnostics}


def test_threads_and_negative_numbers(tmp_path: Path) -> None:
    """A thread id that is stored as a signed number is one thread for calls and ranges."""
    profile = Profile(tmp_path / "run.nvvp")
    profile.call("cudaMalloc", 0, 100)
    about = struct.pack("<III", PID, THREAD & 0xFFFFFFFF, 0)
    marker = {"objectKind": 2, "objectId": about, "id": 1}
    profile.add("MARKER", flags=1, timestamp=EPOCH + 50, name=profile.text("mark"), **marker)
    profile.close()
    trace = lay_out(read(tmp_path / "run.nvvp"))
    assert trace.slices.track[0] == trace.instants.track[0]


def test_ranges_of_pytorch_are_operators(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "run.nvvp")
    profile.call("cudaMalloc", 0, 100)
    for number, text in enumerate(("aten::mm, seq = 3, op_id = 4", "forward, lr = 3"), 1):
        marker = {"objectKind": 2, "objectId": struct.pack("<III", PID, THREAD & 0xFFFFFFFF, 0), "id": number}
        profile.add("MARKER", flags=2, timestamp=EPOCH + 50, name=profile.text(text), **marker)
        profile.add("MARKER", flags=4, timestamp=EPOCH + 80, name=0, **marker)
    profile.close()
    trace = read(tmp_path / "run.nvvp")
    assert sums(trace, "cpu_op") == {"aten::mm": (1, 30)}
    assert sums(trace, "nvtx") == {"forward, lr = 3": (1, 30)}


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (struct.pack("<d", 0.5), 0.5),
        (struct.pack("<d", 0.0), 0),
        (struct.pack("<Q", 123456), 123456),
        (struct.pack("<q", -3), -3),
        (struct.pack("<d", float("inf")), "inf"),
        (b"\1\2", "0102"),
        (17, 17),
    ],
)
def test_metric_values(value: Any, number: Any) -> None:
    assert metric_value(value) == number


@pytest.mark.parametrize(
    ("text", "unit", "ns", "step"),
    [
        ("1.00263s", "", 1_002_630_000, 10_000),
        ("326.63ms", "", 326_630_000, 10_000),
        ("757ns", "", 757, 1),
        ("0.000001", "s", 1_000, 1_000),
        ("326,63ms", "", 326_630_000, 10_000),
    ],
)
def test_times_of_text(text: str, unit: str, ns: int, step: int) -> None:
    assert time_ns(text, unit) == (ns, step)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("195.31KB", ("_bytes", 199_997)),
        ("12.400GB/s", ("_gb_per_s", 13.3144)),
        ("87.50%", ("_percent", 87.5)),
        ("Low (2)", ("", "Low (2)")),
        ("<OVERFLOW>", ("", "<OVERFLOW>")),
        ("nan", ("", "nan")),
        ("1.5us", ("_ns", 1500)),
        ("9" * 30 + "ms", ("", "9" * 30 + "ms")),
    ],
)
def test_values_of_text(text: str, found: tuple[str, Any]) -> None:
    assert value_of(text) == found


def test_names_in_csv_with_commas_and_quotes() -> None:
    header = header_of('"Start","Duration","Name","Correlation_ID"')
    assert header is not None
    assert cells_of('1.0,2.0,"f<int, "a","b">(x, y)",7', header) == ["1.0", "2.0", 'f<int, "a","b">(x, y)', "7"]
    assert cells_of("1.0,2.0", header) == ["1.0", "2.0"]


@pytest.mark.parametrize("case", ["both-traces", "csv-imported", "summary", "metrics"])
def test_a_text_cut_anywhere(case: str, tmp_path: Path) -> None:
    """Each line is written, kept or counted wherever the text ends."""
    (source,) = Path(f"golden/nvprof-text/{case}").glob("input.*")
    whole = source.read_bytes()
    path = tmp_path / "cut.log"
    for end in range(0, len(whole), 37):
        path.write_bytes(whole[:end])
        try:
            trace = read(path, format="nvprof-text")
        except MalformedInput:
            continue
        assert trace.sources[0].balance.even
        assert trace.sources[0].balance.read == len(whole[:end].splitlines())


def test_prefixes_of_other_tools_are_not_nvprof(tmp_path: Path) -> None:
    path = tmp_path / "valgrind.log"
    path.write_text("==1234== Memcheck, a memory error detector\n==1234== HEAP SUMMARY:\n==== Start  Duration ====\n")
    with pytest.raises(TraceconvError):
        identify(Source(path))
