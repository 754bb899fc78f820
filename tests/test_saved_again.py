"""JSON that another program has saved again, with other spacing or sorted keys, is the same recording."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.golden import Case, by_format, cases
from tests.together import together
from traceconv.api import read
from traceconv.errors import TraceconvError
from traceconv.families.registry import identify
from traceconv.io.source import Source
from traceconv.model.clocks import NO_TIME
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK

STYLES: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "one space": {"indent": 1},
    "four spaces": {"indent": 4},
    "sorted": {"sort_keys": True},
}
#: An empty array is written by many; only its spacing told who wrote this one.
SAYS_NOTHING = {"onnxruntime/no-events"}
#: Args too deep to be decoded are kept as the text that they are, spacing included; Python 3.13 can save them.
KEPT_AS_TEXT = {"chrome-trace/deep-nesting"}


def saved(case: Case) -> object:
    """The document of a case; None if it is not JSON, or if Python changes more than its spacing when it saves it."""
    try:
        return json.loads(
            case.input.read_bytes().decode("utf-8-sig"),
            parse_float=_kept,
            parse_constant=_refused,
            object_pairs_hook=_unique,
        )
    except (ValueError, RecursionError):
        return None


def _kept(text: str) -> float:
    if Decimal(repr(float(text))) != Decimal(text):
        raise ValueError("a number with more digits than a double")
    return float(text)


def _refused(text: str) -> float:
    raise ValueError(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key that occurs twice")
    return dict(pairs)


CASES = [
    case
    for case in cases()
    if case.format != "merge" and case.name not in KEPT_AS_TEXT and isinstance(saved(case), dict | list)
]


def picture(trace: Trace) -> Counter[Any]:
    """All that a trace says, in no order: clocks, metadata, tracks and events; texts of JSON among them in one form."""
    paths: list[tuple[Any, ...]] = []
    for track in trace.tracks:
        above = paths[track.parent] if track.parent != NO_TRACK else ()
        paths.append((*above, track.kind, track.name, track.pid, track.tid, track.unit, tuple(sorted(track.labels))))
    has_times = trace.clocks[0].zero is not NO_TIME.zero
    strings = trace.strings

    def event(table: Any, row: int) -> tuple[Any, ...]:
        args = bytes(trace.args.get(int(table.args_at[row]), int(table.args_len[row])))
        ts = int(table.ts[row]) if has_times else None
        texts = strings[table.name[row]], strings[table.category[row]]
        return paths[table.track[row]], ts, *texts, canonical(args.decode() or "{}")

    slices = [(*event(trace.slices, row), int(trace.slices.dur[row])) for row in range(len(trace.slices.ts))]
    found: Counter[Any] = Counter(paths)
    found.update(slices)
    found.update(("instant", *event(trace.instants, row)) for row in range(len(trace.instants.ts)))
    counters, flows, samples = trace.counters, trace.flows, trace.samples
    found.update(
        ("counter", paths[counters.track[row]], int(counters.ts[row]), float(counters.value[row]))
        for row in range(len(counters.ts))
    )
    found.update(
        ("flow", slices[flows.from_slice[row]], slices[flows.to_slice[row]]) for row in range(len(flows.from_slice))
    )
    found.update(
        ("sample", paths[samples.track[row]], int(samples.ts[row]), int(samples.weight[row]))
        for row in range(len(samples.ts))
    )
    found.update(("clock", str(clock)) for clock in trace.clocks)
    found.update(("snapshot", str(snapshot)) for snapshot in trace.snapshots)
    found.update(("fact", key, json.dumps(value, sort_keys=True)) for key, value in trace.metadata.items())
    found.update(("lost", source.diagnostics.lost) for source in trace.sources)
    return found


def canonical(text: str) -> str:
    """A JSON text in one form."""
    return json.dumps(json.loads(text), sort_keys=True)


def test_enough_cases_are_tried() -> None:
    assert len(CASES) > 60
    assert {case.format for case in CASES} >= {"onnxruntime", "viztracer", "mxnet", "mxnet-table", "pytorch-kineto"}


@by_format(CASES)
def test_the_same_recording_in_another_style(cases: list[Case], tmp_path: Path) -> None:
    with together() as each:
        for case in cases:
            folder = tmp_path / case.name
            folder.mkdir(parents=True)
            with each(case.name):
                check_styles(case, folder)


def check_styles(case: Case, tmp_path: Path) -> None:
    before = case.named_input(tmp_path)
    after = tmp_path / "again" / before.name
    after.parent.mkdir()
    for beside in before.parent.iterdir() if (case.folder / "beside").is_dir() else ():
        if beside.is_file():
            (after.parent / beside.name).write_bytes(beside.read_bytes())
    document, name = saved(case), identify(Source(before))[0].name
    try:
        expected = picture(read(before, format=case.format, options=case.options))
    except TraceconvError:
        expected = None
    with together() as each:
        for style, how in STYLES.items():
            with each(style):
                after.write_text(json.dumps(document, **how), encoding="utf-8")
                if case.name not in SAYS_NOTHING:
                    assert identify(Source(after))[0].name == name
                if expected is not None:
                    assert picture(read(after, format=case.format, options=case.options)) == expected
                    continue
                with pytest.raises(TraceconvError):
                    read(after, format=case.format, options=case.options)
