"""The writers, judged by decoding their bytes and by Perfetto's trace processor."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tests import kernels, oracle
from tests.decode import unknown_fields
from tests.oracle.fixtures import OpenTrace
from traceconv.api import Output, read, write
from traceconv.check import check_file
from traceconv.errors import UsageError
from traceconv.families.common import wire_writer as wire
from traceconv.families.outputs import writer_for_path, writer_named
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import NO_CPU, Level, Trace
from traceconv.model.track_table import TrackId
from traceconv.writers import WriteCounts, Writer
from traceconv.writers import order as _order

T = 1_795_245_457_236_000_123
PRIVATE = ClockDomain("own clock", Zero.UNKNOWN, Run.MONOTONIC, owner="a")
MONOTONIC = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC)
FORMATS = [".pftrace", ".json", ".pftrace.gz", ".json.gz"]
SLICES = "select ts - (select min(ts) from slice) as at, dur, name, depth from slice order by ts, depth, name"


def builder(clock: ClockDomain = REALTIME) -> Builder:
    return Builder(SourceInfo("a.json", "test"), clock)


def written(trace: Trace, writer: Writer) -> bytes:
    sink = io.BytesIO()
    writer.write(trace, sink)
    return sink.getvalue()


def packets(trace: Trace) -> list[Any]:
    decoded = pb.Trace()
    decoded.ParseFromString(written(trace, writer_named("perfetto")))
    return list(decoded.packet)


def chrome(trace: Trace) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(written(trace, writer_named("chrome-json")))
    return loaded


def with_slices(out: Builder, track: TrackId, spans: list[tuple[int, int, str]]) -> None:
    for ts, dur, name in spans:
        out.slice(track, T + ts, dur, name)


def test_the_order_of_a_file_does_not_depend_on_windows_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)
    out = builder()
    tracks = [out.tracks.add(name) for name in "abc"]
    counter = out.tracks.counter("n")
    for at in range(2000):
        ts = T + random.randrange(500)
        out.slice(random.choice(tracks), ts, random.choice((0, 0, 1, 3, 400)), "s", at=at)
        out.instant(random.choice(tracks), ts, "i", at=at)
        out.counter(counter, ts, at, at=at)
    trace = lay_out(out.finish())
    orders = []
    for window in (1 << 30, 1000, 37, 1):  # of the last size there would be more than there may be
        monkeypatch.setattr(_order, "_WINDOW", window)
        blocks = list(_order.file_order(trace))
        assert (len(blocks) > 1) == (window < 1 << 30)
        orders.append([np.concatenate(columns).tolist() for columns in zip(*map(_columns, blocks), strict=True)])
    assert all(order == orders[0] for order in orders)
    assert orders[0][0] == sorted(orders[0][0])
    assert len(orders[0][0]) == 8000


def _columns(order: _order.FileOrder) -> tuple[Any, ...]:
    return order.ts, order.kind, order.row


def rich() -> Trace:
    """One of everything."""
    out = builder()
    process = out.tracks.process("py", pid=10)
    thread, handle = out.tracks.thread(process, 11, "worker"), out.tracks.thread(process, 140_709_724_130_176, "handle")
    device = out.tracks.process("GPU 0")
    stream = out.tracks.add("stream 7", device, description="copies")
    memory = out.tracks.counter("memory", process, unit="bytes")
    launch = out.slice(thread, T, 1000, "launch", "cat,b", {"n": 1, "x": [1, {"deep": None}]})
    kernel = out.slice(stream, T + 2000, 1001, "kernel")
    out.slice(stream, T + 2500, 1001, "kernel")
    out.flow(launch, kernel, "corr")
    out.flow(kernel, kernel)
    out.instant(handle, T + 7, "tick")
    out.instant(process, T + 8, "note")
    out.counter(memory, T + 5, 2**53 + 1)
    out.counter(memory, T + 6, 1.5)
    leaf = out.frame("leaf", "", out.frame("main", "lib.so"))
    out.sample(thread, T + 9, leaf, "cycles", 3, cpu=2)
    out.sample(thread, T + 10, leaf, "cycles", 4, cpu=2)
    out.log(thread, T + 11, "engine ready", source="engine.cpp:77", args={"cores": 2})
    out.log(out.tracks.thread(process, None, "logger"), T + 12, "out of memory", Level.ERROR, "engine")
    return lay_out(out.finish())


Load = Callable[[Trace, str], Any]


@pytest.fixture
def load(trace_processor: OpenTrace, tmp_path: Path) -> Load:
    def open_written(trace: Trace, suffix: str) -> Any:
        path = tmp_path / f"out{suffix}"
        path.write_bytes(written(trace, writer_for_path(path)))
        return trace_processor(path)

    return open_written


@pytest.mark.parametrize("suffix", FORMATS)
def test_trace_processor_takes_everything(load: Load, suffix: str) -> None:
    trace = rich()
    counts = writer_for_path("x" + suffix).write(trace, io.BytesIO())
    assert counts == WriteCounts(slices=3, instants=2, counters=2, flows=2, samples=2, logs=2)
    with load(trace, suffix) as tp:
        assert oracle.import_problems(tp) == []
        real = "select ts - (select min(ts) from slice) as at, dur, name from slice where dur > 0 order by ts"
        assert oracle.rows(tp, real) == [
            {"at": 0, "dur": 1000, "name": "launch"},
            {"at": 2000, "dur": 1001, "name": "kernel"},
            {"at": 2500, "dur": 1001, "name": "kernel"},
        ]
        flows = (
            "select a.name as one, b.name as other from flow "
            "join slice a on a.id = slice_out join slice b on b.id = slice_in order by 1"
        )
        assert oracle.rows(tp, flows) == [
            {"one": "kernel", "other": "kernel"},
            {"one": "launch", "other": "kernel"},
        ]
        counters = "select value from counter c join process_counter_track t on t.id = c.track_id order by ts"
        assert [row["value"] for row in oracle.rows(tp, counters)] == [2.0**53, 1.5]
        if suffix.startswith(".pf"):
            columns = "ts - (select min(ts) from slice) as at, prio, tag, msg, name"
            logs = f"select {columns} from android_logs join thread using (utid)"
            assert oracle.rows(tp, logs) == [
                {"at": 11, "prio": 4, "tag": "engine.cpp:77", "msg": "engine ready", "name": "worker"},
                {"at": 12, "prio": 6, "tag": "engine:0", "msg": "out of memory", "name": "logger"},
            ]
        threads = {row["name"] for row in oracle.rows(tp, "select name from thread")}
        rows = {row["name"] for row in oracle.rows(tp, "select name from track")}
        assert "worker" in threads
        assert ("· handle (tid 140709724130176)" in rows) == suffix.startswith(".pf")


def test_perfetto_details(load: Load) -> None:
    with load(rich(), ".pftrace") as tp:
        assert oracle.rows(tp, "select min(ts) as ts from slice") == [{"ts": T}]
        assert oracle.rows(tp, "select * from clock_snapshot") == []  # they are a group that is shown first
        assert oracle.rows(tp, "select distinct unit from counter_track where name = 'memory'") == [{"unit": "bytes"}]
        args = "select key, int_value, string_value from args where key glob 'debug.*' order by key"
        assert oracle.rows(tp, args) == [
            {"key": "debug.cores", "int_value": 2, "string_value": None},
            {"key": "debug.n", "int_value": 1, "string_value": None},
            {"key": "debug.x[0]", "int_value": 1, "string_value": None},
            {"key": "debug.x[1].deep", "int_value": None, "string_value": "null"},
        ]
        # What is on no thread gets nothing from the thread that is described last.
        of_kernels = "select key from slice join args using (arg_set_id) where slice.name = 'kernel'"
        assert oracle.rows(tp, of_kernels) == []
        samples = (
            "select p.ts, f.name from perf_sample p join stack_profile_callsite c on c.id = p.callsite_id "
            "join stack_profile_frame f on f.id = c.frame_id order by p.ts"
        )
        assert oracle.rows(tp, samples) == [{"ts": T + 9, "name": "leaf"}, {"ts": T + 10, "name": "leaf"}]
        totals = "select value from counter c join track t on t.id = c.track_id where t.name = 'cycles' order by ts"
        assert [row["value"] for row in oracle.rows(tp, totals)] == [3.0, 7.0]
        # A device has no number of the operating system, so none is shown.
        assert oracle.rows(tp, "select pid from process where pid > 0") == [{"pid": 10}]


def test_a_function_in_many_stacks_is_interned_once(load: Load) -> None:
    out = builder()
    thread = out.tracks.thread(out.tracks.process("python", pid=10), 11, "main")
    for step, caller in enumerate(("a", "b")):
        out.sample(thread, T + step, out.frame("leaf", "lib", out.frame(caller, "lib")), "cycles", 1)
    trace = lay_out(out.finish())
    interned = [packet.interned_data for packet in packets(trace)]
    assert sum(len(data.frames) for data in interned) == 3
    assert sum(len(data.callstacks) for data in interned) == 2
    with load(trace, ".pftrace") as tp:
        stacks = (
            "select s.ts, f.name, g.name as caller from perf_sample s join stack_profile_callsite c "
            "on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id "
            "join stack_profile_callsite p on p.id = c.parent_id join stack_profile_frame g on g.id = p.frame_id"
        )
        found = sorted(tuple(row.values()) for row in oracle.rows(tp, stacks))
    assert found == [(T, "leaf", "a"), (T + 1, "leaf", "b")]


def test_unknown_functions_are_one_frame_for_each_file(load: Load) -> None:
    out = builder()
    thread = out.tracks.thread(out.tracks.process("python", pid=10), 11, "main")
    for address in range(3):
        caller = out.frame(f"lib.so+{address:#x}", "/usr/lib.so", out.frame(f"{address:#x}", ""), named=False)
        inner = out.frame(f"lib.so+{address + 9:#x}", "/usr/lib.so", caller, named=False)
        out.sample(thread, T + address, out.frame("leaf", "/usr/lib.so", inner), "cycles", 1)
    trace = lay_out(out.finish())
    with load(trace, ".pftrace") as tp:
        found = [row["name"] for row in oracle.rows(tp, "select name from stack_profile_frame order by id")]
        stacks = oracle.rows(tp, "select distinct callsite_id from perf_sample")
    assert (sorted(found), len(stacks)) == (["0x0", "0x1", "0x2", "[lib.so]", "leaf"], 3)
    assert [frame.name for frame in trace.frames][:3] == ["0x0", "lib.so+0x0", "lib.so+0x9"]


def test_samples_are_on_the_cpu_that_is_known(load: Load) -> None:
    """Totals grow by event and CPU. Where no CPU is known no total is written: Perfetto would draw it for CPU 0."""
    out = builder()
    thread = out.tracks.thread(out.tracks.process("python", pid=10), 11, "main")
    leaf = out.frame("leaf")
    events = [("cycles", 3), ("cycles", 1), ("faults", 3), ("cycles", 3), ("cycles", NO_CPU)]
    for step, (name, cpu) in enumerate(events):
        out.sample(thread, T + step, leaf, name, 10 + step, cpu=cpu)
    out.sample(thread, T + 9, leaf, "cycles", 20)
    trace = lay_out(out.finish())
    with load(trace, ".pftrace") as tp:
        assert oracle.import_problems(tp) == []
        known = oracle.rows(tp, f"select ts, cpu from perf_sample where ts < {T + 4} order by ts")
        assert [row["cpu"] for row in known] == [3, 1, 3, 3]
        totals = (
            "select t.name, t.cpu, c.value from counter c join perf_counter_track t on t.id = c.track_id "
            "order by t.name, t.cpu, c.ts"
        )
        assert [tuple(row.values()) for row in oracle.rows(tp, totals)] == [
            ("cycles", 1, 11),
            ("cycles", 3, 10),
            ("cycles", 3, 23),
            # v52 counts these on a CPU 0, as 0 each; newer ones make no values.
            ("cycles (CPU not known)", 0, 0),
            ("cycles (CPU not known)", 0, 0),
            ("faults", 3, 12),
        ]
    unknown = [p.perf_sample for p in packets(trace) if p.HasField("perf_sample") and not p.perf_sample.HasField("cpu")]
    assert [(one.HasField("timebase_count"), list(one.follower_counts)) for one in unknown] == [
        (False, [14]),
        (False, [34]),
    ]
    lines = [event for event in chrome(trace)["traceEvents"] if event["ph"] == "P"]
    assert [event.get("cpu") for event in lines] == [3, 1, 3, 3, None, None]


@pytest.mark.parametrize("suffix", [".pftrace", ".json"])
def test_order_at_equal_times(load: Load, suffix: str) -> None:
    out = builder()
    thread = out.tracks.thread(out.tracks.process("p", pid=5), 6)
    spans = [(0, 10, "a"), (0, 10, "b"), (0, 4, "c"), (4, 6, "d"), (10, 5, "e"), (15, 0, "z"), (16, 3, "f")]
    with_slices(out, thread, spans)
    out.instant(thread, T + 10, "tick")
    with load(lay_out(out.finish()), suffix) as tp:
        assert oracle.import_problems(tp) == []
        found = [tuple(row.values()) for row in oracle.rows(tp, SLICES)]
    expected = [(0, 10, "a", 0), (0, 10, "b", 1), (0, 4, "c", 2), (4, 6, "d", 2), (10, 5, "e", 0)]
    assert found == [*expected, (10, 0, "tick", 1), (15, 0, "z", 0), (16, 3, "f", 0)]


def test_zero_length_slices_do_not_nest(load: Load) -> None:
    out = builder()
    with_slices(out, out.tracks.thread(out.tracks.process("p", pid=5), 6), [(0, 0, "x"), (0, 0, "y")])
    with load(lay_out(out.finish()), ".pftrace") as tp:
        assert [row["depth"] for row in oracle.rows(tp, SLICES)] == [0, 0]


def test_numbers_are_invented_only_where_needed(load: Load) -> None:
    out = builder()
    for name, pid in [("one", 0), ("two", 7), ("three", 7)]:
        process = out.tracks.process(name, pid=pid)
        for tid in (1, 7):
            with_slices(out, out.tracks.thread(process, tid, f"{name}.{tid}"), [(0, 5, f"{name}.{tid}")])
    with load(lay_out(out.finish()), ".pftrace") as tp:
        assert oracle.import_problems(tp) == []
        sql = (
            "select s.name, tid, pid, p.name as process from slice s join thread_track t on t.id = s.track_id "
            "join thread using (utid) join process p using (upid) order by p.pid, tid"
        )
        plain = "select s.name, t.name as row, p.name as above from slice s join track t on t.id = s.track_id "
        plain += "join track p on p.id = t.parent_id order by s.name"
        groups = [tuple(row.values()) for row in oracle.rows(tp, plain)]
        rows = [tuple(row.values()) for row in oracle.rows(tp, sql)]
    assert rows == [
        ("two.1", 1, 7, "two"),
        ("two.7", 7, 7, "two"),
        ("three.1", 1, 10_000_001, "three (pid 7)"),
        ("three.7", 7, 10_000_001, "three (pid 7)"),
    ]
    assert groups == [("one.1", "one.1 1", "one (pid 0)"), ("one.7", "one.7 7", "one (pid 0)")]


@pytest.mark.parametrize("suffix", [".pftrace", ".json"])
def test_what_has_neither_number_nor_name_is_called_what_it_is(load: Load, suffix: str) -> None:
    """Perfetto shows nothing for an empty name, and "Thread 10000002" for a number that was invented."""
    out = builder()
    with_slices(out, out.tracks.thread(out.tracks.process(""), None), [(0, 9, "a")])
    with_slices(
        out, out.tracks.thread(out.tracks.process("", pid=7), 8), [(0, 9, "b")]
    )  # "Thread 8": Perfetto's own title
    with load(lay_out(out.finish()), suffix) as tp:
        sql = "select s.name, t.name as track, p.name as above from slice s join track t on t.id = s.track_id "
        sql += "left join track p on p.id = t.parent_id order by 1"
        tracks = [tuple(row.values()) for row in oracle.rows(tp, sql)]
        sql = "select t.tid, t.name, p.name as above from thread t join process p using (upid) "
        sql += "where utid in (select utid from thread_track) order by 1"
        threads = [tuple(row.values()) for row in oracle.rows(tp, sql)]
    own = [(8, None, None)]
    if suffix == ".json":
        assert threads == [*own, (10_000_002, "thread", "process")]
    else:
        assert tracks == [("a", "thread", "process"), ("b", None, None)]
        assert threads == own


@pytest.mark.parametrize("suffix", [".pftrace", ".json"])
def test_private_clock_before_zero(load: Load, suffix: str) -> None:
    out = builder(PRIVATE)
    out.slice(out.tracks.add("t"), -1500, 2000, "early")
    trace = lay_out(out.finish())
    with load(trace, suffix) as tp:
        assert oracle.import_problems(tp) == []
        assert oracle.rows(tp, "select dur, name from slice") == [{"dur": 2000, "name": "early"}]
        assert oracle.rows(tp, "select * from clock_snapshot") == []
    attributes = {a.key: a.string_value for p in packets(trace) for a in p.trace_attributes.attribute}
    assert attributes["traceconv.time_shift_ns"] == "1500"
    assert chrome(trace)["metadata"]["traceconv"]["origin_ns"] == -2000


def test_a_monotonic_clock(load: Load) -> None:
    out = builder(MONOTONIC)
    out.slice(out.tracks.add("t"), 6000, 10, "x")
    with load(lay_out(out.finish()), ".pftrace") as tp:
        assert oracle.import_problems(tp) == []
        assert oracle.rows(tp, "select * from clock_snapshot") == []
        assert oracle.rows(tp, "select ts from slice") == [{"ts": 6000}]


ARGS: list[tuple[bytes, str, Any]] = [
    (b"1", "int_value", 1),
    (b"-9223372036854775808", "int_value", -(2**63)),
    (b"18446744073709551615", "legacy_json_value", "18446744073709551615"),
    (b"1" * 6000, "legacy_json_value", "1" * 6000),
    (b"0.5e1", "double_value", 5.0),
    (b"1e999", "legacy_json_value", "1e999"),
    (b"true", "bool_value", True),
    (b"null", "legacy_json_value", "null"),
    (b"{ }", "legacy_json_value", "{}"),
    (b"[]", "legacy_json_value", "[]"),
    (b'"\\ud83d\\ude00\\n"', "string_value", "\U0001f600\n"),
    (b'"\\ud800"', "string_value", "\ufffd"),
    (b'"\xff"', "string_value", "\ufffd"),
]


@pytest.mark.parametrize(("raw", "field", "value"), ARGS, ids=[f"{raw[:12]!r}" for raw, _, _ in ARGS])
def test_annotation_types(raw: bytes, field: str, value: Any) -> None:
    out = builder()
    out.slice(out.tracks.add("t"), T, 1, "x", args=b'{"k": 0, "k":\n ' + raw + b"}")
    decoded = packets(out.finish())
    texts = {s.iid: s.str.decode() for p in decoded for s in p.interned_data.debug_annotation_string_values}
    (found,) = [a for p in decoded for a in p.track_event.debug_annotations]
    kind = found.WhichOneof("value")
    if kind == "string_value_iid":
        assert (field, value) == ("string_value", texts[found.string_value_iid])
    else:
        assert (kind, getattr(found, kind)) == (field, value)


@pytest.mark.parametrize("value", [None, [], {}, "[]", "null", 2**64 - 1, [[], {}, None, [[1], []]], {"a": {"b": []}}])
def test_args_are_equal_when_read_again(value: Any, tmp_path: Path) -> None:
    out = builder()
    out.slice(out.tracks.add("t"), T, 1, "x", args={"k": value})
    (tmp_path / "a.pftrace").write_bytes(written(out.finish(), writer_named("perfetto")))
    trace = read(tmp_path / "a.pftrace")
    at, size = int(trace.slices.args_at[0]), int(trace.slices.args_len[0])
    assert json.loads(trace.args.get(at, size)) == {"k": value}


def test_broken_args_are_kept_as_text() -> None:
    out = builder()
    out.slice(out.tracks.add("t"), T, 1, "x", args=b'{"a": NaN}')
    out.slice(out.tracks.add("t"), T, 1, "x", args=b"{nonsense")
    out.slice(out.tracks.add("t"), T, 1, "x", args=b'{"a": {"\x01": 0, "b": 1E400}}')
    texts = [s.str for p in packets(out.finish()) for s in p.interned_data.debug_annotation_string_values]
    assert texts == [b"NaN", b"{nonsense", b"1E400"]


def test_many_values_of_one_key_are_all_there() -> None:
    out = builder()
    track, count = out.tracks.add("t"), 20_000
    for i in range(count):
        out.slice(track, T + i, 1, "x", args={"text": f"value {i}"})
    decoded = packets(lay_out(out.finish()))
    texts: dict[int, str] = {}
    found = []
    for packet in decoded:
        texts.update({s.iid: s.str.decode() for s in packet.interned_data.debug_annotation_string_values})
        found += [a.string_value or texts[a.string_value_iid] for a in packet.track_event.debug_annotations]
    assert found == [f"value {i}" for i in range(count)]


def test_the_longest_span_fits_into_json() -> None:
    out = builder()
    track = out.tracks.add("t")
    out.slice(track, -LIMIT_NS + 1, 1, "first")
    out.slice(track, LIMIT_NS - 2, 2, "last")
    times = [event["ts"] for event in chrome(lay_out(out.finish()))["traceEvents"] if event["ph"] == "X"]
    assert times == [0.001, (2 * LIMIT_NS - 2) // 1000]


@pytest.mark.parametrize("compiled", [True, False])
def test_far_times_stay_nested_in_json(compiled: bool, load: Load, tmp_path: Path) -> None:
    """Viewers read times as doubles of µs: those after 52 days are whole ones, and slices nest as before."""
    out, random = builder(), Random(1)
    track = out.tracks.thread(out.tracks.process("p", pid=5), 6)
    out.slice(track, T, 7, "first")
    for far in (2**52, 2**53, 2**60):
        start = T + far - 2000
        for i in range(200):
            dur = random.randrange(3000)
            out.slice(track, start, dur, f"outer {i}")
            out.slice(track, start + dur // 3, dur // 3, f"inner {i}")
            start += dur + random.randrange(2)
    trace = lay_out(out.finish())
    assert writer_for_path("x.pftrace").notes(trace) == []
    (note,) = writer_for_path("x.json").notes(trace)
    assert "52 days" in note
    with nullcontext() if compiled else kernels.without(), load(trace, ".json") as tp:
        assert oracle.import_problems(tp) == []
        assert oracle.rows(tp, "select count(*) as n from slice") == [{"n": 1201}]
    assert check_file(tmp_path / "out.json").ok


def test_chrome_text() -> None:
    out = builder()
    args = b'{\n  "a": "\\ud83d\\ude00 \\u00e9 \\\\ud83d \\u0022 \\ud800",\r\n  "b": 123456789012345678901\n}'
    out.slice(out.tracks.add("t"), T, 1500, 'na"me \ud83d', args=args)
    text = written(out.finish(), writer_named("chrome-json")).decode()
    assert '"a": "\U0001f600 \u00e9 \\\\ud83d \\u0022 \ufffd","b": 123456789012345678901}' in text
    (event,) = [e for e in json.loads(text)["traceEvents"] if e["ph"] == "X"]
    assert event["name"] == 'na"me \ufffd'
    assert '"ts":0.123,"dur":1.5,' in text
    assert json.loads(text)["baseTimeNanoseconds"] == T - 123


def test_counters_of_one_name_stay_apart(load: Load) -> None:
    out = builder()
    process = out.tracks.process("p", pid=5)
    for value in (1, 2):
        out.counter(out.tracks.counter("c", process), T, value)
    trace = lay_out(out.finish())
    for suffix in (".pftrace", ".json"):
        with load(trace, suffix) as tp:
            assert oracle.import_problems(tp) == []
            sql = "select count(distinct track_id) as tracks from counter"
            assert oracle.rows(tp, sql) == [{"tracks": 2}]


#: Of each slice the track, the one above, and the rows of both: Perfetto draws tracks of one group as one.
ROWS = """
    select s.name as slice, t.name as track, t.track_group_id as row, p.name as above, p.track_group_id as row_above
    from slice s join track t on t.id = s.track_id left join track p on p.id = t.parent_id
