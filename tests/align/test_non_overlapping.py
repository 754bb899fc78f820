"""Inputs that overlap with no other one, and what is said to type then."""

from __future__ import annotations

import re
from datetime import date

import pytest
from msgspec.structs import replace

from tests.align.test_constraint_parser import LOCAL, PRIVATE, REALTIME, RUN, TIME_OF_DAY, UNIX, S, trace
from traceconv.align import align
from traceconv.align.constraints import Constraints
from traceconv.align.placement import zone_behind, zone_text
from traceconv.merging.traces import merge_traces
from traceconv.model.clocks import ClockSnapshot, LocalTime, Provenance
from traceconv.model.trace import Trace

HOUR = 3600 * S


def named(start: int, name: str = "ort.json", zone: int = 0, bound: int = 500_000, *, guessed: bool = True) -> Trace:
    """10 s of which the name of the file says when they began."""
    local = LocalTime(zone, guessed, "which zone?")
    snap = ClockSnapshot(
        RUN, 0, REALTIME, start, bound, "start time in the file name", local=local, provenance=Provenance.ASSUMED
    )
    return trace(name, RUN, snapshots=[snap], format="onnxruntime")


def wall(name: str = "b.log", start: int = UNIX, length: int = 10 * S) -> Trace:
    return trace(name, REALTIME, [start, start + length])


