"""Recordings in which several tools watched one process, and what the program knew about their clocks.

The program read the clocks itself, before and after; `recordings/truth.json` says what follows. Each pair is merged as
it was recorded, then without what tells the clocks, then with a part of one trace cut out besides. `record.py` makes
new recordings of sequences; those of `TUNED` were looked at while the estimators were made, the others are for the
report alone.

Those of five to ten iterations were recorded once, after the thresholds that they need had been chosen on others.

Those of `record_activity` were recorded after the thresholds of the alignment by activity had been chosen, on 24 other
recordings of the same cases; a dozen programs competed for two cores meanwhile (load average 15).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from msgspec import structs

from tests.benchmarks.alignment.record_activity import CASES
from tests.golden import ROOT, Case
from traceconv.align import Alignment, align
from traceconv.align.causality import believed, causality
from traceconv.align.constraints import NameMap
from traceconv.align.features import nest_of, shared_work
from traceconv.align.geometry import F64, Line
from traceconv.align.matching import ThreadStretches, _Allowed
from traceconv.api import read
from traceconv.errors import AlignmentError, TraceconvError
from traceconv.model.clocks import Run, Verdict, Zero
from traceconv.model.trace import Table, Trace, take

FOLDER = Path(__file__).parent / "recordings"
KINETO, ONEDNN = "kineto_trace.json", "onednn_verbose_with_program_output.log"
MXNET, DNNL = "mxnet_profile.json", "dnnl_verbose_with_program_output.log"
ORT, ORT_BESIDE = (
    "onnxruntime_profile__2026-11-21_07-17-32_966.json",
    "onnxruntime_profile__2026-11-21_07-17-34_140.json",
)
PERF = "perf.script.txt"  # or packed
TORCH_TUNED, TORCH_REPORTED = (
    ("torch_convnet", "torch_lstm"),
    ("torch_convnet_again", "torch_transformer", "torch_steady"),
)
TUNED = ("torch_kineto_onednn_perf", "mxnet_dnnl_timestamps", *TORCH_TUNED)
PAIRS = (
    ("torch_kineto_onednn_perf", KINETO, ONEDNN),
    ("torch_kineto_onednn_perf", KINETO, PERF),
    ("mxnet_dnnl_timestamps", MXNET, DNNL),
    ("ort_perf_monotonic", ORT, PERF),
    ("ort_perf_default_clock", ORT_BESIDE, PERF),
    *((name, f"{KINETO}.gz", f"{ONEDNN}.gz") for name in (*TORCH_TUNED, *TORCH_REPORTED)),
    ("mxnet_convnet", f"{MXNET}.gz", "dnnl_verbose.log.gz"),
)
#: Pairs of which both print the same work with times, by recording.
SEQUENCES = frozenset(name for name, _, other in PAIRS if not other.startswith(PERF))


#: Equal calls, one right after the other.
CHAIN = "chain_torch"
#: By how much the stated clocks of logs are made wrong, ns.
STATED_WRONG_NS = (-20_000_000, -7_300_000, -1_100_000, -500_000, 500_000, 1_900_000, 3_700_000, 11_000_000)
#: How recordings of five to ten iterations are called.
SHORT_NAME = "short_"
#: Of the pairs those of samples or counters with slices, which nothing but activity relates beyond metadata.
ACTIVITY = ("ort_perf_monotonic", "ort_perf_default_clock", *CASES)


@dataclass(frozen=True, slots=True)
class File:
    """An input, and the Unix time of its zero.

    Attributes:
        name: as recorded.
        origin: a case of golden/, or a file of this folder.
        zero_ns: ns since 1970.
        uncertainty_ns: how wrong that can be.
    """

    name: str
    origin: str
    zero_ns: int
    uncertainty_ns: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a pair.

    Attributes:
        recording, names, variant: which pair, and what was done to it.
        error_ns: how far the two are from each other's true place; None if they were refused.
        bound_ns: how far they may be, as stated; None if nothing is stated.
        uncertainty_ns: how wrong the truth itself can be.
        verdict: the worse one of both; or "refused".
        said: the methods, or the refusal.
        related: whether their events relate the two; error and bound are of that relation then, whatever is said about
            the place of both on the common axis.
    """

    recording: str
    names: tuple[str, str]
    variant: str
    error_ns: int | None
    bound_ns: int | None
    uncertainty_ns: int
    verdict: str
    said: str
    related: bool = False

    @property
    def wrong(self) -> bool:
        """Whether it was accepted, and not only assumed, in a place that its bound does not reach."""
        sure = self.verdict == "ok" or self.related
        trusted = self.error_ns is not None and sure and self.bound_ns is not None
        return trusted and (self.error_ns or 0) > (self.bound_ns or 0) + self.uncertainty_ns


