"""What the user says about clocks: the texts, and what becomes of them."""

from __future__ import annotations

import contextlib
import itertools
import re
import shlex
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.golden import ROOT
from traceconv.align import Alignment, align
from traceconv.align.constraints import (
    Anchor,
    ClockConstraint,
    ClockKind,
    Constraints,
    EventPoint,
    TimePoint,
    input_named,
    parse_anchor,
    parse_clock,
    parse_constraints,
    parse_date,
    parse_drift,
    parse_zone,
    zone_ns,
)
from traceconv.align.geometry import line_through
from traceconv.align.statements import state
from traceconv.api import estimate
from traceconv.cli.options import Named
from traceconv.errors import InconsistentClocks, UnrelatedClocks, UsageError
from traceconv.families.logs import timed_log
from traceconv.model.builder import Builder
from traceconv.model.clocks import (
    DRIFT_UNIT,
    REALTIME,
    SLEW_DRIFT,
    ClockDomain,
    ClockSnapshot,
    Provenance,
    Run,
    Step,
    Verdict,
    Zero,
)
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.recordings import Settings

PATHS = ["dir/a.json", "b.log"]
US, MS, S = 10**3, 10**6, 10**9
UNIX = 1_795_000_000 * S
PRIVATE = ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC)
RUN = ClockDomain("since start", Zero.RUN_START, Run.MONOTONIC)
BOOT = ClockDomain("CLOCK_MONOTONIC of a tool", Zero.BOOT, Run.MONOTONIC)
MONOTONIC = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC, 1, "vm")
NONE = ClockDomain("order", Zero.UNKNOWN, Run.NONE)
LOCAL = timed_log.LOCAL_TIME
TIME_OF_DAY = timed_log.TIME_OF_DAY


def trace(
    name: str,
    clock: ClockDomain,
    starts: Sequence[int] = (0, 10 * S),
    snapshots: Sequence[ClockSnapshot] = (),
    format: str = "viztracer",
) -> Trace:
    """Slices of 1 us with the names s0, s1, ..., and as many called "same"."""
    out = Builder(SourceInfo(name, format), clock)
    for number, start in enumerate(starts):
        out.slice(out.tracks.add("t"), start, 1000, f"s{number}")
        out.slice(out.tracks.add("u"), start, 1000, "same")
        out.instant(out.tracks.add("i"), start + 5, "mark")
    for snapshot in snapshots:
        out.clocks.snapshot(snapshot)
    return lay_out(out.finish())


def anchors(*texts: str, traces: Sequence[Trace]) -> Constraints:
    return parse_constraints([one.sources[0].name for one in traces], anchors=texts)


def mapped(alignment: Alignment, index: int, ts: int) -> int:
    (way,) = alignment.maps[index].values()
    return way.at(ts)


