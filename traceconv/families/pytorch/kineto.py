"""Traces of the PyTorch profiler (Kineto): `prof.export_chrome_trace(...)`, `*.pt.trace.json`.

    {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}], "host_name": "node7",
     "displayTimeUnit": "ms", "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [
      {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 31, "tid": 31, "ts": 4388431254.040, "dur": 12.5},
      {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 4388431259.120, "dur": 9.1, "args": {}},
      {"ph": "f", "id": 9, "pid": 0, "tid": 7, "ts": 4388431259.120, "cat": "ac2g", "name": "ac2g", "bp": "e"}

Source: the source (libkineto/src/output_json.cpp, ActivityType.h) and recordings of torch 2.13, and of torch 2.11 with
CUDA, which does not write `host_name`. Since torch 2.4 times count from `baseTimeNanoseconds`, before that from 1970,
in whole microseconds up to 2.3. What ran on a device carries the number of the device as pid and the stream as tid,
which may also be those of a process and a thread; only the category tells. "Spans", "Traces", "GPU 0 Counters" and -1
(overhead of the profiler) are not processes either. Flow ids are unique only within their category. Ends of flows may
come before their starts, or alone, if the launch was not recorded. Calls that start no work (`cudaStreamIsCapturing`,
`cudaEventRecord`) have one end of a flow at the call itself. On devices, ranges of the program start 1 ns before their
first kernel and end 1 ns after their last one.

Slices that are collectives of torch.distributed:

    {"cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "args": {
      "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",
      "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Seq": 7}}
    {"cat": "user_annotation", "name": "gloo:all_reduce", "args": {"Input Dims": [[65536]]}}

Two kinds of slices last from the entry to the exit of a process: kernels of NCCL, RCCL and HCCL, which spin on the
device until all have entered, and the annotations of gloo around its work. Host calls (`c10d::allreduce_`,
`record_param_comms`, `nccl:all_reduce`) return earlier, and gloo:recv ends before the data has arrived.

A kernel names the other side of a message ("Src Rank", "Dst Rank"). The root of a broadcast, scatter, reduce or gather
is the "Rank", counted in the group, of the `record_param_comms` with its "External id"; of other operations this is the
rank itself. `Seq` counts collectives and, apart from these, messages to all others of a group.

Source: the source of Kineto (libkineto/src/output_json.cpp; pull requests 821, 880, 906, 1294, 1296, 1440), where the
args were added one by one since torch 2.2, recordings of torch 2.11 with NCCL 2.28, whose kernels have all of the above
but `Seq`, and of torch 2.15 with gloo. torch 2.11 calls all_to_all_single "all_to_allv", with "In split size" and "Out
split size": "[]" if all parts are equal. Kernels of coalesced calls have none of these args. Those that replay a CUDA
graph had none either; since 2026 (torch/cuda, annotations of graphs) they may have those of the capture, with its
`Seq`. Lists of more than 30 ranks are cut: 29 of them, "...", and the last one; `distributedInfo` has all.

Windows builds before 2023 write paths without escapes (`torch\\nn\\modules`), which JSON reads as control characters.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw, structs

from traceconv.families.chrome import document
from traceconv.families.chrome.document import begins_as_of_viztracer, is_of_viztracer
from traceconv.families.chrome.event import Event, Rows, members_of, text_of
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents, pid_and_tid
from traceconv.families.chrome.flows import FlowSteps
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.common import cupti, torch_ranges
from traceconv.families.common.collective_kernels import kind_of_kernel
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.columns import occurring
from traceconv.model.diagnostics import METADATA, absent, repaired
from traceconv.model.marks import (
    EXCHANGES,
    GPU_FLOWS,
    GPU_LAUNCHES,
    NOT_COMPUTED,
    AllocationMarks,
    CountMarks,
    FlopMarks,
    FormatMarks,
)
from traceconv.model.numbers import decode_json, whole_of
from traceconv.model.source_info import Layer
from traceconv.model.stated_collectives import ONE_SIDED, CollectiveArgs, Collectives, Group, parse_ranks
from traceconv.model.track_table import Track, TrackId, TrackKind

HALF_FLOW = absent(
    "kineto.half_flow",
    "a flow has only one end, since the call started no work, or the other end was not recorded: not drawn",
)
BACKSLASHES = repaired(
    "kineto.backslashes",
    "names of Python functions hold control characters: they were read as the backslashes of Windows paths",
)

#: Between the zero of the file and the wall clock. Times are readings of the time stamp counter of the CPU, converted
#: by readings of both at the ends of the recording. Against clock readings inside of its annotations, a recording of
#: torch 2.13 was off by something between -7.8 and +12.3 us; this is that with a margin. Events do not refine clocks
#: that are known so well (`WELL_KNOWN_NS`).
_BOUND_NS = 20_000
#: What Kineto and the profiler of PyTorch write above the events about libraries, and the options that are set.
_VERSIONS = (
    "cuda_runtime_version",
    "cuda_driver_version",
    "cupti_version",
    "hip_runtime_version",
    "hip_driver_version",
)
_OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_METHOD = "baseTimeNanoseconds of the file, from a CPU counter that follows the wall clock to 20 µs"

#: The categories of device work.
_DEVICE_WORK = (*GPU_LAUNCHES.work, "cuda_sync", "xpu_sync")
_DEVICE_MARKS = ("gpu_user_annotation", "cuda_event", "cuda_profiler_range")
_ON_DEVICE = frozenset((*_DEVICE_WORK, *_DEVICE_MARKS))
#: By the signatures in PyTorch's native_functions.yaml (2.9). Calls that hold others of these do not count.
_FLOPS = FlopMarks(
    "Input Dims",
    {
        **dict.fromkeys(
            (*("aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot"), "aten::_scaled_mm", "aten::_int_mm"),
            ("product", (0,)),
        ),
        **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addmv", "aten::_addmm_activation"), ("product", (1,))),
        "aten::addbmm": ("product", (1, 1)),
        "aten::_flash_attention_forward": ("attention", (8, 2)),
        "aten::_flash_attention_backward": ("attention", (11, 2, 1)),
        "aten::_scaled_dot_product_flash_attention": ("attention", (4, 1)),
        "aten::_scaled_dot_product_flash_attention_backward": ("attention", (11, 1, 1)),
        "aten::_scaled_dot_product_flash_attention_for_cpu": ("attention", (4, 1)),
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward": ("attention", (7, 1, 1)),
        "aten::_scaled_dot_product_cudnn_attention": ("attention", (6, 1)),
        "aten::_scaled_dot_product_cudnn_attention_backward": ("attention", (14, 1, 1)),
        "aten::_scaled_dot_product_efficient_attention": ("attention", (6, 1)),
        "aten::_scaled_dot_product_efficient_attention_backward": ("attention", (11, 1, 1)),
        "aten::_efficient_attention_forward": ("efficient_attention", (9,)),
        "aten::_efficient_attention_backward": ("efficient_attention", (14, 1)),
        **dict.fromkeys(("aten::convolution", "aten::_convolution"), ("convolution", (4, 3, 5, 6))),
        "aten::cudnn_convolution": ("convolution", (2, 3, 4)),
        **dict.fromkeys(("aten::mkldnn_convolution", "aten::miopen_convolution"), ("convolution", (3, 4, 5))),
        "aten::convolution_backward": ("convolution_backward", (7, 10)),
        **dict.fromkeys(
            (
                *("aten::linear", "aten::matmul", "aten::einsum", "aten::tensordot", "aten::bilinear"),
                *("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::_convolution_mode"),
                *("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"),
                *("aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose"),
                *("aten::cudnn_convolution_relu", "aten::cudnn_convolution_add_relu", "aten::mkldnn_linear"),
                *("aten::_grouped_mm", "aten::_scaled_grouped_mm", "aten::_scaled_mm_v2"),
                *("aten::_weight_int4pack_mm", "aten::_weight_int8pack_mm", "aten::_cslt_sparse_mm"),
                *("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math"),
                "aten::_scaled_dot_product_fused_attention_overrideable",
            ),
            NOT_COMPUTED,
        ),
    },
    {
        "float": ("float32", 4),
        "double": ("float64", 8),
        "c10::BFloat16": ("bfloat16", 2),
        "c10::Half": ("float16", 2),
        "c10::Float8_e4m3fn": ("float8_e4m3fn", 1),
        "c10::Float8_e5m2": ("float8_e5m2", 1),
        "c10::Float8_e4m3fnuz": ("float8_e4m3fnuz", 1),
        "signed char": ("int8", 1),
        "int": ("int32", 4),
    },
    types="Input type",
    inputs="Concrete Inputs",
    how="record_shapes=True of the profiler records them",
)
#: With the calls of Kineto in 2021 (torch 1.8 and 1.9).
_LAUNCHES = structs.replace(GPU_LAUNCHES, calls=(*GPU_LAUNCHES.calls, "Runtime"))
#: The categories of host threads: a pid with such events is a process, whatever its label.
_ON_HOST = frozenset(
    (
        *("cpu_op", "python_function", "user_annotation", "cpu_instant_event", "Operator"),
        *_LAUNCHES.calls,
    )
)
#: Flows that end at device work.
_LAUNCH_FLOWS = frozenset(("ac2g", "async_cpu_to_gpu", "async_gpu", "async"))
_TRACK_METADATA = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")
_DEVICE_PID = "(device) "
_HOST_LABEL = "CPU"
_DEVICE_LABEL = re.compile(r"[A-Za-z]+ (\d+)")
_THREAD_NAME = re.compile(r"thread (\d+) \((.*)\)")

_MEMORY = ("[memory]", "[OutOfMemory]")
_MEMORY_SERIES = ("Total Allocated", "Total Reserved")
_MEMORY_HELP = "memory that the allocator of PyTorch in this process holds on this device"
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
#: c10::DeviceType; the numbers are stable.
_DEVICE_TYPES = {0: "CPU", 1: "GPU", 6: "GPU", 12: "XPU", 13: "MPS", 15: "HPU", 19: "MTIA", 20: "PrivateUse1"}

_TENSORFLOW = b'"highres-ticks"'
_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|cuda_runtime|gpu_memcpy|user_annotation|python_function|ac2g|async_cpu_to_gpu|async_gpu|'
    rb'fwdbwd|Operator|Runtime|Kernel|Memcpy|Memset)"'
)
#: Args of Kineto; in lower case: before torch 1.9.
_KEYS = (b'"traceName"', b'"External id"', b'"external id"', b'"Ev Idx"')


_ARGS = CollectiveArgs(
    kind="Collective name",
    ranks="Process Group Ranks",
    group="Process Group Name",
    about="Process Group Description",
    group_size="Group size",
    seq="Seq",
    sizes=("In msg nelems", "Out msg nelems", "dtype", "Input Dims", "Input type"),
    parts=("In split size", "Out split size"),
    source="Src Rank",
    target="Dst Rank",
    call="External id",
    root="Rank",
)
_CALL = "record_param_comms"
#: The names of ProcessGroupNCCL.
_KIND_OF_TEXT = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "_allgather_base": "all_gather",
    "allgather_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "all_to_all",
    "barrier": "barrier",
    **{kind: kind for kind in ONE_SIDED},
}
#: Parts of an all_to_allv may be empty, so that nobody waits for their senders; not if all are equal.
_KIND_OF_EQUAL_PARTS = {"all_to_allv": "all_to_all"}
_GLOO = {
    "gloo:all_reduce": "all_reduce",
    "gloo:all_gather": "all_gather",
    "gloo:_allgather_base": "all_gather",
    "gloo:reduce_scatter": "reduce_scatter",
    "gloo:barrier": "barrier",
}
#: Larger jobs do not list the members of groups.
_MOST_RANKS = 1_000_000
_OF_GLOO = ("user_annotation",)
_OF_DEVICES = ("kernel", "Kernel", "mtia_ccp_events")


@dataclass(frozen=True)
class PytorchKineto(Importer):
    name = "pytorch-kineto"
    title = "PyTorch profiler (Kineto) trace"
    url = "https://docs.pytorch.org/docs/stable/profiler.html"
    versions = "torch 1.9 and later; CPU, CUDA, ROCm, XPU, MTIA, MLU, PrivateUse1"
    signature = Signature('"schemaversion" | "tracename" | "external id" | "ev idx"')
    clock = ClockDomain("PyTorch profiler time", Zero.UNKNOWN, Run.WALL, 1)
    layer = Layer.FRAMEWORK
    record = "with torch.profiler.profile() as prof: ...; prof.export_chrome_trace(FILE)"
    skips = (EMPTY_EVENT,)

    line_up = "Nothing is needed: baseTimeNanoseconds (torch 2.4+) or microseconds since 1970 put it on the wall clock."
    with_perf = (
        "# In run.py: as above, with 'kineto.json' as FILE. In a terminal:\n"
        "perf record -k CLOCK_MONOTONIC -F 999 -g -o perf.data -- python -X perf run.py\n"
        "traceconv report kineto.json perf.data -O symbols=true --same-machine --section layers"
    )
    becomes = (
        ("CPU operators, runtime calls, python functions, annotations", "slices on their threads"),
        ("kernels, copies, memsets", "slices on the streams of their device, lanes where they overlap"),
        ("ranges of the program on a device", "slices on a row above their stream"),
        ("ac2g, async_cpu_to_gpu, async_gpu, async, fwdbwd, critical_path", "flows, on threads and streams"),
        (
            "launches, also of graphs",
            "a flow to each kernel from the call with its `correlation`, also if other calls start in the same µs",
        ),
        ("memory", "counters in bytes, for each device"),
        ("utilization of the GPU", "counters"),
        ("schedule, GPU and host properties", "metadata"),
        (
            "host, rank and world size",
            "receipt, labels of the process; the rank also in the names of its devices; in a merge of ranks the names "
            "of the processes, their order, and the devices below them",
        ),
        ("kernels of NCCL, RCCL and HCCL, annotations of gloo", "also checked against those of other ranks in a merge"),
    )
    lost = (
        "Flows with one recorded end, as of calls that start no work, are not drawn.",
        "Events whose times or starts could not be collected (ts 0) are counted, not drawn.",
    )
    marks = FormatMarks(
        _LAUNCHES,
        GPU_FLOWS,
        libraries=r"libtorch|torch_cpu|torch_cuda|libc10|/torch/lib/",
        shapes=("Input Dims", "Input dims"),
        steps=r"ProfilerStep#\d+",
        asides=("Trace", "gpu_user_annotation", "overhead"),
        memory=r"Total (?:Allocated|Reserved) \(.*\)",
        counts=CountMarks(
            ("cuda_profiler_range",),
            r"(?=\w+?__\w)\w++\.sum|kineto__\w+",
            others=cupti.NO_COUNTS,
        ),
        unmeasured="|".join((*_ON_DEVICE, r"\w+_(?:runtime|driver)", "Runtime")),
        early_at_zero=True,
        operators=(torch_ranges.OPERATOR, "Operator"),
        modules=r"nn\.Module: (?P<module>(?P<class>.+?)(?:_\d+)?)",
        exchanges=EXCHANGES,
        ranges=("user_annotation",),
        waits=r"synchronize(?:Stream)?",  # of MTIA
        backward=torch_ranges.BACKWARD,
        flops=(_FLOPS,),
        allocations=AllocationMarks(
            r"\[memory\]", "Bytes", "Addr", ("Device Type", "Device Id"), devices=_DEVICE_TYPES
        ),
        environment={
            "host": ("host_name",),
            "device": ("deviceProperties", "name"),
            "backend": ("distributedInfo", "backend"),
            "ranks": ("distributedInfo", "world_size"),
        }
        | {fact: (fact,) for fact in (*_VERSIONS, *_OPTIONS)},
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the head that Kineto writes, or by its categories and args."""
        text = head.text
        if text[:1] not in (b"{", b"["):
            return Match.no("does not begin with { or [")
        has_schema = b'"schemaVersion"' in text and (b'"deviceProperties"' in text or b'"traceEvents"' in text)
        has_args = any(key in text for key in _KEYS)
        if not has_schema and not (has_args and _CATEGORY.search(text)):
            return Match.no("no schemaVersion, and no categories of Kineto")
        # viztracer removes schemaVersion from traces of torch that it takes over, so the last bytes are not needed then
        viztracers = begins_as_of_viztracer if has_schema else is_of_viztracer
        if _TENSORFLOW in text or viztracers(head):
            return Match.no("written by viztracer or TensorFlow")
        return Match.yes(
            "schemaVersion with deviceProperties or traceEvents" if has_schema else "categories and args of Kineto"
        )

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        out.info.real_ids = True
        reader = ChromeReader(source, out)
        events = KinetoEvents(out)
        events.add_all(reader)
        top = document.top_level(reader, out)
        document.add_top_level_samples(top, events)
        events.finish(top.get("stackFrames"))
        job = _top(reader, "distributedInfo")
        if isinstance(job, dict):
            out.info.rank, out.info.world_size = _whole(job.get("rank")), _whole(job.get("world_size"))
        _declare_collectives(out, job)
        events.name_tracks(_device_names(reader), out.info.rank)
        self._set_clock(top, out)

    def _set_clock(self, top: dict[str, Any], out: Builder) -> None:
        """Set the clock: times count from 1970, or from the base that the file states."""
        machine = top.get("host_name")
        ts, dur = out.tables.slice_columns("ts", "dur")
        whole = len(ts) > 0 and not np.any(ts % 1000)
        domain = structs.replace(
            self.clock,
            machine=machine if isinstance(machine, str) else "",
            resolution_ns=1000 if whole else 1,
            exact_durations=bool(whole and np.any(dur % 1000)),
        )
        document.set_clock(top, out, domain, bound_ns=_BOUND_NS, method=_METHOD)


