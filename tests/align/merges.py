"""Merges whose alignment is pinned: recorded inputs, some of them changed in a known way.

golden/align/<case>/case.toml       what the case pins; inputs and options, below
golden/align/<case>/expect.txt      where each clock was placed, how sure that is, and all that is said; or the refusal

[[inputs]]
golden = "<format>/<case>"          a golden input, or data = "<path in tests/data>", or recording = "<path>", below
                                    tests/benchmarks/alignment/recordings
replace = [["text", "other"]]       bytes of the file that are replaced before it is read
without = ["kernel"]                the categories of Chrome JSON whose events are left out before it is read
moved = "40ms"                      added to all times after they were read, while what the file states of its clock
                                    stays; from = "1s": only to times this long after the first one
ppm = 80                            how much faster its clock then runs
began = "1795300000s"               the file then states when its first time was, within = "500us", as a local time that
                                    was read in a zone = "+02:00", if that is given; and guessed = true, if it is

[options]                           those of `merge`: offset = ["b.log=1ms"], same-run = true, on-ambiguous = "best" ...

The inputs are called a, b, c ..., each with the ending of its file.
"""

from __future__ import annotations

import gzip
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from tests.golden import ROOT, Case
from traceconv.align import Alignment, Policy, align
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Causality
from traceconv.align.clock_overview import survey
from traceconv.align.constraints import NO_CONSTRAINTS, Constraints, parse_constraints
from traceconv.align.report import document, refusal_document
from traceconv.api import read
from traceconv.cli.options import _ns
from traceconv.errors import AlignmentError, TraceconvError
from traceconv.families.common.local_time import ahead_minutes
from traceconv.merging.traces import merge_traces
from traceconv.model.clocks import REALTIME, ClockMap, ClockSnapshot, LocalTime, Provenance
from traceconv.model.layout import validate
from traceconv.model.numbers import format_time, parse_duration
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK

LETTERS = "abcdefgh"
DATA = Path(__file__).parents[1] / "data"
RECORDINGS = Path(__file__).parents[1] / "benchmarks" / "alignment" / "recordings"
_KINDS = {"anchor": "anchors", "drift": "drifts", "clock": "clocks", "tz": "zones", "date": "dates"}


@dataclass(frozen=True)
class Merge:
    """A case of golden/align."""

    folder: Path

    @cached_property
    def about(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "case.toml").read_text(encoding="utf-8"))

    def traces(self, tmp_path: Path) -> list[Trace]:
        """The inputs as read, then changed."""
        return [_read(stated, tmp_path / LETTERS[at]) for at, stated in enumerate(self.about["inputs"])]

    def policy(self) -> Policy:
        options = self.about.get("options", {})
        names = {"same-run": "same_run", "on-ambiguous": "on_ambiguous"}
        return Policy(**{names[name]: value for name, value in options.items() if name in names})

    def constraints(self, traces: Sequence[Trace]) -> Constraints:
        options = self.about.get("options", {})
        names = [trace.sources[0].name for trace in traces]
        stated = parse_constraints(names, **{_KINDS[name]: value for name, value in options.items() if name in _KINDS})
        given = (text.partition("=") for text in options.get("offset", ()))
        offsets = {names.index(name): _ns(offset) for name, _, offset in given}
        return structs.replace(
            stated,
            offsets={index: ns for index, (ns, _) in offsets.items()},
            offsets_within={index: within for index, (_, within) in offsets.items()},
            same_machine=options.get("same-machine", False),
        )

    def described(self, tmp_path: Path) -> str:
        """Return all that the alignment says, one fact a line."""
        traces = self.traces(tmp_path)
        constraints, policy = NO_CONSTRAINTS, self.policy()
        checks = Causality(())
        try:
            constraints = self.constraints(traces)
            alignment = align(traces, policy=policy, constraints=constraints)
            checks = causality(traces, alignment, policy.names)
            alignment = believed(alignment, checks, policy.on_ambiguous)
            merged = merge_traces(traces, alignment, flows_of=checks)
            validate(merged)
            lines = [*_placed(alignment), *_seen(merged), *checks.describe()]
            pairs = document(traces, alignment, checks)["pairs"]
        except TraceconvError as error:
            lines = [f"refused ({type(error).__name__}): {error.message}", f"hint: {error.hint}"]
            pairs = refusal_document(traces, error)["pairs"] if isinstance(error, AlignmentError) else []
        lines += [line for pair in pairs for line in _flat("pair", pair)]
        lines += _surveyed(traces, constraints)
        return "".join(f"{line}\n" for line in lines).replace(f"{tmp_path}/", "")


def merges() -> Iterator[Merge]:
    """All cases, in the order of their names."""
    return (Merge(folder) for folder in sorted((ROOT / "align").iterdir()))


def _read(stated: dict[str, Any], stem: Path) -> Trace:
    case = Case(ROOT / stated["golden"]) if "golden" in stated else None
    path = case.input if case else DATA / stated["data"] if "data" in stated else RECORDINGS / stated["recording"]
    data = path.read_bytes()
    if {"replace", "without"} & stated.keys():
        data = _changed(data, stated)
    copy = stem.with_suffix("".join(path.suffixes))
    copy.write_bytes(data)
    trace = read(copy, format=case.format, options=case.options) if case else read(copy)
    return _stating(_moved(trace, stated), stated)


