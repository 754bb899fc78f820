"""AMD ROCm: what rocprofv3 (ROCprofiler-SDK) and the older rocprof write as CSV and JSON.

    "Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",...
    "KERNEL_DISPATCH",1,1,10,"void add<float>(float*, float const*)",1,58378640000000,58378640010000,...

    "Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
    "HIP_RUNTIME_API","hipLaunchKernel",315155,315155,1,58378639990000,58378639996000

    {"rocprofiler-sdk-tool": [{"metadata": {"pid": 7}, "agents": [], "kernel_symbols": [], "strings": {},
      "buffer_records": {"kernel_dispatch": [], "hip_api": [], _cupti.MEMCPY: []}}]}

Facts: the guides of rocprofv3 and rocprof (rocm.docs.amd.com), ROCprofiler-SDK's generateCSV.cpp and generateJSON.cpp
(ROCm 6.2 to 7), and public outputs (see `checked`). Columns differ by version: they are found by name, and what has no
other use is an arg. Times are ns of CLOCK_BOOTTIME, the same for host and device. One CSV holds one kind of record:
kernels, copies, allocations, calls, markers. Counters had no times in ROCm 6.2; rocprofv2 leaves a begin of 0 where the
kernel was not timed. rocprof (v1) has `Index,KernelName,gpu-id,queue-id,...,BeginNs,EndNs` for kernels, with a column
for each counter, and Chrome JSON for traces.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple

import msgspec

from traceconv.errors import MalformedInput
from traceconv.families.chrome import facts
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.common import cupti as _cupti
from traceconv.families.common.idle_lines import EMPTY, SPACES, IdleRows, holds, lines_but
from traceconv.families.common.numbers import number_of
from traceconv.families.registry import Match, importer
from traceconv.io.patterns import regex
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, NO_TIME, ClockDomain, Run, Zero
from traceconv.model.diagnostics import absent, lost, skipped
from traceconv.model.marks import GPU_MARKS, FormatMarks
from traceconv.model.times import NS, parse_ns
from traceconv.model.trace import NO_TRACK, Layer, SliceId, TrackId

BAD_ROW = lost("rocprof.bad_row", "a row or record is cut, or has a time that is no number: it was left out")
FOREIGN_LINE = skipped("rocprof.foreign_line", "a line before the heading of the table: left out", quiet=True)
UNKNOWN_NAME = absent(
    "rocprof.unknown_name", "a record names an agent, kernel or operation that the file does not describe"
)

NEVER_SET = absent(
    "rocprof.no_begin",
    "the begin or end of a kernel was never set (0), so nobody knows when it ran: it is a row of a table without times",
)
PC_SAMPLE = lost("rocprof.pc_sample", "samples of the program counter inside kernels are not read")

#: The default clock of ROCprofiler-SDK (source/lib/common/utility.hpp); early versions took CLOCK_MONOTONIC.
CLOCK = BOOTTIME
#: The Chrome JSON of the old rocprof counts from its first record.
V1_CLOCK = ClockDomain("rocprof time", Zero.UNKNOWN, Run.MONOTONIC, 1)

_HEADING = regex(rb'(?m)^(?=.*(?:Start_Timestamp"?,"?End_Timestamp|BeginNs"?,"?EndNs))"?[\w-]+"?,.*$', re.IGNORECASE)
_STATS = regex(rb'(?m)^"Name","(?:Calls|TotalDurationNs)".*"(?:TotalDurationNs|AverageNs|Percentage)".*$')
_SDK_JSON = regex(rb'"rocprofiler-sdk-tool"\s*:')
_V1_JSON = regex(rb'"args"\s*:\s*\{\s*"name"\s*:\s*"(?:CPU HIP API|CPU HSA API|GPU\d+|COPY|Markers and Ranges)"')
_UNTIMED = regex(
    rb'(?mi)^(?!.*(?:Timestamp|BeginNs))"?[\w-]+"?,.*"?Kernel_?Name"?,.*"?Counter_Name"?,"?Counter_Value"?\s*$'
)
_HEADINGS = (
    {"start_timestamp", "end_timestamp"},
    {"begin_ns", "end_ns"},
    {"name", "calls"},
    {"kernel_name", "counter_name", "counter_value"},
)
#: What stands in each of them.
_OF_HEADINGS = b"(?i:timestamp|ns|calls|counter)"
_MAY_BE_HEADING = regex(_OF_HEADINGS.decode())
#: Columns whose values are args under shorter names; all columns that have no other use are args as they are called.
_ARGS = {
    "workgroup_size_x": "workgroup_x",
    "workgroup_size_y": "workgroup_y",
    "workgroup_size_z": "workgroup_z",
    "grid_size_x": "grid_x",
    "grid_size_y": "grid_y",
    "grid_size_z": "grid_z",
    "workgroup_size": "workgroup",
    "grid_size": "grid",
    "private_segment_size": "private_segment_bytes",
    "group_segment_size": "group_segment_bytes",
    "lds_block_size": "lds_bytes",
    "scratch_size": "scratch_bytes",
    "lds": "lds_bytes",
    "scr": "scratch_bytes",
    "vgpr_count": "vgpr_count",
    "accum_vgpr_count": "accum_vgpr_count",
    "arch_vgpr": "vgpr_count",
    "sgpr_count": "sgpr_count",
    "sgpr": "sgpr_count",
    "arch_vgpr_count": "vgpr_count",
    "vgpr": "vgpr_count",
    "accum_vgpr": "accum_vgpr_count",
    "kernel_id": "kernel_id",
    "wave_size": "wave_size",
    "grd": "grid",
    "wgr": "workgroup",
    "dispatch_id": "dispatch_id",
    "bytes": "bytes",
    "allocation_size": "bytes",
    "correlation_id": "correlation_id",
    "stream_id": "stream",
    "thread_id": "thread_id",
    "process_id": "process_id",
    "tid": "thread_id",
    "pid": "process_id",
}


class _Tracks(msgspec.Struct):
    """The tracks of processes, threads, devices and queues, and the arrows from calls to what they started."""

    out: Builder
    known: dict[tuple[str, ...], TrackId] = msgspec.field(default_factory=dict)
    calls: dict[int, SliceId] = msgspec.field(default_factory=dict)
    started: list[tuple[int, SliceId, int]] = msgspec.field(default_factory=list)

    def thread(self, pid: int | None, tid: int | None) -> TrackId:
        key = ("thread", str(pid), str(tid))
        if key not in self.known:
            self.known[key] = self.out.thread(self.process(pid), tid)
        return self.known[key]

    def process(self, pid: int | None) -> TrackId:
        key = ("process", str(pid))
        if key not in self.known:
            self.known[key] = self.out.process("" if pid is not None else "ROCm program", pid=pid)
        return self.known[key]

    def queue(self, agent: str, queue: str) -> TrackId:
        key = ("queue", agent, queue)
        if key not in self.known:
            device = self.known.get(("agent", agent))
            if device is None:
                device = self.known["agent", agent] = self.out.process(agent)
            self.known[key] = self.out.track(queue, device)
        return self.known[key]

    def arrows(self) -> None:
        for correlation, slice_id, at in self.started:
            if correlation in self.calls:
                self.out.flow(self.calls[correlation], slice_id, "launch", at=at)


# -- CSV ------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    """The name of a column in one spelling: "Kernel_Name", "KernelName", "gpu-id" -> "kernel_name", "gpu_id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).replace("-", "_").lower()


