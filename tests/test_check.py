"""Each rule of the check: a file that keeps it and one that breaks it."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

import traceconv
from tests import oracle
from tests.benchmarks.count import count_slices
from tests.benchmarks.generate import generate
from tests.golden import ROOT
from traceconv.api import identify
from traceconv.check import CheckReport, check_file
from traceconv.check.chrome_text import load_schema, schema_file
from traceconv.errors import InputError
from traceconv.model.diagnostics import Severity

BEGIN, END = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END
INSTANT, COUNTER = TrackEvent.TYPE_INSTANT, TrackEvent.TYPE_COUNTER


def check_bytes(folder: Path, data: bytes) -> CheckReport:
    path = folder / "trace"
    path.write_bytes(data)
    return check_file(path)


def codes(report: CheckReport) -> set[str]:
    return {problem.code.partition(".")[2] for problem in report.problems}


# --- Chrome JSON -----------------------------------------------------------------------------------------------------


def event(ph: str, ts: object = 1, **members: object) -> dict[str, object]:
    return {"ph": ph, "name": "a", "pid": 1, "tid": 2, "ts": ts, **members}


def complete(ts: object, dur: object, **members: object) -> dict[str, object]:
    return event("X", ts, dur=dur, **members)


def check_events(folder: Path, *events: object) -> CheckReport:
    return check_bytes(folder, json.dumps({"traceEvents": events}).encode())


JSON_RULES: dict[str, tuple[list[object], list[object]]] = {
    "schema": ([event("X", dur=3)], [event("X")]),
    "empty_event": ([event("i")], [event("i"), {}]),
    "no_events": ([event("i")], []),
    "surrogate_escape": ([event("i", name="\\ud83d\\ude00 as a path")], [event("i", name="\U0001f600")]),
    "bad_time": ([event("i", "1.5")], [event("i", 10**300)]),
    "negative_duration": ([complete(5, 0)], [complete(5, -1)]),
    "large_times": ([event("i", 9.0e12)], [event("i", 1.7e15)]),
    "big_id": ([event("b", id=2**53 - 1), event("e", id=2**53 - 1)], [event("b", id=2**53), event("e", id=2**53)]),
    "task_range": ([event("i", tid=2**32 - 1), event("i", tid="stream 7")], [event("i", tid=2**32)]),
    "no_pid": ([event("i")], [{"ph": "i", "name": "a", "ts": 1}]),
    "overlap": ([complete(0, 10), complete(5, 5), complete(10, 5)], [complete(0, 10), complete(5, 5.001)]),
    "end_without_begin": ([event("B", 1), event("E", 2)], [event("E", 2)]),
    "begin_without_end": ([event("B", 1), event("E", 1)], [event("B", 1)]),
    "end_name": (
        [event("B", 1), event("B", 2, name="b"), event("E", 3, name="b"), event("E", 4)],
        [event("B", 1), event("B", 2, name="b"), event("E", 3), event("E", 4)],
    ),
    "empty_pair": (
        [event("B", 1), event("E", 1), event("B", 2), event("B", 2), event("E", 3), event("E", 3)],
        [complete(0, 1, tid=9), event("B", 1), event("E", 1)],
    ),
    "cut_by_complete": (
        [complete(0, 2), event("B", 0), event("E", 2), event("B", 5), complete(5, 0), event("E", 7)],
        [event("B", 0), complete(0, 1), event("E", 2)],
    ),
    "async_end_without_begin": (
        [event("b", 1, id="x"), event("e", 2, id="x")],
        [event("b", 1, id="x"), event("e", 2, id="x"), event("e", 2, id="y")],
    ),
    "async_end_crosses": (
        [*(event(ph, ts, id="x", name=name) for ts, (ph, name) in enumerate(["ba", "bb", "eb", "ea"]))],
        [*(event(ph, ts, id="x", name=name) for ts, (ph, name) in enumerate(["ba", "bb", "ea", "eb"]))],
    ),
    "flow_without_direction": (
        [complete(1, 1, bind_id="1", flow_out=True), complete(3, 1, bind_id="1", flow_in=True)],
        [complete(1, 1, bind_id="1")],
    ),
    "async_begin_without_end": (
        [event("b", 1, id="x"), event("e", 2, id="x")],
        [event("b", 1, id="x"), event("b", 1, id="x"), event("e", 2, id="x")],
    ),
    "flow_without_start": (
        [complete(0, 9), event("s", 1, id=1), event("f", 2, id=1, bp="e")],
        [complete(0, 9), event("s", 1, id=1), event("f", 2, id=2, bp="e")],
    ),
    "flow_without_end": (
        [complete(0, 9), event("s", 1, id=1), event("t", 2, id=1)],
        [complete(0, 9), event("s", 1, id=1)],
    ),
    "flow_backward": (
        [complete(0, 9), event("s", 2, id=1), event("f", 2, id=1, bp="e")],
        [complete(0, 9), event("s", 2, id=1), event("f", 1, id=1, bp="e")],
    ),
    "flow_reversed": (
        [complete(3, 9), complete(4, 9, tid=9), event("s", 5, id=1), event("f", 6, id=1, tid=9, bp="e")],
        [complete(4, 9), complete(3, 9, tid=9), event("s", 5, id=1), event("f", 6, id=1, tid=9, bp="e")],
    ),
    "flow_started_twice": (
        [complete(0, 9), *(event(ph, ts, id=ts // 2, bp="e") for ts, ph in enumerate("sfsf"))],
        [complete(0, 9), *(event(ph, ts, id=1, bp="e") for ts, ph in enumerate("sfsf"))],
    ),
    "flow_without_slice": (
        [complete(1, 1), event("s", 2, id=1), complete(8, 1), event("f", 7, id=1)],
        [complete(1, 1), event("s", 2, id=1), complete(8, 1), event("f", 9, id=1)],
    ),
    "flow_late": (
        [complete(1, 1), event("s", 2, id=1), complete(8, 1), event("f", 9, id=1, bp="e")],
        [complete(1, 1), event("s", 2, id=1), complete(8, 1), event("f", 7, id=1, bp="e")],
    ),
    "flow_id": (
        [complete(0, 9), event("s", 1, id="0x1f"), event("f", 2, id="0x1f", bp="e")],
        [complete(0, 9), event("s", 1, id="corr-9"), event("f", 2, id="corr-9", bp="e")],
    ),
    "old_async": (
        [event("b", 1, id="x"), event("e", 2, id="x")],
        [event("S", 1, id="x"), event("F", 2, id="x")],
    ),
    "no_tid": ([{"ph": "i", "name": "a", "ts": 1, "pid": 1, "s": "p"}], [{"ph": "i", "name": "a", "ts": 1, "pid": 1}]),
    "negative_time": ([complete(0, 1)], [complete(-1, 1)]),
    "id_range": (
        [event("b", 1, id=-(2**53) + 1), event("e", 2, id=-(2**53) + 1)],
        [event("b", 1, id=2**63), event("e", 2, id=2**63)],
    ),
    "tasks_merged": ([complete(1, 9), complete(2, 9, tid="2")], [complete(1, 9, tid=2**32), complete(2, 9, tid=2**33)]),
    "final_backslash": ([event("i", name='\\\\"')], [event("i", name="C:\\")]),
    "counter_range": ([event("C", args={"v": 2**63 - 1})], [event("C", args={"v": 2**63})]),
    "counter_ids": (
        [event("C", id="1", args={"v": 1}), event("C", id="2", args={"v": 1})],
        [event("C", id=1, args={"v": 1}), event("C", id=2, args={"v": 1})],
    ),
    "counter_null": ([event("C", args={"v": "1.5"})], [event("C", args={"v": None})]),
}


@pytest.mark.parametrize("code", JSON_RULES)
def test_json_rule(code: str, tmp_path: Path) -> None:
    good, bad = JSON_RULES[code]
    assert codes(check_events(tmp_path, *good)) == set()
    assert code in codes(check_events(tmp_path, *bad))


JSON_FILES: dict[str, tuple[bytes, bytes]] = {
    "not_json": (b'[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]', b'{"traceEvents":[{"ph":"i","name":"a"'),
    "not_finite": (
        b'[{"ph":"i","name":"NaN","ts":1,"pid":1,"tid":1}]',
        b'[{"ph":"i","name":"a","ts":NaN,"pid":1,"tid":1}]',
    ),
    "bom": (
        b'  [{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]',
        b'\xef\xbb\xbf[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]',
    ),
    "not_utf8": (
        '[{"ph":"i","name":"é","ts":1,"pid":1,"tid":1}]'.encode(),
        '[{"ph":"i","name":"é","ts":1,"pid":1,"tid":1}]'.encode("latin-1"),
    ),
    "empty_list": (b'{"traceEvents":[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]}', b"[]"),
    "raw_delete": (
        b'{"a\\u007f":"\\u007f","traceEvents":[{"ph":"i","name":"\x7f","ts":1,"pid":1,"tid":1}]}',
        b'{"a":"\x7f","traceEvents":[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]}',
    ),
    "unclosed_array": (
        b'[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]',
        b'[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1},\n',
    ),
    "lone_surrogate": (
        b'[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1,"args":{"x":"\\ud83d\\ude00 \\\\ud83d"}}]',
        b'[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1,"args":{"x":"\\ud83d"}}]',
    ),
}


@pytest.mark.parametrize("code", JSON_FILES)
def test_json_file_rule(code: str, tmp_path: Path) -> None:
    good, bad = JSON_FILES[code]
    assert codes(check_bytes(tmp_path, good)) == set()
    assert codes(check_bytes(tmp_path, bad)) == {code}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (event("q"), "ph"),
        (complete("soon", 1), "ts"),
        (complete(1, [3]), "dur"),
        (event("i", s="x"), "s"),
        (event("b"), "id or id2 is needed"),
        (event("O", id=1, args={}), "snapshot"),
        (event("C", args={"v": "much"}), "args.v"),
        (event("M", name="process_name", args={"nam": "x"}), "'name' is a required property"),
        (event("s", id=[1]), "id"),
        (complete(1, 1, pid=1.5), "pid"),
        ({"name": "a"}, "'ph' is a required property"),
        (["no", "object"], "object"),
    ],
)
def test_schema_says_what_is_wrong(bad: Any, said: str, tmp_path: Path) -> None:
    report = check_events(tmp_path, event("i"), bad)
    problem = next(problem for problem in report.problems if problem.code == "check-json.schema")
    assert problem.at.startswith("event 2: ")
    assert said in problem.at
    assert not report.ok


@pytest.mark.parametrize(
    "good",
    [
        event("C", args={"a": 1, "b": 2.5}),
        event("M", name="thread_sort_index", args={"sort_index": -3}),
        event("M", name="anything", args={}),
        event("T", id=1),
        event("T", dur=1, args={"cpu": 1}),
        event("n", id2={"local": "0x1"}),
        event("N", id="0x1"),
        event("O", id="0x1", args={"snapshot": {}}),
        event("P", sf=1),
        event("v", id="0x1", args={"dumps": {}}),
        event("c", args={"sync_id": "x"}),
        event("(", id=1),
        event("R"),
        complete("12.5", "3"),
        complete(1, 2, bind_id="0x1", flow_in=True, flow_out=True),
        complete(1, 2, args="__stripped__", stack=["main"], cname="good", tts=1, tdur=1),
    ],
)
def test_schema_accepts(good: dict[str, object], tmp_path: Path) -> None:
    assert codes(check_events(tmp_path, good)) == set()


def test_top_level_info_are_checked(tmp_path: Path) -> None:
    good = {"traceEvents": [event("i")], "displayTimeUnit": "ns", "stackFrames": {"1": {"name": "f"}}, "own": [1]}
    assert check_bytes(tmp_path, json.dumps(good).encode()).ok
    bad = {**good, "displayTimeUnit": "s"}
    assert codes(check_bytes(tmp_path, json.dumps(bad).encode())) == {"schema"}
    assert codes(check_bytes(tmp_path, b'{"events": []}')) == {"schema"}
    assert codes(check_bytes(tmp_path, b'"text"')) == {"schema"}


def test_times_are_compared_as_text_not_as_floats(tmp_path: Path) -> None:
    """A double of µs does not tell these ends from each other; the decimals do, and so does Perfetto."""
    text = '[{{"ph":"X","name":"a","pid":1,"tid":1,"ts":4395245457236.123,"dur":0.100}},'
    text += '{{"ph":"X","name":"b","pid":1,"tid":1,"ts":4395245457236.173,"dur":{dur}}}]'
    assert "overlap" not in codes(check_bytes(tmp_path, text.format(dur="0.050").encode()))
    assert "overlap" in codes(check_bytes(tmp_path, text.format(dur="0.051").encode()))


def test_large_times_are_compared_as_viewers_read_them(tmp_path: Path) -> None:
    """By their decimals one slice is inside of the other; as doubles, which steps of 0.25 µs apart are, it is not."""
    outer, inner = complete(1795227823848971.25, 1.002), complete(1795227823848971.75, 0.5)
    assert codes(check_events(tmp_path, outer, inner)) == {"large_times", "overlap"}
    assert codes(check_events(tmp_path, outer, inner | {"ts": "1795227823848971.75"})) == {"large_times", "overlap"}
    assert codes(check_events(tmp_path, outer | {"ts": 1.25}, inner | {"ts": 1.75})) == set()


def test_threads_are_apart(tmp_path: Path) -> None:
    assert check_events(tmp_path, complete(0, 10), complete(5, 10, tid=3), complete(5, 10, pid=3)).ok


def test_many_problems_are_counted_and_few_are_kept(tmp_path: Path) -> None:
    report = check_events(tmp_path, *[event("X") for _ in range(1000)])
    (problem,) = report.problems
    assert problem.count == 1000
    assert problem.severity is Severity.DATA_LOSS
    assert problem.at.count("event") <= 6
    assert report.counts["events"] == 1000


def test_bound_flows(tmp_path: Path) -> None:
    out = complete(0, 1, bind_id="0x1", flow_out=True)
    assert check_events(tmp_path, out, complete(2, 1, bind_id="0x1", flow_in=True)).counts["flows"] == 1
    assert codes(check_events(tmp_path, out)) == {"flow_without_end"}
    assert codes(check_events(tmp_path, complete(0, 1, bind_id="0x1", flow_in=True))) == {"flow_without_start"}
    back = check_events(
        tmp_path, complete(3, 1, bind_id="0x1", flow_out=True), complete(1, 1, bind_id="0x1", flow_in=True)
    )
    assert codes(back) == {"flow_backward"}


def test_brackets_without_end(tmp_path: Path) -> None:
    assert codes(check_bytes(tmp_path, b"[" * 200_000)) == {"not_json"}


def test_schema_is_valid_and_found() -> None:
    assert schema_file("chrome_trace.schema.json").is_file()
    jsonschema.Draft202012Validator.check_schema(load_schema("chrome_trace.schema.json"))


def test_schema_as_a_whole_takes_both_forms() -> None:
    validator = jsonschema.Draft202012Validator(load_schema("chrome_trace.schema.json"))
    assert validator.is_valid([complete(0, 1)])
    assert validator.is_valid({"traceEvents": [complete(0, 1)]})
    assert not validator.is_valid({"traceEvents": [event("X")]})
    assert not validator.is_valid({})


# --- Perfetto --------------------------------------------------------------------------------------------------------

PROCESS, THREAD, GAUGE, GROUP = 10, 11, 12, 13


class Builder:
    """Writes packets of sequence 1, with the usual tracks declared."""

    def __init__(self) -> None:
        self.trace = Trace()
        first = self.packet(flags=1)
        for iid, name in ((1, "a"), (2, "b")):
            first.interned_data.event_names.add(iid=iid, name=name)
        first.interned_data.event_categories.add(iid=1, name="c")
        first.interned_data.debug_annotation_names.add(iid=1, name="k")
        first.interned_data.debug_annotation_string_values.add(iid=1, str=b"v")
        first.interned_data.log_message_body.add(iid=1, body="hello")
        first.interned_data.callstacks.add(iid=1)
        self.track(PROCESS).process.pid = 5
        thread = self.track(THREAD).thread
        thread.pid, thread.tid = 5, 6
        self.track(GAUGE, parent=PROCESS, name="gauge").counter.SetInParent()
        self.track(GROUP, parent=PROCESS, name="group")

    def packet(self, ts: int | None = None, flags: int = 2, sequence: int = 1) -> Any:
        packet = self.trace.packet.add()
        packet.trusted_packet_sequence_id = sequence
        packet.sequence_flags = flags
        if ts is not None:
            packet.timestamp = ts
        return packet

    def track(self, uuid: int, parent: int = 0, name: str = "") -> Any:
        descriptor = self.packet().track_descriptor
        descriptor.uuid = uuid
        if parent:
            descriptor.parent_uuid = parent
        if name:
            descriptor.name = name
        return descriptor

    def event(self, type: int, ts: int, track: int = THREAD, name: str = "a", **fields: Any) -> Any:
        packet = self.packet(ts)
        event = packet.track_event
        event.type, event.track_uuid = type, track
        if name and type in (BEGIN, INSTANT):
            event.name = name
        for key, value in fields.items():
            if isinstance(value, list):
                getattr(event, key).extend(value)
            else:
                setattr(event, key, value)
        return packet

    def slice(self, ts: int, end: int, **fields: Any) -> None:
        self.event(BEGIN, ts, **fields)
        self.event(END, end)


Fill = Callable[[Builder], object]


def check_packets(folder: Path, *fills: Fill) -> CheckReport:
    builder = Builder()
    for fill in fills:
        fill(builder)
    return check_bytes(folder, builder.trace.SerializeToString())


def do(*steps: Fill) -> Fill:
    return lambda b: [step(b) for step in steps]


def begin(ts: int, **fields: Any) -> Fill:
    return lambda b: b.event(BEGIN, ts, **fields)


def end(ts: int, **fields: Any) -> Fill:
    return lambda b: b.event(END, ts, **fields)


def instant(ts: int = 5, **fields: Any) -> Fill:
    return lambda b: b.event(INSTANT, ts, **fields)


def value(ts: int = 5, track: int = GAUGE, **fields: Any) -> Fill:
    return lambda b: b.event(COUNTER, ts, track, **({"counter_value": 1} | fields))


def annotated(iid: int, **fields: Any) -> Fill:
    def fill(b: Builder) -> None:
        outer = b.event(INSTANT, 5).track_event.debug_annotations.add(name="outer")
        outer.dict_entries.add(name_iid=iid, **fields)

    return fill


def timed_by(clock: int) -> Fill:
    def fill(b: Builder) -> None:
        b.event(INSTANT, 5).timestamp_clock_id = clock

    return fill


def snapshot(*clocks: int, primary: int = 0, at: int = 100, sequence: int = 1) -> Fill:
    def fill(b: Builder) -> None:
        message = b.packet(0, sequence=sequence).clock_snapshot
        if primary:
            message.primary_trace_clock = primary
        for clock in clocks:
            message.clocks.add(clock_id=clock, timestamp=at)

    return fill


def flags(first: int) -> Fill:
    def fill(b: Builder) -> None:
        b.packet(flags=first, sequence=7)
        b.packet(flags=2, sequence=7)

    return fill


def thread(uuid: int, pid: int, tid: int) -> Fill:
    def fill(b: Builder) -> None:
        message = b.track(uuid).thread
        message.pid, message.tid = pid, tid

    return fill


def process(uuid: int, pid: int) -> Fill:
    return lambda b: setattr(b.track(uuid).process, "pid", pid)


def declare(uuid: int, parent: int = 0, name: str = "t") -> Fill:
    return lambda b: b.track(uuid, parent, name)


def keyed(uuid: int, name: str, key: str | int, parent: int = 0, behavior: int = 3) -> Fill:
    """A track with a key for its siblings; behavior 3 is "by key", 1 "by name", 2 "never"."""

    def fill(b: Builder) -> None:
        descriptor = b.track(uuid, parent, name)
        descriptor.sibling_merge_behavior = behavior
        setattr(descriptor, "sibling_merge_key" if isinstance(key, str) else "sibling_merge_key_int", key)
        b.event(INSTANT, uuid, uuid)

    return fill


def log(body: int) -> Fill:
    return lambda b: setattr(b.event(INSTANT, 5).track_event.log_message, "body_iid", body)


def sample(callstack: int) -> Fill:
    return lambda b: setattr(b.packet(5).perf_sample, "callstack_iid", callstack)


def on_cpu(number: int) -> Fill:
    return lambda b: setattr(b.packet(5).perf_sample, "cpu", number)


def define_name(iid: int, name: str) -> Fill:
    return lambda b: b.packet().interned_data.event_names.add(iid=iid, name=name)


def unsequenced(id: int) -> Fill:
    def fill(b: Builder) -> None:
        packet = b.event(INSTANT, 5)
        packet.trusted_packet_sequence_id = id
        packet.track_event.name = "x"

    return fill


def clocks_without_sequence(b: Builder) -> None:
    b.packet(flags=0, sequence=0).clock_snapshot.primary_trace_clock = 6


def nested(levels: int) -> Fill:
    return do(*(begin(t) for t in range(levels)), *(end(levels + t) for t in range(levels)))


def extra(count: int) -> Fill:
    return instant(extra_counter_values=list(range(count)), extra_counter_track_uuids=[GAUGE] * count)


def untyped(b: Builder) -> None:
    b.event(INSTANT, 5).track_event.ClearField("type")


def unvalued(b: Builder) -> None:
    b.event(COUNTER, 5, GAUGE)


def untimed(b: Builder) -> None:
    b.event(INSTANT, 5).ClearField("timestamp")


def nameless_track(b: Builder) -> None:
    b.packet().track_descriptor.name = "x"


PFTRACE_RULES: dict[str, tuple[Fill, Fill]] = {
    "no_sequence": (do(unsequenced(1), clocks_without_sequence), unsequenced(0)),
    "not_cleared": (flags(1), flags(0)),
    "not_interned": (
        do(
            begin(1, name="", name_iid=1, category_iids=[1]),
            end(2),
            annotated(1, string_value_iid=1),
            log(1),
            sample(1),
        ),
        do(begin(1, name="", name_iid=9), end(2)),
    ),
    "interned_zero": (define_name(3, "x"), define_name(0, "x")),
    "interned_changed": (define_name(1, "a"), define_name(1, "x")),
    "time_range": (instant(2**63 - 1), instant(2**63)),
    "no_time": (instant(), untimed),
    "no_track": (instant(), instant(track=0)),
    "no_type": (instant(), untyped),
    "no_name": (instant(), instant(name="")),
    "no_value": (value(), unvalued),
    "extra_values": (extra(8), extra(9)),
    "cpu_range": (on_cpu(4095), on_cpu(4096)),
    "flow_alone": (do(instant(1, flow_ids=[3]), instant(2, flow_ids=[3])), instant(flow_ids=[3])),
    "flow_without_start": (
        do(instant(1, flow_ids=[3]), instant(2, terminating_flow_ids=[3])),
        do(instant(2, flow_ids=[3]), instant(1, terminating_flow_ids=[3]), instant(3, flow_ids=[3])),
    ),
    "unknown_clock": (do(snapshot(6, 3), timed_by(3)), do(snapshot(6, 1), timed_by(3))),
    "timeline_back": (
        do(snapshot(6, 3), snapshot(6, 3, at=200), timed_by(3)),
        do(snapshot(6, 3), snapshot(6, 3, at=50)),
    ),
    "clock_back": (do(snapshot(6, 3), snapshot(3, 1, at=50)), do(snapshot(6, 3), snapshot(3, 1, at=50), timed_by(3))),
    "clock_twice": (snapshot(6, 3), snapshot(6, 3, 3)),
    "undeclared_track": (instant(track=GROUP), instant(track=99)),
    "merged_tracks": (
        do(keyed(20, "a", "k"), keyed(21, "a", "k"), keyed(22, "b", "other"), keyed(23, "b", "k", parent=PROCESS)),
        do(keyed(20, "a", "k"), keyed(21, "b", "k")),
    ),
    "late_track": (do(declare(20), instant(track=20)), do(instant(track=20), declare(20))),
    "no_uuid": (declare(20), nameless_track),
    "no_parent": (declare(20, parent=GROUP), declare(20, parent=99)),
    "track_loop": (do(declare(20, 21), declare(21, GROUP)), do(declare(20, 21), declare(21, 20))),
    "track_conflict": (declare(GROUP, PROCESS, "group"), declare(GROUP, PROCESS, "other")),
    "pid_reused": (process(20, 6), process(20, 5)),
    "tid_reused": (thread(20, 5, 7), thread(20, 5, 6)),
    "id_zero": (thread(20, 5, 7), thread(20, 5, 0)),
    "no_process": (thread(20, 5, 7), thread(20, 8, 7)),
    "slice_on_counter": (value(), instant(track=GAUGE)),
    "not_a_counter": (value(), value(track=GROUP)),
    "end_without_begin": (do(begin(1), end(2)), end(2)),
    "not_closed": (do(begin(1), begin(2), end(3), end(4)), do(begin(1), begin(2), end(3))),
    "end_before_begin": (do(begin(5), end(5)), do(begin(5), end(4))),
    "end_crosses": (
        do(begin(1), begin(2, name="b"), end(3, name_iid=2), end(4, name_iid=1)),
        do(begin(1), begin(2, name="b"), end(3, name_iid=1), end(4, name_iid=2)),
    ),
    "too_deep": (nested(512), nested(513)),
    "unsorted": (do(instant(5), instant(4)), do(begin(5), end(6), begin(1), end(2))),
    "order_matters": (do(begin(1), end(3), begin(4), end(4)), do(begin(1), begin(5), end(3), end(7))),
}


@pytest.mark.parametrize("code", PFTRACE_RULES)
def test_pftrace_rule(code: str, tmp_path: Path) -> None:
    good, bad = PFTRACE_RULES[code]
    assert codes(check_packets(tmp_path, good)) == set()
    assert code in codes(check_packets(tmp_path, bad))


@pytest.mark.parametrize(
    "bad",
    [
        instant(category_iids=[2]),
        annotated(2, int_value=1),
        annotated(1, string_value_iid=2),
        log(2),
        sample(2),
        instant(correlation_id_str_iid=1),
        instant(source_location_iid=1),
        instant(callstack_iid=2),
        lambda b: b.packet().interned_data.frames.add(iid=1, function_name_id=1),
        lambda b: b.packet().interned_data.callstacks.add(iid=2, frame_ids=[1]),
        lambda b: b.packet().interned_data.mappings.add(iid=1, path_string_ids=[1]),
    ],
)
def test_each_interned_reference_is_followed(bad: Fill, tmp_path: Path) -> None:
    assert codes(check_packets(tmp_path, bad)) == {"not_interned"}


def test_clearing_forgets_what_was_interned(tmp_path: Path) -> None:
    cleared = do(lambda b: b.packet(flags=1), begin(1, name="", name_iid=1), end(2))
    assert codes(check_packets(tmp_path, cleared)) == {"not_interned", "no_name"}


def test_interned_ids_are_private_to_a_sequence(tmp_path: Path) -> None:
    def other_sequence(b: Builder) -> None:
        b.packet(flags=1, sequence=2)
        b.event(INSTANT, 5, name="", name_iid=1).trusted_packet_sequence_id = 2

    assert "not_interned" in codes(check_packets(tmp_path, other_sequence))


def test_defaults_of_the_sequence(tmp_path: Path) -> None:
    def defaults(clock: int, track: int) -> Fill:
        def fill(b: Builder) -> None:
            message = b.packet().trace_packet_defaults
            message.timestamp_clock_id = clock
            message.track_event_defaults.track_uuid = track
            b.event(INSTANT, 5).track_event.ClearField("track_uuid")

        return fill

    assert codes(check_packets(tmp_path, defaults(6, GROUP))) == set()
    assert codes(check_packets(tmp_path, defaults(3, 99))) == {"unknown_clock", "undeclared_track"}


def test_clocks_are_related_through_others_and_only_by_earlier_snapshots(tmp_path: Path) -> None:
    assert codes(check_packets(tmp_path, snapshot(6, 1), snapshot(1, 3), timed_by(3))) == set()
    assert codes(check_packets(tmp_path, timed_by(3), snapshot(6, 3))) == {"unknown_clock"}
    assert codes(check_packets(tmp_path, snapshot(1, 3, primary=1), timed_by(1))) == set()
    assert codes(check_packets(tmp_path, snapshot(3, 64), timed_by(64))) == {"unknown_clock"}
    assert codes(check_packets(tmp_path, snapshot(6, 3, sequence=9), timed_by(3))) == set()  # without state


def test_incremental_clock_in_microseconds(tmp_path: Path) -> None:
    def fill(b: Builder) -> None:
        message = b.packet(0).clock_snapshot
        message.clocks.add(clock_id=6, timestamp=1_000_000)
        message.clocks.add(clock_id=64, timestamp=1_000, is_incremental=True, unit_multiplier_ns=1000)
        for type in (BEGIN, BEGIN, END, END):
            b.event(type, 3).timestamp_clock_id = 64

    report = check_packets(tmp_path, fill)
    assert codes(report) == set()
    assert report.counts["slices"] == 2


def test_same_end_of_parent_and_child_is_in_order(tmp_path: Path) -> None:
    """Written slice by slice, the parent's end comes first in the file; nothing depends on that."""
    assert codes(check_packets(tmp_path, begin(1), end(9), begin(2), end(9))) == {"unsorted"}


