"""The JSON of ROCprofiler-SDK."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec.structs import replace

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.json_document import JsonDocument
from traceconv.io.shown import Counted
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.diagnostics import RECORDS, absent, lost
from traceconv.model.trace import SliceId
from traceconv.model.track_table import TrackId

COUNTERS_OF_KERNELS = Counted("counter joined to its kernel", "counters joined to their kernel")

BAD_ROW = lost("rocprof.bad_row", "a row or record is cut, or has a time that is not a number: it was left out")
TOO_LARGE = lost(
    "rocprof.too_large",
    "a sum of counts, or a number of a record, is too large: the counts of the pass were left out",
)
UNKNOWN_NAME = absent(
    "rocprof.unknown_name", "a record names an agent, kernel or operation that the file does not describe"
)
PC_SAMPLE = lost("rocprof.pc_sample", "samples of the program counter inside kernels are not read")


class Tracks(msgspec.Struct):
    """The tracks of processes, threads, devices and queues, and the flows from calls to what they started."""

    out: Builder
    known: dict[tuple[str, ...], TrackId] = msgspec.field(default_factory=dict)
    calls: dict[int, SliceId] = msgspec.field(default_factory=dict)
    started: list[tuple[int, SliceId, int]] = msgspec.field(default_factory=list)

    def thread(self, pid: int | None, tid: int | None) -> TrackId:
        """Return a thread; what is not known is None."""
        key = ("thread", str(pid), str(tid))
        if key not in self.known:
            self.known[key] = self.out.tracks.thread(self.process(pid), tid)
        return self.known[key]

    def process(self, pid: int | None) -> TrackId:
        key = ("process", str(pid))
        if key not in self.known:
            self.known[key] = self.out.tracks.process("" if pid is not None else "ROCm program", pid=pid)
        return self.known[key]

    def queue(self, agent: str, queue: str) -> TrackId:
        key = ("queue", agent, queue)
        if key not in self.known:
            device = self.known.get(("agent", agent))
            if device is None:
                device = self.known["agent", agent] = self.out.tracks.add(agent)
            self.known[key] = self.out.tracks.add(queue, device)
        return self.known[key]

    def flows(self) -> None:
        """Draw what calls started."""
        for correlation, slice_id, at in self.started:
            if correlation in self.calls:
                self.out.flow(self.calls[correlation], slice_id, "launch", at=at)


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


class _Dispatch(msgspec.Struct, omit_defaults=True):
    agent_id: _Handle = msgspec.field(default_factory=_Handle)
    queue_id: _Handle = msgspec.field(default_factory=_Handle)
    kernel_id: int = 0
    dispatch_id: int = 0
    private_segment_size: int = 0
    group_segment_size: int = 0
    workgroup_size: dict[str, int] = {}
    grid_size: dict[str, int] = {}


class _Record(msgspec.Struct, omit_defaults=True):
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
    callback_records: dict[str, msgspec.Raw] = {}
    buffer_records: dict[str, msgspec.Raw] = {}


class _Tool(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_counted = msgspec.json.Decoder(_Counted).decode
_COUNTED = "counter_collection"


class _Pass(msgspec.Struct, array_like=True):
    """What a pass counted: the record of the dispatch, its number in the file, and the sum of each counter."""

    record: _Record
    number: int
    values: dict[str, int | float]


_decode_pass = msgspec.msgpack.Decoder(_Pass).decode


class _Sdk:
    def __init__(self, out: Builder, document: JsonDocument, process: _Process) -> None:
        self._out = out
        self._counts = document.elements(process.callback_records.get(_COUNTED, msgspec.Raw(b"[]")))
        self._records = {group: document.elements(records) for group, records in process.buffer_records.items()}
        pid = process.metadata.get("pid")
        self._pid = pid if isinstance(pid, int) else None
        self._tracks = Tracks(out)
        self._agents = {agent.id.handle: _described(agent) for agent in process.agents}
        self._kernels = {s.kernel_id: s.formatted_kernel_name or s.kernel_name for s in process.kernel_symbols}
        self._markers = {entry.key: entry.value for entry in process.strings.marker_api}
        self._names = process.strings.buffer_records
        self._counters = {counter.id.handle: counter.name for counter in process.counters}
        self._passes: dict[int, list[bytes]] = {}  # by dispatch; encoded, they take a fifth of the memory

    def read(self) -> None:
        out = self._out
        for raw in self._counts:
            out.balance.read += 1
            try:
                self._count(_decode_counted(raw), out.balance.read)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                out.skip(BAD_ROW, out.balance.read, f"{_COUNTED}: {error}")
            except OverflowError as error:
                out.skip(TOO_LARGE, out.balance.read, str(error))
        for group, records in self._records.items():
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
        for passes in list(self._passes.values()):  # without --kernel-trace
            counted = _decode_pass(passes[0])
            self._record(_COUNTED, counted.record, counted.number)
            out.balance.written += 1
        self._tracks.flows()

    def _count(self, counted: _Counted, number: int) -> None:
        """Keep what a pass counted. Raises OverflowError for a number or sum beyond 64 bits, or beyond a double."""
        kernel = counted.dispatch_data
        if kernel.dispatch_info is None:
            self._out.skip(BAD_ROW, number, f"{_COUNTED}: no dispatch_info")
            return
        values: dict[str, int | float] = {}
        for count in counted.records:
            name = self._counters.get(count.counter_id.handle)
            if name is None:
                self._out.problem(UNKNOWN_NAME, number, f"counter {count.counter_id.handle}")
                name = f"counter {count.counter_id.handle}"
            values[name] = values.get(name, 0) + count.value
        if not all(map(math.isfinite, values.values())):
            raise OverflowError("a counter is more than a double holds")
        encoded = msgspec.msgpack.encode(_Pass(kernel, number, values))
        self._passes.setdefault(kernel.dispatch_info.dispatch_id, []).append(encoded)

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
            name, category = self._operation(record, number), _cupti.MEMCPY
            track = self._tracks.queue(target, "Memory copies")
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
        counts: dict[str, int | float] = {}
        for counted in map(_decode_pass, self._passes.pop(dispatch.dispatch_id, ())):
            counts |= counted.values | counts  # of a counter in several passes the first one is used
            if counted.number != number:
                self._out.balance.merged[COUNTERS_OF_KERNELS] += 1
        args |= counts
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
        operations = self._names[record.kind].operations if 0 <= record.kind < len(self._names) else []
        if 0 <= record.operation < len(operations):
            return operations[record.operation]
        self._out.problem(UNKNOWN_NAME, number, f"operation {record.operation} of kind {record.kind}")
        return f"operation {record.operation} of kind {record.kind}"


def _described(agent: _Agent) -> str:
    kind = {1: "CPU", 2: "GPU"}.get(agent.type, "Agent")
    return f"{kind} {agent.logical_node_id}: {agent.product_name or agent.name}"


def read_sdk(source: Source, out: Builder, clock: ClockDomain) -> None:
    """Read the JSON of ROCprofiler-SDK, whose times are on that clock."""
    document = JsonDocument(source)
    try:
        tool = msgspec.json.decode(document.text, type=_Tool)
        writers = [_Sdk(out, document, process) for process in tool.processes]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise source.malformed(
            f"not the JSON of ROCprofiler-SDK: {error}", hint="was the program ended in time?"
        ) from None
    out.counts(RECORDS)
    out.info.real_ids = True
    hosts = [_hostname(process) for process in tool.processes]
    if len(set(hosts)) == 1 and hosts[0]:
        out.clocks.set_default(replace(clock, machine=hosts[0]))
    out.metadata["rocprofiler"] = [process.metadata for process in tool.processes]
    for writer in writers:
        writer.read()


def _hostname(process: _Process) -> str:
    node = process.metadata.get("node")
    return str(node.get("hostname", "")) if isinstance(node, dict) else ""
