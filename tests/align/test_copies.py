"""Many copies of a few files: each is compared with the first one of its content, and placed where it would be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests.align.test_contradictions import EPOCH_NS, OWN, QUARTER_NS, made, snap, view
from tests.golden import ROOT
from traceconv.align import Alignment, align, comparison
from traceconv.api import estimate, read
from traceconv.cli import cli
from traceconv.errors import InconsistentClocks
from traceconv.model.clocks import REALTIME, LocalTime
from traceconv.model.trace import Trace

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
PERF = ROOT / "perf-script" / "torch-convnet-process" / "input.txt"


def copied(trace: Trace, count: int) -> list[Trace]:
    """A trace and copies of it, as they are read from files of one content."""
    source = trace.sources[0]
    names = [source.name, *(f"copy {number} of {source.name}" for number in range(1, count))]
    return [trace.with_tables(sources=[replace(source, name=name, digest=source.name.encode())]) for name in names]


def without_rule(traces: list[Trace], monkeypatch: pytest.MonkeyPatch) -> Alignment:
    """The alignment if all pairs are compared."""
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "_first_copies", lambda *_: {})
        return align(traces)


def placed(alignment: Alignment) -> list[tuple[str, str, int, int | None]]:
    return [(line.file, line.verdict, line.offset_ns, line.bound_ns) for line in alignment.receipt]


@pytest.mark.parametrize("count", [2, 4])
def test_copies_on_a_stated_clock_are_where_they_would_be(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    work = made()
    one, other = view("a.json", work, EPOCH_NS, REALTIME), view("b.json", work, 0, OWN, 1, (snap(EPOCH_NS, 10**6),))
    traces = [*copied(one, count), *copied(other, count)]
    assert placed(align(traces)) == placed(without_rule(traces, monkeypatch))


def test_copies_without_a_clock_are_where_the_first_one_is() -> None:
    work = made()
    traces = [*copied(view("a.json", work, EPOCH_NS, REALTIME), 3), *copied(view("b.json", work, 0, OWN, 1), 3)]
    lines = align(traces).receipt
    assert {(line.verdict, line.offset_ns) for line in lines[:3]} == {("ok", 0)}
    assert {(line.verdict, line.offset_ns) for line in lines[3:]} == {("ok", lines[3].offset_ns)}
    assert abs(lines[3].offset_ns - EPOCH_NS) <= (lines[3].bound_ns or 0)


def test_copies_that_events_contradict_are_refused() -> None:
    work = made()
    right, wrong = view("a.json", work, EPOCH_NS, REALTIME), view("b.json", work, EPOCH_NS + 40_000_000, REALTIME, 1)
    with pytest.raises(InconsistentClocks, match="40"):
        align([*copied(right, 3), *copied(wrong, 3)])


def test_copies_in_a_wrong_zone_are_moved_as_the_first_one() -> None:
    """The first one is moved by its events, so its copies are compared, too."""
    work, zone = made(), 4 * QUARTER_NS
    local = LocalTime(zone, guessed=True)
    right = view("a.json", work, EPOCH_NS, REALTIME)
    wrong = view("b.json", work, 0, OWN, 1, (snap(EPOCH_NS + zone, 10**6, local),))
    lines = align([right, *copied(wrong, 3)]).receipt
    assert len({(line.verdict, line.offset_ns) for line in lines[1:]}) == 1


@pytest.mark.parametrize("apart_ns", [0, 1, 10**9])
def test_copies_that_files_put_at_different_times_are_compared(apart_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    work, found = made(), list[dict[object, object]]()
    one, other = copied(view("a.json", work, 0, OWN, 0, (snap(EPOCH_NS, 10),)), 2)
    moved = view("a.json", work, 0, OWN, 0, (snap(EPOCH_NS + apart_ns, 10),))
    first_copies = comparison._first_copies

    def noted(*args: Any) -> Any:
        found.append(first_copies(*args))
        return found[-1]

    monkeypatch.setattr(comparison, "_first_copies", noted)
    with suppress(InconsistentClocks):
        align([one, moved.with_tables(sources=other.sources)])
    assert [len(each) for each in found] == [0 if apart_ns else 1]


@pytest.mark.parametrize("apart_ns", [0, 40_000_000])
def test_copies_of_samples_that_files_put_at_different_times_are_refused(apart_ns: int) -> None:
    perf = read(PERF)
    clocks = [OWN if clock == perf.snapshots[0].clock else clock for clock in perf.clocks]
    one, other = copied(perf.with_tables(clocks=clocks, snapshots=[snap(EPOCH_NS, 5_000)]), 2)
    assert not len(one.slices.ts)
    with pytest.raises(InconsistentClocks, match="40 ms") if apart_ns else nullcontext():
        align([one, other.with_tables(snapshots=[snap(EPOCH_NS + apart_ns, 5_000)])])


def test_files_of_other_content_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    work = made()
    one, other = view("a.json", work, EPOCH_NS, REALTIME), view("b.json", work, 0, OWN, 1)
    traces = [*copied(one, 2), *copied(other, 2)]
    traces[1].sources[0].digest = b"another"
    assert len(align(traces).pairs) > len(align([*copied(one, 2), *copied(other, 2)]).pairs)


def test_the_pairs_that_are_compared_grow_with_the_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[str, str]] = []
    compared: Callable[..., object] = comparison._compared

    def counted(a: object, b: object, *others: object) -> object:
        pairs.append((str(a), str(b)))
        return compared(a, b, *others)

    monkeypatch.setattr(comparison, "_compared", counted)
    counts = []
    for copies in (2, 4, 8):
        pairs.clear()
        files = [tmp_path / f"{copy}-{copies}{source.suffix}" for source in (KINETO, ONEDNN) for copy in range(copies)]
        for file in files:
            file.write_bytes((KINETO if file.suffix == ".json" else ONEDNN).read_bytes())
        estimate(files)
        counts.append(len(pairs))
    assert counts == [3, 7, 15]


def test_copies_are_named_in_one_line(tmp_path: Path) -> None:
    files = [tmp_path / f"{copy}.json" for copy in range(6)]
    for file in files:
        file.write_bytes(KINETO.read_bytes())
    said = CliRunner().invoke(cli, ["align", *map(str, files)]).output
    assert said.count("the same recording is drawn twice") == 1
    assert "likewise 2.json, 3.json, 4.json and 1 more" in said
