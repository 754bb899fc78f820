"""Which operator, shape, module and range launched the work of devices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.answers.test_sections import Events, kineto
from tests.answers.test_step_parts import at_ns
from tests.golden import ROOT
from tests.make_xplane import START, Plane
from traceconv.align.receipt import Aligned
from traceconv.answers import Questions, answers
from traceconv.answers.device_work import kernels
from traceconv.answers.figures import figures
from traceconv.answers.operations import KEYS, NO_OPERATOR, operations, waits
from traceconv.answers.slice_tables import SliceTable
from traceconv.api import convert, read

RECORDED = ("cuda-graph", "cuda-stacks-memory", "cuda-streams", "nccl-rank0")
OWN = Path(__file__).parent.parent / "data" / "own_tables" / "torch_cuda.json.gz"


def check_sums(table: SliceTable) -> None:
    """Check that all device work is in the rows of operations, once each, whatever they are grouped by."""
    of_kernels = kernels(table).records()
    whole, count = sum(row["total_ns"] for row in of_kernels), sum(row["count"] for row in of_kernels)
    for by in (*((key,) for key in KEYS), ("name", "shape"), ("module", "range", "thread")):
        rows = operations(table, by).records()
        assert sum(row["device_ns"] or 0 for row in rows) == whole, by
        assert sum(row["kernels"] or 0 for row in rows) == count, by
        if whole:
            assert sum(row["device_share"] or 0 for row in rows) == pytest.approx(1)
        assert len({tuple(row[key] for key in by) for row in rows}) == len(rows), by
        assert all(row["device_busy_ns"] is None or row["device_busy_ns"] <= row["device_ns"] for row in rows)


@pytest.mark.parametrize("case", [*RECORDED, "own"])
def test_rows_add_up_to_all_kernels(case: str, tmp_path: Path) -> None:
    path = OWN if case == "own" else ROOT / "pytorch-kineto" / case / "input.json"
    check_sums(SliceTable(read(path)))
    convert(path, tmp_path / "again.pftrace")
    check_sums(SliceTable(read(tmp_path / "again.pftrace")))


def test_a_graph_is_of_its_launch() -> None:
    rows = {
        row["name"]: row
        for row in operations(SliceTable(read(ROOT / "pytorch-kineto" / "cuda-graph" / "input.json"))).records()
    }
    assert (rows["cudaGraphLaunch"]["kernels"], rows["cudaGraphLaunch"]["count"]) == (108, 4)
    assert NO_OPERATOR not in rows


#: The name, what is inside, and the kernels that are launched directly in it: how many by each call, and their length.
TREE = st.recursive(
    st.just([]),
    lambda inner: st.lists(
        st.tuples(
            st.sampled_from(["aten::a", "aten::b", "nn.Module: Linear_0", "nn.Module: Linear_1", "## range ##"]),
            inner,
            st.lists(st.tuples(st.integers(1, 3), st.integers(1, 20)), max_size=2),
        ),
        max_size=2,
    ),
    max_leaves=5,
)
CATEGORIES = {"aten": "cpu_op", "nn.M": "python_function", "## r": "user_annotation"}


class Made:
    """The events of a tree, and the device time by operator, module and range, as the tree has it."""

    def __init__(self, tree: list[Any]) -> None:
        self.events: Events = []
        self.sums: dict[str, Counter[str]] = {"name": Counter(), "module": Counter(), "range": Counter()}
        self.at, self.correlation = 0, 0
        # Where there is no operator at all, whatever is around a launch counts as one.
        self.operators = "aten" if "aten::" in repr(tree) else ""
        self._draw(tree, "", "", "")

    def _draw(self, tree: list[Any], operator: str, module: str, range_: str) -> None:
        for name, inner, calls in tree:
            around = (
                name if name.startswith(self.operators) else operator,
                name.removeprefix("nn.Module: ") if name.startswith("nn.") else module,
                name if name.startswith("##") else range_,
            )
            start = self.at
            self.at += 1
            for count, length in calls:
                self._launch(count, length, *around)
            self._draw(inner, *around)
            self.at += 1
            self.events.append(at_ns(name, start, self.at - start, cat=CATEGORIES[name[:4]]))

    def _launch(self, count: int, length: int, operator: str, module: str, range_: str) -> None:
        self.correlation += 1
        same = {"correlation": self.correlation}
        self.events.append(at_ns("cudaLaunchKernel", self.at, 2, cat="cuda_runtime", args=same))
        self.at += 3
        for one in range(count):  # as nodes of a graph, on streams of their own
            stream = 1000 * self.correlation + one
            args = {"device": 0, "stream": stream} | same
            self.events.append(at_ns("gemm", self.at, length, cat="kernel", pid=0, tid=stream, args=args))
        for key, text in (("name", operator or "cudaLaunchKernel"), ("module", module), ("range", range_)):
            self.sums[key][text] += count * length


@settings(max_examples=60)
@given(TREE, st.integers(0, 9))
def test_device_time_is_that_of_what_launched_it(
    tmp_path_factory: pytest.TempPathFactory, tree: list[Any], alone: int
) -> None:
    made = Made(tree)
    if alone:
        made.events.append(at_ns("early", 0, alone, cat="kernel", pid=0, tid=5, args={"device": 0, "stream": 5}))
    table = kineto(tmp_path_factory.mktemp("work") / "a.json", made.events)
    check_sums(table)
    for key, sums in made.sums.items():
        rows = operations(table, (key,)).records()
        expected = dict(sums) | ({NO_OPERATOR: alone} if alone else {})
        assert {row[key]: row["device_ns"] for row in rows if row["device_ns"]} == expected


def test_backward_operators_are_of_the_module_of_their_forward_operator(tmp_path: Path) -> None:
    def launch(number: int, at: int, tid: int) -> Events:
        args = {"device": 0, "stream": 7, "correlation": number}
        return [
            at_ns("cudaLaunchKernel", at, 10, cat="cuda_runtime", tid=tid, args={"correlation": number}),
            at_ns(f"gemm_{number}", 5_000 + 200 * number, 100 + number, cat="kernel", pid=0, tid=7, args=args),
        ]

    events: Events = []
    for number, module in enumerate(("Linear_0", "Linear_1")):
        at = 1000 * number
        events += [
            at_ns(f"nn.Module: {module}", at, 900, cat="python_function"),
            at_ns("## forward ##", at + 10, 800, cat="user_annotation"),
            at_ns(
                "aten::addmm",
                at + 100,
                500,
                args={"Sequence number": number} | ({"Fwd thread id": 0} if number else {}),
            ),
            *launch(number + 1, at + 200, 1),
        ]
        back = {"Sequence number": number, "Fwd thread id": 1}
        events += [
            at_ns("autograd::engine::evaluate_function: AddmmBackward0", 3000 - at, 500, tid=2, args=back),
            at_ns("AddmmBackward0", 3010 - at, 400, tid=2, args=back),
            at_ns("aten::mm", 3020 - at, 300, tid=2),
            *launch(number + 3, 3050 - at, 2),
        ]
    events += [at_ns("aten::mul", 4000, 100, tid=2, args={"Sequence number": 77, "Fwd thread id": 1})]
    events += launch(5, 4010, 2)
    table = kineto(tmp_path / "a.json", events)
    found = {row["module"]: row["device_ns"] for row in operations(table, ("module",)).records()}
    assert found == {"Linear_0": 101 + 103, "Linear_1": 102 + 104, "": 105}
    (plot,) = figures(operations(table, ("module",)))
    assert [bar.label for bar in plot.bars] == ["Linear_1", "Linear_0", "(no module)"]
    by_class = {row["class"]: row["device_ns"] for row in operations(table, ("class",)).records()}
    assert by_class == {"Linear": 101 + 103 + 102 + 104, "": 105}
    by_both = {
        (row["module"], row["name"]): row["device_ns"] for row in operations(table, ("module", "name")).records()
    }
    assert by_both["Linear_0", "aten::addmm"] == 101
    assert by_both["Linear_0", "aten::mm"] == 103
    ranges = {row["range"]: row["device_ns"] for row in operations(table, ("range",)).records()}
    assert ranges == {"## forward ##": 101 + 102 + 103 + 104, "": 105}
    assert {row["name"]: row["device_ns"] for row in operations(table).records()}["aten::mm"] == 207
    check_sums(table)


@pytest.mark.parametrize(("numbers", "linked"), [((10, 10), True), ((10, 10), False), ((10, 11), False)])
def test_backward_operators_are_those_of_their_thread(numbers: tuple[int, int], linked: bool, tmp_path: Path) -> None:
    """Threads 3 and 4 count their operators from the same number, and thread 2 computes both gradients."""
    events: Events = []
    for thread, module in enumerate(("Linear_0", "Conv2d_0"), 1):
        sequence, begin, back = {"Sequence number": numbers[thread - 1]}, 100 * thread, 1000 * thread
        events += [
            at_ns(f"nn.Module: {module}", begin, 80, cat="python_function", tid=2 + thread),
            at_ns("aten::mm", begin + 10, 50, tid=2 + thread, args=sequence | {"Fwd thread id": 0}),
            at_ns(f"{module}Backward", back, 100, tid=2, args=sequence | {"Fwd thread id": thread}),
        ]
        flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": thread}
        starts = at_ns("fwdbwd", begin + 10, 0, tid=2 + thread) | flow | {"ph": "s"}
        ends = at_ns("fwdbwd", back, 0, tid=2) | flow | {"ph": "f", "bp": "e"}
        events += [starts, ends] if linked else []
    rows = operations(kineto(tmp_path / "a.json", events), ("module", "name")).records()
    known = linked or len({*numbers}) == 2
    assert {row["name"]: row["module"] for row in rows if row["name"].endswith("Backward")} == {
        f"{module}Backward": module if known else "" for module in ("Linear_0", "Conv2d_0")
    }


def test_kernels_have_shares_of_their_sum_and_what_launched_most_of_them() -> None:
    table = SliceTable(read(ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"))
    rows = {row["name"]: row for row in kernels(table).records()}
    assert rows["sgemm_128x128"]["kernel_share"] == 40 / 86
    assert (rows["sgemm_128x128"]["kind"], rows["sgemm_128x128"]["operator"]) == ("computation", "aten::mm")
    assert rows["Memcpy HtoD (Pageable -> Device)"]["kind"] == "copy"
    assert rows["launched before the recording"]["operator"] == ""
    assert sum(row["kernel_share"] for row in rows.values()) == pytest.approx(1)


def test_what_calls_outside_of_operators_launched_is_of_no_operator() -> None:
    rows = operations(SliceTable(read(ROOT / "pytorch-kineto" / "cuda-graph" / "input.json"))).records()
    launched = {row["name"]: row for row in rows if row["device_ns"]}
    assert launched["cudaGraphLaunch"]["no_operator_ns"] == launched["cudaGraphLaunch"]["device_ns"]
    assert {row["no_operator_ns"] for name, row in launched.items() if name.startswith("aten::")} == {0}
    of_work = SliceTable(read(ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"))
    unknown = {row["name"]: row for row in operations(of_work).records()}["(no operator)"]
    assert unknown["no_operator_ns"] == unknown["device_ns"]


def test_a_window_and_a_condition_leave_the_sums_of_what_is_left() -> None:
    trace = read(OWN)
    for between in ("ProfilerStep#3", "2ms..5ms", "ProfilerStep#2..4"):
        found = {one.name: one.records() for one in answers(trace, Aligned(), Questions(between=between))}
        whole = sum(row["total_ns"] for row in found["kernels"])
        assert sum(row["device_ns"] or 0 for row in found["operations"]) == whole
    plain = {row["name"]: row for row in operations(SliceTable(trace)).records()}
    asked = Questions(["operations"], where="name=aten::addmm", sort="device")
    (section,) = answers(trace, Aligned(), asked)
    (row,) = section.records()
    assert (row["device_ns"], row["kernels"]) == (plain["aten::addmm"]["device_ns"], plain["aten::addmm"]["kernels"])
    by_input = [row["device_ns"] for row in operations(SliceTable(trace), ("input",)).records() if row["device_ns"]]
    assert sum(by_input) == sum(row["device_ns"] or 0 for row in plain.values())


@pytest.mark.parametrize("case", RECORDED)
def test_waits_steps_and_kernels_are_no_operations(case: str) -> None:
    table = SliceTable(read(ROOT / "pytorch-kineto" / case / "input.json"))
    names = {row["name"] for row in operations(table).records()}
    others = {row["name"] for row in waits(table).records()} | {row["name"] for row in kernels(table).records()}
    assert not names & others
    assert not any(name.startswith("ProfilerStep#") for name in names)
    named = replace(table, step_name="aten::.*")
    assert not any(row["name"].startswith("aten::") for row in operations(named).records() if row["count"])


def test_ranges_around_operators_are_rows_by_range_only(tmp_path: Path) -> None:
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    ranges = (("## forward ##", 0), ("## forward ##", 1000), ("gloo:all_reduce", 2000), ("epoch", 3000), (loader, 4000))
    events = [at_ns(name, start, 900, cat="user_annotation") for name, start in ranges]
    events += [at_ns("## block ##", 3100, 700, cat="user_annotation")]
    events += [at_ns("aten::mm", start, 300) for start in (100, 3200, 4100)]
    table = kineto(tmp_path / "a.json", events)
    section = operations(table)
    assert {row["name"]: row["self_ns"] for row in section.records()} == {
        "aten::mm": 900,
        "gloo:all_reduce": 900,
        loader: 600,
    }
    assert "left out: 4 slices that are ranges around operators; see --by range" in section.notes
    notes = operations(kineto(tmp_path / "b.json", [events[0], *events[-3:]])).notes
    assert "left out: 1 slice that is a range around operators; see --by range" in notes
    by_range = {row["range"]: row["total_ns"] for row in operations(table, ("range",)).records()}
    assert by_range == {"## forward ##": 1800, "gloo:all_reduce": 900, "epoch": 900, "## block ##": 700, loader: 900}


def test_ranges_are_operations_where_no_operators_are_recorded(tmp_path: Path) -> None:
    events = [at_ns("## forward ##", 0, 900, cat="user_annotation")]
    events += [at_ns("## block ##", 100, 500, cat="user_annotation")]
    rows = operations(kineto(tmp_path / "a.json", events)).records()
    assert {row["name"]: row["self_ns"] for row in rows} == {"## forward ##": 400, "## block ##": 500}


def test_ranges_of_mxnet_are_around_the_operators_that_start_meanwhile() -> None:
    """Tasks, frames and events of the user are on tracks of their own; a task has the category that the user chose."""
    ranges = {"my event", "frame", "load, batch"}
    table = SliceTable(read(ROOT / "mxnet" / "user-objects-quotes" / "input.json"))
    section = operations(table)
    assert not ranges & {row["name"] for row in section.records()}
    assert "left out: 6 slices that are ranges around operators; see --by range" in section.notes
    by_range = {(row["range"], row["name"]) for row in operations(table, ("range", "name")).records()}
    assert {of_range for of_range, _ in by_range} == ranges
    assert ("my event", "Convolution") in by_range
    alone = operations(SliceTable(read(ROOT / "mxnet" / "markers-and-frames" / "input.json"))).records()
    assert {row["name"] for row in alone} == {"frame", "task", "event"}, "no operator tells what ran"


#: The count, the total and the device time of the ranges of recordings without operators of PyTorch.
OF_NSIGHT = {
    "h100_2023": {"round N": (5, 4196375, 4469229)},
    "session": {"forward": (2, 24000, 31000), "step 0": (1, 101000, 9192), "cublasSgemm": (1, 4000, 20000)},
}


@pytest.mark.parametrize("case", OF_NSIGHT)
def test_ranges_around_calls_are_operations_where_no_operators_are_recorded(case: str) -> None:
    section = operations(SliceTable(read(ROOT / "nsight-systems" / case / "input.sqlite")))
    rows = [row for row in section.records() if row["kernels"] and row["name"] != NO_OPERATOR]
    assert {row["name"]: (row["count"], row["total_ns"], row["device_ns"]) for row in rows} == OF_NSIGHT[case]
    assert not any("ranges around operators" in note for note in section.notes)


def test_operators_of_pytorch_as_ranges_of_nsight(tmp_path: Path) -> None:
    path = ROOT / "nsight-systems" / "emit_nvtx" / "input.sqlite"
    convert(path, tmp_path / "again.pftrace")
    for table in (SliceTable(read(path)), SliceTable(read(tmp_path / "again.pftrace"))):
        check_sums(table)
        launched = {row["name"]: row["device_ns"] for row in operations(table).records() if row["device_ns"]}
        assert launched == {"aten::addmm": 4000, "aten::mm": 2000, "AddmmBackward0": 1000, "cudaLaunchKernel": 300}
        by_range = {row["range"]: row["device_ns"] for row in operations(table, ("range",)).records()}
        assert by_range["## forward, loss ##"] == 7000
        assert by_range["Optimizer.step#SGD.step"] == 300, "a range of record_function"


def test_copies_of_xla_are_told_by_their_args(tmp_path: Path) -> None:
    """ROCm names them as its tools do; a kernel may have such a name."""
    gpu = Plane("/device:GPU:0")
    details = {"memcpy_details": "&kind:Unknown size:655360 dest:2 async:1"}
    copies = [
        gpu.event(name, at * 1_000_000, 900_000, **details) for at, name in enumerate(("CopyDeviceToDevice", "a"))
    ]
    gpu.line("Stream #8(MemcpyOther)", START, *copies, gpu.event("CopyKernel", 3_000_000, 900_000))
    (tmp_path / "a.xplane.pb").write_bytes(gpu.bytes())
    convert(tmp_path / "a.xplane.pb", tmp_path / "own.pftrace")
    for name in ("a.xplane.pb", "own.pftrace"):
        kinds = {row["name"]: row["kind"] for row in kernels(SliceTable(read(tmp_path / name))).records()}
        assert kinds == {"CopyDeviceToDevice": "copy", "a": "copy", "CopyKernel": "computation"}
