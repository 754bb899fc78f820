"""The receipt of an estimated alignment: in the table, in the metadata, in the track descriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from tests.align.pairs import TRUTH, recordings, trace_of
from tests.align.test_hosts import MS, NOW, SECOND, log, profile
from tests.benchmarks.alignment.simulate import Shape
from traceconv.align import Alignment, Policy, ReceiptLine, align
from traceconv.align.constraints import parse_constraints
from traceconv.align.estimate import Events
from traceconv.align.placement import NoOverlap
from traceconv.align.receipt import warned
from traceconv.cli.results import receipt_blocks, receipt_cells, receipt_table
from traceconv.merging.traces import merge_traces
from traceconv.model.trace import Trace


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return recordings(2)


@pytest.fixture(scope="module")
def alignment(traces: list[Trace]) -> Alignment:
    return align(traces)


def printed(receipt: list[ReceiptLine], *more: str) -> list[str]:
    return receipt_table(receipt_cells(receipt, [*(line.file for line in receipt), *more]), 200)


def test_drift_and_matches_are_told_where_there_are_any(alignment: Alignment) -> None:
    first, second = alignment.receipt
    assert second.drift_ppm == pytest.approx(-TRUTH.drift * 1e6, abs=1.0)
    assert second.matches == alignment.pairs[0].estimate.matches > 1000
    assert second.residual_ns == round(alignment.pairs[0].estimate.residuals.median)
    assert set(second.as_json()) - set(first.as_json()) == {"drift_ppm", "matches", "residual_ns"}
    assert (first.drift_ppm, first.matches, first.residual_ns) == (0.0, 0, None)


def ranks_of(*changed: ReceiptLine) -> list[ReceiptLine]:
    """The lines of the ranks 0 to 63, some of them changed."""
    lines = [ReceiptLine(f"rank{n}.json", "f", "c", "its clock", NOW + n, 20_000, "ok", rank=n) for n in range(64)]
    for line in changed:
        lines[line.rank or 0] = line
    return lines


def test_many_equal_ranks_have_one_line() -> None:
    _, *lines = printed(ranks_of())
    assert [line.split(maxsplit=4) for line in lines] == [
        ["rank0.json", "and", "63", "more", "0-63  c      its clock  ±20 µs  ok"]
    ]
    assert len(receipt_cells(ranks_of(), [], verbose=True)) == 64
    assert len(receipt_cells(ranks_of()[:3], [])) == 3
    without = [replace(line, rank=None) for line in ranks_of()]
    assert len(receipt_cells(without, [])) == 64


@pytest.mark.parametrize(
    "other",
    [
        {"verdict": "assumed"},
        {"bound_ns": 30_000},
        {"bound_ns": None},
        {"clock": "d"},
        {"method": "another"},
        {"drift_ppm": 2.0},
        {"moved_ns": 50_000},
        {"note": "laid along"},
        {"messages": ("its own times",)},
    ],
)
def test_a_rank_that_differs_has_its_own_line(other: dict[str, Any]) -> None:
    cells = receipt_cells(ranks_of(replace(ranks_of()[5], **other)), [])
    assert [(row["file"], row["rank"]) for row in cells] == [
        ("rank0.json and 62 more", "0-4, 6-63"),
        ("rank5.json", "5"),
    ]


def test_the_table_has_no_columns_that_say_nothing(alignment: Alignment) -> None:
    header, _, second_line = printed(alignment.receipt)
    assert header.split() == ["file", "clock", "placed", "by", "moved", "drift", "within", "matches", "verdict"]
    second = alignment.receipt[1]
    assert f"{second.drift_ppm:+.3f} ppm" in second_line
    assert f" {second.matches}, {second.residual_ns} ns apart " in second_line
    header, *_ = printed(alignment.receipt[:1])
    assert header.split() == ["file", "clock", "placed", "by", "within", "verdict"]


@pytest.mark.parametrize(
    ("moves", "shown"),
    [
        ([0, 0], [None, None]),
        ([None, 0], [None, None]),
        ([0, -350_123], ["0", "-350 µs"]),
        ([1_500_000, 0], ["+1.5 ms", "0"]),
        ([None, 7_200 * SECOND], ["", "+2 h"]),
    ],
)
def test_the_table_shows_how_far_files_were_moved(moves: list[int | None], shown: list[str | None]) -> None:
    lines = [ReceiptLine(f"{ns}", "f", "c", "way", NOW, 20_001, "ok", moved_ns=ns) for ns in moves]
    assert [row.get("moved") for row in receipt_cells(lines, [])] == shown
    assert [row["within"] for row in receipt_cells(lines, [])] == ["±20 µs"] * len(lines)
    exact = receipt_cells(lines, [], verbose=True)
    assert [row["within"] for row in exact] == ["±20.001 µs"] * len(lines)
    assert exact[0]["offset"] == "+1790857026 s"


def of_unknown_clock(name: str) -> Trace:
    return trace_of(Events(np.array([0.0, 1e9]), np.ones(2), np.zeros(2, np.int32), 0), name)


@pytest.mark.parametrize(
    ("traces", "more", "moves"),
    [
        ([profile("a", "one"), profile("b", "one", NOW - SECOND)], {}, [0, 0]),
        ([profile("a", "one"), profile("b", "two", NOW - SECOND)], {}, [0, 0]),
        ([profile("a", "one"), profile("b", "one", NOW - SECOND)], {"offsets": {1: 5 * MS}}, [0, 5 * MS]),
        ([profile("a", "one"), profile("b", "one", NOW - SECOND)], {"offsets": {0: 5 * MS}}, [5 * MS, 0]),
        ([profile("a", "one"), log("b", "one")], {}, [0, 0]),
        ([profile("a", "one"), of_unknown_clock("b")], {"offsets": {1: NOW}}, [0, None]),
        ([of_unknown_clock("a"), of_unknown_clock("b")], {"offsets": {1: 5 * MS}}, [0, 5 * MS]),
        ([profile("a", "one", NOW), profile("b", "two")], {"anchors": ["a@1s=b@1.005s~1us"]}, [0, -5 * MS]),
    ],
)
def test_how_far_a_file_was_moved_is_against_what_it_states(
    traces: list[Trace], more: dict[str, Any], moves: list[int | None]
) -> None:
    names = [trace.sources[0].name for trace in traces]
    constraints = parse_constraints(names, anchors=more.get("anchors", ()))
    policy = Policy(on_ambiguous="best")  # some of these do not overlap
    alignment = align(traces, policy=policy, constraints=structs.replace(constraints, offsets=more.get("offsets", {})))
    assert [line.moved_ns for line in alignment.receipt] == moves
    assert not any("moved_ns" in line.as_json() for line in alignment.receipt)


def test_a_file_that_was_moved_by_events_is_compared_at_its_first_event(
    traces: list[Trace], alignment: Alignment
) -> None:
    (way,) = alignment.maps[1].values()
    first = int(traces[1].slices.ts.min())
    assert way.drift
    assert [line.moved_ns for line in alignment.receipt] == [0, way.at(first) - first]


def test_the_table_names_inputs_without_events(alignment: Alignment) -> None:
    *_, last = printed(alignment.receipt, "empty.json")
    assert last.split() == ["empty.json", "nothing", "to", "place:", "it", "holds", "no", "events"]
    header, last = printed([], "empty.json")
    assert header.split() == ["file", "placed", "by"]
    assert last.startswith("empty.json ")


def test_a_narrow_terminal_gets_a_block_for_each_file(alignment: Alignment) -> None:
    cells = receipt_cells(alignment.receipt, ["framework.json", "library.log", "empty.json"])
    assert receipt_table(cells, 80) == []
    lines = receipt_blocks(cells)
    assert [line for line in lines if not line.startswith(" ")] == ["framework.json", "library.log", "empty.json"]
    assert "  verdict    ok" in lines
    assert lines[-1] == "  placed by  nothing to place: it holds no events"
    assert all(line.split("  ")[-1] for line in lines)


@pytest.mark.parametrize("width", [70, 80, 100, 200])
def test_the_table_is_no_wider_than_the_terminal(width: int) -> None:
    method = "baseTimeNanoseconds of the file, from a CPU counter that follows the wall clock to 20 µs"
    receipt = [
        ReceiptLine("rank0.json", "vm", "PyTorch profiler time", method, 0, 20_000, "ok", rank=rank) for rank in (0, 1)
    ]
    lines = receipt_table(receipt_cells(receipt, ["rank0.json"]), width)
    assert max(map(len, lines)) <= width
    assert (len(lines) == 3) is (width == 200)
    column = lines[0].index("placed by")
    end = lines[0].index("within")
    assert "".join(line[column:end] for line in lines[1:]).replace(" ", "") == 2 * method.replace(" ", "")


def test_the_bound_is_that_of_the_events_that_are_moved() -> None:
    """A short recording within a long one: what is known of the drift matters less to the short one."""
    long, short = recordings(3, Shape(iterations=400), part=(0.45, 0.5))
    moved_short, moved_long = align([long, short]).receipt[1], align([short, long]).receipt[1]
    assert moved_short.bound_ns is not None
    assert moved_long.bound_ns is not None
    assert moved_long.bound_ns > 2 * moved_short.bound_ns
    assert moved_short.bound_ns < 10_000


def test_the_bound_of_an_anchor_is_that_of_the_events_that_are_moved() -> None:
    far = trace_of(Events(np.array([0.0, 100e9]), np.ones(2), np.zeros(2, np.int32), 0), "far")
    near = trace_of(Events(np.array([0.0, 1e9]), np.ones(2), np.zeros(2, np.int32), 0), "near")
    for first, second, bound in ((far, near, 200_000), (near, far, 20_000_000)):
        names = [one.sources[0].name for one in (first, second)]
        constraints = parse_constraints(names, anchors=[f"{names[0]}@0s={names[1]}@0s~1us"])
        line = align([first, second], constraints=constraints).receipt[1]
        assert line.bound_ns == pytest.approx(bound, abs=3_000)


def test_the_tracks_and_the_metadata_tell_it(traces: list[Trace], alignment: Alignment) -> None:
    merged = merge_traces(traces, alignment)
    assert merged.metadata["alignment"] == [line.as_json() for line in alignment.receipt]
    words = [track.description for track in merged.tracks if track.description]
    second = alignment.receipt[1]
    assert words[0].endswith("placed by its own times, within ±1 µs.")
    assert f"; drift {second.drift_ppm:+.3f} ppm; {second.matches} matches, {second.residual_ns} ns apart" in words[1]


def test_only_what_is_said_of_both_inputs_is_said_once() -> None:
    def line(file: str, said: object) -> ReceiptLine:
        return ReceiptLine(file, "f", "c", "way", 0, None, "ok", messages=(said,))

    def apart(gap: int, *, file: str, other: str) -> NoOverlap:
        return NoOverlap(f"{gap} away from {other}", frozenset(), (gap, frozenset((file, other))))

    twice = [line("1", apart(3, file="1", other="2")), line("2", apart(3, file="2", other="1"))]
    assert warned(twice) == [(f"warning: 1: {twice[0].messages[0]}", "")]
    assert len(warned([line("1", apart(12, file="1", other="2")), line("2", apart(2, file="2", other="1"))])) == 2
    first, second = (f"--offset {name}=TIME" for name in ("1", "2"))
    assert [more for _, more in warned([line("1", second), line("2", first)])] == ["", ""]
    assert warned([line("1", first), line("2", first)]) == [(f"warning: 1: {first}", "likewise 2")]
