"""Inputs that would take far more than their size says: lines, names and args without end, what unpacks to far more."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests import HANG_S
from tests.golden import ROOT
from tests.kernels import using
from tests.make_perfetto import Packets
from tests.together import together
from traceconv import kernel
from traceconv.api import Output, convert, identify, read
from traceconv.check import check_file, chrome_json, chrome_rows, chrome_text, pftrace
from traceconv.cli import cli
from traceconv.errors import InputError, LostData, NothingRead
from traceconv.families.chrome import json_reader as _chrome_json
from traceconv.families.chrome.event import RowScanner
from traceconv.families.chrome.events import ChromeEvents
from traceconv.families.logs import timed_log
from traceconv.families.perf import container
from traceconv.families.perfetto.reader import PacketReader
from traceconv.io import limits
from traceconv.io.limits import Limits, Unpacked
from traceconv.io.source import Source
from traceconv.model import event_tables
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.drawable import LONG_ARG, LONG_NAME
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.reading import LONG_LINE

EVENT = {"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}
INFO = b"onednn_verbose,v1,info,oneDNN v3.5\n"
EXEC = b"onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:a::f0,,,16,0.25\n"
MB = 1 << 20


@pytest.fixture
def little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE_UNPACKED_BYTES", MB)


# -- unpacking --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("little_is_free")
def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps([EVENT]).encode()[:-1] + b"," + b" " * 8 * MB + b"]"))
    for command in (read, check_file, lambda one: convert(one, tmp_path / "out.json")):
        with pytest.raises(InputError, match="over 200 times") as error:
            command(path)
        assert "--max-ratio 0" in error.value.hint
    assert not (tmp_path / "out.json").exists()
    assert identify(path)[0] == "chrome-trace"
    for ratio in (0, 10_000):
        assert len(read(path, limits=Limits(ratio=ratio)).slices.ts) == 1
        assert check_file(path, limits=Limits(ratio=ratio)).counts["events"] == 1


def test_so_much_may_always_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps([EVENT]).encode()[:-1] + b" " * 8 * MB + b"]"))
    assert len(read(path).slices.ts) == 1


@pytest.mark.usefixtures("little_is_free")
def test_compressed_packets_count_as_unpacked(tmp_path: Path) -> None:
    packets, inner = Packets(), Packets()
    packets.descriptor(5, "work")
    packets.slice(10, 5, "op")
    for _ in range(20):
        inner.slice(10, 5, "x" * 100_000)
    packets.add(compressed_packets=zlib.compress(inner.bytes()))
    path = tmp_path / "a.pftrace"
    path.write_bytes(packets.bytes())
    for command in (read, check_file):
        with pytest.raises(InputError, match="over 200 times"):
            command(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pftrace, "check_pftrace", None)  # nothing is checked before all is counted
        with pytest.raises(InputError, match="over 200 times"):
            check_file(path)
    assert len(read(path, limits=Limits(ratio=0)).slices.ts) == 21


def test_compressed_records_of_perf_count_as_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []

    class Bomb:
        def decompress(self, data: bytes) -> bytes:
            fed.append(len(data))
            return bytes(MB)

    monkeypatch.setattr(container, "_new_stream", Bomb)
    monkeypatch.setattr(limits, "FREE_UNPACKED_BYTES", 4 * MB)
    with pytest.raises(InputError, match="over 200 times"):
        container.Unpacker(Unpacked("x", 1000, Limits())).add(bytes(64_000), "<")
    assert len(fed) == 5  # megabytes, and not all of the body at once


# -- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""], ids=["lf", "crlf", "none"])
def test_lines_that_are_too_long_are_passed_over(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    lines = [b"one", b"x" * 100, b"y" * 101, b"z" * 5000, b"", b"w" * 99]
    path.write_bytes(b"\n".join(lines) + end)
    source = Source(path, limits=Limits(length=100))
    assert [line.text for line in source.lines()] == [b"one", b"x" * 100, b"", b"", b"", b"w" * 99]
    assert list(source.long_lines) == [3, 4]
    again = Source(path, limits=Limits(length=100))
    assert list(b"".join(again.chunks()).splitlines()) == [line.text for line in source.lines()]
    assert list(again.long_lines) == [3, 4]


@pytest.mark.parametrize("module", [kernel.module("lines"), None], ids=["kernel", "python"])
def test_a_long_line_is_lost_and_said(module: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(INFO + EXEC + b"x" * 5000 + b"\n" + EXEC)
    with using("lines", module):
        trace = read(path, limits=Limits(length=1000))
        (entry,) = [one for one in trace.sources[0].diagnostics if one.code is LONG_LINE]
        assert (entry.count, entry.places) == (1, ["a.log:line 3"])
        assert len(trace.slices.ts) == 2
        assert trace.sources[0].balance.even
        assert read(path).sources[0].diagnostics.count(LONG_LINE) == 0
        with pytest.raises(LostData, match=r"source\.long_line"):
            convert(path, Output(tmp_path / "out.json", strict=True), limits=Limits(length=1000))


def test_a_long_line_of_one_writer_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(b"[rank%d]: " % (n % 2) + line for n, line in enumerate([INFO, INFO, EXEC, EXEC] * 3)))
    path.write_bytes(path.read_bytes() + b"[rank0]: " + b"x" * 5000 + b"\n")
    assert read(path, limits=Limits(length=1000)).sources[0].diagnostics.count(LONG_LINE) == 1


def test_a_document_of_one_line_is_no_long_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([EVENT] * 1000))
    trace = read(path, limits=Limits(length=1000))
    assert len(trace.slices.ts) == 1000
    assert trace.sources[0].diagnostics.lost == 0


def test_nothing_but_a_long_line_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes((ROOT / "nsight-compute" / "no_kernels" / "input.csv").read_bytes() + b'"0",' * 2000)
    with pytest.raises(NothingRead, match=r"source\.long_line"):
        read(path, format="nsight-compute", limits=Limits(length=1000))


# -- many lines -------------------------------------------------------------------------------------------------------

#: A text of each format that is read line by line.
TEXTS = [
    "deepsparse/analysis-csv",
    "deepsparse/analysis-text",
    "deepsparse/v030-sr",
    "furiosa-table/csv",
    "furiosa-table/printed",
    "furiosa-table/rngd-cycles",
    "mxnet-table/json-cut",
    "mxnet-table/v1.9-text",
    "nsight-compute/details",
    "nsight-compute/raw",
    "nvprof-text/both-traces",
    "nvprof-text/csv-imported",
    "onednn-verbose/v35-tensorflow-ts",
    "openvino/average",
    "openvino/report",
    "perf-report/one_event",
    "perf-script/stacks",
    "perf-stat/csv_cores",
    "perf-stat/text_intervals",
    "pytorch-table/conv",
    "rocprof/kernels",
    "timed-log/syslog",
    "tvm-debugger/start-and-end-times",
    "tvm-profile/graph-csv",
    "tvm-profile/graph-text",
    "vtune/external_tasks",
    "vtune/hotspots",
    "vtune/timeline",
]
UNITS = {"empty": b"\n", "blank": b" \n", "word": b"x\n", "number": b"0\n", "comma": b",\n", "crlf": b"\r\n"}
MANY = 20_000


def lines_looked_at(path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, int]:
    """What is read of a file, and how many lines of it an importer was handed."""
    handed: list[object] = []

    def counted(function: Any) -> Any:
        return lambda *args, **options: (handed.append(1), function(*args, **options))[1]

    def watched(function: Any) -> Any:
        return lambda *args, **options: (handed.append(one) or one for one in function(*args, **options))

    with monkeypatch.context() as patched:
        patched.setattr(Source, "lines", watched(Source.lines))
        patched.setattr(timed_log._TextReader, "_line", counted(timed_log._TextReader._line))
        options = {"time": "syslog"} if format == "timed-log" else {}
        return read(path, format=format, options=options), len(handed)


def events_of(trace: Trace) -> list[Any]:
    return [(len(table.ts), table.ts.tolist()) for table in (trace.slices, trace.instants, trace.counters)]


def check_idle_lines(name: str, unit: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted, and what comes behind them has the number that it has in the file."""
    folder = ROOT / name
    (source,) = folder.glob("input.*")
    text = source.read_bytes().rstrip(b"\n") + b"\n"
    format = folder.parent.name
    few, many = tmp_path / f"few{source.suffix}", tmp_path / f"many{source.suffix}"
    few.write_bytes(text + unit * 10 + b"!?\n")
    many.write_bytes(text + unit * (10 + MANY) + b"!?\n")
    expected, first = lines_looked_at(few, format, monkeypatch)
    found, second = lines_looked_at(many, format, monkeypatch)
    if format == "timed-log":
        assert second < first + MANY // 8  # times are looked for in the first 2000 lines of a log
    assert events_of(found) == events_of(expected)
    before, after = expected.sources[0].balance, found.sources[0].balance
    assert after.even
    if name not in ("deepsparse/analysis-text", "deepsparse/analysis-csv"):  # they count rows
        assert after.read == before.read + MANY
    last = text.count(b"\n") + 11
    moved = re.compile(rf"^few(.*:line ){last}\b")
    if format == "timed-log":  # they are in its entries, of which long ones are several
        return
    places = [place for one in expected.sources[0].diagnostics for place in one.places]
    assert [place for one in found.sources[0].diagnostics for place in one.places] == [
        moved.sub(rf"few\g<1>{last + MANY}", place).replace("few", "many", 1) for place in places
    ]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kernels", [True, False], ids=["kernel", "python"])
