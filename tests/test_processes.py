"""One thing is drawn once: what several inputs say of one process and thread stands on one track, whatever order."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import permutations
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from tests import oracle
from tests.golden import ROOT, Case
from tests.oracle.fixtures import OpenTrace
from traceconv.align import Policy, align
from traceconv.align.constraints import Constraints
from traceconv.align.identity import Why
from traceconv.api import merge, read
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain
from traceconv.model.layout import lay_out, validate
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, TrackKind

HOST = replace(REALTIME, machine="vm")
KINETO, ONEDNN, PERF, MXNET, DNNL = (
    ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json",
    ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log",
    ROOT / "perf-script" / "torch-convnet-process" / "input.txt",
    ROOT / "mxnet" / "mxnet-dnnl-process" / "input.json",
    ROOT / "onednn-verbose" / "mxnet-dnnl-process" / "input.log",
)


def merged(*traces: Trace, same_machine: bool = False) -> Trace:
    result = merge_traces(traces, align(traces, constraints=Constraints(same_machine=same_machine)))
    validate(result)
    before: Counter[str] = sum((Counter(trace.counts()) for trace in traces), Counter())
    assert Counter(result.counts()) == before
    return result


def path(trace: Trace, track: int) -> tuple[str, ...]:
    """What a track is below: pid or tid where it has one, else its name."""
    names: list[str] = []
    while track != NO_TRACK:
        one = trace.tracks[track]
        number = one.pid if one.kind is TrackKind.PROCESS else one.tid
        names.insert(0, one.name if number is None else str(number))
        track = one.parent
    return tuple(names)


def shown(trace: Trace) -> dict[tuple[str, ...], dict[str, int]]:
    """How many events of which kind are where."""
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for name, table in trace.timed_tables():
        for track, count in Counter(table.track.tolist()).items():
            at = found.setdefault(path(trace, track), {})
            at[name] = at.get(name, 0) + count
    return found


# -- by hand --------------------------------------------------------------------------------------------------------


def profile(name: str = "a", clock: ClockDomain = HOST, pid: int = 7, tid: int = 8) -> Trace:
    out = Builder(SourceInfo(name, "profile", real_ids=True), clock)
    out.slice(out.tracks.thread(out.tracks.process("python", pid=pid), tid), 100, 50, "layer")
    return lay_out(out.finish())


def threads_only(name: str = "p", *tids: int, at: int = 120, states: bool = False) -> Trace:
    """Samples of threads of which the file does not say the process, with a track of states below each."""
    out = Builder(SourceInfo(name, "perf", real_ids=True, several_at_once=True), HOST)
    process = out.tracks.process("threads seen by perf")
    out.tracks[process].unknown = True
    for tid in tids or (8,):
        thread = out.tracks.thread(process, tid, f"comm {tid}")
        out.sample(thread, at, out.frame("f"), "cycles")
        if states:
            out.slice(out.tracks.add("state", thread), at, 5, "Running")
    return lay_out(out.finish())


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_samples_of_a_thread_are_on_the_track_of_its_slices(order: tuple[int, ...]) -> None:
    traces = [profile(), threads_only("p", 8, 9, states=True)]
    assert shown(merged(*(traces[at] for at in order))) == {
        ("7", "8"): {"slices": 1, "samples": 1},
        ("7", "8", "state"): {"slices": 1},
        ("threads seen by perf", "9"): {"samples": 1},
        ("threads seen by perf", "9", "state"): {"slices": 1},
    }


def test_what_has_no_name_gets_that_of_the_other_file() -> None:
    result = merged(profile(), threads_only())
    assert [track.name for track in result.tracks] == ["python", "comm 8"]
    unnamed = profile("b")
    unnamed.tracks[0].name, unnamed.sources[0].format = "", "other"
    assert [track.name for track in merged(unnamed, profile()).tracks if track.pid] == ["python"]


def test_the_main_thread_comes_to_its_process_though_no_other_file_shows_it() -> None:
    assert ("7", "7") in shown(merged(profile(), threads_only("p", 7)))


def test_nothing_is_left_of_unknown_processes_whose_threads_are_all_known() -> None:
    assert [track.kind for track in merged(profile(), threads_only()).tracks] == [TrackKind.PROCESS, TrackKind.THREAD]


def log_of_thread(at: int, name: str = "l") -> Trace:
    """A log with a duration that crosses the layer."""
    out = Builder(SourceInfo(name, "log", real_ids=True, several_at_once=True), HOST)
    process = out.tracks.process(name)
    out.tracks[process].unknown = True
    thread = out.tracks.thread(process, 8)
    out.log(thread, at, "done")
    out.slice(thread, at - 60, 60, "step", lasts := "duration")
    out.slice(thread, at - 10, 5, "small", lasts)
    return lay_out(out.finish())


def test_slices_that_cross_go_beside_and_entries_of_logs_do_not() -> None:
    assert shown(merged(profile(), log_of_thread(at=170))) == {
        ("7", "8"): {"slices": 1, "logs": 1},
        ("7", "8", "log: thread 8"): {"slices": 2},
    }
    assert shown(merged(profile(), log_of_thread(at=300))) == {("7", "8"): {"slices": 3, "logs": 1}}


def test_threads_of_unknown_processes_are_one_by_their_number() -> None:
    result = merged(threads_only("p"), log_of_thread(at=130))
    assert shown(result) == {("threads seen by perf", "8"): {"slices": 2, "samples": 1, "logs": 1}}


def test_ranks_and_containers_stay_apart() -> None:
    ranks = [profile("a"), profile("b", replace(REALTIME, machine="vm"), pid=7)]
    for number, trace in enumerate(ranks):
        trace.sources[0].rank = number
    found = align([*ranks, threads_only()]).together
    assert [one.why for one in found.identities] == [Why.RANKS, Why.SEVERAL]
    both = merged(*ranks, threads_only())
    assert [track.kind for track in both.tracks].count(TrackKind.PROCESS) == 3
    assert [int(track) for track in both.samples.track] == [5]
    containers = [profile("a", replace(REALTIME, machine="c1")), threads_only()]
    assert ("threads seen by perf", "8") in shown(merged(*containers))
    assert shown(merged(*containers, same_machine=True)) == {("7", "8"): {"slices": 1, "samples": 1}}


def test_the_output_says_what_is_one_and_why() -> None:
    result = merged(profile(), threads_only())
    (line,) = result.metadata["processes"]
    assert line["words"] == "pid 7: one process in a and p (thread 8): both are from host vm"
    assert "processes" not in merged(profile(), profile("b", pid=9)).metadata


# -- real recordings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_profile_its_log_and_its_samples_are_one_process(order: tuple[int, ...]) -> None:
    traces = [read((KINETO, ONEDNN, PERF)[at]) for at in order]
    found = shown(merged(*traces))
    assert found["26046", "26046"] == {"slices": 616, "samples": 29}
    assert found["26046", "oneDNN", "cpu"] == {"slices": 100}
    assert found["threads seen by perf", "26049"] == {"samples": 7}  # only perf knows it, and not its process
    assert {name for name, *_ in found} == {"26046", "threads seen by perf", "Spans", "Global events"}


def test_an_mxnet_profile_and_its_log_are_one_process() -> None:
    for files in ((MXNET, DNNL), (DNNL, MXNET)):
        result = merged(*(read(file) for file in files))
        tops = [track for track in result.tracks if track.parent == NO_TRACK]
        assert [(track.kind, track.name) for track in tops] == [(TrackKind.PROCESS, "MXNet")]


def test_a_log_laid_into_the_slices_of_a_profile_is_of_its_process() -> None:
    case = Case(ROOT / "merge" / "log-without-times")
    traces = case.traces(Path())
    alignment = align(traces, policy=Policy(**case.about["policy"]))
    assert [str(one.why) for one in alignment.together.identities] == ["calls inside slices of the process"]
    result = merge_traces(traces, alignment)
    assert [track.name for track in result.tracks if track.parent == NO_TRACK] == ["MXNet"]


def test_glog_names_machine_and_threads(tmp_path: Path) -> None:
    """The thread of a line of glog is that of the operating system; its header names the host."""
    file = tmp_path / "run.log"
    file.write_text(
        "Log file created at: 2026/11/21 07:17:36\nRunning on machine: vm\n"
        "I1121 07:17:37.260000 26046 file.cc:77] step\nI1121 07:17:37.270000 26046 file.cc:77] step\n"
    )
    log = read(file, options={"utc_offset": "UTC"})
    assert log.clocks[0].machine == "vm"
    assert shown(merged(read(KINETO), log))["26046", "26046"] == {"slices": 616, "logs": 2}


def test_the_reports_list_processes(tmp_path: Path) -> None:
    for_programs, page = tmp_path / "report.json", tmp_path / "report.html"
    merge([KINETO, ONEDNN, PERF], tmp_path / "out.pftrace", report=[for_programs, page])
    report = json.loads(for_programs.read_text(encoding="utf-8"))
    schema = Path(__file__).parent.parent / "schemas" / "alignment.schema.json"
    jsonschema.validate(report, json.loads(schema.read_text(encoding="utf-8")))
    assert [(line["one"], line["by"], line["tids"]) for line in report["processes"]] == [
        (True, "tid", [26046]),
        (True, "only process that can have written it", []),
        (False, "no input tells the process", [26049]),
    ]
    for line in report["processes"]:
        assert line["words"] in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("case", "real"),
    [
        ("pytorch-kineto/torch-convnet-process", True),
        ("onnxruntime/v1.31-perf-process", True),
        ("viztracer/functions", True),
        ("perf-script/torch-convnet-process", True),
        ("perf-data/call_chains", True),
        ("timed-log/logcat", True),
        ("chrome-trace/epoch", False),
        ("tensorflow-profiler/cut", False),
    ],
)
def test_whose_numbers_are_those_of_the_operating_system(case: str, real: bool, tmp_path: Path) -> None:
    """What any program writes as a Chrome trace has any numbers."""
    (trace,) = Case(ROOT / case).traces(tmp_path)
    assert trace.sources[0].real_ids is real


# -- what people ask ------------------------------------------------------------------------------------------------


def sql_of_the_guide() -> str:
    text = (Path(__file__).parent.parent / "docs" / "aligning.md").read_text(encoding="utf-8")
    return re.search(r"SQL:\n\n((?:    .*\n)+)", text)[1]  # type: ignore[index]


INSIDE_A_LAYER = """
    select slice.name as layer, count(*) as samples
    from slice
    join thread_track on slice.track_id = thread_track.id
    join perf_sample on perf_sample.utid = thread_track.utid
    where perf_sample.ts >= slice.ts and perf_sample.ts < slice.ts + slice.dur and perf_sample.callsite_id is not null
    group by layer order by layer