def test_machines_have_their_own_pids(tmp_path: Path) -> None:
    def other_machine(b: Builder) -> None:
        process(20, 5)(b)
        b.trace.packet[-1].machine_id = 2

    assert codes(check_packets(tmp_path, other_machine)) == set()


def test_unknown_fields_are_found_at_any_depth(tmp_path: Path) -> None:
    plain = Builder().trace.SerializeToString()
    # Field 30000, a varint, in a packet and in the descriptor inside of one.
    field = b"\x80\xd3\x0e\x01"
    assert codes(check_bytes(tmp_path, plain + framed(b"\x50\x01" + field))) == {"unknown_fields"}
    inner = b"\x08\x14" + field
    packet = b"\x50\x01" + b"\xe2\x03" + bytes([len(inner)]) + inner
    assert codes(check_bytes(tmp_path, plain + framed(packet))) == {"unknown_fields"}


def test_padded_lengths_are_no_unknown_fields(tmp_path: Path) -> None:
    packet = b"\x50\x81\x80\x00" + b"\xe2\x03\x82\x80\x80\x00\x08\x14"
    assert TracePacket.FromString(packet).track_descriptor.uuid == 20
    assert codes(check_bytes(tmp_path, framed(packet))) == set()


def framed(packet: bytes) -> bytes:
    return b"\x0a" + bytes([len(packet)]) + packet