# -- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "one", "other", "within"),
    [
        ("a.json@1.5s=b.log@30ms", TimePoint(0, 1500 * MS, 100 * MS), TimePoint(1, 30 * MS, MS), None),
        ("dir/a.json@0s=b.log@-2us~5us", TimePoint(0, 0), TimePoint(1, -2000, 1000), 5000),
        ("b.log@0s=a.json@0s~ 1 ms", TimePoint(1, 0), TimePoint(0, 0), MS),
        ("a.json:Conv#3.start=b.log:conv#-1.end", EventPoint(0, "Conv", 3), EventPoint(1, "conv", -1, True), None),
        ("a.json:a: b#2 = c#1.end=b.log:x#1.start~1us", EventPoint(0, "a: b#2 = c", 1, True), EventPoint(1, "x"), 1000),
        ("a.json@1s=b.log:a@b~1us#2.end~2ns", TimePoint(0, S, S), EventPoint(1, "a@b~1us", 2, True), 2),
        ('a.json:"x=b.log:y#1.end"#1.start=b.log@0s', EventPoint(0, "x=b.log:y#1.end"), TimePoint(1, 0), None),
        ("a.json@1795000000.123456789s=b.log@0s", TimePoint(0, UNIX + 123456789, 1), TimePoint(1, 0), None),
    ],
)  # fmt: skip
def test_anchors(text: str, one: Any, other: Any, within: int | None) -> None:
    assert parse_anchor(text, PATHS) == Anchor(one, other, within, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.json:x#0.start=b.log:x#1.start", "#0 is not an occurrence"),
        ("a.json@1s=a.json@2s", "both sides are of dir/a.json"),
        ("a.json:x#1.start=b.log:y#1.start=b.log:z#1.start", "several ways"),
    ],
)
def test_wrong_anchors(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_anchor(text, PATHS)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("c.json@1s=b.log@1s", r"'c.json' is not one of the inputs", "the inputs: dir/a.json, b.log"),
        ("a.json@1s=c.log:x#1.start", r"'c.log' is not one of the inputs", "the inputs: dir/a.json, b.log"),
        ("a.json@12=b.log@1s", "'12' is not a time with a unit", "such as 1.5ms"),
        ("a.json@1s=b.log@1e30s", "'1e30s' is not a time", "such as 1.5ms"),
        ("a.json:Conv#1=b.log@1s", "'Conv#1' ends in neither .start nor .end", "a.json:Conv#1.start or"),
        ("a.json:Conv#1.begin=b.log@1s", "ends in neither .start nor .end", "a.json:Conv#1.start or"),
        ("a.json:Conv.start=b.log@1s", "'Conv.start' has no number", "a.json:Conv#1.start is the first"),
        ("a.json:Conv#x.end=b.log@1s", "'Conv#x.end' has no number", "a.json:Conv#1.end is the first"),
        ("a.json=b.log@1s", "no point follows 'a.json'", "a.json@TIME or a.json:NAME#1.start"),
        ("a.json@1s=b.log@1s~5", "'5' after the `~`", "such as ~5us"),
        ("a.json@1s=b.log@1s~-5us", "'-5us' after the `~`", "such as ~5us"),
        ("a.json@1s", "with `=` in between", "the inputs: dir/a.json, b.log"),
        ("=", "with `=` in between", "the inputs: dir/a.json, b.log"),
    ],
)
def test_what_is_wrong_with_an_anchor(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        parse_anchor(text, PATHS)
    assert hint in error.value.hint


def test_names_of_files_may_hold_anything() -> None:
    paths = ["a=b@1s:c.json", "a", "-"]
    found = parse_anchor("a=b@1s:c.json@2s=a@3s", paths)
    assert (found.point, found.other) == (TimePoint(0, 2 * S, S), TimePoint(1, 3 * S, S))
    assert parse_anchor("<stdin>@2s=a@3s", paths).point == TimePoint(2, 2 * S, S)
    with pytest.raises(UsageError, match=r"'x\.json' matches several inputs"):
        parse_anchor("x.json@1s=y@1s", ["one/x.json", "two/x.json", "y"])  # of two files that are called so


@given(st.text(min_size=1), st.integers(-9, 9).filter(bool), st.booleans())
def test_any_name_can_be_quoted(name: str, number: int, at_end: bool) -> None:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    text = f'b.log@0s=a.json:"{quoted}"#{number}.{"end" if at_end else "start"}'
    assert parse_anchor(text, PATHS).other == EventPoint(0, name, number, at_end)


@given(st.text())
def test_any_anchor_is_read_or_refused(text: str) -> None:
    for whole in (text, f"a.json{text}=b.log@1s", f"a.json@{text}=b.log:{text}#1.start"):
        with contextlib.suppress(UsageError):
            assert parse_anchor(whole, PATHS).text == whole


def test_the_other_texts() -> None:
    assert parse_drift("12ppm") == round(12e-6 / DRIFT_UNIT)
    assert parse_drift("-40 ppb") == round(-40e-9 / DRIFT_UNIT)
    assert parse_clock("monotonic_raw@host-1") == ClockConstraint(ClockKind.MONOTONIC_RAW, "host-1")
    assert parse_clock("none") == ClockConstraint(ClockKind.NONE)
    assert (parse_zone("+0200"), parse_zone("-03:30"), parse_zone("Z")) == ("+02:00", "-03:30", "UTC")
    assert (zone_ns("+02:00"), zone_ns("-03:30"), zone_ns("UTC")) == (7200 * S, -12600 * S, 0)
    assert parse_date("2018-10-26") == date(2018, 10, 26)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_drift, text) for text in ("12", "1e3ppm", "901ppm", "12 ppm x", "")),
        *((parse_clock, text) for text in ("tsc", "", "monotonic@", "none@host", "MONOTONIC")),
        *((parse_zone, text) for text in ("+2", "Europe/Berlin", "+15:00", "+02:60", "")),
        *((parse_date, text) for text in ("2018-13-01", "20181026", "26.10.2018", "2018-1-1")),
    ],
)
def test_wrong_texts(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_constraints_belong_to_inputs() -> None:
    constraints = parse_constraints(PATHS, clocks=["a.json=boottime"], drifts=["b.log=1ppm"], zones=["b.log=UTC"])
    assert set(constraints.clocks) == {0}
    assert set(constraints.drifts) == {1}
    for wrong in (["c=UTC"], ["b.log"], ["a.json=UTC", "dir/a.json=UTC"], ["b.log=UTC", "b.log=UTC"]):
        with pytest.raises(UsageError, match="--tz"):
            parse_constraints(PATHS, zones=wrong)


# -- anchors ----------------------------------------------------------------------------------------------------------


def test_an_anchor_of_times_relates_two_files() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", PRIVATE)]
    found = align(both, constraints=anchors(f"b@5.000s=a@{UNIX + 7}ns", traces=both))
    assert mapped(found, 1, 5 * S) == UNIX + 7
    line = found.receipt[1]
    assert (line.method, line.verdict) == ("--anchor, with up to 200 ppm of drift away from its instant", "assumed")
    # The last digit of 5.000s, the ns of the other time, the steps of the clock, and 200 ppm over 5 s on either side.
    assert line.bound_ns == MS + 1 + 1 + MS
    given = align(both, constraints=anchors(f"b@5s=a@{UNIX}ns~30us", traces=both))
    assert given.receipt[1].bound_ns == 30 * US + 1 + MS


@pytest.mark.parametrize(
    ("point", "ts"),
    [
        ("s1.start", None),
        ("s1#1.start", 10 * S),
        ("s1#1.end", 10 * S + 1000),
        ("same#1.start", 0),
        ("same#2.start", 10 * S),
        ("same#-1.end", 10 * S + 1000),
        ("same#-2.start", 0),
        ("mark#2.end", 10 * S + 5),
    ],
)
def test_an_anchor_of_events(point: str, ts: int | None) -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", PRIVATE)]
    text = f"a:s0#1.end=b:{point}"
    if ts is None:
        with pytest.raises(UsageError):
            anchors(text, traces=both)
        return
    assert mapped(align(both, constraints=anchors(text, traces=both)), 1, ts) == UNIX + 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:s0#1.start=b:sam#1.start", "no event named 'sam'"),
        ("a:s0#1.start=b:same#3.start", "has 2 events named 'same', not 3"),
        ("a:s0#1.start=b:same#-3.start", "not 3"),
    ],
)
def test_events_that_are_not_there(text: str, message: str) -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", PRIVATE)]
    with pytest.raises(UsageError, match=message) as error:
        align(both, constraints=anchors(text, traces=both))
    assert "'sam'" not in message or "'same'" in error.value.hint


def test_entries_of_a_log_samples_and_counters_can_be_anchored() -> None:
    out = Builder(SourceInfo("b", "timed-log"), PRIVATE)
    thread, load = out.tracks.thread(out.tracks.process("p", pid=1), 1), out.tracks.counter("load")
    for number in range(3):
        out.log(thread, 10 * number, "step done: 5 #2")
        out.sample(thread, 100 + number, out.frame("work", parent=out.frame("main")), "cycles")
        out.counter(load, 200 + number, number)
    both = [trace("a", REALTIME, [UNIX]), lay_out(out.finish())]
    for name, ts in (("step done: 5 #2", 10), ("work", 101), ("cycles", 101), ("load", 201)):
        point = f'b:"{name}"#2.start'
        found = align(both, constraints=anchors(f"a@{UNIX}ns={point}", traces=both))
        assert mapped(found, 1, ts) == UNIX, name
    with pytest.raises(UsageError, match="no event named 'main'") as error:
        align(both, constraints=anchors(f"a@{UNIX}ns=b:main#1.start", traces=both))
    assert "'cycles', 'load', 'step done: 5 #2'" in error.value.hint


