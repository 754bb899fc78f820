"""What a format says of the slices and flows in its files, for those who put several files together.

An importer declares it as `marks`. Alignment reads it from the input, and knows no format by name.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class LaunchMarks(Struct, frozen=True):
    """How calls of a host are told that ask a device for work, and how that work is told.

    Attributes:
        calls: the categories of the slices of calls. A call of a runtime may call a driver under the same id: the
            first category that has an id has it.
        work: the categories of the slices of the work.
        ids: the args that hold the id that a call and its work share.
        copies_work: those categories of the work that move or set memory and compute nothing.
        communication: a pattern of the names of work that exchanges data with other ranks.
        failed: the arg that is not 0 where a call failed, so that it launched nothing; "" if there is none.
        waits: a pattern of the names of calls that return when all is done that the device was asked for. Those that
            wait for one stream do not say for which.
        copies: a pattern of the names of calls that return when their copy is done, if it goes to the host.
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


class PrimitiveMarks(Struct, frozen=True):
    """How calls of primitives of a library are told, each of which has several implementations.

    Attributes:
        calls: the categories of the slices (and, where no duration is stated, instants) of calls. The name is the kind.
        implementation: the arg that names the implementation.
        reference: a pattern found in the names of implementations that are plain code, kept to compare with.
        reorders: a pattern of the kinds that only move data from one layout to another.
        gflop: the arg with what a call computes, 10^9 operations, where the shape of the problem tells it.
        formula: how that is counted, in words.
        size: the arg with how many bytes a call reads and writes, where the shape and the data types tell it.
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
    """How counts are told that a tool took of slices one by one, or of rows of a table without a timeline.

    Attributes:
        categories: of the slices and rows that have counts.
        names: a pattern of the args that are counts, under the names of the events. Averages and shares are none.
        inside: the arg whose members the counts are; "" if they are args themselves.
        layer: the arg that names what was counted in, where the name of a row is that of the event; else "".
        rows_are_calls: whether each row without times is about one call; else they may add up several.
    """

    categories: tuple[str, ...]
    names: str
    inside: str = ""
    layer: str = ""
    rows_are_calls: bool = False


class TotalsMarks(Struct, frozen=True):
    """How a table that a tool prints tells what it adds up by name; its rows are instants.

    Attributes:
        calls: the arg with the number of calls.
        totals: the args with what they take together: of the host, of a device.
        unit_ns: what these count.
    """

    calls: str
    totals: tuple[str, ...]
    unit_ns: int = 1


class FormatMarks(Struct, frozen=True):
    """What a format says of all its files.

    Attributes:
        launches: how launches of device work are told; None if there are none.
        launch_flows: names or categories of flows from a call to the work that it launched, as a pattern.
        receive_flows: names or categories of flows from a send to its receive, as a pattern.
        any_tool: whether different tools write it, so that two files of one process may hold the same events.
        reads_clocks: whether a file holds readings of the clocks of its machine, taken around what is recorded.
        libraries: a pattern of the files whose code does what is recorded, as call stacks name them: a profiler that
            samples the stacks sees the same work there. "" if that is not known.
        steps: a pattern of the names of slices that last one iteration: a training step, a run of a model. "" if the
            format marks none.
        asides: categories of slices that repeat others or describe the recording itself, such as the ranges of the host
            drawn once more on the device. They are drawn, and counted in no table.
        memory: a pattern of the names of counters that tell how many bytes of memory are held; "" if there are none.
        primitives: how calls of primitives of a library are told; None if there are none.
        totals: how rows of sums are told, if the file is a table of those.
        interval_counts: a pattern of the names of counters whose value is a count of events up to the next value; "" if
            there are none.
        interval_threads: a pattern of the names of tracks whose counters count in one thread only, with the groups
            `name` and `tid`.
        counts: how counts of slices are told; None if there are none.
        is_output: whether traceconv wrote it: it keeps neither the ranks of its inputs nor the groups of collectives.
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
    interval_counts: str = ""
    interval_threads: str = ""
    counts: CountMarks | None = None
    is_output: bool = False


NO_MARKS: Final = FormatMarks()

#: CUDA and HIP, by the names of their APIs and the categories of Kineto, CUPTI and rocprof. Kineto has the same
#: categories for both, and so have databases that are converted to Chrome JSON by others.
GPU_LAUNCHES: Final = LaunchMarks(
    calls=("cuda_runtime", "cuda_driver", "HIP_RUNTIME_API", "hip_api"),
    work=("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"),
    ids=("correlation", "correlation_id"),
    copies_work=("gpu_memcpy", "gpu_memset", "memcpy", "memset"),
    communication=r"(?i)nccl|rccl|hccl|nvshmem|oneccl|deep_?ep",
    failed="return_value",
    waits=r"(?:cuda|hip)DeviceSynchronize|cuCtxSynchronize|hipCtxSynchronize",
    copies=r"(?:cuda|hip)Memcpy(?:2D|3D)?(?:_ptds)?|(?:cu|hip)MemcpyDtoH(?:_v2)?",
    to_host=r"DtoH|DEVICE_TO_HOST",
)
#: What launches of a GPU are drawn as: "launch" of databases and ONNX Runtime, "ac2g" and its kin of Kineto.
GPU_FLOWS: Final = r"launch|ac2g|async_[cgn]pu"

#: Of a GPU's profiler.
GPU_MARKS: Final = FormatMarks(
    GPU_LAUNCHES,
    launch_flows=GPU_FLOWS,
    memory=r"Allocated memory \(.*\)|Allocated .* memory",
)
#: Of a format that any tool writes, with whatever names it likes.
ANY_TOOL_MARKS: Final = FormatMarks(GPU_LAUNCHES, GPU_FLOWS, r"send|recv|receive", any_tool=True)
