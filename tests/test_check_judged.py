"""What the check says of small files is what Perfetto does: an error just where something is lost or misplaced.

All inputs are written by hand. Of each the trace processor (v52) is asked: does it refuse the file, count errors of
import, lack an event, or show one on another track, with another value or without its end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests import oracle
from tests.oracle.fixtures import OpenTrace
from tests.test_check import (
    INSTANT,
    JSON_RULES,
    PFTRACE_RULES,
    PROCESS,
    THREAD,
    Builder,
    Fill,
    begin,
    check_bytes,
    complete,
    do,
    end,
    event,
    keyed,
    value,
)
from tests.together import together
from traceconv.api import read
from traceconv.check import CheckReport
from traceconv.model.diagnostics import Severity

#: Errors that Perfetto v52 does not share: the Trace Event Format or JSON forbids it, and other viewers go by that;
#: newer versions of Perfetto refuse it; or Perfetto drops a flow without a word.
STRICTER = {
    "check-json.schema",
    "check-json.no_pid",
    "check-json.not_json",
    "check-json.lone_surrogate",
    "check-json.surrogate_escape",
    "check-json.flow_without_slice",
    "check-json.flow_backward",
}


def member(key: str, text: str, **others: object) -> str:
    """A complete event with a member that is given as JSON text."""
    return json.dumps({**complete(1, 2, **others)})[:-1] + f', "{key}": {text}}}'


def pair(phases: str, id: object, **others: object) -> list[object]:
    """Two events with an id on a thread with slices, a hundred µs apart."""
    slices = [complete(0, 50), complete(100, 50)]
    return [
        *slices,
        *(event(ph, ts, id=id, cat="c", bp="e", **others) for ph, ts in zip(phases, (0, 100), strict=True)),
    ]


IDS = [1, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -1, -(2**63), -(2**63) - 1, 1e3, "1", "0x1f", "ffffffffffffffff"]
TASKS: list[tuple[object, object]] = [
    (2**32 - 1, 2**32 - 2),
    (2**32, 2**32 + 1),
    (-1, -2),
    (-1, 0),
    ("a", "b"),
    ("7", 7),
    (0, 1),
    (1, 0),
    (3, 4),
]

#: Complete events (C: time, duration) and pairs (B, E: time) of one thread that begin or end at one time.
MIXED = [
    *permutations(["C0,2", "B0", "E2"]),
    *permutations(["C0,1", "B0", "E2"]),
    *permutations(["C1,1", "B0", "E2"]),
    *permutations(["C0,3", "B0", "E2"]),
    *permutations(["C1,0", "B1", "E2"]),
    *permutations(["C1,0", "B0", "E1"]),
    *permutations(["C0,1", "B1", "E2"]),
    ("C0,1", "C0,1", "B0", "E2"),
    ("C0,1", "B0", "B0", "E1", "E2"),
    ("C0,2", "B0", "E1", "B2", "E3"),
    ("B0", "C0,1"),
    ("B0", "C0,1", "C5,1"),
    ("B0", "C1,1", "C5,1"),
]


def mixed(texts: Iterable[str]) -> list[Any]:
    """The events of one of these."""
    times = ((text[0], [int(time) for time in text[1:].split(",")]) for text in texts)
    return [complete(*at) if ph == "C" else event(ph, *at) for ph, at in times]


#: Files as lists of events; an event may be JSON text.
JSON_INPUTS: dict[str, list[Any]] = {
    **{f"good {code}": good for code, (good, _) in JSON_RULES.items()},
    **{f"bad {code}": bad for code, (_, bad) in JSON_RULES.items()},
    **{f"async id {id!r}": [complete(5, 1), *pair("be", id)] for id in IDS},
    **{f"flow id {id!r}": pair("sf", id) for id in IDS},
    **{f"id of a slice {id!r}": [complete(1, 2, id=id)] for id in IDS},
    **{f"counter id {id!r}": [event("C", id=id, args={"v": 1})] for id in IDS},
    **{
        f"counter ids {one!r} {other!r}": [event("C", id=one, args={"v": 1}), event("C", 2, id=other, args={"v": 2})]
        for one, other in [(1, 1), (1, 2), ("1", "2")]
    },
    **{
        f"counter value {text}": [f'{{"ph":"C","name":"c","pid":1,"ts":1,"args":{{"v":{text}}}}}']
        for text in [
            str(2**63 - 1),
            str(2**63),
            str(2**64),
            str(-(2**63)),
            str(-(2**63) - 1),
            "9" * 25,
            "1e19",
            "1.5",
            '"2.5"',
        ]
    },
    **{f"tids {one!r} {other!r}": [complete(1, 5, tid=one), complete(3, 5, tid=other)] for one, other in TASKS},
    **{f"tids apart {one!r} {other!r}": [complete(1, 1, tid=one), complete(3, 5, tid=other)] for one, other in TASKS},
    **{f"pids {one!r} {other!r}": [complete(1, 5, pid=one), complete(3, 5, pid=other)] for one, other in TASKS},
    **{
        f"pids and tids {one!r} {other!r}": [complete(1, 5, pid=one, tid=8), complete(3, 5, pid=other, tid=9)]
        for one, other in TASKS
    },
    **{f"one task {task!r}": [complete(1, 5, pid=task, tid=task)] for task in (-1, 2**32, 2**40, "a", 0)},
    **{
        f"instants of tids {one!r} {other!r}": [event("i", 1, tid=one), event("i", 3, tid=other)]
        for one, other in TASKS
    },
    **{
        f"time {ts!r}": [complete(9, 1), complete(ts, 1)]
        for ts in (-1, -0.0001, -1e-3, 0, "3", " 3 ", "3 ", "3e2", "+3", "3.", ".5", "0x3", "", 1.0005)
    },
    **{f"instant at {ts!r}": [complete(9, 1), event("i", ts)] for ts in (-1, 0)},
    **{f"begin at {ts!r}": [event("B", ts), event("E", 3)] for ts in (-1, 0)},
    **{f"counter at {ts!r}": [complete(9, 1), event("C", ts, args={"v": 1})] for ts in (-1, 0)},
    **{
        f"text {text} as {key}": [member(key, text)]
        for key in ("cat", "foo")
        for text in (r'"a\\"', r'"\\ a"', r'"\""')
    },
    **{f"value {text} in args": [member("args", f'{{"k":{text}}}')] for text in (r'"a\\"', r'"a\\\""', '"\x7f"', "[]")},
    "names of texts": [event("i", name="\x7f"), event("i", name="a\u2028b"), event("i", name="\U0001f600")],
    "empty objects": [{}, complete(1, 1), {}],
    **{f"at one time {' '.join(texts)}": mixed(texts) for texts in MIXED},
    "one empty object": [{}],
    "old async": [complete(1, 1), event("S", 1, id="x"), event("F", 2, id="x")],
    "a start twice": [complete(0, 9), *(event(ph, ts, id=1, bp="e") for ts, ph in enumerate("ssf"))],
    "an empty pair behind a complete event": [complete(0, 1), event("B", 1), event("E", 1)],
    "an empty pair before one": [event("B", 1), event("E", 1), complete(5, 1, tid=9)],
    "an empty pair before one in the file only": [event("B", 1), event("E", 1), complete(0, 1, tid=9)],
    "an empty pair inside of one": [complete(0, 9), event("B", 1), event("E", 1)],
    "pairs that touch, beside complete events": [
        complete(9, 1),
        *(event(ph, i // 2 + i) for i, ph in enumerate("BEBE")),
    ],
    "ends in another order": [event("B", 0, name="o"), event("B", 1), event("E", 2, name="o"), event("E", 3)],
    "an end of another name": [event("B", 0, name="o"), event("E", 2, name="z")],
    "an end at the time of the next begin": [complete(20, 1), *(event("BE"[i % 2], (i + 1) // 2) for i in range(6))],
    **{
        f"a slice at {ts} with one inside": [complete(float(ts), 1.002), complete(float(ts) + 0.5, 0.5)]
        for ts in ("1.4", "1795227823848971.25", "1795227823848971.0", "18446744073709.4")
    },
    "slices that end together": [complete(0, 10), complete(5, 5), complete(5, 5)],
    **{
        f"instant with {scope!r}, {' and '.join(there) or 'no task'}": [
            {key: one for key, one in event("i", s=scope).items() if key in ("ph", "name", "ts", "s", *there)}
        ]
        for scope in ("t", "p", "g")
        for there in (("pid", "tid"), ("pid",), ())
    },
    "instant without tid": [{"ph": "i", "name": "a", "ts": 1, "pid": 1}],
    "unfinished": [event("B", 1), event("B", 2)],
}
TOP_LEVEL: dict[str, bytes] = {
    f"{text!r} {where}": (
        start % text.encode() + b'"traceEvents":[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]' + stop
    )
    for text in ("\x7f", "\\u007f", "\\n", "\\\\", "\\u0001", "\u2028", "\\ud83d\\ude00")
    for where, start, stop in [
        ("in a key", b'{"a%s":1,', b"}"),
        ("in a value", b'{"a":"%s",', b"}"),
        ("in metadata", b'{"metadata":{"a":["%s"]},', b"}"),
    ]
} | {
    "an empty list": b"[]",
    "a list": b'[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]',
    "a list that begins with an empty object": b'[{},{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]',
    "an empty list inside": b'{"traceEvents":[]}',
}


def text_of(events: Iterable[Any]) -> bytes:
    texts = [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in events]
    return ('{"traceEvents":[' + ",\n".join(texts) + "]}").encode()


def faults_of_json(tp: Any, events: list[Any]) -> list[str]:
    """What the trace processor shows otherwise than the events say."""
    phases = Counter(str(one.get("ph")) for one in events)
    drawn = [one for one in events if one.get("ph") in ("X", "B", "i")]
    on_threads = [one for one in drawn if one.get("s") not in ("p", "g")]
    counters = [(key, one) for one in events if one.get("ph") == "C" for key in one["args"]]
    found = dict[str, tuple[Any, Any]]()

    def compare(what: str, shown: Any, meant: Any) -> None:
        if shown != meant:
            found[what] = shown, meant

    (slices,) = oracle.rows(tp, "select count(*) as n, sum(dur < -1) as negative, sum(dur = -1) as open from slice")
    compare("slices", slices["n"], sum(phases[ph] for ph in "XBibn") + phases["S"])
    compare("negative", slices["negative"] or 0, 0)
    compare("open", slices["open"] or 0, max(phases["B"] - phases["E"], 0) + max(phases["b"] - phases["e"], 0))
    threads = (
        "select count(distinct utid) as t, count(distinct upid) as p from slice join thread_track t on t.id = track_id"
    )
    (shown,) = oracle.rows(tp, f"{threads} join thread using (utid)")
    compare("threads", shown["t"], len({(repr(one.get("pid")), repr(one.get("tid"))) for one in on_threads}))
    compare("processes", shown["p"], len({repr(one.get("pid")) for one in on_threads}))
    starts = [row["ts"] for row in oracle.rows(tp, "select ts from slice order by ts")]
    meant = sorted(Decimal(str(one["ts"])) * 1000 for one in events if one.get("ph") in [*"XBibn"] and "ts" in one)
    compare("times", all(abs(one - other) <= 1 for one, other in zip(starts, meant, strict=False)), True)
    (tracks,) = oracle.rows(tp, "select count(distinct track_id) as n from counter")
    names = {(one.get("pid"), one["name"], one.get("id"), key) for key, one in counters}
    compare("counters", tracks["n"], len(names))
    values = [row["value"] for row in oracle.rows(tp, "select value from counter order by ts, id")]
    numbers = [float(one["args"][key]) for key, one in counters if one["args"][key] is not None]
    compare("values", values, numbers)
    compare("ends", phases["E"] > phases["B"], False)
    compare("async ends", phases["e"] > phases["b"], False)
    return [f"{what}: {shown} instead of {meant}" for what, (shown, meant) in found.items()]


def faults(path: Path, opened: OpenTrace, events: list[Any] | None) -> list[str]:
    try:
        with opened(path) as tp:
            problems = [str(row["name"]) for row in oracle.import_problems(tp)]
            return problems + (faults_of_json(tp, events) if events is not None else [])
    except oracle.TraceRefused as refused:
        return [str(refused)]


def assert_same(report: CheckReport, found: list[str]) -> None:
    errors = {problem.code for problem in report.problems if problem.severity >= Severity.DATA_LOSS}
    if found:
        assert errors, f"Perfetto: {found}; the check says nothing but {report.problems}"
    else:
        assert errors <= STRICTER, "Perfetto has no problem with it"


@pytest.mark.parametrize("first_word", dict.fromkeys(name.partition(" ")[0] for name in JSON_INPUTS))
def test_events(first_word: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    with together() as each:
        for name, events in JSON_INPUTS.items():
            if name.partition(" ")[0] == first_word:
                with each(name):
                    data = text_of(events)
                    meant = json.loads(data)["traceEvents"]
                    assert_same(check_bytes(tmp_path, data), faults(tmp_path / "trace", trace_processor, meant))


def behind(*ends: tuple[str, dict[str, object], bool]) -> dict[str, tuple[list[object], bool]]:
    """A flow from another thread to what ends it, and whether it is drawn, by what the end stands behind."""
    slices = {
        "complete": [complete(10, 10)],
        "nested": [complete(10, 10), complete(12, 2)],
        "pair": [event("B", 10), event("E", 20)],
        "complete in a pair": [event("B", 10), complete(12, 2), event("E", 20)],
        "pair in complete": [complete(10, 10), event("B", 12), event("E", 14)],
        "pair behind complete": [complete(10, 1), event("B", 12), event("E", 14)],
        "pair that ends as complete": [event("B", 10), complete(12, 8), event("E", 20)],
        "complete after a pair": [event("B", 10), event("E", 11), complete(12, 2)],
        "none": [],
    }
    closed = {"pair", "complete in a pair", "pair behind complete", "pair that ends as complete", "none"}
    start = [complete(0, 5, tid=9), event("s", 1, id=1, tid=9)]
    return {
        f"{name}, {ph} {more}": ([*start, *there, event(ph, 30, id=1, **more)], is_drawn and name not in closed)
        for name, there in slices.items()
        for ph, more, is_drawn in ends
    }


FLOWS_BEHIND = behind(("f", {"bp": "e"}, True), ("t", {}, True), ("f", {}, False))


def test_flows_behind_slices(trace_processor: OpenTrace, tmp_path: Path) -> None:
    with together() as each:
        for name, (events, is_drawn) in FLOWS_BEHIND.items():
            with each(name):
                check_flow(events, is_drawn, trace_processor, tmp_path)


def check_flow(events: list[object], is_drawn: bool, trace_processor: OpenTrace, tmp_path: Path) -> None:
    report = check_bytes(tmp_path, text_of(events))
    with trace_processor(tmp_path / "trace") as tp:
        shown = oracle.rows(tp, "select b.ts from flow join slice b on b.id = slice_in")
    assert len(shown) == is_drawn
    found = {problem.code for problem in report.problems}
    assert found == {"check-json.flow_late" if is_drawn else "check-json.flow_without_slice"}
    trace = read(tmp_path / "trace")
    drawn = trace.slices.ts[trace.flows.to_slice].tolist()
    assert drawn == [row["ts"] for row in shown]


def ends_of_flow(*ends: tuple[str, int], **more: object) -> list[object]:
    """A slice on each of two threads from 0 to 9, and a flow with its start on the first one."""
    points = [event(ph, ts, id=1, tid=1 if ph == "s" else 2, **more) for ph, ts in ends]
    return [complete(0, 9, tid=1), complete(0, 9, tid=2), *points]


def between(origin: object, target: object, from_ts: int, to_ts: int) -> list[object]:
    """A flow from a slice to one of another thread, at times inside of them."""
    return [origin, target, event("s", from_ts, id=1), event("f", to_ts, id=1, tid=9, bp="e")]


#: Flows whose ends are in order, and whether their slices are.
FLOWS_BETWEEN: dict[str, tuple[list[object], bool]] = {
    "in order": (between(complete(1, 9), complete(2, 9, tid=9), 5, 6), False),
    "one start": (between(complete(1, 9), complete(1, 9, tid=9), 5, 6), False),
    "into an earlier slice": (between(complete(4, 9), complete(1, 9, tid=9), 5, 6), True),
    "into an inner slice": ([complete(1, 20, tid=9), *between(complete(4, 9), complete(5, 9, tid=9), 5, 6)], False),
    "behind an inner slice": ([complete(1, 20, tid=9), *between(complete(4, 9), complete(5, 1, tid=9), 5, 8)], False),
}


_THREADS = "join thread_track t on t.id = s.track_id join thread using (utid)"


@pytest.mark.parametrize("name", FLOWS_BETWEEN)
def test_flows_into_slices_that_began_earlier(name: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    events, is_reversed = FLOWS_BETWEEN[name]
    report = check_bytes(tmp_path, text_of(events))
    with trace_processor(tmp_path / "trace") as tp:
        (drawn,) = oracle.rows(tp, f"select tid from flow join slice s on s.id = slice_out {_THREADS}")
    assert (drawn["tid"] == 9) is is_reversed
    assert ("check-json.flow_reversed" in {problem.code for problem in report.problems}) is is_reversed


def bound(out: int, into: int) -> list[object]:
    """A flow of version 2, whose start stands first in the file."""
    ids = {"bind_id": "0x1"}
    return [complete(out, 1, **ids, flow_out=True), complete(into, 1, **ids, flow_in=True, tid=3)]


#: Flows, and whether they end behind their start.
FLOWS_BACK: dict[str, tuple[list[object], bool]] = {
    "end later": (ends_of_flow(("s", 1), ("f", 2), bp="e"), True),
    "end earlier": (ends_of_flow(("s", 2), ("f", 1), bp="e"), False),
    "step earlier": (ends_of_flow(("s", 2), ("t", 1)), False),
    "end at once": (ends_of_flow(("s", 2), ("f", 2), bp="e"), True),
    "end at once, but first in the file": (ends_of_flow(("f", 2), ("s", 2), bp="e"), False),
    "bound later": (bound(1, 5), True),
    "bound earlier": (bound(5, 1), False),
}


@pytest.mark.parametrize("name", FLOWS_BACK)
def test_flows_that_end_before_they_start(name: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    events, is_drawn = FLOWS_BACK[name]
    report = check_bytes(tmp_path, text_of(events))
    with trace_processor(tmp_path / "trace") as tp:
        assert len(oracle.rows(tp, "select id from flow")) == is_drawn
    assert {problem.code for problem in report.problems} == (set() if is_drawn else {"check-json.flow_backward"})


def test_what_stands_around_events(trace_processor: OpenTrace, tmp_path: Path) -> None:
    with together() as each:
        for name, data in TOP_LEVEL.items():
            with each(name):
                assert_same(check_bytes(tmp_path, data), faults(tmp_path / "trace", trace_processor, None))


#: Tracks of a .pftrace, and how many rows they shall be: names that differ never share a row.
ROWS: dict[str, tuple[Fill, int]] = {
    "one key": (do(keyed(20, "a", "k"), keyed(21, "b", "k")), 2),
    "one key and name": (do(keyed(20, "a", "k"), keyed(21, "a", "k")), 1),
    "one number": (do(keyed(20, "a", 7), keyed(21, "b", 7)), 2),
    "a number and its text": (do(keyed(20, "a", 7), keyed(21, "b", "7")), 2),
    "a key and a name": (do(keyed(20, "a", "b"), keyed(21, "b", "k", behavior=1)), 2),
    "keys that do not count": (do(keyed(20, "a", "k", behavior=1), keyed(21, "b", "k", behavior=1)), 2),
    "never": (do(keyed(20, "a", "k", behavior=2), keyed(21, "b", "k", behavior=2)), 2),
    "one key in a process": (do(keyed(20, "a", "k", PROCESS), keyed(21, "b", "k", PROCESS)), 2),
    "one key in a thread": (do(keyed(20, "a", "k", THREAD), keyed(21, "b", "k", THREAD)), 2),
    "one key in two parents": (do(keyed(20, "a", "k", PROCESS), keyed(21, "b", "k", THREAD)), 2),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_tracks(name: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    fill, meant = ROWS[name]
    builder = Builder()
    fill(builder)
    report = check_bytes(tmp_path, builder.trace.SerializeToString())
    with trace_processor(tmp_path / "trace") as tp:
        (shown,) = oracle.rows(
            tp, "select count(distinct ifnull(track_group_id, -t.id)) as n from slice join track t on t.id = track_id"
        )
    assert_same(report, ["rows"] if shown["n"] != meant else [])


@pytest.mark.parametrize("which", ["good", "bad"])
def test_errors_of_pftrace(which: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    """What the trace processor counts as an error, the check calls one, too; it knows more of them."""
    with together() as each:
        for rule, fills in PFTRACE_RULES.items():
            with each(rule):
                builder = Builder()
                fills[which == "bad"](builder)
                report = check_bytes(tmp_path, builder.trace.SerializeToString())
                found = faults(tmp_path / "trace", trace_processor, None)
                assert report.ok <= (set(found) <= {"stackprofile_empty_callstack"}), found


def test_a_snapshot_needs_no_state(trace_processor: OpenTrace, tmp_path: Path) -> None:
    builder = Builder()
    snapshot = builder.packet(sequence=9).clock_snapshot
    snapshot.clocks.add(clock_id=6, timestamp=1000)
    snapshot.clocks.add(clock_id=3, timestamp=500)
    builder.event(INSTANT, 600).timestamp_clock_id = 3
    assert not check_bytes(tmp_path, builder.trace.SerializeToString()).problems
    with trace_processor(tmp_path / "trace") as tp:
        assert [row["ts"] for row in oracle.rows(tp, "select ts from slice")] == [1100]
    assert read(tmp_path / "trace").instants.ts.tolist() == [1100]


@pytest.mark.parametrize("fill", [do(begin(1, track=99), end(2, track=99)), value(track=99)], ids=["slice", "value"])
def test_undeclared_tracks(fill: Fill, trace_processor: OpenTrace, tmp_path: Path) -> None:
    builder = Builder()
    fill(builder)
    report = check_bytes(tmp_path, builder.trace.SerializeToString())
    with trace_processor(tmp_path / "trace") as tp:
        names = {row["name"] for row in oracle.rows(tp, "select t.name from slice join track t on t.id = track_id")}
    assert names <= {"a"}  # the name of the first slice, not that of the track, which has none
    assert [problem.code for problem in report.problems] == ["check-pftrace.undeclared_track"]
    assert not report.ok