def test_anchors_place_a_file_without_a_clock_and_two_private_ones() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", NONE)]
    found = align(both, constraints=anchors("a:s0#1.start=b:s1#1.start", traces=both))
    assert mapped(found, 1, 10 * S) == UNIX
    private = [trace("a", RUN, [3 * S]), trace("b", RUN)]
    with pytest.raises(UnrelatedClocks):
        align(private)
    found = align(private, constraints=anchors("a:s0#1.start=b:s1#1.start", traces=private))
    assert mapped(found, 1, 10 * S) - mapped(found, 0, 3 * S) == 0


def test_anchors_reach_a_third_file_by_way_of_the_second() -> None:
    three = [trace("a", REALTIME, [UNIX]), trace("b", RUN), trace("c", PRIVATE)]
    found = align(three, constraints=anchors("a:s0#1.start=b:s0#1.start", "c:s1#1.end=b:s1#1.start", traces=three))
    assert mapped(found, 2, 10 * S + 1000) == UNIX + 10 * S


@pytest.mark.parametrize("ppm", [-480, -12.5, 0, 0.5, 40])
def test_two_anchors_give_the_drift(ppm: float) -> None:
    drift = round(ppm * 1e-6 * 10**10)
    both = [trace("a", PRIVATE), trace("b", REALTIME, [UNIX, UNIX + 20 * S])]
    texts = (f"a@0s=b@{UNIX}ns~1us", f"a@10000000000ns=b@{UNIX + 10 * S + drift}ns~1us")
    found = align(both, constraints=anchors(*texts, traces=both))
    (way,) = found.maps[0].values()
    assert way.drift_ppm == pytest.approx(ppm, abs=1e-3)
    assert way.at(0) == UNIX
    assert abs(way.at(5 * S) - (UNIX + 5 * S + drift // 2)) <= 2
    assert way.verdict is Verdict.ASSUMED
    assert way.bound_ns is not None
    assert 1000 <= way.bound_ns <= 1010


def test_the_bound_of_two_anchors_grows_outside_of_them() -> None:
    both = [trace("a", PRIVATE, [0, 50 * S]), trace("b", REALTIME, [UNIX])]
    texts = [f"a@{at}ns=b@{UNIX + at}ns~1us" for at in (10 * S, 20 * S)]
    (way,) = align(both, constraints=anchors(*texts, traces=both)).maps[0].values()
    assert way.bound_ns is not None
    assert 6900 <= way.bound_ns <= 7100  # (1 us + 1 us) / 10 s of slope either way, for 30 s more


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(-1000, 1000)), min_size=1, max_size=6),
    st.integers(-400, 400),
    st.integers(-(10**18), 10**18),
)
def test_the_line_holds_all_readings_within_its_bound(errors: list[tuple[int, int]], ppm: int, offset: int) -> None:
    """Whatever the errors: the true line lies within the bound of the one that is found, over the whole span."""

    def truth(x: int) -> int:
        return x + offset + x * ppm // 10**6

    readings = [(x, truth(x) + error, 1000) for x, error in errors]
    span = -(10**11), 2 * 10**12
    way = line_through(readings, span, SLEW_DRIFT, Step("test"))
    assert way is not None
    assert way.bound_ns is not None
    for x in itertools.chain(span, (x for x, _ in errors)):
        assert abs(way.at(x) - truth(x)) <= way.bound_ns + 2


def test_anchors_that_tell_no_drift_give_none() -> None:
    both = [trace("a", PRIVATE, [0, S]), trace("b", REALTIME, [UNIX])]
    texts = [f"a@{at}ns=b@{UNIX + at + off}ns~10us" for at, off in ((MS, 3000), (2 * MS, -3000))]
    (way,) = align(both, constraints=anchors(*texts, traces=both)).maps[0].values()
    assert way.drift == 0
    assert way.bound_ns is not None
    for at, off in ((MS, 3000), (2 * MS, -3000)):
        assert abs(way.at(at) - (UNIX + at + off)) <= way.bound_ns
    assert way.bound_ns >= 480 * US  # a second away, by a clock that may drift by 500 ppm


# -- contradictions ---------------------------------------------------------------------------------------------------