@pytest.mark.parametrize(
    ("away", "zone"),
    [
        (2 * HOUR, "+02:00"),
        (-9 * HOUR - HOUR // 2, "-09:30"),
        (14 * HOUR, "+14:00"),
        (-12 * HOUR, "-12:00"),
        (5 * HOUR + 3 * HOUR // 4, "+05:45"),
    ],
)
def test_the_zone_that_would_let_two_files_overlap(away: int, zone: str) -> None:
    found = align([named(UNIX + away), wall()])
    assert [line.offset_ns for line in found.receipt] == [UNIX + away, 0]  # nothing is moved
    first, second = (line.warnings for line in found.receipt)
    assert len(first) == len(second) == 1
    assert f"ort.json was read as UTC: --tz ort.json={zone} would make them overlap" in first[0]
    assert "does not overlap in time with any other input" in second[0]
    assert "--tz" not in second[0]


@pytest.mark.parametrize("away", [15 * HOUR, -13 * HOUR, 2 * HOUR + 60 * S])
def test_no_zone_would(away: int) -> None:
    (warning,) = align([named(UNIX + away), wall()]).receipt[0].warnings
    assert "was read as UTC, and no other zone would make them overlap" in warning


@pytest.mark.parametrize(("away", "asked"), [(0, True), (2 * HOUR, False), (2 * HOUR + 60 * S, False)])
def test_nobody_is_asked_for_a_zone_that_a_warning_tells_about(away: int, asked: bool) -> None:
    profile = named(UNIX + away)
    profile.sources[0].notes = ["which zone?", "another note"]
    traces = [profile, wall()]
    merged = merge_traces(traces, align(traces))
    assert merged.sources[0].notes == ["which zone?", "another note"][not asked :]
    assert profile.sources[0].notes == ["which zone?", "another note"]


def test_a_zone_that_was_given_is_doubted_as_well() -> None:
    (warning,) = align([named(UNIX - 2 * HOUR, zone=2 * HOUR, guessed=False), wall()]).receipt[0].warnings
    assert "was read as +02:00: --tz ort.json=UTC would make them overlap" in warning


def test_the_zone_in_use_is_not_proposed() -> None:
    """Within its bound the file may overlap as it is, so that this zone would fit, too."""
    (warning,) = align([named(UNIX + 10 * S + S // 2, bound=S), wall()]).receipt[0].warnings
    assert "was read as UTC, and no other zone would make them overlap" in warning


def test_several_zones_fit_and_many() -> None:
    found = align([named(UNIX + 4 * HOUR), wall(length=HOUR // 2 + 10 * S)])
    assert "--tz ort.json=+03:30 or --tz ort.json=+04:00 would" in found.receipt[0].warnings[0]
    found = align([named(UNIX + 6 * HOUR), wall(length=2 * HOUR)])
    assert "--tz ort.json=ZONE with any of 6 zones would make them overlap" in found.receipt[0].warnings[0]


def test_only_zones_that_exist_are_proposed() -> None:
    (warning,) = align([named(UNIX + HOUR // 4), wall()]).receipt[0].warnings
    assert "no other zone would make them overlap" in warning


def test_names_good_to_a_second_are_given_a_second() -> None:
    """The two touch only because of what the name leaves open."""
    away = 2 * HOUR + 10 * S + S // 2
    assert "=+02:00 would" in align([named(UNIX + away, bound=S), wall()]).receipt[0].warnings[0]
    assert "no other zone" in align([named(UNIX + away, bound=1000), wall()]).receipt[0].warnings[0]


def test_two_profiles_beside_one_log() -> None:
    """It is the log that is alone, and the profiles whose zone was guessed."""
    found = align([named(UNIX + HOUR), named(UNIX + HOUR + S, "two.json"), wall()])
    assert [len(line.warnings) for line in found.receipt] == [0, 0, 1]
    (warning,) = found.receipt[2].warnings
    assert "--tz ort.json=+01:00 would make them overlap" in warning
    assert "--tz two.json=+01:00 would make them overlap" in warning


def test_the_day_before_and_the_day_after() -> None:
    """A recording around midnight, whose date was taken for that of its end."""
    start = UNIX - UNIX % (86400 * S) + 86395 * S
    log = trace("tvm.log", TIME_OF_DAY, [86395 * S, 86405 * S])
    today = date(1970, 1, 1).fromordinal(date(1970, 1, 1).toordinal() + UNIX // (86400 * S))
    for days, right in ((1, False), (-1, False), (0, True)):
        said = date.fromordinal(today.toordinal() + days)
        found = align([log, wall(start=start)], constraints=Constraints(zones={0: "UTC"}, dates={0: said}))
        assert found.receipt[0].verdict == "assumed"
        warnings = found.receipt[0].warnings
        assert bool(warnings) is not right
        assert all(f"--date tvm.log={today} would make them overlap" in warning for warning in warnings)


def test_local_times_of_a_log() -> None:
    found = align([trace("a.log", LOCAL, [UNIX + 3 * HOUR]), wall()], constraints=Constraints(zones={0: "UTC"}))
    assert "a.log was read as UTC: --tz a.log=+03:00 would" in found.receipt[0].warnings[0]


def test_files_without_a_local_time_have_no_zone() -> None:
    found = align([wall("a.log", UNIX + 2 * HOUR), wall()])
    assert [len(line.warnings) for line in found.receipt] == [1, 1]
    assert not any("zone" in warning or "--tz" in warning for line in found.receipt for warning in line.warnings)
    assert re.search(r"and is 1 h 59 min away from b\.log", found.receipt[0].warnings[0])


@pytest.mark.parametrize(("start", "alone"), [(UNIX + 10 * S, 0), (UNIX + 10 * S + 1001, 2)])
def test_what_touches_is_not_alone(start: int, alone: int) -> None:
    found = align([wall(), wall("c.log", start)])
    assert sum(len(line.warnings) for line in found.receipt) == alone


def test_one_file_and_files_without_events_are_not_alone() -> None:
    assert not align([wall()]).receipt[0].warnings
    found = align([wall(), trace("empty", REALTIME, [])])
    assert not any(line.warnings for line in found.receipt)
    with_offset = align([wall(), trace("p", PRIVATE)], constraints=Constraints(offsets={1: UNIX + HOUR}))
    assert [len(line.warnings) for line in with_offset.receipt] == [1, 1]


def test_zones() -> None:
    assert [zone_text(ahead) for ahead in (0, 2 * HOUR, -12600 * S)] == ["UTC", "+02:00", "-03:30"]
    local = LocalTime(HOUR, guessed=True)
    assert zone_behind(local, -HOUR, 0) == 2 * HOUR
    assert zone_behind(local, HOUR + 5, 5) == 0
    assert zone_behind(local, HOUR + 6, 5) is None
    assert zone_behind(local, 3, 5) is None  # it is the zone that it was
    assert zone_behind(replace(local, ahead_ns=14 * HOUR), -HOUR, 0) is None