def test_frames(tmp_path: Path) -> None:
    plain = Builder().trace.SerializeToString()
    assert codes(check_bytes(tmp_path, plain)) == set()
    assert codes(check_bytes(tmp_path, plain[:-1])) == {"truncated"}
    assert codes(check_bytes(tmp_path, plain + b"\x0a")) == {"truncated"}
    assert codes(check_bytes(tmp_path, plain + b"\x12\x00")) == {"corrupt"}
    assert codes(check_bytes(tmp_path, plain + b"\x0a" + b"\xff" * 9)) == {"corrupt"}
    assert codes(check_bytes(tmp_path, plain + framed(b"\xff\xff"))) == {"not_a_packet"}
    report = check_bytes(tmp_path, plain + b"\x12\x00")
    assert report.problems[0].at == f"byte {len(plain)}"
    assert report.problems[0].severity is Severity.ERROR


def test_a_packet_larger_than_a_read(tmp_path: Path) -> None:
    report = check_packets(tmp_path, instant(name="x" * 5_000_000), instant())
    assert report.ok
    assert report.counts["instants"] == 2


def test_compressed_packets(tmp_path: Path) -> None:
    inner = Builder()
    inner.slice(1, 2)
    outer = Trace()
    outer.packet.add(compressed_packets=zlib.compress(inner.trace.SerializeToString()), trusted_packet_sequence_id=9)
    report = check_bytes(tmp_path, outer.SerializeToString())
    assert report.ok
    assert report.counts["slices"] == 1
    outer.packet[0].compressed_packets = zlib.compress(outer.SerializeToString())
    assert codes(check_bytes(tmp_path, outer.SerializeToString())) == {"packed_twice"}
    outer.packet[0].compressed_packets = b"no deflate"
    assert codes(check_bytes(tmp_path, outer.SerializeToString())) == {"corrupt_compression"}


