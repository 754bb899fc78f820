"""The wall clocks of two hosts: related, but nobody knows how well."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.align.pairs import recordings
from traceconv.align import Alignment, Policy, align
from traceconv.align.clock_overview import survey
from traceconv.align.constraints import Anchor, ClockConstraint, ClockKind, Constraints, TimePoint
from traceconv.errors import InconsistentClocks, UnrelatedClocks
from traceconv.families.logs.timed_log import LOCAL_TIME
from traceconv.model.builder import Builder
from traceconv.model.clocks import MONOTONIC, REALTIME, ClockDomain, ClockMap, ClockSnapshot, Run, Verdict, Zero
from traceconv.model.layout import lay_out
from traceconv.model.marks import ANY_TOOL_MARKS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

US, MS, SECOND = 10**3, 10**6, 10**9
NOW = 1_790_857_026 * SECOND
OWN = ClockDomain("profiler time", Zero.UNKNOWN, Run.WALL)
ASSUMED, OK = Verdict.ASSUMED, Verdict.OK


def profile(name: str, host: str, base: int = NOW, bound: int | None = 20 * US, rank: int | None = None) -> Trace:
    """A recording with a clock of its own, which it relates to the wall clock."""
    clock = replace(OWN, machine=host)
    out = Builder(SourceInfo(name, "profiler", rank=rank), clock)
    out.slice(out.tracks.add("work"), SECOND, SECOND, "x")
    out.clocks.snapshot(ClockSnapshot(clock, 0, REALTIME, base, bound, "base time"))
    return lay_out(out.finish())


def log(name: str, host: str, clock: ClockDomain = REALTIME, at: int = NOW + SECOND, step: int = 1) -> Trace:
    out = Builder(
        SourceInfo(name, "chrome-trace", marks=ANY_TOOL_MARKS), replace(clock, machine=host, resolution_ns=step)
    )
    out.slice(out.tracks.add("work"), at, MS, "y")
    return lay_out(out.finish())


def readings(name: str, host: str, boot: int) -> Trace:
    """Clocks that were read beside each other, without events, as `traceconv anchor` writes them."""
    here, wall = (replace(clock, machine=host) for clock in (MONOTONIC, REALTIME))
    out = Builder(SourceInfo(name, "clock-anchor"), here)
    for at in (SECOND, 2 * SECOND):
        out.clocks.snapshot(ClockSnapshot(here, at, wall, boot + at, 100, "read"))
    return out.finish()


def verdicts(alignment: Alignment) -> dict[str, tuple[str, int | None]]:
    return {line.file: (line.verdict, line.bound_ns) for line in alignment.receipt}


def between(one: int, other: int, *traces: Trace, constraints: Constraints | None = None) -> ClockMap:
    """How times of one input become times of another one."""
    names = [trace.sources[0].name for trace in traces]
    found = survey(traces, constraints or Constraints())
    (pair,) = (pair for pair in found.pairs if (pair.file, pair.other) == (names[one], names[other]))
    assert pair.clock_map is not None
    return pair.clock_map


def test_two_hosts_are_assumed_to_be_in_step_and_no_bound_is_known() -> None:
    alignment = align([profile("a", "one"), profile("b", "other", NOW + MS)])
    assert verdicts(alignment) == {"a": ("ok", 20 * US + 1), "b": ("assumed", None)}
    first, second = alignment.receipt
    assert (first.two_hosts, second.two_hosts) == (False, True)
    assert second.offset_ns == NOW + MS
    assert second.bound_text == "not known (clocks of hosts may differ)"
    assert second.as_json()["two_hosts"] is True
    assert "two_hosts" not in first.as_json()


def test_files_of_one_host_are_as_exact_as_before_whatever_there_is_beside() -> None:
    traces = [profile("a", "one"), profile("b", "other"), profile("c", "other"), log("d", "other", step=US)]
    assert between(1, 2, *traces).bound_ns == 40 * US
    assert between(1, 3, *traces).bound_ns == 20 * US
    assert between(2, 3, *traces).verdict is OK
    assert between(0, 3, *traces).two_hosts
    assert between(0, 3, *traces).bound_in_step_ns == 20 * US
    alone = align([profile("b", "other"), profile("c", "other")])
    assert verdicts(alone) == {"b": ("ok", 20 * US + 1), "c": ("ok", 20 * US + 1)}


@pytest.mark.parametrize("name", ["", "localhost", "(none)"])
def test_a_file_without_a_host_is_of_that_of_the_others_if_these_agree(name: str) -> None:
    assert verdicts(align([profile("a", "one"), log("b", name)]))["b"] == ("ok", 1)
    assert verdicts(align([profile("a", name), profile("b", name)]))["b"] == ("ok", 20 * US + 1)
    of_two = verdicts(align([profile("a", "one"), profile("b", "other"), log("c", name)]))
    assert of_two["c"] == ("assumed", None)


@pytest.mark.parametrize("name", ["", "localhost"])
def test_ranks_that_name_no_host_may_be_of_several(name: str) -> None:
    """Nothing says that ranks of a job run on one host; other files without one are of one."""
    ranks = [profile("a", name, rank=0), profile("b", name, rank=1)]
    found = align(ranks)
    assert verdicts(found) == {"a": ("ok", 20 * US + 1), "b": ("assumed", None)}
    assert all("it states no name that identifies its host" in line.warnings[0] for line in found.receipt)
    for traces in ([profile("a", ""), profile("b", "")], [profile("a", "", rank=1), profile("b", "", rank=1)]):
        assert {verdict for verdict, _ in verdicts(align(traces)).values()} == {"ok"}
    same = align(ranks, constraints=Constraints(same_machine=True))
    assert {verdict for verdict, _ in verdicts(same).values()} == {"ok"}
    assert not any(line.warnings for line in same.receipt)


def test_trace_time_is_that_of_the_first_host_with_events() -> None:
    traces = [readings("a", "third", NOW), log("b", "one"), profile("c", "other")]
    assert verdicts(align(traces)) == {"b": ("ok", 1), "c": ("assumed", None)}


def test_clocks_that_were_read_on_each_host_are_still_of_two_hosts() -> None:
    """Each log is on the clock since boot of its host; anchors of both hosts relate these to the wall clocks."""
    traces = [
        readings("a.json", "one", NOW),
        readings("b.json", "other", NOW - 5 * SECOND),
        log("a.log", "one", MONOTONIC, 3 * SECOND),
        log("b.log", "other", MONOTONIC, 8 * SECOND),
    ]
    alignment = align(traces)
    assert [line.verdict for line in alignment.receipt] == ["ok", "assumed"]
    assert [line.two_hosts for line in alignment.receipt] == [False, True]
    assert between(2, 3, *traces).bound_ns is None


def test_two_names_of_one_machine_have_one_wall_clock() -> None:
    """A container has a name of its own: the user says it, or both files state one boot."""
    traces = [profile("a", "one"), profile("b", "other", NOW + MS)]
    assert verdicts(align(traces, constraints=Constraints(same_machine=True)))["b"] == ("ok", 20 * US + 1)
    for trace in traces:
        trace.sources[0].boot_id = "0000-1"
    assert verdicts(align(traces))["b"] == ("ok", 20 * US + 1)


def test_an_offset_moves_a_host_and_makes_no_bound() -> None:
    """How far the wall clocks are apart was not known before, and digits that were typed do not tell it."""
    alignment = align([profile("a", "one"), profile("b", "other", NOW + MS)], constraints=Constraints(offsets={1: -MS}))
    (_, line) = alignment.receipt
    assert (line.offset_ns, line.bound_ns, line.verdict, line.two_hosts) == (NOW, None, "assumed", True)


def test_an_anchor_says_how_the_hosts_relate() -> None:
    """The clocks are 3.7 ms apart: more than files of one host can be, and no contradiction of two."""
    constraints = Constraints(anchors=(Anchor(TimePoint(0, SECOND), TimePoint(1, SECOND), 5 * US),))
    traces = [profile("a", "one"), profile("b", "other", NOW + 3_700_000), profile("c", "other", NOW + 3_700_000)]
    alignment = align(traces, constraints=constraints)
    assert [line.two_hosts for line in alignment.receipt] == [False, False, False]
    assert [line.offset_ns for line in alignment.receipt] == [NOW, NOW, NOW]
    assert all(line.bound_ns is not None and line.bound_ns < MS for line in alignment.receipt)
    with pytest.raises(InconsistentClocks):
        align([profile("a", "one"), profile("b", "one", NOW + 3_700_000)], constraints=constraints)


def test_an_anchor_that_is_a_second_off_is_refused() -> None:
    constraints = Constraints(anchors=(Anchor(TimePoint(0, SECOND), TimePoint(1, SECOND), 5 * US),))
    with pytest.raises(InconsistentClocks, match="the wall clocks of the hosts agree"):
        align([profile("a", "one"), profile("b", "other", NOW + 2 * SECOND)], constraints=constraints)


def test_a_zone_is_that_of_the_host_of_the_file() -> None:
    local = replace(LOCAL_TIME, resolution_ns=1000)
    traces = [profile("a", "one"), profile("b", "other"), log("c", "other", local, at=NOW + SECOND)]
    way = between(1, 2, *traces, constraints=Constraints(zones={2: "UTC"}))
    assert not way.two_hosts
    assert between(0, 2, *traces, constraints=Constraints(zones={2: "UTC"})).two_hosts


def test_the_user_may_say_of_which_host_a_file_is() -> None:
    traces = [profile("a", "one"), profile("b", "other"), log("c", "")]
    constraints = Constraints(clocks={2: ClockConstraint(ClockKind.REALTIME, "other")})
    assert between(1, 2, *traces, constraints=constraints).bound_ns == 20 * US
    assert between(0, 2, *traces, constraints=constraints).two_hosts


def test_no_clock_since_boot_is_shared_by_machines_called_localhost() -> None:
    assert between(0, 1, log("a", "one", MONOTONIC, SECOND), log("b", "one", MONOTONIC, SECOND)).verdict is OK
    with pytest.raises(UnrelatedClocks):
        align([log("a", "localhost", MONOTONIC, SECOND), log("b", "localhost", MONOTONIC, SECOND)])


# -- events of two hosts ----------------------------------------------------------------------------------------------


def of_host(trace: Trace, host: str, *, wall: bool) -> Trace:
    """The recording on a clock that says its host, and where it is on the wall clock, if not how exactly."""
    clock = replace(trace.clocks[0], machine=host)
    snapshots = [ClockSnapshot(clock, 0, REALTIME, NOW, None, "base time")] if wall else []
    return trace.with_tables(clocks=[clock], snapshots=snapshots)


def test_events_of_two_hosts_are_not_taken_for_the_same() -> None:
    """What two hosts do may be alike; of one host such events place the files."""
    one, other = recordings(3)
    same = align([of_host(one, "one", wall=False), of_host(other, "one", wall=True)])
    assert [pair.taken for pair in same.pairs] == [True]
    apart = align([of_host(one, "one", wall=True), of_host(other, "other", wall=True)])
    assert not apart.pairs
    assert apart.receipt[1].two_hosts


def test_where_nothing_else_relates_two_hosts_their_events_may() -> None:
    """One of the two hosts may be a container on the other one; not if either host has another recording."""
    one, other = (of_host(trace, host, wall=False) for trace, host in zip(recordings(3), ("one", "other"), strict=True))
    assert [pair.taken for pair in align([one, other]).pairs] == [True]
    with pytest.raises(UnrelatedClocks):
        align([one, other, profile("c", "other")])


def test_events_of_two_ranks_are_not_taken_for_the_same() -> None:
    one, other = recordings(3)
    one.sources[0].rank, other.sources[0].rank = 0, 1
    with pytest.raises(UnrelatedClocks):
        align([one, other])
    other.sources[0].rank = 0
    assert [pair.taken for pair in align([one, other], policy=Policy()).pairs] == [True]