def test_lines_that_mean_nothing_are_counted_and_keep_their_numbers(
    name: str, kernels: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with together() as each, using("lines", kernel.module("lines") if kernels else None):
        for what, unit in UNITS.items():
            if name == "deepsparse/v030-sr" and what in ("word", "number", "comma"):
                continue  # what the program prints is in the timeline
            if not kernels and what not in ("word", "crlf"):
                continue  # the same lines of Python read them all
            with each(what):
                check_idle_lines(name, unit, tmp_path, monkeypatch)


def test_lines_that_mean_nothing_are_looked_at_again_behind_a_heading(tmp_path: Path) -> None:
    """What a line means may change: without a table it is none of ours, within one it is a row."""
    path = tmp_path / "a.csv"
    header, row = (ROOT / "tvm-profile" / "graph-csv" / "input.csv").read_bytes().splitlines(keepends=True)[:2]
    path.write_bytes(header + b"x\n" * 50 + row + b"x\n" * 50 + row)
    balance = read(path, format="tvm-profile").sources[0].balance
    assert (balance.read, balance.written, balance.skipped.total()) == (103, 2, 100)


def test_quoted_lines_of_rows_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    header, row = (ROOT / "rocprof" / "calls" / "input.csv").read_bytes().splitlines(keepends=True)[:2]
    name = row.split(b",")[1]
    quoted = row.replace(name, b'"a\n' + b"x\n" * 5 + b'b"')
    path.write_bytes(header + b"x\n" * 20 + quoted + b"x\n" * 20 + row)
    trace = read(path, format="rocprof")
    assert trace.sources[0].balance.skipped["skipped (rocprof.bad_row)"] == 40
    assert "a\n" + "x\n" * 5 + "b" in trace.strings
    assert trace.slices.origin.tolist() == [28, 49]


def test_lines_of_a_writer_mean_nothing_and_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    lines = [b"[rank%d]: " % (n % 2) + line for n, line in enumerate([INFO, INFO, *[EXEC, EXEC] * 10])]
    lines.insert(10, b"\n" * 1000)
    path.write_bytes(b"".join(lines))
    trace = read(path)
    assert trace.sources[0].balance.read == 1022
    assert trace.sources[0].balance.even
    assert sorted(trace.slices.origin.tolist()) == [*range(3, 11), *range(1011, 1023)]


# -- names and args ---------------------------------------------------------------------------------------------------


def test_long_names_are_cut_and_long_args_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    named = {**EVENT, "name": "n" * 5000, "args": {"a": 1, "long": "x" * 5000, "b": 2}}
    thread = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "t" * 5000}}
    path.write_text(json.dumps([thread, EVENT, named]))
    trace = read(path, limits=Limits(length=1000))
    found = trace.sources[0].diagnostics
    assert (found.count(LONG_NAME), found.count(LONG_ARG), found.lost) == (2, 1, 3)
    assert [trace.strings[name] for name in trace.slices.name.tolist()] == ["a", "n" * 1000]
    row = int(trace.slices.args_len.argmax())
    assert json.loads(trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row]))) == {
        "a": 1,
        "b": 2,
    }
    assert "t" * 1000 in [track.name for track in trace.tracks]
    assert len(read(path).sources[0].diagnostics) == 0


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("é" * 500, "é" * 500),
        ("é" * 501, "é" * 500),
        ("a" + "é" * 500, "a" + "é" * 499),  # no half of a character
        ("\U0001f600" * 251, "\U0001f600" * 250),
        ("日" * 334, "日" * 333),
    ],
)
def test_names_are_measured_in_bytes(name: str, cut: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{**EVENT, "name": name, "args": {name: 1}}], ensure_ascii=False), encoding="utf-8")
    trace = read(path, limits=Limits(length=1000))
    found = trace.sources[0].diagnostics
    assert (found.count(LONG_NAME), found.count(LONG_ARG)) == ((name != cut),) * 2
    assert trace.strings[int(trace.slices.name[0])] == cut