def _changed(data: bytes, stated: dict[str, Any]) -> bytes:
    """Return the bytes of a file, changed."""
    text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
    for one, other in stated.get("replace", ()):
        assert one in text, f"the file does not hold {one}"
        text = text.replace(one, other)
    if "without" in stated:
        members = json.loads(text)
        events = members["traceEvents"]
        members["traceEvents"] = [event for event in events if event.get("cat") not in stated["without"]]
        text = json.dumps(members)
    return gzip.compress(text.encode(), mtime=0) if data.startswith(b"\x1f\x8b") else text.encode()


def _stating(trace: Trace, stated: dict[str, Any]) -> Trace:
    """Return a trace that also states when its first time was."""
    if "began" not in stated:
        return trace
    start, _ = trace.span() or (0, 0)
    zone, guessed = stated.get("zone"), stated.get("guessed", False)
    local = LocalTime(ahead_minutes(zone) * 60 * 10**9, guessed) if zone else None
    who = Provenance.ASSUMED if guessed else Provenance.METADATA
    began, within = parse_duration(stated["began"]), parse_duration(stated.get("within", "500us"))
    snapshot = ClockSnapshot(trace.clocks[0], start, REALTIME, began, within, "its name", local, who)
    return replace(trace, snapshots=[*trace.snapshots, snapshot])


def _moved(trace: Trace, stated: dict[str, Any]) -> Trace:
    begin, _ = trace.span() or (0, 0)
    start = begin + parse_duration(stated.get("from", "0ns"))
    by, ppm = parse_duration(stated.get("moved", "0ns")), stated.get("ppm", 0)
    tables = {}
    for name, table in trace.timed_tables():
        moved = {"ts": _mapped(table.ts, start, by, ppm)}
        if name == "slices":
            moved["dur"] = _mapped(table.ts + table.dur, start, by, ppm) - moved["ts"]
        tables[name] = replace(table, **moved)
    return trace.with_tables(**tables) if by or ppm else trace


def _mapped(times: np.ndarray, start: int, by: int, ppm: float) -> np.ndarray:
    later = times >= start
    return times + later * by + np.rint((times - start) * (ppm * 1e-6) * later).astype(np.int64)


def _placed(alignment: Alignment) -> Iterator[str]:
    """Yield the clocks on trace time, and what is the same in several inputs."""
    files = alignment.files
    yield f"trace time: {alignment.clock.name}"
    for line in alignment.receipt:
        members = line.as_json()
        said = members.pop("warnings", [])
        yield from _flat("receipt", members)
        yield from (f"warning: {text}" for text in said)
    yield from (f"note on {files[index]}: {text}" for index, texts in alignment.notes.items() for text in texts)
    for index, place in alignment.placements.items():
        rows = [(len(order.rows), int((order.rows * (order.parents + 2)).sum())) for order in place.sequences]
        yield f"{files[index]} lies in slices of {files[place.host]}: {place.matches} matches, {rows}"
    yield from (f"apart: {hosts.describe()}" for hosts in alignment.hosts_apart)
    yield from (f"{files[one]} repeats {files[other]}" for one, other in alignment.repeats.items())
    yield from (f"machine: {machine}" for machine in alignment.machines)
    yield from (f"others in {files[index]}: {len(rows)}" for index, rows in alignment.others.items())
    yield from (f"together: {shared}" for shared in alignment.together.as_json())


def _seen(merged: Trace) -> Iterator[str]:
    """Yield the times of the merged trace, by table, its tracks, and what was noted."""
    for name, table in merged.timed_tables():
        if len(table.ts):
            first, last = int(table.ts.min()), int(table.ts.max())
            added = int((table.ts - first).sum())
            yield f"{name}: {len(table.ts)} from {format_time(first)} to {format_time(last)}, sum {added}"
    for track in merged.tracks:
        about = f", {track.description!r}" if track.parent == NO_TRACK else ""
        yield f"track: {track.kind} {track.name!r} pid {track.pid}{about}"
    for source in merged.sources:
        yield from (
            f"{source.name}: {entry.count} x {entry.code.name}, {entry.places[:1]}" for entry in source.diagnostics
        )
    yield f"flows: {len(merged.flows.origin)}"


def _flat(head: str, value: object) -> Iterator[str]:
    """Yield the numbers and texts of a part of a report; of long lists, how long they are."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _flat(f"{head}.{name}", member)
    elif isinstance(value, list) and len(value) > 8:
        yield f"{head}: {len(value)} values"
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from _flat(f"{head}[{number}]", member)
    else:
        yield f"{head}: {value}"


def _surveyed(traces: Sequence[Trace], constraints: Constraints) -> Iterator[str]:
    """Yield what `clocks` says of the inputs."""
    try:
        found = survey(traces, constraints)
    except TraceconvError as error:
        yield f"clocks ({type(error).__name__}): {error.message}"
        return
    for line in found.clocks:
        yield f"clock of {line.file}: {line.clock.name}, host {line.host!r}, {_map(line.realtime)}"
    yield from (f"clocks of {pair.file} and {pair.other}: {_map(pair.clock_map)}" for pair in found.pairs)
    yield from (f"advice on {pair.file} and {pair.other}: {text}" for pair in found.pairs for text in pair.advice)
    yield from (hosts.describe() for hosts in found.hosts)


def _map(clock_map: ClockMap | None) -> str:
    if clock_map is None:
        return "not related"
    drift, bound = clock_map.drift_ppm, clock_map.bound_ns
    return f"{clock_map.at(0)} ns, {drift:.6f} ppm, within {bound}, {clock_map.verdict}"
