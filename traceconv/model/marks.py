"""Declarations of a format about its slices and flows, for alignment, merging and reports.

An importer declares them as `marks`. Alignment reads them from the input, and knows no format by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv import kernel
from traceconv.model.args import MOST_KEYS, Args, arg_values
from traceconv.model.columns import I32, I64, chunks

#: Joins the name of a group to that of the only track in it in an output of traceconv, which draws no such group.
JOINT: Final = " · "


class LaunchMarks(Struct, frozen=True):
    """How to recognise host calls that launch device work, and this work.

    Attributes:
        calls: the categories of calls. A runtime call may call a driver with the same id: then that of the first
            counts.
        work: the categories of the slices of device work.
        pauses: a pattern of the names in these categories that are no work: the device waits, or notes an event.
        undivided: the categories of slices on devices whose times do not tell how long it worked: not counted.
        ids: the args that hold the correlation id of a call and its work.
        copies_work: the categories of work that only moves or sets memory.
        copies_names: a pattern of the names of such work in other categories.
        communication: a pattern of the names of work that exchanges data between ranks.
        failed: the arg that is not 0 if a call failed and launched nothing; "" if there is none.
        waits: a pattern of the names of calls that return when all work of the device is done. Calls that wait for one
            stream are not among them, since the files do not state the stream.
        copies: a pattern of the names of calls that return when their copy to the host is done.
        to_host: a pattern of the names of copies that go to the host.
    """

    calls: tuple[str, ...] = ()
    work: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    copies_work: tuple[str, ...] = ()
    communication: str = ""
    failed: str = ""
    waits: str = ""
    copies: str = ""
    to_host: str = ""
    undivided: tuple[str, ...] = ()
    pauses: str = ""
    copies_names: str = ""


class DeviceMarks(Struct, frozen=True):
    """How to recognise work of devices by its tracks.

    Attributes:
        queues: a pattern of the paths of the tracks whose slices are work, such as "GPU / stream 7".
        copies: a pattern found in the names of work that only moves or sets memory; "" if names do not tell.
        copy_args: the args that only such work has, whatever its name.
        communication: a pattern found in the names of work that exchanges data with other ranks; "" likewise.
        hosts: a pattern of the paths of the tracks with the calls that launch work; "" if there are none.
        ids: the args that hold the correlation id of a call and its work; empty if there are none.
        steps: a pattern of the paths of the tracks of devices whose slices are steps of that device alone, where hosts
            mark none; "" if there are none.
    """

    queues: str
    copies: str = ""
    copy_args: tuple[str, ...] = ()
    communication: str = ""
    hosts: str = ""
    ids: tuple[str, ...] = ()
    steps: str = ""


class PrimitiveMarks(Struct, frozen=True):
    """How to recognise calls of the primitives of a library, each of which has several implementations.

    Attributes:
        calls: the categories of the slices (and, where no duration is stated, instants) of calls. The name is the kind.
        implementation: the arg that names the implementation.
        reference: a pattern in the names of reference implementations, which are not optimised.
        reorders: a pattern of the kinds that only change the memory layout of data.
        gflop: the arg with the operations of a call, in 10^9, where they follow from the problem.
        formula: how these are counted, in words.
        problem: the arg that states the problem of a call, such as the sizes of its matrices.
        sizes: a pattern in that arg; what its group matches is shown beside the name of the call, joined by x.
        size: the arg with the bytes that a call reads and writes, where they follow from shapes and data types.
    """

    calls: tuple[str, ...]
    implementation: str
    reference: str
    reorders: str
    gflop: str
    formula: str
    problem: str
    sizes: str
    size: str


class CountMarks(Struct, frozen=True):
    """How to recognise hardware counts of single slices, or of rows of a table without times.

    Attributes:
        categories: the categories of the slices and rows that have counts.
        names: a pattern of the args that are counts, named by the counted event. Averages and shares are not counts.
        inside: the arg that holds the counts as members; "" if they are args themselves.
        layer: the arg that names the code that was counted, where rows are named by the event; else "".
        rows_are_calls: whether each row without times is about one call; else a row may sum up several.
        value, unit: the members that hold a count and its unit, where counts are objects; "" if they are numbers.
        share: the member with the per cent of the time in which such an event was counted; without it, it always was.
        others: a pattern of the args that are measured, but no counts; "" if all are counts. A note names them.
    """

    categories: tuple[str, ...]
    names: str
    inside: str = ""
    layer: str = ""
    rows_are_calls: bool = False
    value: str = ""
    unit: str = ""
    share: str = ""
    others: str = ""


class TotalsMarks(Struct, frozen=True):
    """How to read a table of sums by name; its rows are instants. Of several args, the first one that a row has counts.

    Attributes:
        calls: the args with the number of calls.
        total, self_time, mean, least, most: the args with the time of all calls, of these without the calls inside, of
            one call on average, and of the shortest and the longest one.
        single: the args with the time of the one call that a row is about.
        device_total, device_self_time: the args with the time on a device, with and without that of the calls inside.
        percent: the args with the share that the tool states, in per cent.
        peak: the args with the most memory that was held.
        unit_ns: the unit of the times, ns.
        unit_bytes: the unit of memory, bytes.
        nested: the args that only rows have which repeat a part of another row.
        inside: the arg that holds all of these as members; "" if they are args themselves.
        joined: a pattern of the names that the table sums up in one row, and the name of that row.
        as_slices: whether slices of the same run have the names and categories of the rows.
    """

    calls: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    self_time: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    single: tuple[str, ...] = ()
    device_total: tuple[str, ...] = ()
    device_self_time: tuple[str, ...] = ()
    percent: tuple[str, ...] = ()
    peak: tuple[str, ...] = ()
    unit_ns: int = 1
    unit_bytes: int = 1
    nested: tuple[str, ...] = ()
    inside: str = ""
    joined: tuple[str, str] | None = None
    as_slices: bool = False

    def name_of(self, name: str) -> str:
        """Return the name under which the table lists slices of this name."""
        return name if self.joined is None or not re.fullmatch(self.joined[0], name) else self.joined[1]


class SumMarks(Struct, frozen=True):
    """How to recognise slices that each sum up several calls, as rows of a table do.

    Their arg `calls` holds the number of calls; a slice without a positive integer there is one call.
    """

    categories: tuple[str, ...]
    calls: str


class SeveralMarks(Struct, frozen=True):
    """How to recognise slices that each stand for several calls, which the file does not state one by one.

    They are on tracks whose paths match `tracks`. If `means`, durations are means of the calls; else sums over a number
    of calls that is not stated.
    """

    tracks: str
    means: bool


class BackwardMarks(Struct, frozen=True):
    """How to find the operator whose gradient another one computes.

    Attributes:
        number: the arg with the number that both share.
        thread: the arg with the thread of the former, which only the latter has.
        names: a pattern of the names that only the latter has, where the file does not state the thread.
    """

    number: str
    thread: str
    names: str


#: The kind of calls whose work is not computed, unless other calls with work run inside.
NOT_COMPUTED: Final = ("not computed", ())


class FlopMarks(Struct, frozen=True):
    """How to tell the floating-point operations of calls from the shapes of their inputs.

    Attributes:
        shapes: the arg with the shape of each input of a call, or with an object of its type and its shape.
        kinds: by the operation of a call the kind of its work, and where its parameters are; see `answers.flops`.
        elements: the types as the format names them; the name that all formats have for each, and its bytes.
        types, inputs: the args with the type and the text of each input, if other args have them.
        outputs: the arg with the shapes of outputs, which come before those of inputs; "" if none has.
        calls: the args that each call has, the first with its operation; () if that is its name.
        how: how shapes are recorded, for messages; "" if they always are.
    """

    shapes: str
    kinds: Mapping[str, tuple[str, tuple[int, ...]]]
    elements: Mapping[str, tuple[str, int]]
    types: str = ""
    inputs: str = ""
    outputs: str = ""
    calls: tuple[str, ...] = ()
    how: str = ""


class AllocationMarks(Struct, frozen=True):
    """How to read instants at which memory is allocated or freed.

    Attributes:
        names: a pattern of their whole names.
        frees: a pattern of the names of those that free; "" if negative sizes tell.
        size: the arg with the bytes.
        address: the arg with the address of the memory.
        device: the args that name the device, or the allocator; the first one may be a number of `devices`.
        devices: the kinds of devices by number.
        operator: the arg with the operator that the memory is for; "" if the file does not state it.
        no_operator: what that arg holds where the writer knew none.
    """

    names: str
    size: str
    address: str
    device: tuple[str, ...]
    frees: str = ""
    devices: Mapping[int, str] = {}
    operator: str = ""
    no_operator: str = ""


class FormatMarks(Struct, frozen=True):
    """The declarations of a format about all its files.

    Attributes:
        launches: how to recognise launches of device work; None if there are none.
        shapes: the args that hold the shapes of what a slice works on; the first one that it has counts.
        devices: how to recognise work of devices by its tracks; None if `launches` suffices, or there is none.
        launch_flows: a pattern of the names or categories of flows from a call to the work that it launched.
        receive_flows: a pattern of the names or categories of flows from a send to its receive.
        any_tool: whether different tools write the format, so that two files of one process may hold the same events.
        reads_clocks: whether a file holds readings of the clocks of its machine, taken around the recording.
        libraries: a pattern of the library files that do the recorded work, as call stacks name them: samples in these
            files are of the same work. "" if not known.
        steps: a pattern of the names of slices that last one iteration: a training step, a run of a model. "" if the
            format marks none.
        step_args: the args that such slices have, whatever their names; if `devices` tells hosts, only slices on hosts.
        asides: categories of slices that repeat others or describe the recording itself, such as host ranges repeated
            on the device. They are drawn, but no table counts them.
        memory: a pattern of the names of counters of allocated memory, in bytes; "" if there are none.
        allocations: how to read allocations one by one; None if there are none.
        primitives: how to recognise calls of primitives; None if there are none.
        totals: how to read rows of sums; None if the file is not a table of sums.
        sums: how to recognise slices that sum up several calls; None if each slice is one.
        several: how to recognise slices that stand for several calls, where no arg holds the number of calls; None if
            there are none.
        interval_counts: a pattern of the names of counters whose values are event counts of the interval up to the next
            value; "" if there are none.
        interval_threads: a pattern, with groups `name` and `tid`, of the tracks whose counters count in one thread
            only.
        counts: how to recognise hardware counts of slices; None if there are none.
        innermost: the categories of slices that do the work which slices of the others request or wait for. On tracks
            that are not threads of the system, they are inside all others that run at the same time.
        times: a pattern of the names of sampled events that count time, in ns; "" if there are none.
        unmeasured: a pattern of the categories of slices whose start or end is 0, or 0 on another clock that the
            writer converts, if it could not measure them; "" if it measures all, or 0 is a time.
        zero_before_work: whether the zero of a clock of the format, if it is known, is before all device work and the
            calls that launch it, so that none starts there.
        early_at_zero: whether the writer writes times from before the zero of its file as 0.
        is_output: whether traceconv wrote the file: then the ranks of its inputs and the groups of collectives are
            lost.
        operators: the categories of slices that are operators of a framework: device work is of the innermost one
            around its launch. Any slice around the launch is one if the format has none of its own, or the file none of
            these.
        modules: a pattern of the names of slices that last while a module of a network runs; its groups `module` and
            `class` are the name of the module, and of its class. "" if there are none.
        spans: a pattern of the names or categories of slices that only last as long as what runs in them, and do no
            work themselves; "" if there are none.
        waits: a pattern of the names of slices in which a thread waits, besides WAITS; "" if there are none.
        exchanges: a pattern found in the names of slices in which a thread exchanges data with other ranks, or waits
            for them; "" if the format has none.
        flops: how to tell the operations of calls; () if nothing tells them, several of an output of traceconv.
        ranges: the categories of ranges that the user's program marks.
        backward: how to find the operator of a backward operator; None if nothing tells.
        environment: by name, the places in the metadata of what the recording was made with: the keys on the way there;
            of a list, each element counts.
    """

    launches: LaunchMarks | None = None
    launch_flows: str = ""
    receive_flows: str = ""
    any_tool: bool = False
    reads_clocks: bool = False
    libraries: str = ""
    steps: str = ""
    asides: tuple[str, ...] = ()
    memory: str = ""
    primitives: PrimitiveMarks | None = None
    totals: TotalsMarks | None = None
    sums: SumMarks | None = None
    interval_counts: str = ""
    interval_threads: str = ""
    counts: CountMarks | None = None
    innermost: tuple[str, ...] = ()
    times: str = ""
    is_output: bool = False
    devices: DeviceMarks | None = None
    shapes: tuple[str, ...] = ()
    step_args: tuple[str, ...] = ()
    several: SeveralMarks | None = None
    unmeasured: str = ""
    zero_before_work: bool = False
    early_at_zero: bool = False
    operators: tuple[str, ...] = ()
    modules: str = ""
    ranges: tuple[str, ...] = ()
    backward: BackwardMarks | None = None
    spans: str = ""
    flops: tuple[FlopMarks, ...] = ()
    waits: str = ""
    exchanges: str = ""
    allocations: AllocationMarks | None = None
    environment: Mapping[str, tuple[str, ...]] = {}


NO_MARKS: Final = FormatMarks()

#: Libraries, with the kernels that NVSHMEM puts on a stream; then kernels of PyTorch's symmetric memory, its barriers
#: and signals among them, and of the all-reduces of vLLM, SGLang, AITER, FlashInfer, TensorRT-LLM and Transformer
#: Engine. Kernels that also normalise or add what they exchange are among them.
COMMUNICATION: Final = (
    r"(?i:nccl|rccl|hccl|xccl|nvshmem|oneccl|oneapi::ccl::|deep_?ep|::(?:inter|intra)node::(?:\w*notify\w*|dispatch|combine)"
    r"|msccl|rocshmem|(?:barrier|sync|rdxn|alltoall|broadcast|collect|reducescatter)\w{0,40}_on_stream_kernel"
    r"|c10d::(?:symmetric_memory|intra_node_comm)::"
    r"|multimem_(?:one_shot_|two_shot_)?(?:all_?reduce|all_?gather|reduce_?scatter)"
    r"|cross_device_reduce_|(?:one|two)_?shot_?all_?reduce|all_?reduce_(?:prototype_)?(?:one|two)_?shot"
    r"|all_?reduce_fusion_kernel|quickreduce::|userbuffers_|lamport_?all_?reduce|all_?reduce_?lamport)"
)
#: Found in the names of slices in which threads exchange data with other ranks: those, c10d of PyTorch, gloo and MPI.
EXCHANGES: Final = rf"{COMMUNICATION}|^(?:c10d::|gloo:|mpi:|record_param_comms|ProcessGroup)"
#: The whole names of slices in which a thread or a stream only waits: calls of CUDA, HIP, Level Zero and Unified
#: Runtime; Kineto's waits of streams; locks, sleeps and queues of Python as PyTorch and viztracer name them; calls of
#: the system; MXNet; XLA.
#: TensorFlow's KernelAndDeviceFunc::Run waits until other threads ran a function (common_runtime/eager).
WAITS: Final = (
    r"(?:cuda|hip)(?:Device|Stream|Event|Ctx)Synchronize(?:_ptsz)?|cu(?:Ctx|Stream|Event)Synchronize(?:_ptsz)?"
    r"|(?:Context|Stream|Event|Unknown) Sync|Stream Wait Event"
    r"|ze(?:EventHost|FenceHost|CommandListHost|CommandQueue)Synchronize|ur(?:QueueFinish|EventWait)"
    r"|(?:.*/)?threading\.py\(\d+\): (?:wait|wait_for|join|_wait_for_tstate_lock|acquire)"
    r"|<built-in method (?:acquire|__enter__) of _thread\.R?[lL]ock object at 0x[0-9a-fA-F]+>"
    r"|<built-in (?:method|function) (?:sleep|select|poll)\b.*|(?:_thread\.)?R?[lL]ock\.acquire|time\.sleep"
    r"|(?:.*/)?selectors\.py\(\d+\): select|(?:.*/)?connection\.py\(\d+\): (?:wait|poll|_poll)"
    r"|pthread_(?:cond_(?:timed)?wait|join|mutex_lock)|sem_(?:timed)?wait|(?:clock_)?nanosleep|usleep|futex|epoll_p?wait"
    r"|MXNDArrayWaitAll|MXNDArrayWaitToRead|WaitForVar|LocalDeviceState::WaitFor|.*::Await"
    r"|\$\S+\.py:\d+ (?:try_to_block|block_until_ready|wait|wait_for|acquire|join)"
    r"|ThunkExecutor::Execute \(wait for completion\)|Wait for (?:donation|usage) holds|KernelAndDeviceFunc::Run"
)
#: More calls of the system in which a thread waits, as Nsight Systems records them. Elsewhere these can be other names.
SYSTEM_WAITS: Final = r"p?poll|p?select|sleep"
#: Found in the names of slices that load input data: PyTorch's DataLoader and its frames, iterators of TensorFlow, the
#: loops of Lightning (`_on_before_fetch`), the train pipelines of TorchRec.
INPUT_DATA: Final = (
    r"enumerate\(DataLoader\)|DataLoader(?:(?!DataLoader)\S)*\.__next__|IteratorGetNext|Iterator::"
    r"|dataloader\.py\(\d+\): (?:__next__|_next_data|_get_data|_try_get_data)"
    r"|^\[pl\]\[profile\]\[\w+Loop\]\.\w+_next$|^## next_batch ##$"
)
#: Streams of a GPU, and the operations of a TPU, as XLA's profiler draws them beside lines that repeat them.
XLA_DEVICES: Final = DeviceMarks(
    r"(?:.* / )?/device:(?:GPU:\d+ / Stream #.*|TPU:\d+ / XLA Ops)",
    copies=r"(?i:^mem(?:cpy|set))",
    copy_args=("memcpy_details", "memset_details"),
    communication=rf"{COMMUNICATION}|^(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)",
    hosts=r"(?:.* / )?/host:[^/]* / (?!/device:).*",
    ids=("correlation_id",),
    steps=r"(?:.* / )?/device:[^/]* / Steps",
)
#: The devices of Kineto's categories of calls (libkineto/include/ActivityType.h), and mlu of Cambricon's Kineto.
_ACCELERATORS: Final = ("cuda", "xpu", "mtia", "glow", "privateuse1", "mlu")
_COPIES: Final = ("gpu_memcpy", "gpu_memset", "mlu_memcpy", "mlu_memset", "memcpy", "memset", "Memcpy", "Memset")
#: Accelerators, by the names of their APIs and the categories of Kineto, CUPTI and rocprof. Kineto has those of
#: CUDA for HIP, and so have databases that are converted to Chrome JSON by others. Capitals: Kineto before torch 1.9,
#: and kernels of ONNX Runtime. MTIA has work, copies and pauses in one category. Undivided: ranges of CUPTI, each an
#: equal part of the session (libkineto/src/CuptiRangeProfiler.cpp); events of CUDA, which Kineto gives 1 ns to make
#: them visible.
GPU_LAUNCHES: Final = LaunchMarks(
    calls=(
        *(f"{device}_{api}" for device in _ACCELERATORS for api in ("runtime", "driver")),
        "HIP_RUNTIME_API",
        "hip_api",
    ),
    work=("kernel", *_COPIES, "Kernel", "mtia_ccp_events"),
    ids=("correlation", "correlation_id"),
    copies_work=_COPIES,
    communication=COMMUNICATION,
    failed="return_value",
    waits=r"(?:cuda|hip)DeviceSynchronize|cuCtxSynchronize|hipCtxSynchronize",
    copies=r"(?:cuda|hip)Memcpy(?:2D|3D)?(?:_ptds)?|(?:cu|hip)MemcpyDtoH(?:_v2)?",
    to_host=r"DtoH|DEVICE_TO_HOST",
    undivided=("cuda_profiler_range", "cuda_event"),
    pauses=r"event_(?:wait|record)",
    copies_names=r"dma_request",
)
#: The names of launch flows: "launch" of databases and ONNX Runtime, "ac2g" and the like of Kineto.
GPU_FLOWS: Final = r"launch|ac2g|async_[cgn]pu"

#: For profilers of GPUs.
GPU_MARKS: Final = FormatMarks(
    GPU_LAUNCHES,
    launch_flows=GPU_FLOWS,
    asides=("overhead",),
    unmeasured=".*",  # CUPTI states it for each kind of its records, and the recording begins before all of them
    memory=r"Allocated memory \(.*\)|Allocated .* memory",
    exchanges=EXCHANGES,
)
#: The category of the slices that a picture of `diff` adds: what they state are differences.
DIFFERENCE: Final = "traceconv.difference"
#: For a format that any tool writes, with names of its choice.
ANY_TOOL_MARKS: Final = FormatMarks(
    GPU_LAUNCHES, GPU_FLOWS, r"send|recv|receive", any_tool=True, exchanges=EXCHANGES, spans=re.escape(DIFFERENCE)
)


# -- the declarations of several formats -------------------------------------------------------------------------------

_Value = TypeVar("_Value")

#: Names of declarations: of these the first one counts; of the next, any pattern; of the last, all values.
_FIRST = ("primitives", "sums", "modules", "backward")
_PATTERNS = ("steps", "memory", "times", "waits", "exchanges")
_VALUES = ("step_args", "asides", "shapes", "ranges", "flops")


def marks_of_output(marks: Sequence[FormatMarks]) -> FormatMarks:
    """Return the declarations for an output of traceconv whose inputs are of formats with these."""
    if not marks:
        return ANY_TOOL_MARKS
    launching = [mark for mark in marks if mark.launches is not None]
    values: dict[str, Any] = {name: _any_of(getattr(mark, name) for mark in marks) for name in _PATTERNS}
    values["spans"] = _any_of(mark.spans for mark in (ANY_TOOL_MARKS, *marks))
    values |= {name: _distinct(getattr(mark, name) for mark in marks) for name in _VALUES}
    for name in _FIRST:
        values[name] = next((value for mark in marks if (value := getattr(mark, name))), getattr(NO_MARKS, name))
    if all(mark.operators for mark in launching):
        values["operators"] = _distinct(mark.operators for mark in launching)
    return replace(
        ANY_TOOL_MARKS,
        launches=_launches([mark.launches for mark in launching if mark.launches is not None]),
        devices=_devices([mark.devices for mark in marks if mark.devices]),
        is_output=True,
        **values,
    )


def _launches(marks: Sequence[LaunchMarks]) -> LaunchMarks:
    """Return how to recognise launches of GPUs, with the categories of all formats that have their ids."""
    same = [GPU_LAUNCHES, *(mark for mark in marks if mark.ids == GPU_LAUNCHES.ids)]
    groups = {name: _distinct(getattr(mark, name) for mark in same) for name in ("calls", "work", "copies_work")}
    return replace(GPU_LAUNCHES, **groups)


def _devices(marks: Sequence[DeviceMarks]) -> DeviceMarks | None:
    """Return what any of the formats says of work of devices, in paths with the joint names of traceconv's traces."""
    if not marks:
        return None
    between = f"(?: / |{JOINT})"
    paths = {
        name: _any_of((getattr(mark, name).replace(" / ", between) for mark in marks), "(?:{})")
        for name in ("queues", "hosts", "steps")
    }
    names = {name: _any_of((getattr(mark, name) for mark in marks), "(?:{})") for name in ("copies", "communication")}
    copy_args, ids = (_distinct(getattr(mark, name) for mark in marks) for name in ("copy_args", "ids"))
    return DeviceMarks(**paths, **names, copy_args=copy_args, ids=ids)