class _Kernel(NamedTuple):
    """A dispatch of a kernel; `times` are its begin and end in ns, None if they were not recorded."""

    agent: str
    queue: str
    times: tuple[int, int] | None
    name: str
    args: dict[str, Any]
    at: int


_TIMES = (("start_timestamp", "begin_ns"), ("end_timestamp", "end_ns"))
#: The columns of process and thread, in the spelling of newer and of older versions.
_IDS = (("process_id", "pid"), ("thread_id", "tid"))


def _times(row: dict[str, str]) -> tuple[int, int] | None:
    """Begin and end of a record, taken out of its row; None if it has none, or one of them was never set (0)."""
    texts = [row.pop(new, "") or row.pop(old, "") for new, old in _TIMES]
    if not all(texts):
        return None
    start, end = (parse_ns(text.encode(), NS) for text in texts)
    return (start, end) if start > 0 and end > 0 else None


class _Table:
    """Reads one CSV into a builder."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._tracks = _Tracks(out)
        self._totals: TrackId = NO_TRACK
        self._untimed: TrackId = NO_TRACK
        self._has_times = False  # whether the file has columns for them
        self._keys: dict[str, str] = {}  # what the values of the columns are called as args
        self._counted: dict[tuple[str, str], dict[str, Any]] = {}  # the args of each dispatch with counters
        self._kernels: list[_Kernel] = []  # which wait for more counters
        self._lines = IdleRows(out)

    def read(self, source: Source) -> None:
        header: list[str] | None = None
        for number, cells in self._lines.rows(source, lambda error: [str(error)]):
            if not cells:
                self._lines.idle(self._blank, EMPTY)
            elif header is None or _is_heading(cells):
                header = self._heading(cells, number, header)
            else:
                self._row(dict(zip(header, cells, strict=False)), len(cells) < len(header), number)
        for kernel in self._kernels:
            self._draw(kernel)

    def _blank(self, count: int) -> None:
        self._out.balance.read += count
        self._out.balance.skipped["blank lines"] += count

    def _heading(self, cells: list[str], number: int, before: list[str] | None) -> list[str] | None:
        if _is_heading(cells):
            self._out.balance.read += 1
            self._out.balance.merged["headings"] += 1
            header = [_plain(cell) for cell in cells]
            self._has_times |= not {"start_timestamp", "begin_ns"}.isdisjoint(header)
            self._keys = {plain: _ARGS.get(plain, cell) for plain, cell in zip(header, cells, strict=True)}
            return header
        self._lines.skip(FOREIGN_LINE, number, like=_cut_rows(2))
        return before

    def _row(self, row: dict[str, str], cut: bool, number: int) -> None:
        try:
            if cut:
                raise ValueError("the row is cut")
            if "calls" in row:
                self._sum(row, number)
            else:
                self._record(row, number)
        except (ValueError, KeyError) as error:
            self._lines.skip(BAD_ROW, number, str(error), _cut_rows(len(self._keys)) if cut else b"")
        else:
            self._out.balance.read += 1

    def _sum(self, row: dict[str, str], number: int) -> None:
        if self._totals == NO_TRACK:
            self._totals = self._out.totals_track("ROCm statistics")
        args = {key: _number(value) for key, value in row.items()}
        name = str(args.pop("name"))
        self._out.totals(self._totals, name, "statistics", args, number)
        self._out.balance.written += 1

    def _record(self, row: dict[str, str], number: int) -> None:
        times = _times(row)
        if "kernel_name" in row and not row.get("function"):
            self._kernel(row, times, number)
            return
        if times is None:
            raise ValueError("no times")
        start, end = times
        out = self._out
        if "source_agent_id" in row:
            target = _agent(row.pop("destination_agent_id"))
            places = {"source": _agent(row.pop("source_agent_id")), "destination": target}
            name = row.pop("direction", "") or row.get("name") or row.get("kind", "copy")
            track = self._tracks.queue(target, "Memory copies")
            out.slice(track, start, end - start, name, _cupti.MEMCPY, self._args(row) | places, number)
        else:
            track = self._place(row)
            name = row.pop("function", "") or row.pop("operation", "") or row.pop("name", "") or row.get("kind", "?")
            category = row.pop("domain", "") or row.pop("kind", "")
            out.slice(track, start, end - start, name, category, self._args(row), number)
        out.balance.written += 1

    def _place(self, row: dict[str, str]) -> TrackId:
        """The track of what is no kernel and no copy: its thread, or that of an agent where there is no thread."""
        pid, tid = (_int(row.pop(new, None) or row.pop(old, None)) for new, old in _IDS)
        if tid is None and row.get("agent_id"):
            return self._tracks.queue(_agent(row.pop("agent_id")), "Memory allocations")
        return self._tracks.thread(pid, tid)

    def _kernel(self, row: dict[str, str], times: tuple[int, int] | None, number: int) -> None:
        """A dispatch; the further rows of one with several counters add to the first."""
        name = row.pop("kernel_name")
        place = row.pop("agent_id", "") or row.pop("gpu_id", "") or "?", row.pop("queue_id", "?")
        counter, value = row.pop("counter_name", None), row.pop("counter_value", "")
        for known in ("function", "kind"):
            row.pop(known, None)
        if counter is not None:
            dispatch = (place[0], row.get("dispatch_id", str(number)))
            if dispatch in self._counted:
                self._counted[dispatch][counter] = _number(value)
                self._out.balance.merged["further counters of a kernel"] += 1
                return
        args = self._args(row)
        kernel = _Kernel(_agent(place[0]), f"Queue {place[1]}", times, name, args, number)
        self._out.balance.written += 1
        if counter is None:
            self._draw(kernel)
            return
        args[counter] = _number(value)
        self._counted[dispatch] = args
        self._kernels.append(kernel)

    def _draw(self, kernel: _Kernel) -> None:
        """A slice on its queue, or a row of a table if nobody knows when it ran."""
        out = self._out
        if kernel.times is None:
            if self._has_times:
                out.problem(NEVER_SET, kernel.at, kernel.name)
            if self._untimed == NO_TRACK:
                self._untimed = out.totals_track("ROCm kernels")
            args = {"agent": kernel.agent, "queue": kernel.queue, **kernel.args}
            out.totals(self._untimed, kernel.name, _cupti.KERNEL, args, kernel.at)
            return
        start, end = kernel.times
        track = self._tracks.queue(kernel.agent, kernel.queue)
        out.slice(track, start, end - start, kernel.name, _cupti.KERNEL, kernel.args, kernel.at)

    def _args(self, row: dict[str, str]) -> dict[str, Any]:
        """What is left of a row after its times, name and place were taken."""
        return {self._keys[key]: _number(value) for key, value in row.items() if value}


@cache
def _cut_rows(columns: int) -> bytes:
    """The expression of lines with fewer cells than there are columns that are no heading."""
    return SPACES + b"|" + lines_but(holds(b'"'), holds(b",", columns - 1), holds(_OF_HEADINGS))


def _is_heading(cells: list[str]) -> bool:
    if _MAY_BE_HEADING.search(",".join(cells)) is None:
        return False
    names = {_plain(cell) for cell in cells}
    return any(names >= needed for needed in _HEADINGS)


def _agent(text: str) -> str:
    """A number, or a text such as "Agent 7"."""
    return f"Agent {text}" if text.isdigit() else text


def _int(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


#: Longer ones are ids or hashes.
_MOST_DIGITS = 40


def _number(text: str) -> int | float | str:
    number = number_of(text)
    return text if number is None or len(text) >= _MOST_DIGITS else number


# -- JSON of ROCprofiler-SDK ----------------------------------------------------------------------------------------


class _Handle(msgspec.Struct):
    handle: int = 0


class _Agent(msgspec.Struct):
    id: _Handle = msgspec.field(default_factory=_Handle)
    type: int = 0
    name: str = ""
    product_name: str = ""
    logical_node_id: int = 0


class _Symbol(msgspec.Struct):
    kernel_id: int = 0
    kernel_name: str = ""
    formatted_kernel_name: str = ""


class _Correlation(msgspec.Struct):
    internal: int = 0


class _Dispatch(msgspec.Struct):
    agent_id: _Handle = msgspec.field(default_factory=_Handle)
    queue_id: _Handle = msgspec.field(default_factory=_Handle)
    kernel_id: int = 0
    dispatch_id: int = 0
    private_segment_size: int = 0
    group_segment_size: int = 0
    workgroup_size: dict[str, int] = {}
    grid_size: dict[str, int] = {}


class _Record(msgspec.Struct):
    start_timestamp: int
    end_timestamp: int
    kind: int = 0
    operation: int = 0
    thread_id: int | None = None
    correlation_id: _Correlation = msgspec.field(default_factory=_Correlation)
    dispatch_info: _Dispatch | None = None
    stream_id: _Handle | None = None
    src_agent_id: _Handle | None = None
    dst_agent_id: _Handle | None = None
    bytes: int | None = None
    allocation_size: int | None = None
    agent_id: _Handle | None = None


class _Names(msgspec.Struct):
    kind: str = ""
    operations: list[str] = []


class _Keyed(msgspec.Struct):
    key: int
    value: str


class _Strings(msgspec.Struct):
    buffer_records: list[_Names] = []
    marker_api: list[_Keyed] = []


class _Process(msgspec.Struct):
    metadata: dict[str, Any] = {}
    agents: list[_Agent] = []
    strings: _Strings = msgspec.field(default_factory=_Strings)
    kernel_symbols: list[_Symbol] = []
    buffer_records: dict[str, list[msgspec.Raw]] = {}


class _Tool(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


_decode_record = msgspec.json.Decoder(_Record).decode


class _Sdk:
    """Writes the records of one process."""

    def __init__(self, out: Builder, process: _Process) -> None:
        self._out = out
        self._process = process
        pid = process.metadata.get("pid")
        self._pid = pid if isinstance(pid, int) else None
        self._tracks = _Tracks(out)
        self._agents = {agent.id.handle: _described(agent) for agent in process.agents}
        self._kernels = {s.kernel_id: s.formatted_kernel_name or s.kernel_name for s in process.kernel_symbols}
        self._markers = {entry.key: entry.value for entry in process.strings.marker_api}
        self._names = process.strings.buffer_records

    def read(self) -> None:
        out = self._out
        for group, records in self._process.buffer_records.items():
            for raw in records:
                out.balance.read += 1
                number = out.balance.read
                if group.startswith("pc_sample"):
                    out.skip(PC_SAMPLE, number, group)
                    continue
                try:
                    record = _decode_record(raw)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    out.skip(BAD_ROW, number, f"{group}: {error}")
                    continue
                self._record(group, record, number)
                out.balance.written += 1
        self._tracks.arrows()

    def _record(self, group: str, record: _Record, number: int) -> None:
        dur = record.end_timestamp - record.start_timestamp
        correlation = record.correlation_id.internal
        args: dict[str, Any] = {"correlation_id": correlation}
        if record.dispatch_info is not None:
            name, track = self._kernel(record, record.dispatch_info, args, number)
            category = _cupti.KERNEL
        elif record.dst_agent_id is not None:
            target = self._agent(record.dst_agent_id, number)
            args |= {"bytes": record.bytes, "destination": target}
            if record.src_agent_id is not None:
                args["source"] = self._agent(record.src_agent_id, number)
            name, category, track = (
                self._operation(record, number),
                _cupti.MEMCPY,
                self._tracks.queue(target, "Memory copies"),
            )
        else:
            name, category = self._operation(record, number), group
            if group == "marker_api":
                name = self._markers.get(correlation, name)
            size = record.bytes if record.bytes is not None else record.allocation_size
            if size is not None:
                args["bytes"] = size
            if record.agent_id is not None:
                args["agent"] = self._agent(record.agent_id, number)
            track = self._tracks.thread(self._pid, record.thread_id)
        slice_id = self._out.slice(track, record.start_timestamp, dur, name, category, args, number)
        if category in (_cupti.KERNEL, _cupti.MEMCPY):
            self._tracks.started.append((correlation, slice_id, number))
        elif group == "hip_api" or correlation not in self._tracks.calls:
            self._tracks.calls[correlation] = slice_id

    def _kernel(self, record: _Record, dispatch: _Dispatch, args: dict[str, Any], number: int) -> tuple[str, TrackId]:
        args |= {"dispatch_id": dispatch.dispatch_id, "private_segment_bytes": dispatch.private_segment_size}
        args |= {"group_segment_bytes": dispatch.group_segment_size}
        args |= {f"workgroup_{axis}": size for axis, size in dispatch.workgroup_size.items()}
        args |= {f"grid_{axis}": size for axis, size in dispatch.grid_size.items()}
        if record.stream_id is not None:
            args["stream"] = record.stream_id.handle
        name = self._kernels.get(dispatch.kernel_id)
        if name is None:
            self._out.problem(UNKNOWN_NAME, number, f"kernel {dispatch.kernel_id}")
            name = f"kernel {dispatch.kernel_id}"
        agent = self._agent(dispatch.agent_id, number)
        return name, self._tracks.queue(agent, f"Queue {dispatch.queue_id.handle}")

    def _agent(self, handle: _Handle, number: int) -> str:
        if handle.handle not in self._agents:
            self._out.problem(UNKNOWN_NAME, number, f"agent {handle.handle}")
        return self._agents.get(handle.handle, f"Agent {handle.handle}")

    def _operation(self, record: _Record, number: int) -> str:
        """The name of a call or copy, by the tables of the file."""
        if record.kind < len(self._names) and record.operation < len(self._names[record.kind].operations):
            return self._names[record.kind].operations[record.operation]
        self._out.problem(UNKNOWN_NAME, number, f"operation {record.operation} of kind {record.kind}")
        return f"operation {record.operation} of kind {record.kind}"


def _described(agent: _Agent) -> str:
    kind = {1: "CPU", 2: "GPU"}.get(agent.type, "Agent")
    return f"{kind} {agent.logical_node_id}: {agent.product_name or agent.name}"


def _read_sdk(source: Source, out: Builder, clock: ClockDomain) -> None:
    with source.open() as stream:
        data = stream.read()
    try:
        tool = msgspec.json.decode(data, type=_Tool)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedInput(
            source.display, "", f"not the JSON of ROCprofiler-SDK: {error}", hint="was the program ended in time?"
        ) from None
    out.info.unit, out.balance.unit = "record", "records"
    out.info.real_ids = True
    hosts = [_hostname(process) for process in tool.processes]
    if len(set(hosts)) == 1 and hosts[0]:
        out.set_clock(replace(clock, machine=hosts[0]))
    out.metadata("rocprofiler", [process.metadata for process in tool.processes])
    for process in tool.processes:
        _Sdk(out, process).read()


def _hostname(process: _Process) -> str:
    node = process.metadata.get("node")
    return str(node.get("hostname", "")) if isinstance(node, dict) else ""


@importer
class Rocprof(msgspec.Struct, frozen=True):
    """Importer of what rocprofv3 and rocprof write."""

    name: ClassVar[str] = "rocprof"
    title: ClassVar[str] = "AMD ROCm: rocprofv3 and rocprof traces"
    url: ClassVar[str] = "https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html"
    versions: ClassVar[str] = (
        "rocprofv3 CSV and JSON (ROCm 6.2 to 7), CSV of rocprofv2, CSV and JSON of rocprof; no rocpd"
    )
    clock: ClassVar[ClockDomain] = CLOCK
    layer: ClassVar[Layer] = Layer.DEVICE
    marks: ClassVar[FormatMarks] = GPU_MARKS
    record: ClassVar[str] = "rocprofv3 --sys-trace --output-format json -- python run.py"
    line_up: ClassVar[str] = (
        "Times count from boot, and host and device share them. The JSON names the host, so files with other clocks "
        "since boot of the same host line up; else `--offset FILE=TIME`."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("kernel dispatches", "slices on the queues of their device, with sizes and registers as args"),
        ("memory copies", "slices on a track of the device that they go to, with bytes where the file has them"),
        ("HIP, HSA, RCCL calls, markers", "slices on their thread"),
        ("correlation of call and kernel or copy (JSON)", "flows"),
        (
            "counter_collection.csv",
            "slices of the kernels with the counters as args; rows of totals if it has no times",
        ),
        ("memory allocations", "slices on a track of their device, with the bytes"),
        ("statistics (*_stats.csv)", "rows of totals"),
    )
    skips = (EMPTY_EVENT, FOREIGN_LINE)
    lost: ClassVar[tuple[str, ...]] = (
        "Arrows between calls and kernels in CSV: each file holds one kind of record; the JSON has all.",
        "Addresses, code objects, callback records and samples of the program counter of the JSON.",
    )
    checked: ClassVar[tuple[tuple[str, str, str], ...]] = (
        (
            "rocprofv3 of ROCm 7, MI350X",
            "908_results.json.gz of AMD-AGI/TraceLens, 43,915 dispatches",
            "all groups and fields; the times and queues of all dispatches",
        ),
        (
            "rocprofv3 of ROCm 6.2 to 7",
            "generateCSV.cpp, generateJSON.cpp and the nine outputs in source/docs/data of ROCm/rocprofiler-sdk",
            "the columns of each table, by version; all rows read",
        ),
        (
            "rocprofv2 of ROCm 5.7, rocprof of ROCm 2 to 6",
            "ROCm's changelog and guide, outputs in tutorials (columns and single rows)",
            "the columns; a whole file was not at hand, of the Chrome JSON not even a part",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """YES by the key of the JSON or the heading of a table."""
        if _SDK_JSON.search(head.data[:4096]):
            return Match.yes("JSON of ROCprofiler-SDK")
        if head.text[:1] == b"{" and b'"traceEvents"' in head.data[:4096] and _V1_JSON.search(head.data):
            return Match.yes("Chrome JSON with the process names of rocprof")
        heading = _HEADING.search(head.data) or _STATS.search(head.data) or _UNTIMED.search(head.data)
        if heading and re.search(rb"Kernel_?Name|Function|Agent_Id|Correlation_Id|Calls", heading[0], re.IGNORECASE):
            return Match.yes("the heading of a rocprof table")
        return Match.no("no key, process names or table heading of rocprof")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole file."""
        head = source.head()
        if head.text[:1] == b"{":
            if _SDK_JSON.search(head.data):
                _read_sdk(source, out, self.clock)
                return
            reader = ChromeReader(source, out)
            events = ChromeEvents(out)
            events.add_all(reader)
            top = facts.top_level(reader, out)
            events.finish(top.get("stackFrames"))
            facts.set_clock(top, out, V1_CLOCK)
            return
        out.info.unit, out.balance.unit = "line", "rows"
        out.info.real_ids = True
        if _STATS.search(head.data) or _UNTIMED.search(head.data):
            out.set_clock(NO_TIME)
            out.belongs_to((self.name,))
        _Table(out).read(source)
        if not out.balance.written:
            raise MalformedInput(source.display, "", "no rows of rocprof found", hint=f"record with: {self.record}")
