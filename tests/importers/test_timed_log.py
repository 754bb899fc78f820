"""The importer of last resort: forms of time, their choice, clocks, fields, durations, patterns."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import GROWTH_S
from traceconv.align import align
from traceconv.align.domains import zone_advice
from traceconv.errors import MalformedInput, TraceconvError, UsageError
from traceconv.families.logs import log_fields, log_times
from traceconv.families.logs.log_fields import Fields, durations, read_fields
from traceconv.families.logs.timed_log import BAD_JSON_TIME, TimedLog
from traceconv.families.registry import Certainty, identify, importers
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import LocalTime, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Level, Trace

GOLDEN = Path(__file__).parents[2] / "golden"
S = 10**9
#: 2024-01-02 03:04:05 UTC, by the calendar of Python.
T = (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1) * S


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_text(text: str | bytes, **options: Any) -> Trace:
        path = tmp_path / "run.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        builder = Builder(SourceInfo(path.name, TimedLog.name), TimedLog.clock)
        TimedLog(**options).read(Source(path), builder)
        return builder.finish()

    return read_text


def logs(trace: Trace) -> list[dict[str, Any]]:
    table = trace.logs
    return [
        {
            "ts": int(table.ts[i]),
            "text": trace.strings[table.text[i]],
            "level": Level(table.level[i]),
            "source": trace.strings[table.source[i]],
            "track": trace.tracks[table.track[i]],
            "args": json.loads(trace.args.get(int(table.args_at[i]), int(table.args_len[i])) or b"{}"),
        }
        for i in range(len(table.ts))
    ]


def slices(trace: Trace) -> list[tuple[str, int, int]]:
    table = trace.slices
    return [(trace.strings[n], int(ts), int(dur)) for n, ts, dur in zip(table.name, table.ts, table.dur, strict=True)]


def problems(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


# -- forms ------------------------------------------------------------------------------------------------------------

FORMS = [
    ("2024-01-02T03:04:05.000000001Z a", "iso", T + 1),
    ("2024-01-02 04:04:05,5 +0100 a", "iso", T + S // 2),
    ("x [2024/01/01 21:34:05.25-05:30] a", "iso", T + S // 4),
    ("2024-01-02T03:04:05+00 a", "iso", T),
    ("2024-01-02 03:04:05,678 a", "iso-local", T + 678 * 10**6),
    ("INFO 20240102 03:04:05 a", "iso-local", T),
    ("2024-01-02_03:04:05.1234567891 a", "iso-local", T + 123456789),
    ("h - - [02/Jan/2024:03:04:05 +0000] a", "clf", T),
    ("Tue Jan  2 03:04:05 2024 a", "ctime", T),
    ("I0102 03:04:05.000001 77 a.cc:1] a", "glog", (27 * 60 * 60 + 245) * S + 1000),
    ("E20240102 03:04:05.5 77 a.cc:1] a", "glog-year", T + S // 2),
    ("01-02 03:04:05.5  1  2 I Tag: a", "logcat", (27 * 60 * 60 + 245) * S + S // 2),
    ("<3>Jan  2 03:04:05 host p[7]: a", "syslog", (27 * 60 * 60 + 245) * S),
    ("1704164645.000000001 a", "epoch", T + 1),
    ("[1704164645000] a", "epoch", T),
    ("1704164645000001: a", "epoch", T + 1000),
    ("ts=1704164645000000001 a", "epoch", T + 1),
    ("[    3.000001] a", "seconds", 3 * S + 1000),
    ("12.5: a", "seconds", 12 * S + S // 2),
    ("+1.5ms a", "seconds", 1_500_000),
    ("2500 µs a", "seconds", 2_500_000),
    ("T+3s a", "seconds", 3 * S),
    ("    10.123 ( 1.500 ms): python/43 read(fd: 3) = a", "perf-trace", 10_123_000),
    (" 84481704.123 (         ): python/43 read(fd: 3) ... a", "perf-trace", 84481704_123_000),
    ("     0.000 python/43 nanosleep(rqtp: 0x7ffc) = a", "perf-trace", 0),
    ("     0.123 python/43 sched:sched_switch(next_pid: 7) a", "perf-trace", 123_000),
    ("     0.123 (mean) a", "seconds", 123_000_000),
    ("23:59:59.5 a", "time-of-day", 86399 * S + S // 2),
    ("[7:08:09] a", "time-of-day", (7 * 3600 + 8 * 60 + 9) * S),
]


@pytest.mark.parametrize(("line", "form", "ns"), FORMS, ids=[line for line, *_ in FORMS])
def test_form_and_exact_time(read: Any, line: str, form: str, ns: int) -> None:
    trace = read(f"{line}\n{line}\n")
    assert form in trace.sources[0].notes[0].split()
    assert [one["ts"] for one in logs(trace)] == [ns, ns]
    assert logs(trace)[0]["text"].endswith("a")


LATE = [
    *(line for line, *_ in FORMS),
    "1/22/2024 3:04:05 PM a",
    "22/1/2024 3:04:05.25 p.m. a",
    "Jan 2, 2024 3:04:05 PM a",
]


@pytest.mark.parametrize("line", LATE)
def test_a_time_far_into_a_line_is_read_whole_or_not(line: str) -> None:
    """Half a time looks like another one: without its zone, its PM or its last digits."""
    near = [form for form in log_times.FORMS if form.find(b"y " + line.encode())]
    for form in near:
        first = form.find(b"y " + line.encode())
        assert first is not None
        for before in range(100, 450):
            for behind in (b"", b" z" * 300):
                found = form.find(b"y" * before + b" " + line.encode() + behind)
                begins = before + first.start() - 1
                assert (found is not None) == (begins < 200)
                assert found is None or found.groupdict() == first.groupdict()


@pytest.mark.parametrize("before", range(150, 202))
def test_a_time_is_not_cut_where_the_search_ends(read: Any, before: int) -> None:
    lines = [f"y 01/22/2024 3:04:0{i}.987654 PM a" for i in range(9)]
    lines[4] = "y" * (before - 2) + lines[4]
    trace = read("\n".join(lines))
    assert [one["ts"] - logs(trace)[0]["ts"] for one in logs(trace)] == [
        i * S for i in range(9) if i != 4 or before < 200
    ]
    order = log_times.ORDERS["month/day/year"]
    field = log_fields.TimeField("time", log_times.Kind.LOCAL, order)
    if before < 200:
        (short, _), (long, step) = field.times([{"time": lines[0]}, {"time": lines[4]}])
        assert (long - short, step) == (4 * S, 1000)


def test_a_time_behind_a_long_field_is_read_whole_or_not() -> None:
    form = log_times.compile_form("x%{skip}%H:%M:%S.%f")
    found = [form.find(b"x" + b" " * blanks + b"03:04:05.987654 a") for blanks in range(350, 420)]
    assert {match["frac"] for match in found if match is not None} == {b"987654"}
    assert None in found


@pytest.mark.parametrize("line", ["plain text", "1.5 2.5 3.5", "12345 text", "v2024.01.02 out", "a 1:2 b", "in 5 s"])
def test_what_is_no_time(read: Any, line: str) -> None:
    with pytest.raises(MalformedInput, match=r"run\.log.*no form of time"):
        read(f"{line}\n" * 5)


def test_the_form_that_fits_most_lines_wins(read: Any) -> None:
    trace = read("[2.5] a\n" + "".join(f"2024-01-02 03:04:0{i} [9.5] b\n" for i in range(5)))
    assert "iso-local" in trace.sources[0].notes[0]
    assert len(logs(trace)) == 6  # the line above the first time has an entry of its own


def test_a_date_without_zone_is_not_taken_for_a_zoned_one(read: Any) -> None:
    """Neither form may read the lines of the other: the zone would be dropped in silence."""
    zoned = "".join(f"2024-01-02 03:04:0{i}.125+02:00 a\n" for i in range(6))
    trace = read(zoned + "2024-01-02 03:04:09 b\n")
    assert [one["ts"] for one in logs(trace)] == [T - 7200 * S + (i - 5) * S + S // 8 for i in range(6)]
    assert logs(trace)[-1]["text"] == "a\n2024-01-02 03:04:09 b"


def test_midnight_and_new_year_are_counted(read: Any) -> None:
    day = 86400 * S
    trace = read("23:59:59 a\n00:00:01 b\n23:00:00 c\n22:59:59.9 late\n01:00:00 d\n")
    hours = [one["ts"] for one in logs(trace)]
    assert hours == [day - S, day + S, 2 * day - 3600 * S, 2 * day - 3600 * S - S // 10, 2 * day + 3600 * S]
    trace = read("Dec 31 23:59:59 h p: a\nJan  1 00:00:00 h p: b\n")
    assert logs(trace)[1]["ts"] - logs(trace)[0]["ts"] == S
    trace = read("Dec 31 23:59:59 h p: a\nJan  1 00:00:00 h p: b\n", year=2023, utc_offset="UTC")
    assert [one["ts"] for one in logs(trace)] == [T - 27 * 3600 * S - 246 * S, T - 27 * 3600 * S - 245 * S]


# -- clocks -----------------------------------------------------------------------------------------------------------


def test_clocks(read: Any) -> None:
    def clock(line: str, **options: Any) -> tuple[str, Zero, Run]:
        found = read(f"{line}\n" * 2, **options).clocks[0]
        return found.name, found.zero, found.run

    real = ("CLOCK_REALTIME", Zero.UNIX_EPOCH, Run.WALL)
    assert clock("2024-01-02T03:04:05Z a") == real
    assert clock("1704164645.5 a") == real
    assert clock("2024-01-02 03:04:05 a")[1:] == (Zero.UNKNOWN, Run.WALL)
    assert clock("2024-01-02 03:04:05 a", utc_offset="+02:00")[1:] == (Zero.UNKNOWN, Run.WALL)
    assert clock("[ 3.5] a")[1:] == (Zero.UNKNOWN, Run.UNKNOWN)
    assert clock("[ 3.5] a", clockid="monotonic") == ("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC)
    assert read("[ 3.5] a\n" * 2, clockid="monotonic", host="vm").clocks[0].machine == "vm"
    assert clock("03:04:05 a")[1:] == (Zero.UNKNOWN, Run.WALL)


def test_zone_of_the_user(read: Any) -> None:
    line = "2024-01-02 03:04:05 a\n"
    for zone, off in (("UTC", 0), ("+02:00", -7200 * S), ("-0530", 19800 * S)):
        trace = read(line, utc_offset=zone)
        (snap,) = trace.snapshots
        assert (logs(trace)[0]["ts"], snap.other_ts - snap.ts, snap.local) == (T, off, LocalTime(-off))
        (way,) = align([trace]).receipt
        assert (way.offset_ns, way.verdict) == (off, "assumed")  # it is the word of the user


@pytest.mark.parametrize(
    ("line", "options", "assumed"),
    [
        ("[ 3.5] a", {}, True),
        ("   3.500 a", {}, True),
        ("[ 3.5] a", {"time": "seconds"}, False),
        ("[ 3.5] a", {"time": "%{ms}"}, False),
        ("[ 3.5] a", {"clockid": "monotonic"}, False),
        ("3.5 s a", {}, False),
        ("     3.500 ( 0.001 ms): close(fd: 3) = 0", {}, False),
        ("+00:00:03.5 a", {}, False),
        ("2024-01-02 03:04:05 a", {}, False),
        ('{"ts": 3.5, "msg": "a"}', {}, True),
        ('{"elapsed_s": 3.5, "msg": "a"}', {"time": "elapsed_s"}, False),
        ('{"elapsed": 3, "msg": "a"}', {"time": "elapsed"}, True),
    ],
)
def test_a_unit_that_nothing_states_is_assumed(read: Any, line: str, options: dict[str, str], assumed: bool) -> None:
    trace = read(f"{line}\n" * 2, **options)
    (way,) = align([trace]).receipt
    expected = ("assumed", "its own times, assumed to be seconds") if assumed else ("ok", "its own times")
    assert (way.verdict, way.method) == expected
    if not line.startswith("{"):
        assert any("-O time=" in note for note in trace.sources[0].notes) == assumed


@pytest.mark.parametrize(
    ("line", "options", "words"),
    [
        ("[ 3.5] a", {"utc_offset": "UTC"}, r"a time zone \(--tz\) does not fit"),
        ("03:04:05 a", {"utc_offset": "UTC"}, "the date is needed, too"),
        ("2024-01-02T03:04:05Z a", {"utc_offset": "+02:00"}, "needs no time zone: its times state their zone"),
        ("1704164645.5 a", {"utc_offset": "+02:00"}, "needs no time zone"),
        ("Jan  2 03:04:05 h p: a", {"utc_offset": "UTC"}, "needs the year, too"),
        ("2024-01-02 03:04:05 a", {"clockid": "monotonic"}, "clockid does not fit"),
        ("[ 3.5] a", {"clockid": "sundial"}, "clockid of timed-log is monotonic"),
        ("2024-01-02 03:04:05 a", {"utc_offset": "Mars"}, "offset such as"),
        ("2024-01-02 03:04:05 a", {"time": "%q"}, "'%q' in '%q' is not known"),
        ("2024-01-02 03:04:05 a", {"time": "%{nothing}"}, "is not known"),
        ("2024-01-02 03:04:05 a", {"time": "%Y-%m-%d"}, "states no time"),
        ("2024-01-02 03:04:05 a", {"time": "%H %H"}, "twice"),
        ("2024-01-02 03:04:05 a", {"time": "%s seconds"}, "no line holds a time"),
        ('{"a": 1}', {"time": "b"}, "no time in the field 'b'"),
    ],
)
def test_options_that_do_not_fit(read: Any, line: str, options: dict[str, str], words: str) -> None:
    with pytest.raises((UsageError, MalformedInput), match=words):
        read(f"{line}\n" * 3, **options)


# -- patterns ---------------------------------------------------------------------------------------------------------

PATTERNS = [
    ("%d.%m.%Y %H:%M:%S,%f", "02.01.2024 03:04:05,5 a", T + S // 2),
    ("%d %b %y %I:%M:%S %p", "2 Jan 24  3:04:05 AM a", T),
    ("%I:%M %p", "12:30 PM a", 45000 * S),
    ("%I:%M %p", "12:30 am a", 1800 * S),
    ("%Y%m%d-%H%M%S%z", "20240102-030405+0000 a", T),
    ("at %s:", "at 1704164645.25: a", T + S // 4),
    ("%{epoch_ms}|", "x 1704164645000|a", T),
    ("%{epoch_ns}", "1704164645000000007 a", T + 7),
    ("tick %{us} us", "tick 7 us a", 7000),
    ("<%{s}>", "<1e3> <2,5> a", 2 * S + S // 2),
    ("%{level} %{skip} %{ms} ms", "warn junk 12.5 ms a", 12_500_000),
    ("%{skip} %{skip} %{ms} ms", "b  12.5 ms a", 12_500_000),
    ("%{skip}|%{ms} %{skip}", "b|c|12.5   a", 12_500_000),
    ("100%% %{ns}", "100% 9 a", 9),
    ("iso-local", "2024-01-02 03:04:05 a", T),
]


@pytest.mark.parametrize(("pattern", "line", "ns"), PATTERNS, ids=[pattern for pattern, *_ in PATTERNS])
def test_patterns(read: Any, pattern: str, line: str, ns: int) -> None:
    (entry,) = logs(read(line, time=pattern))
    assert entry["ts"] == ns
    assert entry["text"].endswith("a")


def test_fields_of_a_pattern(read: Any) -> None:
    (entry,) = logs(read("7 ms|warn|42|io thread|a.b|text\n", time="%{ms} ms|%{level}|%{pid}|%{thread}|%{source}|"))
    assert (entry["level"], entry["source"], entry["text"]) == (Level.WARNING, "a.b", "text")
    assert entry["track"].name == "io thread"


# -- fields -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "level", "thread", "source", "rest"),
    [
        (" - my.module - INFO - hello", Level.INFO, "", "my.module", "hello"),
        (" my.module ERROR hello", Level.ERROR, "", "my.module", "hello"),
        (" [MainThread] WARNING a.b: hello", Level.WARNING, "MainThread", "a.b", "hello"),
        (" [info] [rank 3] hello", Level.INFO, "rank 3", "", "hello"),
        (": E tensorflow/core/x.cc:77] hello", Level.ERROR, "", "tensorflow/core/x.cc:77", "hello"),
        (" |DEBUG| train.py:12: hello", Level.DEBUG, "", "train.py:12", "hello"),
        (" INFO Loading: hello", Level.INFO, "", "", "Loading: hello"),
        (" [0x7f5a] FATAL hello", Level.FATAL, "0x7f5a", "", "hello"),
        (" INFORMATION hello", Level.INFO, "", "", "INFORMATION hello"),
        (" -5 degrees", Level.INFO, "", "", "-5 degrees"),
        ("", Level.INFO, "", "", ""),
    ],
)
def test_fields(text: str, level: Level, thread: str, source: str, rest: str) -> None:
    fields = Fields()
    assert read_fields(text, fields) == rest
    assert (fields.level, fields.thread, fields.source) == (level, thread, source)


def test_threads_have_tracks_of_their_own(read: Any) -> None:
    trace = read("2024-01-02T03:04:05Z [12:34] a\n2024-01-02T03:04:05Z [12:35] took 1 ms\n")
    one, other = logs(trace)
    assert (one["track"].tid, other["track"].tid) == (34, 35)
    assert trace.tracks[one["track"].parent].pid == 12
    assert trace.tracks[trace.slices.track[0]] == other["track"]


def test_lines_without_a_time_belong_to_the_entry_before(read: Any) -> None:
    trace = read("head\n2024-01-02 03:04:05 boom\nTraceback:\n  File x\n\n2024-01-02 03:04:06 on\n")
    assert [one["text"] for one in logs(trace)] == ["head", "boom\nTraceback:\n  File x", "on"]
    balance = trace.sources[0].balance
    assert (balance.read, balance.written, sum(balance.merged.values())) == (6, 2, 4)


def test_an_endless_entry_is_split(read: Any) -> None:
    trace = read("[1.5] a\n[2.5] b\n" + "x\n" * 1700, time="seconds")
    assert sum(one["text"].count("x") for one in logs(trace)) == 1700
    assert max(one["text"].count("\n") for one in logs(trace)) <= 500
    assert problems(trace)["timed_log.long_entry"] == 3


# -- durations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("step 3 took 6.4 ms", [("step 3", 6_400_000)]),
        ("loaded model in 3.2 s", [("loaded model", 3_200_000_000)]),
        ("elapsed: 50us", [("elapsed", 50_000)]),
        ("elapsed time = 5 µs for x", [("for x", 5000)]),
        ("fwd took 1 ms, bwd took 2,5 ms", [("fwd", 1_000_000), ("bwd", 2_500_000)]),
        ("DURATION=7ns", [("DURATION", 7)]),
        ("fit took 1 min 3 s", [("fit", 63 * S)]),
        ("run (duration 2 hours)", [("run", 7200 * S)]),
        ("copied in 1,234.5 ms", [("copied", 1_234_500_000)]),
        ("copied in 1,234,567 us", [("copied", 1_234_567_000)]),
        ("a in 0,125 s", [("a", 125_000_000)]),
        ("in 3.5 sec.", [("in", 3_500_000_000)]),
        ("retry in 5 s", []),
        ("starting in 5 s", []),
        ("in 5 steps", []),
        ("took 5 ms/step", []),
        ("begin 5 ms", []),
        ("took 1e-3 s", [("took", 1_000_000)]),
    ],
)
def test_durations(text: str, found: list[tuple[str, int]]) -> None:
    assert [tuple(one) for one in durations(text)[0]] == found


def test_a_comma_that_may_be_decimal_or_not_is_no_duration(read: Any) -> None:
    trace = read("[1.5] a took 1,234 ms\n[2.5] b took 1 ms\n")
    assert slices(trace) == [("b", 2_499_000_000, 1_000_000)]
    assert problems(trace) == {"timed_log.ambiguous_duration": 1}


@pytest.mark.parametrize(
    ("text", "step_ns"),
    [
        ("2024-01-02 03:04:05 a\n2024-01-02 03:04:06 b\n", S),
        ("2024-01-02T03:04:05.250Z a\n2024-01-02T03:04:06.000Z b\n", 10**6),
        ("1704164645010 a\n1704164645050 b\n", 10**6),
        ('{"time": "2024-01-02T03:04:05.678Z", "msg": "a"}\n{"time": "2024-01-02T03:04:06Z", "msg": "b"}\n', 10**6),
        ('{"ts": 1704164645.25, "msg": "a"}\n{"ts": 1704164646.5, "msg": "b"}\n', 10**7),
        ('{"ts_ns": 1704164645010000001, "msg": "a"}\n{"ts_ns": 1704164645010000002, "msg": "b"}\n', 1),
    ],
)
def test_a_clock_is_as_fine_as_its_times_are_printed(read: Any, text: str, step_ns: int) -> None:
    assert read(text).clocks[0].resolution_ns == step_ns


def test_the_bound_holds_the_step_of_the_times(read: Any) -> None:
    alignment = align([read("2024-01-02 03:04:05 a\n2024-01-02 03:04:06 b\n", utc_offset="UTC")])
    assert alignment.receipt[0].bound_ns == S


def test_a_time_of_day_with_a_zone_needs_the_date(read: Any) -> None:
    with pytest.raises(MalformedInput, match="the date is needed, too") as caught:
        read("07:17:41.010 a\n07:17:42.010 b\n", utc_offset="UTC")
    assert "--date run.log=" in caught.value.hint
    trace = read("07:17:41.010 a\n07:17:42.010 b\n")
    assert str(zone_advice(trace, trace.clocks[0])).endswith("--tz run.log=+HH:MM --date run.log=DAY")


def test_coarse_times_do_not_cut_durations(read: Any) -> None:
    """Lanes trim what sticks out by the resolution of the clock; a duration in the text is finer than that."""
    trace = lay_out(read("2024-01-02 03:04:05 a took 0.9 s\n2024-01-02 03:04:06 b took 1.5 s\n", utc_offset="UTC"))
    assert sorted(slices(trace)) == [("a", T - 900_000_000, 900_000_000), ("b", T - S // 2, 3 * S // 2)]


def test_a_step_back_is_said(read: Any) -> None:
    trace = read("".join(f"[{t}.5] a\n" for t in (1, 2, 3, 9, 4, 5)))
    assert problems(trace) == {"timed_log.step_back": 1}


# -- JSON -------------------------------------------------------------------------------------------------------------


def test_json_lines(read: Any) -> None:
    lines = [
        {"ts": 1704164645.25, "level": "warn", "msg": "m", "tid": 5, "logger": "a.b", "n": 1, "dur_us": 2.5},
        {"ts": 1704164645.5, "level": 50, "message": "k", "nested": {"x": [1.5]}},
    ]
    trace = read("".join(json.dumps(line) + "\n" for line in lines))
    one, other = logs(trace)
    assert (one["ts"], other["ts"]) == (T + S // 4, T + S // 2)
    assert (one["level"], other["level"]) == (Level.WARNING, Level.ERROR)
    assert (one["text"], one["source"], one["track"].tid) == ("m", "a.b", 5)
    assert one["args"] == {"n": 1, "dur_us": 2.5}
    assert other["args"] == {"nested": {"x": [1.5]}}
    assert slices(trace) == [("m", T + S // 4 - 2500, 2500)]


@pytest.mark.parametrize("time", ["NaN", "-Infinity", "1e400", "1e99999999999999999999", "9" * 5000, "null", '"soon"'])
@pytest.mark.parametrize("at", [0, 2])
def test_a_json_line_whose_time_is_none_is_lost(read: Any, time: str, at: int) -> None:
    """It is no part of the entry before it."""
    lines = [f'{{"ts": {1704164645 + second}.5, "msg": "m\\ud800"}}\n' for second in range(5)]
    lines.insert(at, f'{{"ts": {time}, "level": "error", "msg": "odd"}}\n')
    trace = read("".join(lines))
    assert [(one["ts"] - T) // S for one in logs(trace)] == [*range(5)]
    assert {one["text"] for one in logs(trace)} == {"m\ufffd"}
    assert trace.sources[0].balance.skipped == {BAD_JSON_TIME.skipped: 1}
    assert trace.clocks[0].resolution_ns == S // 10


def test_the_field_that_counts_from_1970_is_found_and_another_can_be_named(read: Any) -> None:
    text = "".join(f'{{"mono_ns": {3276934359178 + i}, "real_ns": {1795245462407799306 + i}}}\n' for i in range(3))
    assert logs(read(text))[1]["ts"] == 1795245462407799307
    trace = read(text, time="mono_ns", clockid="monotonic")
    assert logs(trace)[1]["ts"] == 3276934359179
    assert trace.clocks[0].name == "CLOCK_MONOTONIC"


@pytest.mark.parametrize("text", ['{"a": 1}\n{"b": 2}\n', '{"ts": "x"}\n' * 3, '{\n"ts": 1704164645.5}\n'])
def test_json_without_a_time_is_refused(read: Any, text: str) -> None:
    with pytest.raises(MalformedInput, match=r"run\.log"):
        read(text)


# -- sniffing ---------------------------------------------------------------------------------------------------------


def test_it_never_wins_over_another_format() -> None:
    """All golden inputs of all other formats, and what it says about its own."""
    for path in sorted(GOLDEN.glob("*/*/input.*")):
        certainty = TimedLog().sniff(Source(path).head()).certainty
        assert certainty in (Certainty.NO, Certainty.FALLBACK), path


def test_another_claim_goes_first(tmp_path: Path) -> None:
    """A log of DeepSparse whose lines were stamped: most lines hold a time, and yet it is not for this importer."""
    path = tmp_path / "x"
    path.write_bytes((GOLDEN / "deepsparse" / "stamped" / "input.log").read_bytes())
    assert TimedLog().sniff(Source(path).head()).certainty is Certainty.FALLBACK
    assert identify(Source(path))[0] is importers()["deepsparse"]


@pytest.mark.parametrize(
    "data",
    [
        b" 664.69 msec a\n 664.44 msec b\n 1.35 seconds c\n 0.59 seconds d\n",
        b" 1.93 MB  10.0%  start\n 2.93 MB  20.0%  main\n 3.09 MB  30.4%  delta\n",
        b"10.00%  start\n20.50 %  main\n30.40%  delta\n",
        b"2143674432317505:2143674432318907 7:7 call()\n2143674432318998:2143674432319999 7:7 call()\n",
        b"9.93 start\n9.93 main\n9.93 run\n9.93 step\n7.35 alpha\n7.35 beta\n7.35 gamma\n8.00 delta\n",
        b"",
        b"a\n" * 9,
        b"[1.5] a\n",
        b"\x00[1.5] a\n[2.5] b\n",
        b'{"traceEvents":[]}',
        b'{"ts":1704164645.5}',
    ],
)
def test_sniffing_says_no(data: bytes) -> None:
    assert TimedLog().sniff(Head(data, True, "")).certainty is Certainty.NO


def test_forms_are_documented_in_the_module() -> None:
    for form in log_times.FORMS:
        if form.name != "glog-year":
            assert form.name in (log_times.__doc__ or ""), form.name


@pytest.mark.parametrize("noise", ["-", "a", "a.", "[", " ", "1", "in 1", "took 5", ":a", "\x1b[", '"', "(rank "])
def test_long_lines_take_linear_time(read: Any, noise: str) -> None:
    line = "2024-01-02T03:04:05Z " + noise * (200_000 // len(noise)) + "\n"
    start = time.process_time()
    assert len(logs(read(line * 2))) == 2
    assert time.process_time() - start < GROWTH_S


def test_huge_numbers_are_errors_of_ours(read: Any) -> None:
    for text in ("[" + "9" * 400 + ".5] a\n", '{"ts": ' + "9" * 5000 + "}\n", "9" * 18 + ".5 a\n"):
        with pytest.raises(TraceconvError):
            read(text * 3)


# -- clocks of twelve hours, dates, and what is not a time -------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("2026-03-04 01:00:01 PM start", "2026-03-04 01:00:02 pm start", (13 * 3600 + 1, 1)),
        ("10:11:12 AM start", "10:11:12PM start", (10 * 3600 + 672, 12 * 3600)),
        ("12:00:00.5 a.m. start", "12:00:00.5 p.m. start", (0, 12 * 3600)),
        ("04.03.2026 10:00:00 start", "05.03.2026 10:00:00 start", (36000, 86400)),
        ("[04/Mar/2026:10:00:00 +0100] start", "[05/Mar/2026:10:00:00 +0100] start", (32400, 86400)),
        ("[04/Mar/2026:10:00:00] start", "[05/Mar/2026:10:00:00] start", (36000, 86400)),
        ("3/13/2026 1:00:01 PM start", "4/13/2026 1:00:01 PM start", (46801, 31 * 86400)),
        ("13/3/2026 1:00:01 start", "13/4/2026 1:00:01 start", (3601, 31 * 86400)),
        ("Mar 04, 2026 1:00:01 PM start", "Mar 05, 2026 1:00:01 PM start", (46801, 86400)),
        ("20260304T101112.123Z start", "20260305T101112.123Z start", (36672, 86400)),
        ("+00:00:01.123 start", "+30:00:01.123 start", (1, 30 * 3600)),
    ],
)
def test_halves_of_the_day_and_dates(read: Any, first: str, second: str, seconds: tuple[int, int]) -> None:
    one, two = logs(read(f"{first}\n{second}\n"))
    assert (one["ts"] // S % 86400, (two["ts"] - one["ts"]) // S) == seconds
    assert [one["text"], two["text"]] == ["start", "start"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3/4/2026 1:00:01 PM a\n3/5/2026 1:00:01 PM b\n", "-O time=month/day/year"),
        ("24/01/02 03:04:05 a\n24/01/03 03:04:05 b\n", "-O time="),
        ("id,value,name\n1,5,abc\n2,7,def\n", "-O time="),
        ("name,dur\n1,500,abc\n2,600,def\n", "-O time="),
        ("3276934359178,3276934359999,k\n3276934369178,3276934379999,k\n", "-O time="),
    ],
)
def test_unclear_dates_and_rows_of_tables_are_refused(read: Any, text: str, words: str) -> None:
    with pytest.raises(MalformedInput) as caught:
        read(text)
    assert words in caught.value.hint


@pytest.mark.parametrize("line", ["[1,5] abc", "1,5 INFO abc", "1,5 s abc", "1,500 abc", "+1,5 abc"])
def test_a_decimal_comma_with_evidence(read: Any, line: str) -> None:
    assert logs(read(f"{line}\n" * 2))[0]["ts"] == 3 * S // 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("elapsed: 5 us, duration=2 s", [("elapsed", 5000), ("duration", 2 * S)]),
        ("took 5 ms for x, took 3 ms for y", [("for x", 5 * 10**6), ("for y", 3 * 10**6)]),
        ("elapsed: 5 us loading took 2 s", [("elapsed", 5000), ("loading", 2 * S)]),
    ],
)
def test_no_duration_is_the_name_of_another(text: str, found: list[tuple[str, int]]) -> None:
    assert [tuple(one) for one in durations(text)[0]] == found


def test_texts_of_json_hold_durations(read: Any) -> None:
    trace = read(
        '{"time": "2024-01-02T03:04:05Z", "message": "x", "duration": "1.5s"}\n'
        '{"time": "2024-01-02T03:04:06Z", "message": "y took 5 ms"}\n'
        '{"time": "2024-01-02T03:04:07Z", "message": "z took 5 ms", "duration_ms": 5}\n'
    )
    assert sorted((name, dur) for name, _, dur in slices(trace)) == [
        ("x", 3 * S // 2),
        ("y", 5 * 10**6),
        ("z took 5 ms", 5 * 10**6),
    ]


@pytest.mark.parametrize("time", ["02/Jan/2024:03:04:05 +0000", "Tue Jan  2 03:04:05 2024", "02.01.2024 03:04:05"])
def test_forms_of_times_in_json(read: Any, time: str) -> None:
    assert [one["ts"] for one in logs(read(f'{{"time": "{time}", "msg": "a"}}\n' * 2))] == [T, T]


def test_the_day_of_a_number_since_1970_is_told(read: Any) -> None:
    """Nanoseconds since boot may look like microseconds since 1970: a user sees that by the day."""
    trace = read("Timestamp(2143674432317505), a\nTimestamp(2143674432324258), b\n")
    assert "(the first is '2143674432317505' of 2037-12-06, steps" in trace.sources[0].notes[0]