# -- memory and work --------------------------------------------------------------------------------------------------

MEASURED = """
import sys
from pathlib import Path
sys.argv = ["traceconv", *sys.argv[1:]]
from traceconv.__main__ import main
try:
    main()
except SystemExit as ended:
    (most,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    print(ended.code, most.split()[1])
"""


def measured(*arguments: object) -> tuple[int, int]:
    """The exit code of a command, and the memory that it took at most, in MB."""
    command = [sys.executable, "-c", MEASURED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=True)
    code, size = done.stdout.splitlines()[-1].split()
    return int(code), int(size) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak stands there")
@pytest.mark.parametrize("command", ["convert", "info", "identify"])
def test_a_line_without_end_takes_no_memory(command: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(INFO + EXEC)
        for _ in range(120):
            file.write(b"onednn_verbose," * (MB // 15))
    output = ["-o", tmp_path / "out.json"] if command == "convert" else []
    code, size = measured(command, path, *output)
    assert code == 0
    assert size < 150  # it took over 240


def runs_of_onednn(runs: int) -> bytes:
    """Runs of ten lines with the args that recorded lines have."""
    fields = b"src:f32:a:blocked:aBcd16b::f0 wei:f32:a:blocked:ABcd16b16a::f0 dst:f32:a:blocked:aBcd16b::f0"
    lines = [
        b"onednn_verbose,v1,%d.%06d,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,"
        % (1795244047598 + 2 * run, 100_000 * n % 1_000_000)
        + fields
        + b",attr-scratchpad:user,alg:convolution_direct,mb8_ic16oc32_ih14oh12kh3sh1dh0ph0,0.0%d\n" % n
        for run in range(runs)
        for n in range(10)
    ]
    return b"".join(INFO + b"".join(lines[at : at + 10]) for at in range(0, len(lines), 10))


def threads_of_chrome(threads: int) -> bytes:
    event = '{"ph":"X","name":"a","pid":%d,"tid":%d,"ts":%d,"dur":1}'
    return ("[" + ",".join(event % (tid // 8 + 1, tid, tid) for tid in range(1, threads + 1)) + "]").encode()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak stands there")
@pytest.mark.parametrize(
    ("made", "few", "many", "most_each"),
    [
        pytest.param(runs_of_onednn, 1000, 6000, 5, id="runs of oneDNN"),  # it was 10
        pytest.param(threads_of_chrome, 2000, 32_000, 1, id="threads of Chrome JSON"),  # it was 1.2
    ],
)
def test_many_runs_or_threads_take_little_memory_each(
    made: Callable[[int], bytes], few: int, many: int, most_each: float, tmp_path: Path
) -> None:
    """In KB, from the input to the output."""
    path = tmp_path / "input"
    sizes = []
    for count in (few, many):
        path.write_bytes(made(count))
        code, size = measured("convert", path, "-o", tmp_path / f"{count}.pftrace")
        assert code == 0
        sizes.append(size)
    assert sizes[1] - sizes[0] < most_each * (many - few) / 1024, sizes


@pytest.mark.parametrize("scan", [kernel.module("scan"), None], ids=["kernel", "python"])
@pytest.mark.parametrize("unit", ["{},", "{}, ", "{},\n"])
def test_empty_objects_cost_no_more_than_their_bytes(
    unit: str, scan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted, and what comes behind them has the number that it has in the file."""
    looked_at = []
    dispatch = ChromeEvents.dispatch
    monkeypatch.setattr(ChromeEvents, "dispatch", lambda *args: (looked_at.append(1), dispatch(*args)))
    path = tmp_path / "a.json"
    event = json.dumps(EVENT)
    path.write_text(f'[{event},{unit * 200_000}{event},{{"ph":"?"}},{unit * 30}{event}]')
    with using("scan", scan):
        trace = read(path, format="chrome-trace")
    balance = trace.sources[0].balance
    assert (balance.read, balance.written, balance.even) == (200_034, 3, True)
    assert balance.skipped["skipped (chrome.empty_event)"] == 200_030
    assert trace.slices.origin.tolist() == [1, 200_002, 200_034]
    (unknown,) = [one for one in trace.sources[0].diagnostics if one.code.name == "chrome.unknown_phase"]
    assert unknown.places == ["a.json:event 200003: '?'"]
    assert scan is None or len(looked_at) < 1000


@pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled")
def test_events_between_empty_objects_are_scanned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of empty objects had the rest of the buffer searched and its start copied."""
    scanned = []
    scan = RowScanner.scan
    monkeypatch.setattr(
        RowScanner, "scan", lambda self, data, start: (scanned.append(len(data) - start), scan(self, data, start))[1]
    )
    path = tmp_path / "a.json"
    event = json.dumps(EVENT)
    path.write_text("[" + f"{event},{'{},' * 64}" * 4000 + f"{event}]")
    trace = read(path, format="chrome-trace")
    assert len(trace.slices.ts) == 4001
    assert trace.sources[0].balance.skipped["skipped (chrome.empty_event)"] == 64 * 4000
    assert sum(scanned) < 2 * path.stat().st_size


def test_empty_objects_in_args_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{**EVENT, "args": {"a": [{}] * 100}}, EVENT], separators=(",", ":")))
    trace = read(path)
    assert len(trace.slices.ts) == 2
    assert max(trace.slices.args_len.tolist()) > 300
    assert len(trace.sources[0].diagnostics) == 0


@pytest.mark.parametrize("module", [kernel.module("packets"), None], ids=["kernel", "python"])
def test_empty_packets_cost_no_more_than_their_bytes(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    read_packet = PacketReader._read_packet
    monkeypatch.setattr(PacketReader, "_read_packet", lambda *args: (looked_at.append(1), read_packet(*args)))
    packets = Packets()
    packets.descriptor(5, "work")
    packets.slice(10, 5, "op")
    path = tmp_path / "a.pftrace"
    path.write_bytes(packets.bytes() + b"\n\0" * 500_000 + packets.bytes())
    with using("packets", module):
        trace = read(path)
    assert trace.sources[0].balance.read == 500_000 + 2 * 4
    assert trace.sources[0].balance.even
    assert len(trace.slices.ts) == 2
    assert len(looked_at) < 10
    assert check_file(path).counts["packets"] == 500_000 + 2 * 4


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak stands there")
@pytest.mark.parametrize("unit", ['{"a":1},', "{},", "[],"])
def test_a_check_takes_no_more_memory_than_the_file(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + unit * (12 * MB // len(unit)) + "{}]")
    code, size = measured("check", path)
    assert code == 1
    assert size < 120  # it took up to 500


@pytest.mark.parametrize("module", [kernel.module("lines"), None], ids=["kernel", "python"])
@pytest.mark.parametrize("time", [b"", b"1795245457236.579102,"])
def test_what_onednn_lines_say_is_kept_once_for_all_runs(time: bytes, module: Any, tmp_path: Path) -> None:
    """Each run had the args of its lines, and its header."""
    path = tmp_path / "a.log"
    line = EXEC.replace(b"v1,", b"v1," + time, 1)
    kept = []
    for runs in (2, 50):
        path.write_bytes((INFO + line + line.replace(b"0.25", b"0.5")) * runs)
        with using("lines", module):
            trace = read(path)
        assert len(trace.slices.ts) == 2 * runs
        assert [track.name for track in trace.tracks[::2]] == [f"oneDNN run {n}" for n in range(1, runs + 1)]
        assert trace.slices.track.tolist() == [2 * n + 1 for n in range(runs) for _ in range(2)]
        versions = {id(info["version"]) for info in trace.metadata["onednn_runs"]}
        kept.append((len(trace.args), len(versions)))
    assert kept[0] == kept[1]


def test_args_that_come_again_are_kept_once_and_long_or_old_ones_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_tables, "_MOST_RECENT", 2)
    monkeypatch.setattr(event_tables, "_LONGEST_RECENT", 16)
    out = Builder(SourceInfo("a", "b"), REALTIME)
    track = out.tracks.add("t")
    given = [{"a": 1}, {"a": 1}, {"a": 2}, {}, {"a": 1}, {"a": 3}, {"a": 1}, {"a": "long" * 9}, {"a": "long" * 9}]
    for ts, args in enumerate(given):
        out.instant(track, ts, "i", args=args)
    trace = out.finish()
    places = zip(trace.instants.args_at.tolist(), trace.instants.args_len.tolist(), strict=True)
    assert [json.loads(trace.args.get(*place) or "{}") for place in places] == given
    assert len(trace.args) == 4 * len('{"a":1}') + 2 * len('{"a":""}') + 2 * 36


def test_a_large_event_is_joined_a_few_times_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chunk of 4 MB that was read had all before it copied."""
    filled = []
    fill = _chrome_json.JsonBuffer.fill
    monkeypatch.setattr(
        _chrome_json.JsonBuffer, "fill", lambda self, *args: (filled.append(len(self.data)), fill(self, *args))[1]
    )
    monkeypatch.setattr(_chrome_json, "CHUNK_BYTES", 1 << 16)
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{**EVENT, "args": {"a": "x" * 8 * MB}}, EVENT]))
    trace = read(path)
    assert trace.slices.origin.tolist() == [1, 2]
    assert sum(filled) < 4 * path.stat().st_size


@pytest.mark.parametrize("unit", ["{},", "1,", '{"a":1},', '{"ph":"Z","pid":1},\n'])
def test_short_events_that_are_equal_are_checked_once(
    unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    one = chrome_json._Checker._event
    monkeypatch.setattr(chrome_json._Checker, "_event", lambda *args: (looked_at.append(1), one(*args))[1])
    path = tmp_path / "a.json"
    path.write_text("[" + unit * 200_000 + json.dumps(EVENT) + "]")
    report = check_file(path)
    assert report.counts["events"] == 200_001
    assert report.counts["slices"] == 1
    assert {problem.count for problem in report.problems} == {200_000}
    assert len(looked_at) < 1000


@pytest.mark.parametrize("window", [10, 1000])
def test_events_are_checked_some_at_a_time_with_the_same_outcome(
    window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [path.read_bytes() for path in sorted(ROOT.glob("*/*/input.json"))[::5]]
    inputs += [b"[{},,{}", b"[,{}]", b"[1]]", b"[ ]", b"[{},", b'[{"a":[{"b":1},{"c":2}]},{}']
    inputs += [text[: len(text) * 2 // 3] for text in inputs]
    expected = [chrome_json.check_chrome_json(text) for text in inputs]
    monkeypatch.setattr(chrome_text, "_WINDOW_BYTES", window)
    monkeypatch.setattr(chrome_text, "_TAIL_BYTES", window)
    assert [chrome_json.check_chrome_json(text) for text in inputs] == expected


def test_large_values_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    large = {**EVENT, "args": {str(n): n for n in range(1000)}, "other": [1] * 1000}
    path.write_text(json.dumps({"traceEvents": [large, EVENT], "metadata": {"a": "x" * 2000}}))
    assert [problem.code for problem in check_file(path).problems] == []
    monkeypatch.setattr(chrome_text, "LARGE_BYTES", 1000)
    report = check_file(path)
    assert [(one.code, one.count) for one in report.problems] == [("check-json.large_member", 2)]
    assert report.counts["slices"] == 2


def test_a_check_keeps_no_more_threads_and_shapes_than_recordings_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{**EVENT, "tid": tid, f"other {tid}": 1} for tid in range(1, 100)]))
    assert [problem.code for problem in check_file(path).problems] == []
    monkeypatch.setattr(chrome_rows, "_MOST_THREADS", 10)
    report = check_file(path)
    assert [(one.code, one.count) for one in report.problems] == [("check-json.many_threads", 89)]
    assert report.counts["threads"] == 10
    members = ("cat", "tts", "tdur", "cname", "sf", "esf")
    events = [{**EVENT, **dict.fromkeys(members[:n], "1")} for n in range(len(members))]
    path.write_text(json.dumps(events))
    monkeypatch.setattr(chrome_text, "_MOST_SHAPES", 3)
    assert "check-json.many_shapes" in [problem.code for problem in check_file(path).problems]


def test_the_limits_are_options_of_each_command(tmp_path: Path) -> None:
    for command in ("convert", "merge", "align", "clocks", "info", "identify", "check"):
        text = CliRunner().invoke(cli, [command, "--help"]).output
        assert "--max-length" in text
        assert "--max-ratio" in text
    path = tmp_path / "a.log"
    path.write_bytes(INFO + EXEC + b"x" * 5000 + b"\n")
    for size, said in (("1k", "lost: a line is longer than --max-length allows"), ("1M", "")):
        result = CliRunner().invoke(cli, ["info", str(path), "--max-length", size])
        assert result.exit_code == 0
        assert said in result.output


def test_a_first_look_at_a_text_changes_nothing_of_what_is_counted(tmp_path: Path) -> None:
    """Nsight Compute is read twice: first only until a number tells the decimal mark."""
    columns = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC,"
    row = '"0","1","python","h","k","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","S","{}","cycle","{}"'
    heading = ",".join(f'"{name}"' for name in f"{columns}Section Name,Metric Name,Metric Unit,Metric Value".split(","))
    lines = ["", heading, row.format("M", "12"), "", row.format("N", "0.25")]
    path = tmp_path / "ncu.csv"
    path.write_text("\n".join(lines) + "\n")
    trace = read(path)
    balance = trace.sources[0].balance
    assert (balance.read, sum(balance.skipped.values())) == (5, 2)


@pytest.mark.parametrize("end", ["\tsome output of the program\n" * 40, ""])
@pytest.mark.parametrize("way", ["compiled", "plain"])
def test_the_line_of_a_cut_stack_is_the_last_one_of_the_text(
    way: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines behind it that mean nothing are counted together."""
    if way == "plain":
        monkeypatch.setattr(kernel, "module", lambda name: None)
    sample = "proc 12 [000] {}.000000:     1000 cycles: \n\t    ffffffff81000000 foo ([kernel.kallsyms])\n"
    text = "# captured on    : Mon Nov 23 10:00:00 2026\n" + "\n".join(map(sample.format, range(1, 5)))
    path = tmp_path / "perf.txt"
    path.write_text(text + end)
    (cut,) = [one for one in read(path).sources[0].diagnostics if one.code.name == "perf-script.cut"]
    assert cut.places == [f"perf.txt:line {(text + end).count(chr(10))}"]


def test_an_escape_that_stops_viewers_is_seen_in_a_large_name_too(tmp_path: Path) -> None:
    name = "a" * (chrome_text.LARGE_BYTES + 1)
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents":[{{"ph":"i","pid":1,"tid":1,"ts":4,"s":"t","name":"{name}\\ud83d\\ude00"}}]}}')
    report = check_file(path)
    assert {one.code for one in report.problems} == {"check-json.large_member", "check-json.surrogate_escape"}
    assert not report.ok


def test_undecodable_bytes_before_a_table_cost_no_time(tmp_path: Path) -> None:
    """Made by hand: a prefix of bytes that are not UTF-8, and other lines that begin like it; it takes 35 ms."""
    prefix, other = b"\xffa" * 12, b"\xff\xffa" * 300
    heading = b'"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    row = b'"0","1","k","S","m","u","1"\n'
    path = tmp_path / "ncu.csv"
    path.write_bytes(prefix + heading + prefix + row + other + b"x\n" + (other + b"y\n") * 50)
    before = time.process_time()
    balance = read(path, format="nsight-compute").sources[0].balance
    assert time.process_time() - before < 5
    assert (balance.written, balance.skipped.total()) == (1, 51)
