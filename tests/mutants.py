"""Check that tests notice when a step of the product does nothing: `python -m tests.mutants [NAME ...]`.

Each mutant replaces one function by one that returns a valid, but empty or unchanged value; then the tests that are to
notice it run. It is killed if an assertion of a test fails: a crash shows only that the value was not a valid one.
The exit code is 1 if a mutant lives or crashes.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Struct, structs

from traceconv.align.checks import Causality
from traceconv.align.clock_overview import Survey
from traceconv.align.collective_hosts import PlacedHosts
from traceconv.align.collectives import Occurrences
from traceconv.align.constraints import NO_CONSTRAINTS
from traceconv.align.decision import Related
from traceconv.align.domains import Machine
from traceconv.align.estimate import Estimate, Method
from traceconv.align.host_clocks import Ends, EndsOfTwo, HostLines
from traceconv.align.identity import Together
from traceconv.errors import UnrelatedClocks
from traceconv.model.clocks import Verdict

LIVES, CRASHES = "lives", "crashes"


def aligned(*cases: str) -> tuple[str, ...]:
    """Return the tests of some cases of golden/align."""
    return tuple(f"tests/align/test_golden_align.py::test_what_the_alignment_says[{case}]" for case in cases)


def golden(case: str) -> tuple[str, ...]:
    """Return the test of what a golden case pins."""
    return (f"tests/test_golden.py::test_expectations[{case}]",)


def shown(case: str) -> tuple[str, ...]:
    """Return the test of what Perfetto shows of a golden case."""
    return (f"tests/test_golden.py::test_perfetto_shows_the_trace[perfetto-{case}]",)


def seen(case: str) -> tuple[str, ...]:
    """Return the tests of what the outputs of a golden case hold and show."""
    return (
        f"tests/test_golden.py::test_protobuf_holds_the_trace[{case}]",
        f"tests/test_golden.py::test_own_json_comes_back[{case}]",
        f"tests/test_golden.py::test_perfetto_shows_the_trace[perfetto-{case}]",
        f"tests/test_golden.py::test_perfetto_shows_the_trace[chrome-json-{case}]",
    )


ONE_HOST = (
    "tests/align/test_one_host.py::test_a_clock_set_near_the_end_is_refused",
    "tests/align/test_one_host.py::test_only_what_moves_starts_and_ends_together_is_a_step",
    "tests/align/test_one_host.py::test_the_instant_of_a_small_step_is_that_of_the_events",
    "tests/align/test_one_host.py::test_one_run_does_not_settle_a_clock_that_was_set",
)
SECTIONS = ("tests/answers/test_sections.py",)
KERNELS, MEMORY = seen("pytorch-kineto/cuda-streams"), seen("pytorch-kineto/memory-and-stacks")
SAMPLES = seen("merge/kineto-onednn-perf")


@dataclass(frozen=True)
class Mutant:
    """A function that is replaced.

    Attributes:
        target: the module and the function, or the class and the method, below `traceconv`.
        returns: what is returned instead, given the arguments and the original.
        tests: what is to notice it.
    """

    target: str
    returns: Callable[..., Any]
    tests: tuple[str, ...]


# -- what is returned instead: each gets the original function, and its arguments --------------------------------------

Returns = Callable[..., Any]


def given(value: Any) -> Returns:
    """Return always this."""
    return lambda _original, *_args, **_kwargs: copy(value)


def argument(place: int) -> Returns:
    """Return an argument as it is."""
    return lambda _original, *args, **_kwargs: args[place]


nothing, empty, first, second, third = given(None), given([]), argument(0), argument(1), argument(2)


def changed(**members: Any) -> Returns:
    """Return the result, or each of several, with other members."""

    def with_members(original: Returns, *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if isinstance(result, list):
            return [replace(one, **members) for one in result]
        return (structs.replace if isinstance(result, Struct) else replace)(result, **members)

    return with_members


def with_arguments(**places: Any) -> Returns:
    """Return what is returned for other arguments: p1=() gives the second one."""

    def instead(original: Returns, *args: Any, **kwargs: Any) -> Any:
        return original(*(places.get(f"p{at}", value) for at, value in enumerate(args)), **kwargs)

    return instead


def each_empty(place: int) -> Returns:
    """Return an empty text for each row of an argument."""
    return lambda _original, *args, **_kwargs: [b""] * len(args[place])


def moved_nothing(_original: Returns, pair: Any, *_args: Any) -> Any:
    """Return a clock of the pair, and an empty message, as if a zone explained the contradiction."""
    return pair.a, ""


def nothing_together(_original: Returns, view: Any) -> Any:
    """Return that no process is in two inputs."""
    return Together(view.recordings, [])


def refused(method: Method, reason: str) -> Returns:
    """Return an estimate that is not certain."""
    return given(Estimate(method, Verdict.AMBIGUOUS, reason))


def refused_silently(_original: Returns, inputs: Any, placed: Any, *_args: Any) -> None:
    """Refuse inputs that nothing relates, and say no more."""
    if any(one.key not in placed.maps for one in inputs.clocks):
        raise UnrelatedClocks("nothing relates them")


def equal_lines(_original: Returns, entered: Any, _left: Any) -> HostLines:
    """Return that the clocks of all hosts agree."""
    hosts = entered.shape[1]
    base = int(np.min(entered[:, 0]))
    return HostLines(base, np.zeros(hosts, np.int64), np.zeros(hosts), tuple((at, 0) for at in range(1, hosts)))


def no_clocks_fit(_original: Returns, a: Any, b: Any, rough: Any) -> Any:
    """Return the first line alone."""
    return (rough.lines[0],)


def one_machine_each(_original: Returns, traces: Any, *_args: Any) -> list[Machine]:
    return [Machine("") for _ in traces]


def survey_of_nothing(_original: Returns, *_args: Any) -> Survey:
    return Survey([], [])


def list_of_first(_original: Returns, traces: Any) -> list[Any]:
    return list(traces)


def no_flows(_original: Returns, trace: Any) -> Any:
    """Return no fields for any slice."""
    return b"", np.zeros(len(trace.slices.ts) + 1, np.int64)


def all_of(place: int) -> Returns:
    """Return that all rows of an argument are."""
    return lambda _original, *args: np.ones(len(args[place]), bool)


class Watcher:
    """Note the test of which an assertion fails first, and the first one that fails by another error."""

    def __init__(self) -> None:
        self.killed_by = self.crashed = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        error = call.excinfo
        if report.failed and error is not None:
            if error.errisinstance(AssertionError) and _is_in_tests(error):
                self.killed_by = self.killed_by or item.nodeid
                item.session.shouldstop = "killed"
            self.crashed = self.crashed or item.nodeid
        return report


def _is_in_tests(error: pytest.ExceptionInfo[BaseException]) -> bool:
    """Return whether an error was raised by a test, and not by the product."""
    return Path(error.traceback[-1].path).is_relative_to(Path(__file__).parent)


def outcome(number: int) -> str:
    """Return how a mutant ends: the test that kills it, or "lives", or "crashes" with the test."""
    mutant = MUTANTS[number]
    apply(mutant)
    watcher = Watcher()
    arguments = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-p",
        "no:xdist",
        "--no-header",
        "--tb=no",
        *mutant.tests,
    ]
    sys.stdout = open("/dev/null", "w")  # noqa: SIM115
    code = pytest.main(arguments, plugins=[watcher])
    if watcher.killed_by:
        return watcher.killed_by
    if watcher.crashed or code != pytest.ExitCode.OK:
        return f"{CRASHES}: {watcher.crashed or code}"
    return LIVES


def apply(mutant: Mutant) -> None:
    """Replace the function wherever it was imported."""
    module, _, path = mutant.target.partition(":")
    owner: Any = importlib.import_module(f"traceconv.{module}")
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    original = getattr(owner, name)

    def replaced(*args: Any, **kwargs: Any) -> Any:
        return mutant.returns(original, *args, **kwargs)

    setattr(owner, name, replaced)
    for other in [other for key, other in sys.modules.items() if key.startswith("traceconv")]:
        for key, value in list(vars(other).items()):
            if value is original:
                setattr(other, key, replaced)


MUTANTS: Sequence[Mutant] = (
    # align: from the inputs to one decision
    Mutant("align.inputs:gathered", with_arguments(p1=NO_CONSTRAINTS), aligned("anchor-alone")),
    Mutant("align.domains:machines_of", one_machine_each, aligned("clock-stated")),
    Mutant("align.statements:state", with_arguments(p1=NO_CONSTRAINTS), aligned("anchor-alone")),
    Mutant("align.anchors:anchored", with_arguments(p1=()), aligned("anchor-alone")),
    Mutant("align.anchors:_checked", lambda _original, traces, *_args: (traces, []), aligned("anchor-refused")),
    Mutant(
        "align.statements:lines_of_readings",
        lambda _original, traces: (list(traces), []),
        aligned("clock-anchor"),
    ),
    Mutant(
        "align.statements:with_readings_of_set_clocks",
        lambda _original, traces: (list(traces), {}),
        aligned("clock-set"),
    ),
    Mutant("align.duplicates:repeated", given({}), aligned("copy")),
    Mutant("align.duplicates:warnings_of_duplicates", empty, aligned("copy")),
    Mutant("align.comparison:estimates", changed(estimates=()), aligned("copy-not-stated")),
    Mutant("align.comparison:_compared", given((None, ())), aligned("not-stated")),
    Mutant("align.comparison:_of_steady_clocks", first, aligned("drift-of-no-host")),
    Mutant("align.comparison:contradiction", given((None, ())), aligned("stated-wrong-refused")),
    Mutant("align.comparison:doubted", second, aligned("option-doubted")),
    Mutant("align.comparison:_doubt", nothing, aligned("option-doubted")),
    Mutant("align.comparison:moved_by_zone", moved_nothing, aligned("zone-of-the-log")),
    Mutant("align.comparison:refuse_early_work", nothing, aligned("early-work")),
    Mutant("align.comparison:_unconfirmed_drifts", empty, aligned("drift-not-confirmed")),
    Mutant("align.decision:_overruled", given((set(), [])), aligned("zone-guessed")),
    Mutant(
        "align.decision:relate_all",
        lambda _original, _clocks, _accepted, graph, *_args: Related(graph.copy()),
        aligned("copy-not-stated"),
    ),
    Mutant("align.decision:_settled", changed(warnings=[]), aligned("not-stated-best")),
    Mutant("align.placement:_refuse_unrelated", refused_silently, aligned("samples-not-stated")),
    Mutant("align.placement:_refuse_far", nothing, aligned("far-offset")),
    Mutant("align.placement:one_machine_advice", nothing, aligned("same-machine-advised")),
    Mutant("align.placement:_with_totals", second, aligned("totals")),
    # align: estimators
    Mutant(
        "align.sequences:_from_chunk",
        refused(Method.SEQUENCE, "no place fits"),
        aligned("drift-of-no-host-same-run"),
    ),
    Mutant("align.sequences:_judged", refused(Method.SEQUENCE, "no place fits"), aligned("two-processes")),
    Mutant("align.sequences:_with_ends", third, ONE_HOST),
    Mutant("align.sequences:_of_one_run", third, aligned("guess")),
    Mutant("align.matching:possible", nothing, aligned("guess")),
    Mutant("align.matching:_narrowed", third, aligned("guess")),
    Mutant("align.candidates:lines_of", no_clocks_fit, aligned("stepped-clock-forward")),
    Mutant("align.geometry:hidden_step", given(0.0), ONE_HOST),
    Mutant("align.activity:_judged", refused(Method.ACTIVITY, "no overlap"), aligned("counters")),
    Mutant("align.activity:_rivals", empty, aligned("periodic-samples")),
    Mutant(
        "align.sampling_gaps:align_interruptions",
        refused(Method.SAMPLING_GAPS, "nothing is avoided"),
        aligned("samples"),
    ),
    Mutant("align.sampling_gaps:_too_good", nothing, ("tests/align/test_sampling_gaps.py",)),
    Mutant("align.launches:align_launches", refused(Method.LAUNCHES, "no place fits"), aligned("launches")),
    Mutant("align.duration_layout:with_durations", second, aligned("no-times")),
    Mutant("align.duration_layout:_tried", empty, aligned("no-times")),
    Mutant("align.durations:_verdict", given((Verdict.AMBIGUOUS, "no place fits")), aligned("no-times-same-run")),
    # align: hosts and ranks
    Mutant("align.collective_hosts:with_hosts_related", first, aligned("hosts")),
    Mutant("align.collective_hosts:_with_hosts_related", first, aligned("hosts")),
    Mutant("align.collective_hosts:_island", given(PlacedHosts()), aligned("hosts")),
    Mutant("align.host_clocks:lines_of_hosts", equal_lines, aligned("hosts-apart")),
    Mutant("align.host_clocks:ends_of_two", given(EndsOfTwo(Ends.OF_ONE_JOB, 0.0, 0.0)), aligned("ranks-of-two-jobs")),
    Mutant("align.collectives:_recorded", given(Occurrences.none()), aligned("hosts")),
    Mutant("align.devices:skews_of", lambda _original, inputs: [{} for _ in inputs.traces], aligned("device-skew")),
    Mutant("align.devices:allowed_for", second, aligned("device-skew")),
    Mutant("align.devices:with_device_bounds", first, ("tests/answers/test_ranks.py",)),
    Mutant("align.collectives:check_of_ranks", empty, aligned("rank-ahead")),
    Mutant("align.collectives:_contradictions", empty, aligned("rank-ahead")),
    Mutant("align.collectives:_Hint._are_right", given(False), aligned("rank-ahead")),
    # align: checks, warnings, receipts
    Mutant("align.containment:with_others_apart", second, aligned("two-processes")),
    Mutant("align.containment:_of_others", nothing, aligned("two-processes")),
    Mutant("align.causality:causality", given(Causality(())), aligned("early-work-by-user")),
    Mutant("align.causality:believed", first, aligned("steep-clock")),
    Mutant("align.causality:_flows", empty, aligned("copy")),
    Mutant("align.causality:_launches", empty, aligned("early-work-by-user")),
    Mutant("align.causality:_inside", empty, aligned("two-processes")),
    Mutant("align.containment:check_of_calls", empty, aligned("steep-clock")),
    Mutant("align.containment:_contradiction", nothing, aligned("steep-clock")),
    Mutant("align.containment:_fits_elsewhere", nothing, aligned("stepped-log")),
    Mutant("align.containment:_outside_of_all", nothing, aligned("steep-clock")),
    Mutant("align.containment:_belong_elsewhere", nothing, aligned("stepped-log-without-statement")),
    Mutant("align.placement:warnings_of_jobs", empty, aligned("jobs-of-other-sizes")),
    Mutant("align.placement:warnings_of_no_overlap", empty, aligned("zone-without-overlap")),
    Mutant("align.placement:warnings_of_unnamed_hosts", empty, aligned("hosts-unnamed")),
    Mutant("align.placement:_hint", nothing, aligned("zone-without-overlap")),
    Mutant("align.identity:identified", nothing_together, aligned("three-tools")),
    Mutant("align.identity:_strays", empty, aligned("three-tools")),
    Mutant("align.receipt:receipt_line", with_arguments(p4=()), aligned("early-work-by-user")),
    Mutant(
        "align:_warnings",
        lambda _original, _traces, inputs, *_args: {one.key: [] for one in inputs.clocks},
        aligned("early-work-by-user"),
    ),
    Mutant(
        "align:_alignment",
        lambda original, *args: structs.replace(original(*args), pairs=[]),
        aligned("copy-not-stated"),
    ),
    Mutant("align.report:_pair", given({}), aligned("launches")),
    Mutant("align.clock_overview:survey", survey_of_nothing, aligned("hosts")),
    # merging
    Mutant("merging.traces:_with_moved_times", first, aligned("other-pid")),
    Mutant("merging.traces:_on_trace_time", first, aligned("other-pid")),
    Mutant("merging.traces:_with_doubts", first, golden("merge/log-at-the-best-place")),
    Mutant("merging.traces:_described", lambda _original, trace, _receipt: trace.tracks, aligned("hosts")),
    Mutant("merging.processes:put_together", first, golden("merge/kineto-onednn-perf")),
    Mutant("merging.processes:set_apart", first, aligned("two-processes")),
    Mutant("merging.processes:_Moves._share", nothing, golden("merge/kineto-onednn-perf")),
    Mutant("merging.processes:with_ranks_named", first, golden("merge/gloo-ranks")),
    Mutant("merging.processes:_in_tree_order", first, golden("merge/gloo-ranks")),
    Mutant("merging.processes:join_totals", list_of_first, golden("merge/nsight")),
    Mutant("merging.processes:adopt_totals", first, golden("merge/table-with-its-run")),
    Mutant(
        "merging.processes:_join", lambda _original, totals, host, _category: (totals, host), golden("merge/nsight")
    ),
    Mutant("merging.traces:with_collective_flows", first, aligned("hosts")),
    # writers
    Mutant("families.perfetto.tree:Tree.descriptors", empty, shown("pytorch-kineto/cuda-streams")),
    Mutant("families.perfetto.tree:Tree._group", given(b""), MEMORY),
    Mutant("families.perfetto.tree:Tree._process_field", given(b""), KERNELS),
    Mutant("families.perfetto.arrangement:Arrangement._late_names", nothing, KERNELS),
    Mutant("families.perfetto.arrangement:Arrangement._group_counters", nothing, MEMORY),
    Mutant("families.perfetto.writer:SamplePackets.packets", each_empty(1), SAMPLES),
    Mutant("families.perfetto.writer:_flow_fields", no_flows, KERNELS),
    Mutant("families.chrome.writer:_Writing._parts", empty, KERNELS),
    Mutant("families.chrome.writer:_Writing._order", empty, KERNELS),
    Mutant("families.chrome.writer:_Writing._naming", empty, KERNELS),
    Mutant("families.chrome.writer:_Writing._stack_frames", empty, golden("merge/kineto-onednn-perf")),
    Mutant("families.chrome.writer:_Writing._samples", each_empty(1), golden("merge/kineto-onednn-perf")),
    # answers
    Mutant("answers.operations:operations", changed(rows=[]), SECTIONS),
    Mutant("answers.operations:_outermost", all_of(2), SECTIONS),
    Mutant("answers.steps:steps", changed(rows=[]), SECTIONS),
    Mutant("answers.summaries:memory", changed(rows=[]), ("tests/answers/test_memory.py",)),
    Mutant("answers.device_time:device", changed(rows=[]), SECTIONS),
    Mutant("answers.operations:primitives", changed(rows=[]), ("tests/answers/test_primitives.py",)),
    Mutant("answers.summaries:logs", changed(rows=[]), ("tests/answers/test_logs.py",)),
    Mutant("answers.device_work:kernels", changed(rows=[]), ("tests/answers/test_device_work.py",)),
    Mutant("answers.step_parts:step_parts", changed(rows=[]), ("tests/answers/test_step_parts.py",)),
    Mutant("answers.step_parts:step_kernels", changed(rows=[]), ("tests/answers/test_step_parts.py",)),
    Mutant("answers.steps:step_differences", changed(rows=[]), ("tests/answers/test_step_parts.py",)),
    Mutant("answers.flops:flops", changed(rows=[]), ("tests/answers/test_flops.py",)),
)


def main(names: Sequence[str]) -> int:
    numbers = [at for at, mutant in enumerate(MUTANTS) if not names or any(name in mutant.target for name in names)]
    failed = 0
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
        for number, ended in zip(numbers, pool.imap(outcome, numbers), strict=True):
            failed += ended.startswith((LIVES, CRASHES))
            print(f"{MUTANTS[number].target:48} {ended}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