"""


def test_only_lanes_share_a_row(load: Load) -> None:
    out = builder()
    for number in range(4):
        # As in two files of two devices each: names come twice, at the top and below.
        device = out.tracks.add(f"GPU {number % 2}")
        with_slices(out, device, [(0, 9, f"{number} on the device")])
        for name in ("queue", "queue", "copies"):
            queue = out.tracks.add(name, device)
            with_slices(out, queue, [(0, 5, f"{number} {name} {queue}"), (3, 5, f"{number} {name} {queue}")])
    with load(lay_out(out.finish()), ".pftrace") as tp:
        assert oracle.import_problems(tp) == []
        found = oracle.rows(tp, ROWS)
    rows = {(row["slice"], row["row"], row["row_above"]) for row in found}
    assert len(found) == 4 + 4 * 3 * 2
    assert len(rows) == len({slice for slice, _, _ in rows}) == len({row for _, row, _ in rows}) == 4 + 4 * 3
    above = {row["slice"][0]: (row["above"], row["row_above"]) for row in found if row["above"]}
    assert [above[number][0] for number in "0123"] == ["GPU 0", "GPU 1", "GPU 0", "GPU 1"]
    assert len(set(above.values())) == 4


def test_the_schema_knows_all_fields() -> None:
    data = written(rich(), writer_named("perfetto"))
    assert unknown_fields(data) == []
    assert unknown_fields(data + b"\x0a\x03\x80\x7d\x01") == ["Trace.packet.2000"]
    inside = b"\xe2\x03" + b"\x05\x1a\x03\x80\x7d\x01"  # in the process of a track descriptor
    assert unknown_fields(b"\x0a" + bytes([len(inside)]) + inside) == ["Trace.packet.track_descriptor.process.2000"]


def test_the_character_delete_in_json(load: Load) -> None:
    out = Builder(SourceInfo("a\x7fb.json", "test"), REALTIME)
    out.metadata["k\x7f"] = {"v\x7f": ["\x7f"]}
    thread = out.tracks.thread(out.tracks.process("p\x7f", pid=5), 6, "t\x7f")
    out.slice(thread, T, 10, "s\x7f", "c\x7f", {"k\x7f": "\x7f"})
    out.sample(thread, T, out.frame("f\x7f", "m\x7f"), "n\x7f")
    trace = lay_out(out.finish())
    with load(trace, ".json") as tp:
        assert oracle.import_problems(tp) == []
        assert oracle.rows(tp, "select name from slice") == [{"name": "s\x7f"}]
        assert {"name": "t\x7f"} in oracle.rows(tp, "select name from thread")
    assert chrome(trace)["metadata"]["k\x7f"] == {"v\x7f": ["\x7f"]}
    assert chrome(trace)["stackFrames"]["0"] == {"name": "f\x7f", "category": "m\x7f"}


def test_chrome_names_of_nested_tracks() -> None:
    out = builder()
    group = out.tracks.add("machine A")
    with_slices(out, out.tracks.add("queue", out.tracks.add("device", group)), [(0, 1, "x")])
    names = [e["args"]["name"] for e in chrome(out.finish())["traceEvents"] if e["name"].endswith("_name")]
    assert names == ["machine A", "device / queue"]


def test_same_bytes_each_time_and_nothing_changed() -> None:
    for suffix in FORMATS:
        trace = rich()
        first = written(trace, writer_for_path("x" + suffix))
        assert written(trace, writer_for_path("x" + suffix)) == first
        assert written(rich(), writer_for_path("x" + suffix)) == first
        if suffix.endswith(".gz"):
            assert gzip.decompress(first) == written(trace, writer_for_path("x" + suffix[:-3]))


@pytest.mark.parametrize("suffix", [".pftrace", ".json"])
def test_empty_trace(load: Load, suffix: str) -> None:
    with load(builder().finish(), suffix) as tp:
        assert oracle.import_problems(tp) == []
        assert oracle.rows(tp, SLICES) == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("whatever.json", "known: perfetto, chrome-json"),
        (".pftrace", "did you mean pftrace?"),
        ("perfetto.gz", "did you mean perfetto?"),
        ("", "known: perfetto, chrome-json"),
    ],
)
def test_only_names_name_a_writer(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no output format is called") as error:
        writer_named(name)
    assert error.value.hint == hint


@pytest.mark.parametrize("path", ["out.txt", "perfetto", "chrome-json", "folder.json/out", "x.json.zip"])
def test_only_endings_choose_a_writer(path: str) -> None:
    with pytest.raises(UsageError, match=f"^{path}: ") as error:
        writer_for_path(path)
    assert ".json.gz" in error.value.hint


@pytest.mark.parametrize("path", ["a.pftrace", "A.PFTRACE.GZ", "a.perfetto-trace", "a.json", "a.JSON.gz"])
def test_the_ending_decides_about_compression(path: str) -> None:
    packed = written(rich(), writer_for_path(path))[:2] == b"\x1f\x8b"
    assert packed == path.lower().endswith(".gz")


@pytest.mark.parametrize("to", ["perfetto", "chrome-json"])
@pytest.mark.parametrize("name", ["z.json.gz", "z.json", "z.gz", "z"])
def test_the_ending_decides_about_compression_of_a_named_format(to: str, name: str, tmp_path: Path) -> None:
    write(rich(), Output(tmp_path / name, to))
    data = (tmp_path / name).read_bytes()
    plain = gzip.decompress(data) if name.endswith(".gz") else data
    assert plain == written(rich(), writer_named(to))


def test_varints_match_one_by_one() -> None:
    import numpy as np

    values = sorted({0, *(2**k + d for k in range(63) for d in (-1, 0, 1)), 2**63 - 1})
    assert wire.integers(8, np.array(values, np.int64)) == [wire.integer(8, v) for v in values]