"""


def test_what_ran_inside_a_layer_can_be_asked(trace_processor: OpenTrace, tmp_path: Path) -> None:
    """The samples of perf are on the thread of the profiler's slices, so that SQL joins them by the thread."""
    output = tmp_path / "out.pftrace"
    trace = merge([KINETO, ONEDNN, PERF], output).trace
    slices, samples = trace.slices, trace.samples
    expected: Counter[str] = Counter()
    for track, ts in zip(samples.track.tolist(), samples.ts.tolist(), strict=True):
        around = (slices.track == track) & (slices.ts <= ts) & (ts < slices.ts + slices.dur)
        expected.update(trace.strings[name] for name in slices.name[around].tolist())
    assert sum(expected.values()) >= 3
    with trace_processor(output) as tp:
        assert oracle.import_problems(tp) == []
        rows = oracle.rows(tp, INSIDE_A_LAYER)
        assert {str(row["layer"]): int(str(row["samples"])) for row in rows} == expected
        by_frame = [list(row.values()) for row in oracle.rows(tp, sql_of_the_guide())]
        assert Counter(name for name, _, count in by_frame for _ in range(int(str(count)))) == expected
        threads = oracle.rows(tp, "select upid, count(*) as n from thread where tid = 26046 and upid is not null")
        assert [row["n"] for row in threads] == [1]
        processes = oracle.rows(tp, "select count(*) as n from process where pid = 26046")
        assert [row["n"] for row in processes] == [1]