@cache
def truth() -> dict[str, dict[str, File]]:
    """For each recording its files by name."""
    told = json.loads((FOLDER / "truth.json").read_text(encoding="utf-8"))["recordings"]
    return {
        recording: {one["file"]: File(one["file"], one["from"], one["zero_ns"], one["uncertainty_ns"]) for one in files}
        for recording, files in told.items()
    }


def load(file: File, options: Mapping[str, str] | None = None) -> Trace:
    """An input under the name that it had when it was recorded, with what lay beside it."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        if file.origin.startswith("golden/"):
            source = Case(ROOT.parent / file.origin).input
            shutil.copyfile(source, target / file.name)
        else:
            source = FOLDER / file.origin
            shutil.copytree(source.parent, target, dirs_exist_ok=True)
        return read(target / file.name, options=dict(options or {}))


def without_metadata(trace: Trace) -> Trace:
    """The same times, but nothing that says what they count."""
    clocks = [
        domain if domain.synthetic else structs.replace(domain, zero=Zero.UNKNOWN, run=Run.UNKNOWN, machine="")
        for domain in trace.clocks
    ]
    return trace.with_tables(clocks=clocks, snapshots=[])


def middle_of(trace: Trace) -> Trace:
    """The middle half of what happened, as if the tool had been attached later and ended earlier.

    That is half of the slices where there are some: a log of a library may begin long before the work that is traced.
    """
    first, last = trace.span() or (0, 0)
    low, high = first + (last - first) // 4, last - (last - first) // 4
    if len(trace.slices.ts):
        low, high = (int(ts) for ts in np.quantile(trace.slices.ts, (0.25, 0.75), method="nearest"))

    def seen(table: Table) -> Table:
        return take(table, np.flatnonzero((table.ts >= low) & (table.ts < high)))

    nothing = take(trace.flows, np.empty(0, np.int64))
    tables = {"samples": seen(trace.samples), "counters": seen(trace.counters), "flows": nothing}
    return trace.with_tables(slices=seen(trace.slices), **tables)


def attempts() -> list[Attempt]:
    """All pairs in all variants."""
    found = []
    added = [(case, *list(truth()[case])[:2]) for case in CASES]
    for recording, one, other in (*PAIRS, *added):
        files = (truth()[recording][one], truth()[recording][other])
        traces = [load(file) for file in files]
        bare = [without_metadata(trace) for trace in traces]
        found.append(attempt(recording, files, "as recorded", traces))
        found.append(attempt(recording, files, "metadata taken away", bare))
        found.append(attempt(recording, files, "and a window cut", [bare[0], middle_of(bare[1])]))
    return found


def short_attempts() -> list[Attempt]:
    """The pairs of five to ten iterations, without what tells their clocks."""
    found = []
    for recording, files in truth().items():
        if recording.startswith(SHORT_NAME):
            one, other = files.values()
            traces = [without_metadata(load(file)) for file in (one, other)]
            found.append(attempt(recording, (one, other), "metadata taken away", traces))
    return found


def stated_attempts() -> list[tuple[str, str]]:
    """For each recording of a framework and a log of its library, what is said where the log is as wrong as it states.

    Returns:
        The name of the recording and what became of it: a verdict, that of the refusal if it was refused.
    """
    found = []
    for recording, files in truth().items():
        if not recording.startswith((SHORT_NAME, CHAIN)) or any(PERF in name for name in files):
            continue
        one, other = (load(file) for file in files.values())
        for by_ns in STATED_WRONG_NS:
            moved = replace(other.slices, ts=other.slices.ts + by_ns)
            found.append((recording, verdict_of([one, other.with_tables(slices=moved)])))
        found.append((f"{recording} as it is", verdict_of([one, other])))
    return found


def verdict_of(traces: list[Trace]) -> str:
    """The worst verdict of a merge, also where it is refused."""
    try:
        alignment = align(traces)
        alignment = believed(alignment, causality(traces, alignment))
    except AlignmentError as refusal:
        return refusal.verdict
    return str(max((Verdict(line.verdict) for line in alignment.receipt), key=list(Verdict).index))


def least_bound(recording: str) -> float:
    """What no estimate from the events alone can fall below, ns: half of the least room before and after a call.

    It is measured on the true line. A shorter recording, or a disturbed one, leaves more.
    """
    name, one, other = next(pair for pair in PAIRS if pair[0] == recording and not pair[2].startswith(PERF))
    files = truth()[name][one], truth()[name][other]
    traces = [load(file) for file in files]
    views = shared_work(traces[0], 0, traces[1], 0, NameMap())
    if views is None:
        raise ValueError(f"{recording}: no common work")
    zeros = [file.zero_ns + view.events.zero_ns for file, view in zip(files, views, strict=True)]
    line = Line(float(zeros[0] - zeros[1]), 0.0, 0.0)
    before, after = _room(nest_of(traces[0], traces[1], views), line)
    return float(np.min(before) + np.min(after)) / 2


def _room(nest: ThreadStretches, line: Line) -> tuple[F64, F64]:
    """How far each call lies from the start and from the end of the stretch that holds it on a line, as printed, ns."""
    allowed = _Allowed.near(nest, nest.calls, line, 0.0)
    start = nest.calls.start[allowed.call]
    before = start - line.map(allowed.begin)
    after = line.map(allowed.end) - start - nest.calls.dur[allowed.call]
    inside = (before >= 0) & (after >= 0)
    return before[inside], after[inside]


def exact_attempts() -> list[Attempt]:
    """Pairs whose metadata is as exact as it gets: wall clocks, a noted start time, the reference time of perf."""
    found = []
    for recording, one, other in PAIRS:
        files = (truth()[recording][one], truth()[recording][other])
        options = {"start_ns": str(files[0].zero_ns)} if one.startswith("onnxruntime") else {}
        if recording != "ort_perf_default_clock":
            traces = [load(files[0], options), load(files[1])]
            found.append(attempt(recording, files, "exact metadata", traces))
    return found


def attempt(recording: str, files: tuple[File, File], variant: str, traces: Sequence[Trace]) -> Attempt:
    """Align two traces and compare with the truth, in the middle of the first one."""
    names = (files[0].name, files[1].name)
    uncertainty = files[0].uncertainty_ns + files[1].uncertainty_ns
    try:
        alignment = align(list(traces))
    except TraceconvError as refusal:
        return Attempt(recording, names, variant, None, None, uncertainty, "refused", refusal.message)
    first, last = traces[0].span() or (0, 0)
    unix = (first + last) // 2 + files[0].zero_ns
    placed = [_placed(alignment, index, unix - file.zero_ns) for index, file in enumerate(files)]
    lines = alignment.receipt
    bounds = [line.bound_ns for line in lines if line.offset_ns or line.bound_ns is None or line.bound_ns]
    bound = None if None in bounds else sum(bound for bound in bounds if bound is not None)
    related = [pair.clock_map.bound_ns for pair in alignment.pairs if pair.estimate.verdict is Verdict.OK]
    if related and related[0] is not None:
        bound = related[0] + sum(trace.clocks[0].resolution_ns for trace in traces)
    verdicts = [line.verdict for line in lines]
    worst = next((verdict for verdict in verdicts if verdict != "ok"), "ok")
    said = "; ".join(line.method for line in lines)
    error = abs(placed[0] - placed[1])
    return Attempt(recording, names, variant, error, bound, uncertainty, worst, said, bool(related))


def _placed(alignment: Alignment, index: int, ts: int) -> int:
    """Where a time of an input ends up; each of these inputs is on one clock."""
    (way,) = (way for way in alignment.maps[index].values())
    return way.at(ts)
