"""What `traceconv clocks` says: which clocks files have, what relates them, and what would."""

from __future__ import annotations

import pytest

from tests.align.test_constraint_parser import (
    BOOT,
    LOCAL,
    MONOTONIC,
    MS,
    NONE,
    PRIVATE,
    RUN,
    TIME_OF_DAY,
    UNIX,
    S,
    trace,
)
from traceconv.align import align
from traceconv.align.clock_overview import survey
from traceconv.align.constraints import Constraints
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Verdict
from traceconv.model.marks import FormatMarks
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace


def wall() -> Trace:
    return trace("wall.json", REALTIME, [UNIX])


def samples(name: str) -> Trace:
    out = Builder(SourceInfo(name, "perf-script"), PRIVATE)
    out.sample(out.tracks.add("t"), 5 * S, out.frame("main"))
    return out.finish()


def advice(*traces: Trace) -> list[str]:
    (pair,) = survey(traces).pairs
    assert pair.clock_map is None
    return list(pair.advice)


def test_advice_names_the_files() -> None:
    words = advice(wall(), trace("b c.json", PRIVATE))
    assert "FILE" not in " ".join(words)
    assert "if you know how far apart they are: --offset 'b c.json'=TIME" in words
    assert words[0].startswith(
        "their events may determine the offset: traceconv align wall.json 'b c.json' (if it refuses,"
    )
    assert "if you know an instant that both recorded: --anchor 'wall.json:NAME#1.start=b c.json:NAME#1.start'" in words


def test_no_advice_for_a_file_that_is_on_the_wall_clock() -> None:
    assert not [line for line in advice(wall(), trace("b.json", PRIVATE)) if line.startswith("wall.json:")]


def test_no_clock_is_suggested_for_a_file_that_says_where_it_is() -> None:
    based = trace("a.json", PRIVATE, snapshots=[ClockSnapshot(PRIVATE, 0, REALTIME, UNIX, 0, "base time")])
    assert "--clock" not in " ".join(advice(based, trace("b.json", PRIVATE)))


def test_a_clock_is_suggested_where_it_relates_the_other_file() -> None:
    log = trace("b.log", BOOT)
    words = "if b.log counts the monotonic clock of this machine: --clock b.log=monotonic"
    assert words not in advice(wall(), log)
    both = [ClockSnapshot(MONOTONIC, 5 * S, REALTIME, UNIX, 0, "read together")]
    assert words in advice(trace("k.json", REALTIME, [UNIX], both), log)


def test_an_anchor_file_is_not_asked_for_again() -> None:
    wanted = "traceconv anchor -o"
    assert wanted in " ".join(advice(wall(), trace("b.json", BOOT)))
    read = trace("anchor.json", REALTIME, [UNIX])
    read.sources[0].marks = FormatMarks(reads_clocks=True)
    assert not [line for pair in survey([read, trace("b.json", BOOT)]).pairs for line in pair.advice if wanted in line]


def test_samples_are_no_events_to_anchor() -> None:
    words = advice(wall(), samples("perf.txt"))
    assert "if you know an instant that both recorded: --anchor wall.json@TIME=perf.txt@TIME" in words
    assert "#1" not in " ".join(words)


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (LOCAL, "b.log: if you know the zone of its local times: --tz b.log=+HH:MM"),
        (TIME_OF_DAY, "b.log: if you know the zone of its local times: --tz b.log=+HH:MM --date b.log=DAY"),
    ],
)
def test_local_times_want_a_zone(clock: ClockDomain, words: str) -> None:
    assert words in advice(wall(), trace("b.log", clock))


def test_one_machine() -> None:
    """The options of the advice do what it says."""
    one, other = trace("a", BOOT, [5 * S]), trace("b", BOOT, [50 * S])
    assert "if both are of one machine, and it was not restarted in between: --same-machine" in advice(one, other)
    (pair,) = survey([one, other], constraints=Constraints(same_machine=True)).pairs
    assert pair.clock_map is not None
    assert pair.clock_map.at(7) == 7
    elsewhere = [
        trace("a", MONOTONIC, [5 * S]),
        trace("b", ClockDomain("CLOCK_MONOTONIC", BOOT.zero, BOOT.run, 1, "x")),
    ]
    assert "--same-machine" not in " ".join(advice(*elsewhere))
    (pair,) = survey(
        elsewhere, constraints=Constraints(same_machine=True)
    ).pairs  # the user knows of names that files do not relate
    assert pair.clock_map is not None


def test_offsets_move_and_place() -> None:
    base = ClockSnapshot(RUN, 0, REALTIME, UNIX, MS, "start time of the file")
    files = [wall(), trace("run", RUN, [S], [base]), trace("b", PRIVATE, [5 * S])]
    found = survey(files, constraints=Constraints(offsets={1: 3 * S, 2: UNIX}))
    to_wall = [line.realtime for line in found.clocks]
    assert [way.at(0) for way in to_wall if way] == [0, UNIX + 3 * S, UNIX]
    assert [way.verdict for way in to_wall if way] == [Verdict.OK, Verdict.ASSUMED, Verdict.ASSUMED]
    ways = {(pair.file, pair.other): pair.clock_map for pair in found.pairs}
    between = ways["run", "b"]
    assert between is not None
    assert between.at(0) == 3 * S
    assert (between.bound_ns, "--offset" in between.method) == (MS, True)
    alone = (
        survey([trace("a", PRIVATE, [0]), trace("b", NONE, [0])], constraints=Constraints(offsets={1: 7}))
        .pairs[0]
        .clock_map
    )
    assert alone is not None
    assert alone.at(0) == -7


def test_two_boots_are_two_clocks_as_for_merge() -> None:
    day = 86400 * S
    boots = [
        trace(name, MONOTONIC, [at], [ClockSnapshot(MONOTONIC, at, REALTIME, UNIX + at + later, 1000, "header")])
        for name, at, later in (("a.json", 10 * S, 0), ("b.json", 12 * S, day))
    ]
    found = survey(boots)
    (way,) = (pair.clock_map for pair in found.pairs)
    assert way is not None
    assert way.at(10 * S) == 10 * S - day
    merged = align(boots)
    assert [line.realtime.offset_ns for line in found.clocks if line.realtime and line.events] == [
        line.offset_ns for line in merged.receipt
    ]
