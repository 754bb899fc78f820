"""The JSON of ROCprofiler-SDK."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from traceconv.families.common import cupti as _cupti
from traceconv.families.rocprof._tracks import BAD_ROW, Tracks
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.diagnostics import absent, lost
from traceconv.model.trace import TrackId

UNKNOWN_NAME = absent(
    "rocprof.unknown_name", "a record names an agent, kernel or operation that the file does not describe"
)
PC_SAMPLE = lost("rocprof.pc_sample", "samples of the program counter inside kernels are not read")


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


class _Count(msgspec.Struct):
    counter_id: _Handle
    value: int | float


class _Counter(msgspec.Struct):
    id: _Handle
    name: str


class _Counted(msgspec.Struct):
    """The counts of one pass of a kernel: each counter, or its instances, which are added up."""

    dispatch_data: _Record
    records: list[_Count] = []


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
    counters: list[_Counter] = []
    callback_records: dict[str, list[msgspec.Raw]] = {}
    buffer_records: dict[str, list[msgspec.Raw]] = {}


class _Tool(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_counted = msgspec.json.Decoder(_Counted).decode
_COUNTED = "counter_collection"
_JOINED = "counters joined to their kernel"


class _Sdk:
    """Writes the records of one process."""

    def __init__(self, out: Builder, process: _Process) -> None:
        self._out = out
        self._process = process
        pid = process.metadata.get("pid")
        self._pid = pid if isinstance(pid, int) else None
        self._tracks = Tracks(out)
        self._agents = {agent.id.handle: _described(agent) for agent in process.agents}
        self._kernels = {s.kernel_id: s.formatted_kernel_name or s.kernel_name for s in process.kernel_symbols}
        self._markers = {entry.key: entry.value for entry in process.strings.marker_api}
        self._names = process.strings.buffer_records
        self._counters = {counter.id.handle: counter.name for counter in process.counters}
        #: Of each dispatch the first record of its counts, its number, and the sum of each counter.
        self._counted: dict[int, tuple[_Record, int, dict[str, int | float]]] = {}

    def read(self) -> None:
        out = self._out
        for raw in self._process.callback_records.get(_COUNTED, []):
            out.balance.read += 1
            try:
                self._count(_decode_counted(raw), out.balance.read)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                out.skip(BAD_ROW, out.balance.read, f"{_COUNTED}: {error}")
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
        for record, number, _ in list(self._counted.values()):  # without --kernel-trace
            self._record(_COUNTED, record, number)
            out.balance.written += 1
        self._tracks.flows()

    def _count(self, counted: _Counted, number: int) -> None:
        """Keep the counts of a kernel; of a counter in several passes the first one is used."""
        kernel = counted.dispatch_data
        if kernel.dispatch_info is None:
            self._out.skip(BAD_ROW, number, f"{_COUNTED}: no dispatch_info")
            return
        values: dict[str, int | float] = {}
        for one in counted.records:
            name = self._counters.get(one.counter_id.handle)
            if name is None:
                self._out.problem(UNKNOWN_NAME, number, f"counter {one.counter_id.handle}")
                name = f"counter {one.counter_id.handle}"
            values[name] = values.get(name, 0) + one.value
        first, _, known = self._counted.setdefault(kernel.dispatch_info.dispatch_id, (kernel, number, values))
        if first is not kernel:
            known |= values | known
            self._out.balance.merged[_JOINED] += 1

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
        if dispatch.dispatch_id in self._counted:
            first, _, counts = self._counted.pop(dispatch.dispatch_id)
            args |= counts
            if first is not record:
                self._out.balance.merged[_JOINED] += 1
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
        """Return the name of a call or copy, by the tables of the file."""
        if record.kind < len(self._names) and record.operation < len(self._names[record.kind].operations):
            return self._names[record.kind].operations[record.operation]
        self._out.problem(UNKNOWN_NAME, number, f"operation {record.operation} of kind {record.kind}")
        return f"operation {record.operation} of kind {record.kind}"


def _described(agent: _Agent) -> str:
    kind = {1: "CPU", 2: "GPU"}.get(agent.type, "Agent")
    return f"{kind} {agent.logical_node_id}: {agent.product_name or agent.name}"


def read_sdk(source: Source, out: Builder, clock: ClockDomain) -> None:
    """Read the JSON of ROCprofiler-SDK, whose times are on that clock."""
    with source.open() as stream:
        data = stream.read()
    try:
        tool = msgspec.json.decode(data, type=_Tool)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise source.malformed(
            f"not the JSON of ROCprofiler-SDK: {error}", hint="was the program ended in time?"
        ) from None
    out.info.unit, out.balance.unit = "record", "records"
    out.info.real_ids = True
    hosts = [_hostname(process) for process in tool.processes]
    if len(set(hosts)) == 1 and hosts[0]:
        out.clocks.set_default(replace(clock, machine=hosts[0]))
    out.metadata["rocprofiler"] = [process.metadata for process in tool.processes]
    for process in tool.processes:
        _Sdk(out, process).read()


def _hostname(process: _Process) -> str:
    node = process.metadata.get("node")
    return str(node.get("hostname", "")) if isinstance(node, dict) else ""
