"""Calls of a library beside operators of a framework, where both state their clocks."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from tests.benchmarks.alignment.recordings import load, truth
from traceconv.align import Alignment, Policy, align, containment
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Check, Rule
from traceconv.align.constraints import Constraints, NameMap
from traceconv.align.containment import check_of_calls
from traceconv.align.estimate import Events
from traceconv.align.matching import Stretches, ThreadStretches, most_fitting, sticking_out
from traceconv.errors import UnverifiedAlignment
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, Verdict
from traceconv.model.layout import lay_out
from traceconv.model.source_info import Layer, SourceInfo
from traceconv.model.trace import Trace, take

WALL, NOW = structs.replace(REALTIME, machine="here"), 1_790_000_000_000_000_000
MS = 1_000_000
CHAIN, STEADY, SHORT = "chain_torch", "short_torch_steady_10", "short_torch_lstm_10"


def recorded(name: str) -> list[Trace]:
    """The framework's trace and the library's log, with all that they say of their clocks."""
    return [load(file) for file in truth()[name].values()]


def moved(trace: Trace, by_ns: int, from_share: float = 0.0) -> Trace:
    """The same, with the later slices moved: all of them, or those from a share of them on."""
    ts = trace.slices.ts
    later = np.where(ts >= np.quantile(ts, from_share, method="nearest"), by_ns, 0)
    return trace.with_tables(slices=replace(trace.slices, ts=ts + later))


def renamed(trace: Trace, name: str) -> Trace:
    """The same under another file name."""
    return trace.with_tables(sources=[structs.replace(trace.sources[0], name=name)])


def checked(traces: list[Trace], offsets: dict[int, int] | None = None) -> tuple[list[Check], Alignment]:
    """What is said of calls, and the alignment before that."""
    alignment = align(traces, constraints=Constraints(offsets=offsets or {}))
    return [check for check in causality(traces, alignment).checks if check.rule is Rule.CALL], alignment


@pytest.mark.parametrize("name", [CHAIN, STEADY, "short_torch_resnet_5", "torch_transformer", "mxnet_convnet"])
def test_calls_lie_in_operators_on_right_clocks(name: str) -> None:
    (check,), _ = checked(recorded(name))
    assert check.checked >= 20
    assert check.after.count == 0
    assert check.verdict is Verdict.OK


@pytest.mark.parametrize("by_ns", [-17 * MS, -2 * MS, 2 * MS, 7 * MS])
def test_a_log_that_fits_elsewhere_is_not_believed(by_ns: int) -> None:
    """Ten short iterations fit in several places, and may be of two runs."""
    one, other = recorded(SHORT)
    traces = [one, moved(other, by_ns)]
    checks, alignment = checked(traces)
    (said,) = checks[0].contradictions
    assert said.verdict is Verdict.UNVERIFIED
    assert re.match(
        r"with these clocks, only \d+ of (\d+) calls lie in operators of kineto\S+; \1 would",
        str(said.text),
    )
    found = causality(traces, alignment)
    with pytest.raises(UnverifiedAlignment, match=r"only \d+ of \d+ calls lie in operators") as caught:
        believed(alignment, found)
    assert f"--offset {other.sources[0].name}=TIME" in caught.value.hint
    left = believed(alignment, found, "best")
    assert [line.verdict for line in left.receipt] == ["ok", "unverified"]
    assert left.receipt[1].warnings[-1] == str(said.text)


@pytest.mark.parametrize("placed", [0, 1])
def test_an_option_for_either_file_silences_no_check(placed: int) -> None:
    """The user decides: nothing is refused, but the verdict and the bound are not those of clocks that are right."""
    one, other = recorded(SHORT)
    traces = [one, moved(other, 3 * MS, from_share=0.5)]
    checks, alignment = checked(traces, {placed: 0})
    (said,) = checks[0].contradictions
    assert (said.verdict, said.by_user) == (Verdict.UNVERIFIED, True)
    line = believed(alignment, causality(traces, alignment)).receipt[1]
    assert (line.verdict, line.bound_ns, line.warnings[-1]) == ("unverified", None, str(said.text))


@pytest.mark.parametrize("by_ns", [-4 * MS, 3 * MS, 9 * MS])
def test_a_clock_that_was_set_in_the_middle_of_the_log_is_not_believed(by_ns: int) -> None:
    one, other = recorded(CHAIN)
    traces = [one, moved(other, by_ns, from_share=0.5)]
    checks, _ = checked(traces)
    assert checks[0].verdict is Verdict.UNVERIFIED


@pytest.mark.parametrize(
    ("from_share", "verdict"), [(0.4, Verdict.UNVERIFIED), (0.7, Verdict.ASSUMED), (0.97, Verdict.ASSUMED)]
)
def test_operators_without_calls_while_the_log_goes_on_are_said(from_share: float, verdict: Verdict) -> None:
    """The rest of the log lies behind all that the framework recorded, as that of a longer run does."""
    one, other = recorded(CHAIN)
    checks, _ = checked([one, moved(other, 10_000 * MS, from_share)])
    (said,) = checks[0].contradictions
    assert said.verdict is verdict
    assert "in a row hold no call while the log goes on" in str(said.text)


def test_a_log_that_ends_early_says_nothing() -> None:
    one, other = recorded(CHAIN)
    early = other.slices.ts < np.median(other.slices.ts)
    short = other.with_tables(
        slices=take(other.slices, np.flatnonzero(early)), flows=take(other.flows, np.empty(0, int))
    )
    (check,), _ = checked([one, short])
    assert check.verdict is Verdict.OK


def test_each_log_is_held_against_the_framework_that_called_it() -> None:
    """Two processes at the same time, each with its log: the calls of one lie in no operator of of the other one."""
    (one, its), (other, log) = recorded(STEADY), recorded("short_torch_resnet_5")
    late = int(one.slices.ts.min()) - int(other.slices.ts.min())
    zero = truth()[STEADY], truth()["short_torch_resnet_5"]
    apart = next(iter(zero[0].values())).zero_ns - next(iter(zero[1].values())).zero_ns
    both = [renamed(one, "a.json"), renamed(its, "a.log")]
    both += [renamed(moved(other, late), "b.json"), renamed(moved(log, late + apart), "b.log")]
    checks, _ = checked(both)
    assert [(check.files, check.verdict) for check in checks] == [
        (("a.json", "a.log"), Verdict.OK),
        (("b.json", "b.log"), Verdict.OK),
    ]


# -- made by hand ---------------------------------------------------------------------------------------------------

WORK, GAP = 400_000, 100_000
Rows = list[tuple[int, str]]


def framework(operators: Rows, name: str = "framework.json", dur: int = WORK) -> Trace:
    """Operators of a thread, by when they begin, on the wall clock."""
    out = Builder(SourceInfo(name, "framework", layer=Layer.FRAMEWORK), WALL)
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "work")
    for at, (start, operator) in enumerate(operators, 1):
        out.slice(track, NOW + start, dur, operator, at=at)
    return lay_out(out.finish())


def library(calls: Rows, name: str = "library.log", dur: int = WORK - 2 * GAP) -> Trace:
    """Calls by when the operators that they lie in begin, on the wall clock."""
    out = Builder(SourceInfo(name, "library", layer=Layer.LIBRARY), WALL)
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "work")
    for at, (start, called) in enumerate(calls, 1):
        out.slice(track, NOW + start + GAP, dur, called, at=at)
    return lay_out(out.finish())


def run(seed: int, count: int = 300) -> list[int]:
    """When operators begin, with pauses that vary."""
    pauses = np.random.default_rng(seed).exponential(200_000, count)
    return np.cumsum(WORK + 20_000 + pauses.astype(np.int64)).tolist()


def of(starts: list[int], name: str) -> Rows:
    """The same operator or call at some times."""
    return [(start, name) for start in starts]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("first", [50, 130, 220])
def test_operators_that_were_not_recorded_doubt_no_clock(seed: int, first: int) -> None:
    """The profiler wrote nothing for a while, shorter than a pause."""
    starts = run(seed)
    (check,), _ = checked(
        [framework(of(starts[:first] + starts[first + 10 :], "aten::conv2d")), library(of(starts, "convolution"))]
    )
    assert (check.verdict, check.after.count, check.checked) == (Verdict.OK, 0, 290)
    assert check.alone == 10
    assert "and 10 more where no operator was recorded" in str(check.describe())
    assert not check.contradictions


def test_calls_of_a_thread_that_was_not_recorded_doubt_no_clock() -> None:
    starts, others = run(1), run(2)
    (check,), _ = checked([framework(of(starts, "aten::conv2d")), library(sorted(of(starts + others, "convolution")))])
    assert (check.verdict, check.after.count) == (Verdict.OK, 0)
    assert check.alone > 100


def test_operators_whose_work_something_else_did_doubt_no_clock() -> None:
    starts = run(1)
    (check,), alignment = checked(
        [framework(of(starts, "aten::conv2d")), library(of(starts[:100] + starts[160:], "convolution"))]
    )
    assert check.verdict is Verdict.OK
    assert not check.contradictions
    late = [start + 1_000 * MS for start in starts[160:]]
    traces = [framework(of(starts, "aten::conv2d")), library(of(starts[:100] + late, "convolution"))]
    (check,), alignment = checked(traces)
    (said,) = check.contradictions
    assert "in a row hold no call while the log goes on" in str(said.text)
    with pytest.raises(UnverifiedAlignment, match=r"200 operators of .* in a row hold no call"):
        believed(alignment, causality(traces, alignment))
    left = believed(alignment, causality(traces, alignment), "best")
    assert [line.verdict for line in left.receipt] == ["ok", "unverified"]
    assert str(said.text) in left.receipt[1].warnings


def test_operators_without_calls_are_said_beside_few_calls() -> None:
    starts = run(1, 12)
    late = [start + 1_000 * MS for start in starts[5:]]
    checks, _ = checked([framework(of(starts, "aten::conv2d")), library(of(starts[:5] + late, "convolution"))])
    assert [check.checked for check in checks] == [0]
    assert checks[0].verdict is Verdict.UNVERIFIED


def test_calls_that_fit_nowhere_are_not_believed() -> None:
    """Those of another run, whose pauses were others: no place nearby is good. Where it is half of them, it is said."""
    traces = [framework(of(run(1), "aten::conv2d")), library(of(run(2), "convolution"))]
    (check,), alignment = checked(traces)
    (said,) = check.contradictions
    assert said.verdict is Verdict.UNVERIFIED
    assert check.after.count == check.beyond > 100
    assert check.after.worst_ns > check.limit.bound_ns
    with pytest.raises(UnverifiedAlignment, match="lie in no operator of"):
        believed(alignment, causality(traces, alignment))
    half = sorted(run(1)[:150] + run(2)[150:])
    traces = [framework(of(run(1), "aten::conv2d")), library(of(half, "convolution"))]
    (check,), alignment = checked(traces)
    left = believed(alignment, causality(traces, alignment))
    assert left.receipt[1].verdict == str(check.verdict) == "assumed"
    assert str(check.contradictions[0].text) in left.receipt[1].warnings


@pytest.mark.parametrize("name", [CHAIN, STEADY])
def test_operators_without_lengths_hold_nothing_and_tell_nothing(name: str) -> None:
    outer, inner = recorded(name)
    slices = replace(outer.slices, dur=np.zeros_like(outer.slices.dur))
    checks, _ = checked([outer.with_tables(slices=slices), inner])
    assert [check.checked for check in checks] == [0]
    assert not checks[0].contradictions


def test_kinds_that_lie_in_no_operators_of_their_name_tell_nothing() -> None:
    """A library reorders in any operator; and a kind of a single call tells nothing, wherever that lies."""
    starts = run(1)
    operators = of(starts, "aten::conv2d") + of([start + WORK + 5_000 for start in starts[::10]], "reorder")
    calls = of(starts, "convolution") + of(starts[5::10], "reorder") + [(starts[3] + 1_000, "softmax")]
    operators.append((starts[200] + WORK + 5_000, "aten::softmax"))
    (check,), _ = checked([framework(sorted(operators), dur=WORK // 2 * 2), library(sorted(calls))])
    assert (check.checked, check.alone, check.verdict) == (300, 0, Verdict.OK)


def test_one_shared_operator_is_too_little() -> None:
    starts = run(1)
    checks, _ = checked([framework(of(starts[:1], "aten::conv2d")), library(of(starts, "convolution"))])
    assert [(check.checked, check.verdict) for check in checks] == [(0, Verdict.OK)]


@pytest.mark.parametrize("seed", range(3))
def test_how_far_a_call_sticks_out_is_found_by_looking_at_all_stretches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    threads = []
    for _ in range(2):
        ends = np.cumsum(rng.integers(1, 50, 80) * 1000).astype(np.float64)
        threads.append(Stretches(ends[:-1:2], ends[1::2], rng.integers(0, 3, 40).astype(np.int32)))
    nest = ThreadStretches(tuple(threads), Events(*empty()), 1.0)
    start = np.sort(rng.uniform(0, 2e6, 60))
    calls = Events(start, rng.uniform(0, 3e4, 60), rng.integers(0, 4, 60).astype(np.int32), 0, 1.0)
    wanted = [
        min(
            (
                max(begin - first - 1, last - 2 - end, 0.0)
                for thread in threads
                for begin, end, kind in zip(thread.begin, thread.end, thread.kind, strict=True)
                if kind == own
            ),
            default=np.inf,
        )
        for first, last, own in zip(calls.start, calls.end, calls.kind, strict=True)
    ]
    found = sticking_out(nest, calls)
    assert (found == 0).tolist() == [out == 0 for out in wanted]
    assert (found >= np.array(wanted) - 1e-6).all()  # a longer one may be further away
    fitting, move = most_fitting(nest, calls, 1e6)
    moved_calls = structs.replace(calls, start=calls.start + move)
    assert abs(fitting - np.count_nonzero(sticking_out(nest, moved_calls) == 0)) <= 1
    assert fitting >= np.count_nonzero(sticking_out(nest, calls) == 0)


def empty() -> tuple[np.ndarray, np.ndarray, np.ndarray, int, float]:
    """The columns of no events."""
    return np.zeros(0), np.zeros(0), np.zeros(0, np.int32), 0, 1.0


def test_the_memory_of_a_check_does_not_grow_with_the_density_of_slices() -> None:
    """Each call was once paired with all slices of a tenth of a second."""
    starts = list(range(0, 24_000 * 4_000, 4_000))
    one, other = framework(of(starts, "aten::conv2d"), dur=3_900), library(of(starts, "convolution"), dur=1_000)
    alignment = align([one, other.with_tables(slices=replace(other.slices, ts=other.slices.ts - GAP + 1_000))])
    tracemalloc.start()
    checks = list(check_of_calls([one, other], alignment, NameMap()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [check.verdict for check in checks] == [Verdict.OK]
    assert peak < 60_000_000


def test_few_calls_are_said_to_be_too_few() -> None:
    starts = run(1, 5)
    traces = [framework(of(starts, "aten::conv2d")), library(of([start + 3 * MS for start in starts], "convolution"))]
    found = causality(traces, align(traces))
    words = " and ".join(trace.sources[0].name for trace in traces)
    assert found.describe()[0] == "causality: nothing was checked"
    assert re.fullmatch(rf"  \d calls in {words}: too few that operators could hold to check", found.describe()[1])


@pytest.mark.parametrize(("by_ns", "from_share"), [(0, 0.0), (3 * MS, 0.0), (-7 * MS, 0.5), (2 * MS, 0.75)])
def test_parts_of_large_traces_are_looked_at(by_ns: int, from_share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containment, "_MOST_SLICES", 400)
    starts = run(1, 2000)
    traces = [framework(of(starts, "aten::conv2d")), moved(library(of(starts, "convolution")), by_ns, from_share)]
    (check,) = check_of_calls(traces, align(traces, policy=Policy(estimate=False)), NameMap())
    assert 200 <= check.checked + check.alone <= 420
    assert check.verdict is (Verdict.UNVERIFIED if by_ns else Verdict.OK)