def _top(reader: ChromeReader, key: str) -> Any:
    """Return a top-level value, however large it is."""
    return decode_json(bytes(reader.top[key])) if key in reader.top else None


def _device_names(reader: ChromeReader) -> dict[str, str]:
    """Return the names of the devices by number."""
    devices = _top(reader, "deviceProperties")
    if not isinstance(devices, list):
        return {}
    known = [device for device in devices if isinstance(device, dict) and device.get("name") and "id" in device]
    return {str(device["id"]): str(device["name"]) for device in known}


def _whole(value: Any) -> int | None:
    """Return a rank or a number of ranks, also if it is a text; None for other values."""
    if isinstance(value, str):
        value = whole_of(value)
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
    return value if good else None


class _Allocation(msgspec.Struct):
    """The args of an instant of the allocator that become counters."""

    device_type: int = msgspec.field(name="Device Type", default=0)
    device_id: int = msgspec.field(name="Device Id", default=-1)
    allocated: _Int64 | None = msgspec.field(name="Total Allocated", default=None)
    reserved: _Int64 | None = msgspec.field(name="Total Reserved", default=None)


_decode_allocations = msgspec.json.Decoder(list[_Allocation]).decode


class KinetoEvents(ChromeEvents):
    watched_names = frozenset(_MEMORY)

    def __init__(self, out: Builder) -> None:
        super().__init__(out)
        self._metadata: list[tuple[str, bytes, bytes, Any]] = []
        self.flows = FlowSteps(unpaired=HALF_FLOW)
        self._flow_threads: dict[tuple[bytes, bytes, bool], int] = {}  # placeholders
        self._host_pids: set[bytes] = set()
        self._plain_memory_tracks: dict[tuple[bytes, int, int], list[TrackId | None]] = {}  # by series
        self._memory_values = array("q")  # plain instants: track, ts, value, number of the event
        self._memory_tracks: dict[tuple[TrackId, str], TrackId] = {}

    def prepare(self, event: Event) -> None:
        """Give events of devices a pid of their own, so that no process shares it."""
        if event.cat in _ON_DEVICE:
            event.pid = Raw(_device_pid(bytes(event.pid)))
        elif event.cat in _ON_HOST:
            self._host_pids.add(bytes(event.pid))
        if event.cat == "python_function" and (name := document.misread_backslashes(event.name)) != event.name:
            self.out.problem(BACKSLASHES, repr(event.name))
            event.name = name

    def track_of(self, pid: bytes, tid: bytes, category: str, flow: str) -> int:
        """Return the track of an event; a placeholder for a step of a flow, whose place is known at the end."""
        if category in _ON_HOST:
            self._host_pids.add(pid)
        if flow:
            key = pid, tid, flow == "f" and category in _LAUNCH_FLOWS
            if key not in self._flow_threads:
                self._flow_threads[key] = self.flows.placeholder()
            return self._flow_threads[key]
        return self.thread(_device_pid(pid) if category in _ON_DEVICE else pid, tid)

    def rows_to_leave(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Leave flows and async events whose category is that of work on devices, to `prepare`."""
        chosen = np.isin(rows.phase, list(b"stfbenSF"))
        name_of = rows.scanner.name
        on_device = [text for text in occurring(rows.category[chosen]) if name_of(text) in _ON_DEVICE]
        chosen &= np.isin(rows.category, on_device)
        return chosen

    # -- tracks -----------------------------------------------------------------------------------------------

    def new_process(self, pid: int | str) -> TrackId:
        """Declare a process of the host, or a device or other thing that has a pid in the file."""
        if isinstance(pid, int) and pid >= 0:
            return self.out.tracks.process(pid=pid)
        if isinstance(pid, int):
            return self.out.tracks.add("Profiler overhead")
        return self.out.tracks.add(
            pid.replace(_DEVICE_PID, "GPU ", 1) if pid.startswith(_DEVICE_PID) else pid or "Trace"
        )

    def new_thread(self, process: TrackId, pid: int | str, tid: int | str) -> TrackId:
        """Declare a thread of the host, a stream of a device, or a row of the profiler about itself."""
        if self.out.tracks[process].kind is TrackKind.PROCESS:
            return super().new_thread(process, pid, tid)
        if isinstance(pid, int):
            return process if tid == 0 else self.out.tracks.add(f"thread {tid}", process)
        if not pid.startswith(_DEVICE_PID):
            return self.out.tracks.add(str(tid), process)
        return self.out.tracks.add(
            tid if isinstance(tid, str) and tid.startswith("stream ") else f"stream {tid}", process
        )

    # -- events -----------------------------------------------------------------------------------------------

    def metadata(self, event: Event, number: int) -> None:
        """Read M: names are given once all tracks are known; those of devices without events have no track."""
        if event.name not in _TRACK_METADATA:
            super().metadata(event, number)
            return
        self.out.balance.merged[METADATA] += 1
        values = list(members_of(event).values())
        self._metadata.append((event.name, bytes(event.pid), bytes(event.tid), values[0] if values else None))

    def instant(self, event: Event, ts: int, number: int) -> None:
        """Read i: an instant; one of the allocator also holds counter values."""
        super().instant(event, ts, number)
        if event.name in _MEMORY:
            self._memory(bytes(event.pid), members_of(event), ts, number)

    def watch(self, pids: list[bytes], ts: list[int], args: list[bytes], numbers: list[int]) -> None:
        """Keep instants of the allocator, in columns, since there may be many."""
        try:
            allocations = _decode_allocations(b"[%b]" % b",".join(args))
        except msgspec.ValidationError:
            if len(args) == 1:
                self._memory(pids[0], decode_json(args[0]), ts[0], numbers[0])
                return
            for row in zip(pids, ts, args, numbers, strict=True):
                self.watch(*([value] for value in row))  # type: ignore[arg-type]
            return
        values: list[int] = []
        for pid, at, memory, number in zip(pids, ts, allocations, numbers, strict=True):
            key = pid, memory.device_type, memory.device_id
            tracks = self._plain_memory_tracks.get(key)
            if tracks is None:
                tracks = self._plain_memory_tracks[key] = [None] * len(_MEMORY_SERIES)
            for series, value in enumerate((memory.allocated, memory.reserved)):
                if value is not None:
                    track = tracks[series]
                    if track is None:
                        track = tracks[series] = self._memory_track(*key, _MEMORY_SERIES[series])
                    values += (track, at, value, number)
        self._memory_values.extend(values)

    def _memory(self, pid: bytes, args: dict[str, Any], ts: int, number: int) -> None:
        kind, index = args.get("Device Type", 0), args.get("Device Id", -1)
        for series in _MEMORY_SERIES:
            value = args.get(series)
            if isinstance(value, int):
                self.out.counter(self._memory_track(pid, kind, index, series), ts, value, number)

    def _memory_track(self, pid: bytes, kind: Any, index: Any, series: str) -> TrackId:
        device = _DEVICE_TYPES.get(kind, f"device type {kind}") if isinstance(kind, int) else str(kind)
        name = f"{series} ({device} {index})" if index != -1 else f"{series} ({device})"
        process = self.process(pid)
        track = self._memory_tracks.get((process, name))
        if track is None:
            track = self.out.tracks.counter(name, process, unit="bytes", description=_MEMORY_HELP)
            self._memory_tracks[process, name] = track
        return track

    # -- the end ----------------------------------------------------------------------------------------------

    def finish(self, frames: dict[str, Any] | None = None) -> None:
        """Put the steps of flows on the threads or streams of that pid and tid, then finish as usual.

        Where there are both, the end of a launch belongs to the stream, any other step to the thread.
        """
        for (pid, tid, is_launched), placeholder in self._flow_threads.items():
            host, device = self.known_thread(pid, tid), self.known_thread(_device_pid(pid), tid)
            first, second = (device, host) if is_launched else (host, device)
            known = second if first is None else first
            self.flows.settle(placeholder, self.thread(pid, tid) if known is None else known)
        values = np.array(self._memory_values, np.int64).reshape(-1, 4).T.copy()
        self.out.bulk.counters(
            values[0].astype(np.int32), values[1], values[2], np.ones(len(values[0]), np.uint8), values[3]
        )
        super().finish(frames)

    def name_tracks(self, devices: dict[str, str], rank: int | None) -> None:
        """Set names, labels and order of the tracks, by the names of devices by number and the rank in a job."""
        self._devices_by_label()
        for kind, pid, tid, value in self._metadata:
            device = _device_pid(pid)
            for place in (pid, device):
                track = self.known_thread(place, tid)
                if kind.startswith("thread") and track is not None:
                    self._name_thread(kind, tid, self.out.tracks[track], value)
                elif kind.startswith("process") and place in self._processes:
                    self._name_process(kind, place, value)
        for pid, process in self._processes.items():
            self._complete_process(text_of(pid), process, devices, rank)

    def _devices_by_label(self) -> None:
        """Turn each pid that is labelled as a device, and has no events of host threads, into a device."""
        labels: defaultdict[bytes, list[Any]] = defaultdict(list)
        for kind, pid, _, value in self._metadata:
            if kind == "process_labels" and pid in self._processes and pid not in self._host_pids:
                labels[pid].append(value)
        devices = {pid for pid, of_pid in labels.items() if self._is_device_by_label(pid, of_pid)}
        for pid in devices:
            track = self.out.tracks[self._processes[pid]]
            track.kind, track.pid, track.name = TrackKind.TRACK, None, str(labels[pid][-1])
        for key, thread in self._threads.items():
            pid, tid = pid_and_tid(key)
            if pid in devices:
                row = self.out.tracks[TrackId(thread)]
                row.kind, row.tid, row.name = TrackKind.TRACK, None, f"stream {text_of(tid)}"

    def _is_device_by_label(self, pid: bytes, labels: list[Any]) -> bool:
        match = _DEVICE_LABEL.fullmatch(str(labels[-1]))
        return match is not None and match[1] == text_of(pid) and _HOST_LABEL not in labels

    def _name_process(self, kind: str, pid: bytes, value: Any) -> None:
        """Keep a name, label or index, for the process or the device that it is about; both may have the same pid."""
        track = self.out.tracks[self._processes[pid]]
        is_process = track.kind is TrackKind.PROCESS
        is_device = not is_process and (pid.isdigit() or text_of(pid).startswith(_DEVICE_PID))
        if kind == "process_sort_index" and isinstance(value, int):
            # Devices come below the processes: of two indexes the smaller one is that of the process.
            track.rank = min(track.rank or value, value) if is_process else max(track.rank or value, value)
        elif kind == "process_labels" and is_device and value != _HOST_LABEL:
            track.name = str(value or track.name)
        elif kind == "process_labels" and is_process and value and not _DEVICE_LABEL.fullmatch(str(value)):
            track.labels = (str(value),)
        elif kind == "process_name" and not is_device:
            track.name = str(value or track.name)

    def _name_thread(self, kind: str, tid: bytes, track: Track, value: Any) -> None:
        if kind == "thread_sort_index":
            track.rank = value if isinstance(value, int) else None
            return
        name = str(value or "").strip()
        match = _THREAD_NAME.fullmatch(name)
        if track.kind is TrackKind.THREAD and not name.startswith("stream "):
            track.name = match[2] if match and match[1] == text_of(tid) else name
        elif track.kind is TrackKind.TRACK and match is None and name:
            track.name = name

    def _complete_process(self, pid: str, track_id: TrackId, devices: dict[str, str], rank: int | None) -> None:
        """Add the top-level information to a process or a device."""
        track = self.out.tracks[track_id]
        if track.kind is TrackKind.PROCESS:
            track.labels += (f"rank {rank}",) if rank is not None else ()
            return
        number = pid.removeprefix(_DEVICE_PID)
        if number in devices:
            track.name += f" ({devices[number]})"
        if rank is not None:
            track.name_in_rank = track.name
            track.name += f", rank {rank}"


def _device_pid(pid: bytes) -> bytes:
    """Return the placeholder pid of a device, as JSON; pids of processes are never texts."""
    return pid if pid[:1] == b'"' else msgspec.json.encode(f"{_DEVICE_PID}{pid.decode('utf-8', 'replace')}")


# -- collectives -------------------------------------------------------------------------------------------------------


def _declare_collectives(out: Builder, info: Any) -> None:
    """Declare the collectives, once all names and the place in the job are known; `info` is `distributedInfo`."""
    names = out.tables.strings()
    kinds = _kinds(names)
    if kinds:
        size = out.info.world_size
        world = None if size is None or size > _MOST_RANKS else tuple(range(size))
        groups, only = _groups(info, world)
        calls = [(names.index(_CALL), names.index("cpu_op"))] if {_CALL, "cpu_op"} <= {*names} else ()
        out.collectives = Collectives(kinds, _ARGS, _KIND_OF_TEXT, _KIND_OF_EQUAL_PARTS, groups, only, world, calls)


def _kinds(names: Sequence[str]) -> dict[tuple[int, int], str]:
    """Return the operation by interned name and category."""
    number_of = {name: number for number, name in enumerate(names) if name in (*_OF_GLOO, *_OF_DEVICES)}
    kinds: dict[tuple[int, int], str] = {}
    for number, name in enumerate(names):
        kind, categories = (_GLOO[name], _OF_GLOO) if name in _GLOO else (kind_of_kernel(name), _OF_DEVICES)
        if kind is not None:
            kinds |= {(number, number_of[category]): kind for category in categories if category in number_of}
    return kinds


def _groups(info: Any, world: Group | None) -> tuple[dict[str, Group], Group | None]:
    """Return the ranks of each group by name (by default its number), and those of the only group if there is one."""
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups: dict[str, Group] = {}
    for group in listed if isinstance(listed, list) else ():
        if isinstance(group, dict):
            ranks = parse_ranks(group.get("ranks"))
            ranks = world if world and not ranks and group.get("pg_size") == len(world) else ranks
            if ranks:
                groups[str(group.get("pg_name"))] = ranks
    count = info.get("pg_count") if isinstance(info, dict) else None
    # Two processes have only one group with both.
    made = sorted(groups, key=lambda name: (not name.isdecimal(), len(name), name))  # numbers by their size
    return {name: groups[name] for name in made}, world if count == 1 or (world and len(world) == 2) else None