def test_counts_and_place(tmp_path: Path) -> None:
    builder = Builder()
    builder.slice(1, 5, flow_ids=[1])
    builder.slice(6, 7, terminating_flow_ids=[1])
    for fill in (instant(), value(), log(1), sample(1)):
        fill(builder)
    before = len(builder.trace.packet)
    builder.event(END, 9)
    report = check_bytes(tmp_path, builder.trace.SerializeToString())
    assert report.format == "pftrace"
    expected = {"packets": before + 1, "tracks": 4, "slices": 2, "events": 8, "instants": 2, "counters": 1, "flows": 1}
    expected |= {"samples": 1, "logs": 1, "sequences": 1, "states": 0}
    assert report.counts == expected
    assert [problem.at for problem in report.problems] == [f"packet {before + 1}"]  # counted from 1
    assert not report.ok


def test_events_have_the_numbers_that_conversions_give_them(tmp_path: Path) -> None:
    events = [event("i", ts=1), event("i", ts="soon")]
    path = tmp_path / "events.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    (converted,) = (one for one in traceconv.read(path).sources[0].diagnostics if one.code.name == "chrome.bad_time")
    at = {problem.at.split(":")[0] for problem in check_file(path).problems}
    assert at == {"event 2"}
    assert converted.places[0].startswith("events.json:event 2")