def test_anchors_that_contradict_each_other() -> None:
    both = [trace("a", PRIVATE), trace("b", REALTIME, [UNIX])]
    too_fast = [f"a@1000000us=b@{UNIX}ns", f"a@2000000us=b@{UNIX + 1001 * MS}ns"]
    with pytest.raises(InconsistentClocks, match=r"contradict.* 1 s pass in a, but 1\.001 s in b, and") as error:
        align(both, constraints=anchors(*too_fast, traces=both))
    assert error.value.exit_code == 4


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("a@1000000us=b@{late}ns", "put one instant of a at two instants of b, 1 ms apart, expected 2.002 µs"),
        ("a@1001000us=b@{unix}ns", "put one instant of b at two instants of a, 1 ms apart, expected 2.002 µs"),
    ],
)
def test_two_anchors_of_one_instant(second: str, message: str) -> None:
    both = [trace("a", PRIVATE), trace("b", REALTIME, [UNIX])]
    texts = [f"a@1000000us=b@{UNIX}ns", second.format(late=UNIX + MS, unix=UNIX)]
    with pytest.raises(UsageError, match=message) as error:
        align(both, constraints=anchors(*texts, traces=both))
    assert "ppm" not in error.value.message
    assert error.value.exit_code == 2
    agreeing = align(both, constraints=anchors(*(f"{text}~1ms" for text in texts), traces=both))
    (way,) = agreeing.maps[0].values()
    assert abs(way.at(S) - (UNIX + (MS // 2 if "late" in second else 0))) <= MS
    # Not more than what one anchor leaves open: 200 ppm over 9 s.
    assert way.bound_ns is not None
    assert way.bound_ns <= 9 * 500 * US + 2 * MS


def test_anchors_of_one_instant_that_agree_are_as_good_as_one() -> None:
    both = [trace("a", PRIVATE), trace("b", REALTIME, [UNIX])]
    texts = [f"a@1s=b@{UNIX}ns~10us", f"a@1s=b@{UNIX + 15 * US}ns~10us"]
    (way,) = align(both, constraints=anchors(*texts, traces=both)).maps[0].values()
    assert way.at(S) == UNIX + 7500
    assert way.bound_ns == 2500 + 9_000_001 * 200 // 1000  # what both allow, and 200 ppm until the end


def test_a_file_without_a_clock_does_not_drift() -> None:
    """Its positions were invented: all anchors must put it into one place."""
    both = [trace("a", REALTIME, [UNIX]), trace("b", PRIVATE)]
    texts = [f"b@1s=a@{UNIX}ns~1us", f"b@11s=a@{UNIX + 10 * S + MS}ns~1us"]
    none = parse_constraints(["a", "b"], anchors=texts, clocks=["b=none"])
    assert align(both, constraints=replace(none, clocks={})).receipt[1].drift_ppm
    with pytest.raises(InconsistentClocks, match=r"10\.001 s pass in a, but 10 s in b, .* b has no clock") as error:
        align(both, constraints=none)
    assert error.value.exit_code == 4
    one = align(both, constraints=parse_constraints(["a", "b"], anchors=texts[:1], clocks=["b=none"])).receipt[1]
    assert (one.verdict, one.bound_ns) == ("assumed", None)  # only that instant of it is known


def test_a_file_without_a_clock_relates_no_others() -> None:
    three = [trace("a", PRIVATE), trace("b", PRIVATE), trace("c", PRIVATE)]
    texts = ["a:s0#1.start=c:s0#1.start", "b:s0#1.start=c:s1#1.start"]
    assert align(three, constraints=anchors(*texts, traces=three)).maps[1]
    with pytest.raises(UnrelatedClocks):
        align(three, constraints=parse_constraints(["a", "b", "c"], anchors=texts, clocks=["c=none"]))


def test_an_anchor_of_clocks_that_files_relate_holds_at_all_times() -> None:
    """The files say that the two run alike, if not where exactly."""
    guess = ClockSnapshot(
        RUN, 0, REALTIME, UNIX, 500 * US, "start time in the file name", provenance=Provenance.ASSUMED
    )
    both = [trace("a", RUN, snapshots=[guess]), trace("b", REALTIME, [UNIX])]
    (line, _) = align(both, constraints=anchors(f"a@0s=b@{UNIX + 300 * US}ns~1us", traces=both)).receipt
    assert (line.method, line.offset_ns, line.bound_ns) == ("--anchor", UNIX + 300 * US, US + 1)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a@1700s=b@{unix}ns", "28 min after its last event"),
        ("a@-1700s=b@{unix}ns", "28 min before its first event"),
    ],
)
def test_an_anchor_far_from_all_events(text: str, where: str) -> None:
    """Such as one in ms instead of s, or with the two files exchanged."""
    both = [trace("a", PRIVATE), trace("b", REALTIME, [UNIX])]
    found = align(both, constraints=anchors(text.format(unix=UNIX), traces=both))
    assert f"names a time {where}: check file and unit" in found.receipt[0].warnings[0]
    near = align(both, constraints=anchors(f"a@-9s=b@{UNIX}ns", traces=both))
    assert not any("unit" in warning for line in near.receipt for warning in line.warnings)


def test_a_loop_of_anchors_must_close() -> None:
    three = [trace(name, PRIVATE) for name in "abc"]
    texts = ["a:s0#1.start=b:s0#1.start~1us", "b:s0#1.start=c:s0#1.start~1us", "a:s0#1.start=c@{}us~1us"]
    for off, fits in ((2, True), (30, False)):
        constraints = anchors(*(text.format(off) for text in texts), traces=three)
        if fits:
            assert align(three, constraints=constraints).maps[2]
        else:
            with pytest.raises(InconsistentClocks, match="30 µs away"):
                align(three, constraints=constraints)


def test_anchors_must_fit_what_files_say() -> None:
    snapshot = ClockSnapshot(PRIVATE, 10 * S, REALTIME, UNIX, 20 * US, "read by the tool")
    both = [trace("a", PRIVATE, snapshots=[snapshot]), trace("b", REALTIME, [UNIX])]
    good = anchors(f"a@10000000us=b@{UNIX + 15 * US}ns", traces=both)
    assert align(both, constraints=good).maps[0]
    for off, at in ((MS, 10), (-MS, 10), (MS, 9)):  # 1 s from the reading, clocks drift by 500 us at most
        bad = anchors(f"a@{at}000000us=b@{UNIX + (at - 10) * S + off}ns", traces=both)
        with pytest.raises(InconsistentClocks, match=r"away from the known relation \(read by the tool"):
            align(both, constraints=bad)
    drifted = anchors(f"a@7000000us=b@{UNIX - 3 * S + MS}ns", traces=both)
    assert align(both, constraints=drifted).maps[0]


def test_the_same_clock_cannot_be_anchored_elsewhere() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", replace(REALTIME, machine="m"), [UNIX])]
    with pytest.raises(InconsistentClocks, match=r"the known relation \(same clock\)") as error:
        align(both, constraints=anchors(f"a@{UNIX}ns=b@{UNIX + 5000}ns", traces=both))
    assert "--offset a=+5us" in error.value.hint


def test_a_guess_of_an_importer_gives_way_to_an_anchor() -> None:
    guess = ClockSnapshot(RUN, 0, REALTIME, UNIX, MS, "start time in the file name", provenance=Provenance.ASSUMED)
    both = [trace("a", RUN, snapshots=[guess]), trace("b", REALTIME, [UNIX])]
    found = align(both, constraints=anchors(f"a@0s=b@{UNIX + 7200 * S}ns~5ms", traces=both))
    assert mapped(found, 0, 0) == UNIX + 7200 * S
    (warning,) = (warning for warning in found.receipt[0].warnings if "which is used" in warning)
    assert re.search(r"start time in the file name: 7200 s away from --anchor .* which is used", warning)
    near = align(both, constraints=anchors(f"a@0s=b@{UNIX + MS}ns~5ms", traces=both))
    assert mapped(near, 0, 0) == UNIX  # the guess agrees, and is the better one
    assert not near.receipt[0].warnings


def test_what_was_read_stays_as_it_is() -> None:
    guess = ClockSnapshot(RUN, 0, REALTIME, UNIX, MS, "start time in the file name", provenance=Provenance.ASSUMED)
    three = [trace("a", RUN, snapshots=[guess]), trace("b", REALTIME, [UNIX]), trace("c", BOOT, [5 * S])]
    texts = [f"a@0s=b@{UNIX + 7200 * S}ns~5ms", f"c@5s=b@{UNIX}ns"]
    constraints = parse_constraints(list("abc"), anchors=texts, clocks=["c=monotonic@vm"], drifts=["c=1ppm"])
    before = [(list(one.clocks), list(one.snapshots)) for one in three]
    assert state(three, constraints, [REALTIME] * 3).traces[0].snapshots == []
    assert [(one.clocks, one.snapshots) for one in three] == before


def test_an_offset_must_leave_anchors_where_they_are() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", PRIVATE)]
    constraints = anchors("a:s0#1.start=b:s0#1.start~1us", traces=both)
    with pytest.raises(InconsistentClocks, match="--offset moves"):
        align(both, constraints=replace(constraints, offsets={1: 5 * MS}))
    assert align(both, constraints=replace(constraints, offsets={0: 5 * MS, 1: 5 * MS})).maps[1]


# -- drifts -----------------------------------------------------------------------------------------------------------

PPM = round(1e-6 / DRIFT_UNIT)


def test_a_drift_keeps_the_reading_in_its_place() -> None:
    snapshot = ClockSnapshot(RUN, 2 * S, REALTIME, UNIX, 10, "read")
    (way,) = (
        align([trace("a", RUN, snapshots=[snapshot])], constraints=Constraints(drifts={0: 100 * PPM})).maps[0].values()
    )
    assert way.at(2 * S) == UNIX
    assert abs(way.at(12 * S) - (UNIX + 10 * S + MS)) <= 2
    assert (way.verdict, way.drift_ppm) == (Verdict.ASSUMED, pytest.approx(100, abs=1e-3))


def test_a_drift_keeps_the_anchor_and_counts_from_the_first_event_else() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", PRIVATE)]
    constraints = replace(anchors("a:s0#1.start=b:s1#1.start", traces=both), drifts={1: -40 * PPM})
    found = align(both, constraints=constraints)
    assert mapped(found, 1, 10 * S) == UNIX
    assert abs(mapped(found, 1, 0) - (UNIX - 10 * S + 400 * US)) <= 2
    moved = align([trace("a", REALTIME, [UNIX])], constraints=Constraints(drifts={0: 40 * PPM}))
    assert mapped(moved, 0, UNIX) == UNIX
    assert abs(mapped(moved, 0, UNIX + 10 * S) - (UNIX + 10 * S + 400 * US)) <= 2
    unrelated = align(both, constraints=replace(Constraints(drifts={1: 40 * PPM}), offsets={1: UNIX}))
    assert abs(mapped(unrelated, 1, 10 * S) - (UNIX + 10 * S + 400 * US)) <= 2


def test_a_stated_drift_leaves_no_other_one() -> None:
    both = [trace("a", PRIVATE), trace("b", REALTIME, [UNIX])]
    texts = [f"a@{at}us=b@{UNIX + at * US + at // 10**5}ns~1us" for at in (10**6, 10**7)]  # 10 ppm would be 90 us
    assert align(both, constraints=replace(anchors(*texts, traces=both), drifts={})).maps[0]
    with pytest.raises(InconsistentClocks, match="contradict"):
        align(both, constraints=replace(anchors(*texts, traces=both), drifts={0: 100 * PPM}))


@pytest.mark.parametrize(("ppm", "fits"), [(0.0, True), (50.0, True), (100.0, False), (-50.0, False)])
@pytest.mark.parametrize("who", [0, 1])
def test_a_drift_that_readings_contradict(ppm: float, fits: bool, who: int) -> None:
    """The clock was read beside the wall clock twice: in its own file, or in that of another tool."""
    wall = replace(REALTIME, machine="vm")
    readings = [
        ClockSnapshot(MONOTONIC, S, wall, UNIX, 10 * US, "readings"),
        ClockSnapshot(MONOTONIC, 2 * S, wall, UNIX + S + 50 * US, 10 * US, "readings"),
    ]
    both = [trace("a", MONOTONIC, [S, 2 * S], readings), trace("b", MONOTONIC, [S, 2 * S])]
    constraints = Constraints(drifts={who: round(ppm * PPM)})
    if fits and ppm:
        assert align(both, constraints=constraints).receipt[who].verdict == "assumed"
        return
    with pytest.raises(InconsistentClocks, match=r"its readings \(readings\) show \+50\.000 ppm, within ±20"):
        align(both, constraints=Constraints(drifts={who: round((ppm or 20.0) * PPM)}))


@pytest.mark.parametrize("drifts", [{0: 50}, {1: 50}, {0: 50, 1: 50}])
@pytest.mark.parametrize("read", [1, 2])
def test_a_drift_holds_for_all_files_that_count_the_clock(drifts: dict[int, int], read: int) -> None:
    """It counts once, also where the clock was read twice, in its own file or in that of another tool."""
    wall = replace(REALTIME, machine="vm")
    readings = [
        ClockSnapshot(MONOTONIC, S, wall, UNIX, 10 * US, "readings"),
        ClockSnapshot(MONOTONIC, 2 * S, wall, UNIX + S + 50 * US, 10 * US, "readings"),
    ]
    both = [trace("a", MONOTONIC, [S, 2 * S], readings[:read]), trace("b", MONOTONIC, [S, 2 * S])]
    found = align(both, constraints=Constraints(drifts={index: round(ppm * PPM) for index, ppm in drifts.items()}))
    assert [line.drift_ppm for line in found.receipt] == pytest.approx([50, 50], abs=1e-3)
    assert [way.at(S) for maps in found.maps for way in maps.values()] == [UNIX, UNIX]
    assert {line.verdict for line in found.receipt} == {"assumed"}


def test_two_drifts_of_one_clock_are_refused() -> None:
    both = [trace("a", MONOTONIC, [S, 2 * S]), trace("b", MONOTONIC, [S, 2 * S])]
    with pytest.raises(InconsistentClocks, match="another drift is given for another file"):
        align(both, constraints=Constraints(drifts={0: round(50 * PPM), 1: round(40 * PPM)}))
    walls = [trace("a", REALTIME, [UNIX]), trace("b", REALTIME, [UNIX])]
    found = align(walls, constraints=Constraints(drifts={0: round(50 * PPM)}))
    assert [line.drift_ppm for line in found.receipt] == pytest.approx([50, 0], abs=1e-3)


# -- what a clock is --------------------------------------------------------------------------------------------------


def clock(index: int, text: str) -> Constraints:
    return Constraints(clocks={index: parse_clock(text)})


def perf(starts: Sequence[int] = (100 * S,)) -> Trace:
    """A recording on the monotonic clock of vm, which says what it is on the wall clock."""
    pair = ClockSnapshot(MONOTONIC, 100 * S, replace(REALTIME, machine="vm"), UNIX, 5000, "perf record -k")
    return trace("perf", MONOTONIC, starts, [pair])


def test_a_stated_clock_relates_a_file() -> None:
    other = trace("b", BOOT, [101 * S])
    with pytest.raises(UnrelatedClocks):
        align([perf(), other])
    for text in ("monotonic", "monotonic@vm"):
        found = align([perf(), other], constraints=clock(1, text))
        assert mapped(found, 1, 101 * S) == UNIX + S
        assert found.receipt[1].verdict == "assumed"
        assert found.receipt[1].method.startswith("--clock states CLOCK_MONOTONIC of vm")
    with pytest.raises(UnrelatedClocks):
        align([perf(), other], constraints=clock(1, "monotonic@elsewhere"))
    with pytest.raises(UnrelatedClocks):
        align([perf(), other], constraints=clock(1, "monotonic_raw"))


def test_two_files_of_one_stated_clock() -> None:
    both = [trace("a", PRIVATE), trace("b", BOOT, [5 * S])]
    constraints = parse_constraints(["a", "b"], clocks=["a=boottime", "b=boottime"])
    found = align(both, constraints=constraints)
    assert mapped(found, 1, 5 * S) == mapped(found, 0, 5 * S)
    assert found.receipt[1].method == "--clock states CLOCK_BOOTTIME of one machine"
    with pytest.raises(UnrelatedClocks):
        align(both, constraints=parse_constraints(["a", "b"], clocks=["a=boottime", "b=monotonic"]))


def test_the_refusal_names_the_options_that_would_help() -> None:
    """Two files of unknown clocks whose times overlap as they are; the hint is typed as it stands."""
    both = [trace("a b", PRIVATE), trace("b", BOOT, [5 * S])]
    with pytest.raises(UnrelatedClocks) as error:
        align(both)
    wanted = "--clock 'a b'=monotonic --clock b=monotonic"
    assert f"if both count the monotonic clock of one machine: {wanted}; " in error.value.hint
    typed = [word for word in shlex.split(wanted) if word != "--clock"]
    found = align(both, constraints=parse_constraints(["a b", "b"], clocks=typed))
    assert mapped(found, 1, 5 * S) == mapped(found, 0, 5 * S)
    for other in (trace("b", BOOT, [50 * S]), trace("b", RUN, [5 * S]), trace("b", NONE, [5 * S])):
        with pytest.raises(UnrelatedClocks) as error:
            align([both[0], other])
        assert "monotonic" not in error.value.hint
    with pytest.raises(UnrelatedClocks) as error:
        align([perf(), trace("b", PRIVATE, [100 * S])])
    assert "machine: --clock b=monotonic@vm; " in error.value.hint


@pytest.mark.parametrize(
    ("stated", "helps", "shown"),
    [
        (["a=monotonic@h", "b=monotonic@g"], [], ("CLOCK_MONOTONIC of h", "CLOCK_MONOTONIC of g")),
        (["a=monotonic@h"], ["b=monotonic@h"], ("CLOCK_MONOTONIC of h", "CLOCK_MONOTONIC of a tool (")),
        (["b=monotonic@h"], ["a=monotonic@h"], ("private (monotonic)", "CLOCK_MONOTONIC of h")),
        (["a=monotonic"], ["b=monotonic"], ("CLOCK_MONOTONIC of one machine", "CLOCK_MONOTONIC of a tool (")),
        (["a=monotonic@h", "b=monotonic"], ["b=monotonic@h"], ("CLOCK_MONOTONIC of h", "of one machine")),
        (["a=boottime@h"], [], ("CLOCK_BOOTTIME of h", "CLOCK_MONOTONIC of a tool (")),
        (["a=boottime@h", "b=monotonic@h"], [], ("CLOCK_BOOTTIME of h", "CLOCK_MONOTONIC of h")),
    ],
)
def test_the_refusal_knows_the_clocks_that_are_stated(
    stated: list[str], helps: list[str], shown: tuple[str, str]
) -> None:
    """It names what is missing, and nothing that would not relate the two; the hint is typed as it stands."""
    both = [trace("a", PRIVATE), trace("b", BOOT, [5 * S])]
    with pytest.raises(UnrelatedClocks) as error:
        align(both, constraints=parse_constraints(["a", "b"], clocks=stated))
    one, other = error.value.reason.rpartition("(a: ")[2].split("; b: ")
    assert shown[0] in one
    assert shown[1] in other
    wanted = " ".join(f"--clock {option}" for option in helps)
    assert (f"monotonic clock of one machine: {wanted}; " in error.value.hint) == bool(helps)
    assert ("monotonic" in error.value.hint) == bool(helps)
    if helps:
        kept = [option for option in stated if option.partition("=")[0] not in {one[0] for one in helps}]
        align(both, constraints=parse_constraints(["a", "b"], clocks=[*kept, *helps]))


def test_several_machines_need_a_name() -> None:
    far = trace("far", replace(MONOTONIC, machine="far"), [0])
    with pytest.raises(UsageError, match="several machines") as error:
        align([perf(), far, trace("b", BOOT)], constraints=clock(2, "monotonic"))
    assert "--clock b=monotonic@HOST" in error.value.hint


@pytest.mark.parametrize(("host", "warned"), [("vm", False), ("vm3", True)])
def test_a_machine_that_no_input_names_may_be_mistyped(host: str, warned: bool) -> None:
    names = ["a", "b", "c"]
    traces = [
        trace("a", MONOTONIC, [5 * S], [ClockSnapshot(MONOTONIC, 5 * S, REALTIME, UNIX, 0, "read")]),
        trace("b", PRIVATE, [5 * S]),
        trace("c", REALTIME, [UNIX]),
    ]
    constraints = parse_constraints(names, clocks=[f"b=monotonic@{host}"])
    warnings = [] if warned else list(align(traces, constraints=constraints).receipt[1].warnings)
    if warned:
        found = align(traces, constraints=replace(constraints, offsets={1: UNIX}))
        warnings = list(found.receipt[1].warnings)
    assert any("is the name right?" in text for text in warnings) == warned


def test_the_clock_of_perf() -> None:
    own = ClockDomain("perf clock", Zero.UNKNOWN, Run.MONOTONIC, 1, "vm")
    both = [trace("perf.data", own, [5 * S]), trace("b", PRIVATE, [6 * S])]
    found = align(both, constraints=clock(1, "perf"))
    assert mapped(found, 1, 6 * S) - mapped(found, 0, 5 * S) == S
    with_monotonic = align([perf(), trace("q", own, [100 * S])], constraints=clock(1, "monotonic"))
    assert with_monotonic.receipt[1].bound_ns == 61 * MS + 5000 + 1  # 10 ms at boot, and 500 ppm of the last time
    reason = "--clock states CLOCK_MONOTONIC (perf's clock may be 61 ms away from it at this uptime), then "
    assert with_monotonic.receipt[1].method.startswith(reason)


def test_the_word_of_the_user_for_times_that_look_like_the_wall_clock() -> None:
    by_size = ClockSnapshot(PRIVATE, 0, REALTIME, 0, None, "times so large that they must count from 1970")
    both = [trace("a", REALTIME, [UNIX]), trace("b", PRIVATE, [UNIX], [by_size])]
    assert (align(both).receipt[1].bound_ns, align(both).receipt[1].verdict) == (None, "ok")
    said = align(both, constraints=clock(1, "realtime"))
    assert said.receipt[1].method == "--clock states CLOCK_REALTIME"
    assert (said.receipt[1].bound_ns, said.receipt[1].verdict) == (1, "assumed")
    assert mapped(said, 1, UNIX) == UNIX


def test_realtime_and_none() -> None:
    wall = trace("w", ClockDomain("?", Zero.UNKNOWN, Run.WALL), [UNIX])
    found = align([trace("a", REALTIME, [UNIX]), wall], constraints=clock(1, "realtime"))
    assert mapped(found, 1, UNIX) == UNIX
    assert found.receipt[1].verdict == "assumed"
    order = [trace("a", REALTIME, [UNIX]), trace("b", replace(REALTIME, machine="x"), [UNIX])]
    with pytest.raises(UnrelatedClocks, match="no clock"):
        align(order, constraints=clock(1, "none"))
    placed = align(order, constraints=replace(clock(1, "none"), offsets={1: 0}))
    assert placed.receipt[1].clock == "order of b"


@pytest.mark.parametrize(
    ("domain", "start", "text", "message"),
    [
        (PRIVATE, 5 * S, "realtime", "its first time is 5 s after zero"),
        (PRIVATE, UNIX, "monotonic", "after zero"),
        (RUN, 5 * S, "monotonic", "start of the recording"),
        (NONE, 0, "monotonic", "has no times"),
        (REALTIME, UNIX, "monotonic", "after zero"),
        (MONOTONIC, 5 * S, "boottime", "states that it is CLOCK_MONOTONIC"),
        (MONOTONIC, 5 * S, "monotonic@other", "states that it is of vm"),
        (TIME_OF_DAY, 3600 * S, "monotonic", "local time of day"),
    ],
)
def test_clocks_that_cannot_be(domain: ClockDomain, start: int, text: str, message: str) -> None:
    with pytest.raises(InconsistentClocks, match=message):
        align([trace("a", domain, [start])], constraints=clock(0, text))


@pytest.mark.parametrize("text", ["monotonic", "boottime", "perf", "monotonic_raw@vm"])
def test_a_file_that_says_when_zero_was_has_no_other_clock(text: str) -> None:
    base = ClockSnapshot(PRIVATE, 0, REALTIME, UNIX, None, "base time of the file")
    with pytest.raises(InconsistentClocks, match=r"wall clock \(base time of the file\)"):
        align([trace("a", PRIVATE, [5 * S], [base])], constraints=clock(0, text))
    both = [trace("a", PRIVATE, [5 * S], [base]), trace("b", REALTIME, [UNIX])]
    said = align(both, constraints=clock(0, "realtime"))
    assert said.receipt == align(both).receipt  # it is what the file says, too


def test_a_stated_clock_must_fit_what_the_file_says() -> None:
    """A recording before the last boot: its monotonic clock is another one than that of the machine now."""
    base = ClockSnapshot(BOOT, 0, REALTIME, UNIX - 5000 * S, None, "base time of the file")
    before = trace("b", BOOT, [101 * S], [base])
    with pytest.raises(InconsistentClocks, match="away from the known relation"):
        align([perf(), before], constraints=clock(1, "monotonic"))
    right = replace(base, other_ts=UNIX - 100 * S + MS)
    found = align([perf(), trace("b", BOOT, [101 * S], [right])], constraints=clock(1, "monotonic"))
    assert mapped(found, 1, 101 * S) == UNIX + S


# -- zones and dates --------------------------------------------------------------------------------------------------


def test_local_times_without_a_zone() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", LOCAL, [UNIX])]
    found = align(both, constraints=Constraints(zones={1: "+02:00"}))
    assert mapped(found, 1, UNIX) == UNIX - 7200 * S
    assert (found.receipt[1].verdict, found.receipt[1].method) == ("assumed", "local time read as +02:00")


def test_a_zone_that_the_user_gave_does_not_give_way_to_an_anchor() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", LOCAL, [UNIX + 7200 * S])]
    constraints = anchors(f"a@{UNIX}ns=b@{UNIX + 3600 * S}ns", traces=both)
    with pytest.raises(InconsistentClocks, match=r"3600 s away from the known relation \(local time read as"):
        align(both, constraints=replace(constraints, zones={1: "+02:00"}))
    assert align(both, constraints=replace(constraints, zones={1: "+01:00"})).receipt[1].offset_ns == -3600 * S


def test_times_of_day() -> None:
    both = [trace("a", REALTIME, [UNIX]), trace("b", TIME_OF_DAY, [3600 * S])]
    found = align(both, constraints=Constraints(zones={1: "-01:00"}, dates={1: date(1970, 1, 3)}))
    assert mapped(found, 1, 3600 * S) == 2 * 86400 * S + 2 * 3600 * S


@pytest.mark.parametrize(
    ("domain", "zone", "day", "message"),
    [
        (REALTIME, "UTC", None, "has no local times"),
        (PRIVATE, "UTC", None, "has no local times"),
        (MONOTONIC, None, "2018-10-26", "has no local times"),
        (TIME_OF_DAY, "UTC", None, "--date is needed, too"),
        (TIME_OF_DAY, None, "2018-10-26", "--tz is needed, too"),
        (LOCAL, "UTC", "2018-10-26", "have a date already"),
    ],
)
def test_zones_and_dates_that_do_not_fit(domain: ClockDomain, zone: str | None, day: str | None, message: str) -> None:
    constraints = Constraints(zones={0: zone} if zone else {}, dates={0: parse_date(day)} if day else {})
    with pytest.raises(UsageError, match=message):
        align([trace("a", domain, [UNIX])], constraints=constraints)


def test_inputs_that_are_given_many_times_are_numbered_as_messages_call_them() -> None:
    paths = [f"{number}/x" for number in range(12)]
    assert [input_named(f"x ({number})", paths, "--offset") for number in (2, 9, 10, 12)] == [1, 8, 9, 11]
    for wrong in ("x (13)", "x (0)", "x (1)", "x (010)"):
        with pytest.raises(UsageError, match="is not one of the inputs"):
            input_named(wrong, paths, "--offset")


# -- clocks that were read twice --------------------------------------------------------------------------------------


def test_two_readings_make_a_line() -> None:
    wall = replace(REALTIME, machine="vm")
    readings = [
        ClockSnapshot(MONOTONIC, 0, wall, UNIX, 100, "readings"),
        ClockSnapshot(MONOTONIC, 100 * S, wall, UNIX + 100 * S + 5 * MS, 100, "readings"),
    ]
    both = [trace("a", MONOTONIC, [50 * S], readings), trace("b", REALTIME, [UNIX])]
    (way,) = align(both).maps[0].values()
    assert abs(way.at(50 * S) - (UNIX + 50 * S + 5 * MS // 2)) <= 2
    assert way.verdict is Verdict.OK
    assert way.bound_ns is not None
    assert way.bound_ns < 400


def test_readings_that_no_line_fits_are_as_good_as_they_are_apart() -> None:
    wall = replace(REALTIME, machine="vm")
    readings = [
        ClockSnapshot(MONOTONIC, 0, wall, UNIX, 3 * S, "readings"),
        ClockSnapshot(MONOTONIC, 10 * S, wall, UNIX + 17 * S, 3 * S - 1, "readings"),
    ]
    found = align([trace("a", MONOTONIC, [5 * S], readings)])
    (way,) = found.maps[0].values()
    assert way.bound_ns is not None
    assert way.at(0) - way.bound_ns <= UNIX - 3 * S
    assert way.at(10 * S) + way.bound_ns >= UNIX + 17 * S + 3 * S - 1
    assert "moved apart by 7 s between the readings in a," in found.receipt[0].warnings[0]


@pytest.mark.parametrize("away", [0, 3 * S, 20 * S])
def test_an_anchor_where_a_clock_was_set_is_compared_with_what_is_known(away: int) -> None:
    """Between two readings that are 7 s apart, it may be either; it may not be neither."""
    readings = [
        ClockSnapshot(MONOTONIC, 0, REALTIME, UNIX, 100, "readings"),
        ClockSnapshot(MONOTONIC, 10 * S, REALTIME, UNIX + 17 * S, 100, "readings"),
    ]
    both = [trace("dir/a.json", MONOTONIC, [5 * S], readings), trace("b.log", REALTIME, [UNIX])]
    constraints = parse_constraints(PATHS, anchors=[f"a.json@5s=b.log@{UNIX // S + 5 + away // S}s~1ms"])
    if away < 10 * S:
        assert mapped(align(both, constraints=constraints), 0, 5 * S) == UNIX + 5 * S + away
    else:
        with pytest.raises(InconsistentClocks, match="away from the known relation"):
            align(both, constraints=constraints)


@pytest.mark.parametrize(
    ("text", "within"), [("-350us", 1000), ("+1.5ms", 100_000), ("2s", 10**9), ("+1.000000001s", 1), ("0ns", 0)]
)
def test_an_offset_is_as_exact_as_its_digits(text: str, within: int, tmp_path: Path) -> None:
    log = (ROOT / "onednn-verbose" / "all-ts" / "input.log").read_bytes()
    paths = tmp_path / "a.log", tmp_path / "b.log"
    for path, lines in zip(paths, (None, 12), strict=True):  # so few contradict no offset
        path.write_bytes(b"".join(log.splitlines(keepends=True)[:lines]))
    inputs = Named(tuple(map(str, paths)), offsets=(f"b.log={text}",)).opened(Settings())
    first, second = estimate(inputs)[0].receipt
    assert (first.bound_ns, second.bound_ns) == (1000, 1000 + within)  # the log counts in µs


def test_an_offset_that_events_contradict_is_no_more_exact_than_that(tmp_path: Path) -> None:
    log = (ROOT / "onednn-verbose" / "all-ts" / "input.log").read_bytes()
    paths = tmp_path / "a.log", tmp_path / "b.log"
    for path in paths:
        path.write_bytes(log)
    inputs = Named(tuple(map(str, paths)), offsets=("b.log=-350us",)).opened(Settings())
    _, line = estimate(inputs)[0].receipt
    assert (line.bound_ns, line.verdict) == (351 * 1000, "assumed")
    assert any("350 µs" in warning for warning in line.warnings)