def _any_of(patterns: Iterable[str], form: str = "{}") -> str:
    return "|".join(form.format(pattern) for pattern in dict.fromkeys(filter(None, patterns)))


def _distinct(values: Iterable[Iterable[_Value]]) -> tuple[_Value, ...]:
    found: list[_Value] = []
    for value in chain.from_iterable(values):
        if value not in found:
            found.append(value)
    return tuple(found)


# -- reading launches -------------------------------------------------------------------------------------------------


def ids_of(args: Args, at: I64, length: I32, marks: LaunchMarks) -> I64:
    """Return the correlation id of each slice; 0 for one without, such as a failed call, which launched nothing.

    The args of each slice start at `at`; their length is 0 for none.
    """
    keys = (*marks.ids, marks.failed) if marks.failed else marks.ids
    ids = np.zeros(len(at), np.int64)
    for part in chunks(len(at)):
        left = _read_fast(args, at[part], length[part], marks, ids[part])
        # The values are Python objects.
        numbers, values = arg_values(args, at[part][left], length[part][left], keys)
        launched = (() if marks.failed and _is_id(found[-1]) else found[: len(marks.ids)] for found in values)
        ids[part][left] = np.array([next(filter(_is_id, found), 0) for found in launched], np.int64)[numbers]
    return ids


def _read_fast(args: Args, at: I64, length: I32, marks: LaunchMarks, ids: I64) -> npt.NDArray[np.intp]:
    """Put the ids that the kernel can read into `ids`; return which slices it leaves, all without a kernel.

    The arguments are those of `ids_of`.
    """
    module = kernel.module("strings")
    if module is None or len(marks.ids) + bool(marks.failed) > MOST_KEYS:
        return np.arange(len(at))
    left, keys = [np.empty(0, np.intp)], tuple(key.encode() for key in marks.ids)
    for rows, starts, data in args.by_part(at, length):
        found = np.empty(len(rows), np.int64)
        module.first_integers(data, starts, length[rows], keys, marks.failed.encode() or None, found)
        ids[rows] = found
        left.append(rows[found < 0])
    return np.concatenate(left)


def _is_id(value: object) -> bool:
    """Return whether the value of an arg is a number that counts something."""
    return type(value) is int and 0 < value < 10**18


def of_launches(pattern: str, texts: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return which names or categories are those of launch flows; none if the pattern is ""."""
    says = re.compile(pattern)
    return np.array([bool(pattern) and says.search(text) is not None for text in texts], bool)