# --- files -----------------------------------------------------------------------------------------------------------


def two_formats() -> Iterator[tuple[str, bytes]]:
    yield "chrome-json", json.dumps([complete(0, 1)]).encode()
    builder = Builder()
    builder.slice(1, 2)
    yield "pftrace", builder.trace.SerializeToString()


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", data)
    return file.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zipped])
def test_compression_is_seen_by_content(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    for format, data in two_formats():
        report = check_bytes(tmp_path, pack(data))
        assert (report.format, report.counts["slices"], report.problems) == (format, 1, [])


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for format, data in two_formats():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        report = check_file("-")
        assert (report.format, report.counts["slices"], report.problems) == (format, 1, [])


def test_a_cut_gzip_is_checked_up_to_the_cut(tmp_path: Path) -> None:
    for format, data in two_formats():
        report = check_bytes(tmp_path, gzip.compress(data)[:-4])  # without the length at the end
        assert (report.format, report.counts["slices"]) == (format, 1)
        (cut,) = report.problems
        assert (cut.code, cut.severity) == ("check.damaged", Severity.DATA_LOSS)
        assert str(tmp_path / "trace") in cut.at
        assert not report.ok
    assert codes(check_bytes(tmp_path, gzip.compress(data)[:-12])) >= {"damaged", "truncated"}


def test_utf16_is_refused_by_viewers_and_its_events_are_checked(tmp_path: Path) -> None:
    text = json.dumps([event("E", 2)])
    for data in (text.encode("utf-16"), gzip.compress(text.encode("utf-16"))):
        report = check_bytes(tmp_path, data)
        assert [problem.code for problem in report.problems] == ["check.utf16", "check-json.end_without_begin"]
        assert report.problems[0].severity is Severity.ERROR


def corrupt_gzip(at: int) -> bytes:
    packed = bytearray(gzip.compress(bytes(range(256)) * 40, mtime=0))
    packed[at : at + 10] = b"\xff" * 10
    return bytes(packed)


@pytest.mark.parametrize(
    "data", [corrupt_gzip(10), corrupt_gzip(60), corrupt_gzip(-9), b"\x1f\x8b no gzip", b"PK\x03\x04"]
)
def test_broken_compression_is_one_line(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trace: ") as error:
        check_bytes(tmp_path, data)
    assert "Errno" not in error.value.message


def test_what_cannot_be_opened_has_a_hint(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError) as error:
            check_file(path)
        assert error.value.message.startswith(f"{path}: ")
        assert "Errno" not in error.value.message
        assert error.value.hint


def test_empty_file(tmp_path: Path) -> None:
    assert codes(check_bytes(tmp_path, b"")) == {"not_json"}


# --- the generator of the benchmark ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pretty", [True, False])
def test_generated_trace_is_sound(pretty: bool, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    summary = generate(path, 3000, pretty=pretty)
    report = check_file(path)
    assert report.problems == []
    assert report.counts["events"] == summary.events == 3000
    assert report.counts["slices"] == summary.slices > 1000
    assert report.counts["flows"] > 100
    again = tmp_path / "again.json"
    generate(again, 3000, pretty=pretty)
    assert again.read_bytes() == path.read_bytes()


def test_slices_are_counted_from_the_wire(tmp_path: Path) -> None:
    builder = Builder()
    fills: Iterable[Fill] = (begin(1, name="x" * 300), end(2), instant(3), value(4), begin(5), end(6))
    for fill in fills:
        fill(builder)
    path = tmp_path / "trace"
    path.write_bytes(builder.trace.SerializeToString())
    assert count_slices(path) == 2


def test_json_that_begins_with_a_line_feed_is_not_a_protobuf() -> None:
    """Kineto of torch 2.11 writes it."""
    path = ROOT / "pytorch-kineto" / "cuda-graph" / "input.json"
    assert path.read_bytes()[:1] == b"\n"
    report = check_file(path)
    assert report.format == "chrome-json"
    assert report.ok


@pytest.mark.parametrize("space", ["", "\n", "\r\n", "\n\n", " ", "\t", "\n \t\r\n"])
@pytest.mark.parametrize("text", ['{"traceEvents":[%s]}', "[%s]", '{\n "traceEvents" : [%s]}', "[ %s]", "[\n%s]"])
def test_white_space_before_json_is_no_protobuf(tmp_path: Path, space: str, text: str) -> None:
    """Perfetto leaves white space out before it looks at the first characters."""
    path = tmp_path / "trace.json"
    path.write_bytes((space + text % '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}').encode())
    report = check_file(path)
    assert (report.format, report.ok, report.counts["events"]) == ("chrome-json", True, 1)
    assert identify(path)[0] == "chrome-trace"
    with oracle.open_trace(path) as tp:
        assert oracle.rows(tp, "select name, ts, dur from slice") == [{"name": "a", "ts": 1000, "dur": 2000}]


def test_large_args_keep_their_small_members(tmp_path: Path) -> None:
    """A name of a thread above a megabyte is a name."""
    path = tmp_path / "trace.json"
    name = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "n" * (1 << 20)}}
    path.write_text(json.dumps([name, complete(1, 2)]))
    assert codes(check_file(path)) == {"large_member"}
    path.write_text(json.dumps([{**name, "args": {"label": "n" * (1 << 20)}}, complete(1, 2)]))
    assert codes(check_file(path)) == {"large_member", "schema"}
