"""Pictures of what a user sees first: every golden merge and a case of each format, in the real Perfetto UI.

    python -m tests.gallery             # all of docs/gallery.md and docs/gallery/
    python -m tests.gallery vtune nsight

Each command of the page is run as it stands there, and its output opened with `traceconv open`. This needs what
`tests.ui.shot` needs, no network, and some minutes. Look at each picture that changed before you keep it.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.golden import ROOT, Case
from tests.ui.opened import Opened
from tests.ui.shot import shot

PROJECT = ROOT.parent
PAGE = PROJECT / "docs" / "gallery.md"
PICTURES = PROJECT / "docs" / "gallery"
#: As high as the screen of a small laptop shows: the UI takes 350 of these pixels for a flame graph.
SIZE = (1200, 800)

#: What the pictures of the merges show.
MERGES = {
    "kineto-onednn": "A PyTorch profile and the oneDNN log of its process: the primitives that operators ran.",
    "kineto-onednn-perf": "The same with the samples of `perf`, whose start-up is outside of the window.",
    "attributed": "A profile with samples of another file: what slices cost as args, counters and flame graphs.",
    "gloo-ranks": "Two ranks of a job: a process for each, with the rank, the host and the program.",
    "mxnet-dnnl": "An MXNet profile and the DNNL log of its process, both on the wall clock.",
    "log-without-times": "The same, but the log has no times: each primitive is put inside its operator.",
    "by-offset": "An MXNet profile and an MKL-DNN log at an offset that the user states.",
    "log-at-the-best-place": "A log that fits in several positions, at the best of them; its process name says so.",
    "log-separate": "The same, beside the profile and not aligned, as the name of its process says.",
    "nccl-ranks": "Two ranks of NCCL: calls, streams and collectives of each, on one clock.",
    "nsight": "Nsight Systems, with the metrics of Nsight Compute as args of its kernels.",
    "nvprof-summary": "A database of nvprof, with the printed summary of its program in the same process.",
    "table-with-its-run": "A PyTorch profile, with the table of its run in the same process.",
    "trimmed": "A window of a PyTorch profile, with the whole slices that cross its edges.",
    "two-recordings": "Two PyTorch profiles of different runs, minutes apart: the window is the longer one.",
}
#: Of each format the case that is shown, and what the picture shows.
FORMATS = {
    "pytorch-kineto": ("cuda-streams", "Calls on threads, kernels and copies on the streams of two GPUs, and flows."),
    "pytorch-table": ("memory-and-flops", "A table has no times: its rows are instants in order, with totals as args."),
    "onnxruntime": ("v1.6-parallel", "Nodes of a model on the threads of a pool, inside the run of the session."),
    "openvino": ("detailed", "Layers of two infer requests, one after the other."),
    "tensorrt": ("times", "Two inferences that overlap: copies in, compute, copies out."),
    "xplane": ("tensorflow-2.18", "Threads of a TensorFlow process, from its XSpace."),
    "tensorflow-profiler": ("jax", "A JAX program on the CPU, as exported for its trace viewer."),
    "tvm-debugger": ("two-ranks", "Ops of two processes that wrote into one log."),
    "tvm-execution-trace": ("alone", "The run of a graph, op by op."),
    "tvm-graph": ("object", "Nodes of a graph in order: it has no times."),
    "tvm-output-tensors": ("outputs", "Outputs of ops in order, with their shapes: they have no times."),
    "tvm-profile": ("vm-json", "Calls of the Relay VM, with the allocations between the kernels."),
    "onednn-verbose": ("v2-threads-ts", "Primitives of two threads at once, with their times."),
    "deepsparse": ("v030-threads", "Two engines: phases of the compilation, then calls, on two threads."),
    "mxnet": ("mxnet-dnnl-process", "Operators, calls of the C API and memory."),
    "mxnet-table": ("v1.9-user-objects", "A table of totals, by its sections."),
    "nsight-systems": ("h100_metrics", "Streams of an H100, unified memory, NVTX ranges, and GPU metrics."),
    "nsight-compute": ("raw", "Kernels in the order of their launch, with their metrics as args."),
    "nvprof": ("streams-and-ranges", "Two streams and ranges of NVTX."),
    "nvprof-text": ("both-traces", "The printed traces of the API and of the GPU, with a flow."),
    "rocprof": ("sdk", "Calls, kernels and copies of ROCprofiler-SDK, with markers."),
    "furiosa": ("two-queries", "Two queries on two processing elements."),
    "furiosa-table": ("csv", "The same from the data frame, saved as CSV."),
    "perf-data": ("call_chains", "Samples with call chains; the UI shows the flame graph of the process."),
    "perf-script": ("switch_records", "States of threads from the records of context switches."),
    "perf-stat": ("text_intervals", "Counters over time, from `perf stat -I`."),
    "perf-json": ("call_stacks", "Samples with call stacks, from `perf data convert`."),
    "perf-report": ("three_events_with_counts", "Shares of symbols for three events: a table, which has no times."),
    "perf-header": ("monotonic", "Headers only: the machine and its clocks, and no events."),
    "vtune": ("timeline_threads_german", "The timeline report by thread, of a German Windows."),
    "chrome-trace": ("async-nestable", "Asynchronous slices that nest and overlap."),
    "perfetto": ("own-output", "A trace of traceconv, read and written again."),
    "viztracer": ("functions", "Calls of Python functions."),
    "timed-log": ("json-arrivals", "Lines of a log at their times."),
    "clock-anchor": ("around-command", "Readings of clocks before and after a command, and the command."),
}
#: What the merges state besides the files.
STATED = {
    "attributed": "--same-machine --layer-counters",
    "by-offset": "--offset {1}=+1795245461050843000ns",
    "log-at-the-best-place": "--on-ambiguous best",
    "log-separate": "--on-ambiguous separate",
    "log-without-times": "--same-run",
    "trimmed": "--trim 20us..45us",
}


@dataclass(frozen=True)
class Picture:
    """One picture of the page."""

    name: str
    text: str
    command: str

    @property
    def path(self) -> Path:
        return PICTURES / f"{self.name}.webp"

    def merged(self) -> str:
        return f"### {self.name}\n\n{self.text}\n\n    {self.command}\n\n{self.shown}"

    def converted(self) -> str:
        """The section of a format, whose input is named instead of the command."""
        return f"### {self.name}\n\n{self.text} `{self.command.split()[2]}`\n\n{self.shown}"

    @property
    def shown(self) -> str:
        return f"![{self.name}]({self.path.relative_to(PAGE.parent).as_posix()})"

    def take(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "out.pftrace"
            arguments = shlex.split(self.command.replace("out.pftrace", str(trace)))[1:]
            subprocess.run([sys.executable, "-m", "traceconv", *arguments, "--quiet"], cwd=PROJECT, check=True)
            with Opened(trace, "--offline") as command:
                report = shot(trace, self.path, size=SIZE, link=command.link)
        print(f"{self.path.stat().st_size:6} bytes  {self.name}", *report.problems, sep="  ", flush=True)


def input_of(case: str) -> str:
    return Case(ROOT / case).input.relative_to(PROJECT).as_posix()


def merges() -> list[Picture]:
    pictures = []
    for name, text in MERGES.items():
        files = [input_of(case) for case in Case(ROOT / "merge" / name).about["inputs"]]
        stated = STATED.get(name, "").format(*files)
        command = " ".join(filter(None, ["traceconv merge", *files, stated, "-o out.pftrace"]))
        pictures.append(Picture(name, text, command))
    return pictures


def formats() -> list[Picture]:
    return [
        Picture(format, text, f"traceconv convert {input_of(f'{format}/{case}')} -o out.pftrace")
        for format, (case, text) in FORMATS.items()
    ]


def page() -> str:
    parts = [
        "# Gallery",
        "Each picture shows what the Perfetto UI displays first, after `traceconv open` of the merge or input above "
        "it: nothing was clicked. The inputs are golden cases. `python -m tests.gallery` makes this page.",
        "## Merges",
        *(picture.merged() for picture in merges()),
        "## Formats",
        *(picture.converted() for picture in formats()),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    wanted = set(sys.argv[1:])
    PICTURES.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    for picture in [*merges(), *formats()]:
        if not wanted or picture.name in wanted:
            picture.take()


if __name__ == "__main__":
    main()
