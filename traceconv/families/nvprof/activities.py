"""The tables and tracks of a database of nvprof: columns by name, times checked, damage and losses counted.

nvprof creates every table up front, and each release adds some tables and columns. So a table or column may be absent
in an older file; an absent column reads as NULL. Nothing is taken from what a type is declared to be: SQLite stores any
value in any column, so what is not a number where numbers are wanted reads as NULL, too, and is counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from traceconv.errors import InputError
from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import PORTION, Row, Spans, Tables, whole
from traceconv.io.shown import Counted
from traceconv.io.sqlite import Database, Kind, as_text, quoted
from traceconv.model.builder import Builder
from traceconv.model.columns import I64
from traceconv.model.diagnostics import Code, absent, lost
from traceconv.model.drawable import NEVER_SET
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.track_table import NO_TRACK, TrackId

DESCRIBING_ROWS = Counted(
    "row that describes a device, context, stream or thread",
    "rows that describe devices, contexts, streams and threads",
)

NO_TIME = lost("nvprof.no_time", "a row has no start or end that is a whole number: left out")
DAMAGED = lost(
    "nvprof.damaged_table",
    "the database is damaged inside this table (cut, or still being written): the rows before the damage were read",
)
NO_STRING = absent(
    "nvprof.no_string", "a row refers to a string that StringTable does not hold: its number is shown instead"
)

ODD_VALUE = lost(
    "nvprof.odd_value",
    "a column of numbers or bytes holds another value: it was left out, the rest of the row was read",
)

PREFIX = "CUPTI_ACTIVITY_KIND_"
#: Columns of kernels that are shown only, as far as they hold anything, by their names in the args.
SHAPE = {
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_memory_bytes",
    "dynamicSharedMemory": "dynamic_shared_memory_bytes",
    "localMemoryPerThread": "local_memory_per_thread_bytes",
    "localMemoryTotal": "local_memory_total_bytes",
    "sharedMemoryExecuted": "shared_memory_executed_bytes",
}
GRID = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
#: All other columns are numbers. `_timed` checks times; values are checked where they are shown.
_KINDS = {
    **dict.fromkeys(("start", "end", "timestamp", "value", "payload", "uuid", "data", *SHAPE, *GRID), Kind.ANY),
    "objectId": Kind.BYTES,
}

#: CUpti_ActivityObjectKind.
PROCESS, THREAD, DEVICE, CONTEXT, STREAM = 1, 2, 3, 4, 5

_UNION = struct.Struct("<III")
#: "No stream", "no context", and the CPU as a device of unified memory.
_NONE = 0xFFFFFFFF
#: CUpti_ActivityStreamFlag: the context says the same.
_NULL_STREAM = 3
_DEVICE_COLUMNS = (
    *("id", "name", "computeCapabilityMajor", "computeCapabilityMinor", "numMultiprocessors"),
    *("globalMemorySize", "globalMemoryBandwidth", "coreClockRate", "uuid"),
)


class Activities(Tables):
    """The activity tables of one database, and its version if it states one."""

    prefix: ClassVar[str] = PREFIX
    damaged: ClassVar[Code] = DAMAGED
    odd_value: ClassVar[Code] = ODD_VALUE
    kinds: ClassVar[dict[str, Kind]] = _KINDS
    other_kind: ClassVar[Kind] = Kind.WHOLE

    def __init__(self, database: Database, out: Builder) -> None:
        super().__init__(database, out)
        self.has_rows = False
        strings = self._all("StringTable", ("_id_", "value"))
        self._strings: dict[Any, str] = {number: as_text(text) for number, text in strings if text is not None}
        versions = (row[0] for row in self._all("Version", ("version",)))
        self.version = next((version for version in versions if isinstance(version, int | str)), None)
        self._is_read: set[str] = set()

    def text(self, number: Any, at: str) -> str:
        """Return the string of that number, "" for none; a number without a string stays visible."""
        if not number:
            return ""
        known = self._strings.get(number)
        if known is None:
            self._out.problem(NO_STRING, at, f"string {number!s:.20}")
            return f"string {number!s:.20}"
        return known

    def unread(self) -> dict[str, int]:
        """Return the number of rows of each table that was not read."""
        counts = {name: self.count(name) for name in self.tables if name not in self._is_read}
        return {name: count for name, count in counts.items() if count}

    def rows(self, table: str, columns: Sequence[str], order: str = "") -> Iterator[Row]:
        """Yield all rows of a table: its row id, then the columns asked for; each is counted as read."""
        for rows in self._portions(table, columns, order):
            yield from rows

    def spans(self, table: str, columns: Sequence[str]) -> Iterator[Spans]:
        """Yield the rows that have a start and an end: row id, start, end, then the columns asked for."""
        for rows in self._portions(table, ("start", "end", *columns)):
            spans = self._timed(table, rows)
            if spans.rows:
                yield spans

    def moments(self, table: str, time: str, columns: Sequence[str], order: str = "") -> Iterator[Row]:
        """Yield the rows whose time, one of the columns, was set; others are counted as left out."""
        at = 1 + columns.index(time)
        for row in self.rows(table, columns, order):
            if type(row[at]) is int and row[at] != 0:
                yield row
            else:
                self._out.skip(NEVER_SET if row[at] == 0 else NO_TIME, self.place(table, row[0]))

    def place(self, table: str, number: Any = "") -> str:
        """Return where a row is, or a table, for messages."""
        return f"{self._out.info.name}:{super().place(table, number)}"

    def _portions(self, table: str, columns: Sequence[str], order: str = "") -> Iterator[Sequence[Row]]:
        self._is_read.add(table)
        if table not in self.tables:
            return
        key = self._database.row_id(PREFIX + table)
        sorted_by = [quoted(order), key] if self.has(table, order) else []
        for _, rows in self.portions(table, columns, order=sorted_by, number=key):
            self._out.balance.read += len(rows)
            self.has_rows = True
            yield [(0, *row[1:]) for row in rows] if rows[0][0] is None else rows

    def _all(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of one of the tables that hold no activities."""
        known = self._database.tables.get(table, ())
        if all(column in known for column in columns):
            try:
                for rows in self._database.batches(table, [quoted(column) for column in columns], PORTION):
                    yield from rows
            except InputError as error:
                self._damage(error, self.place(table))

    def _timed(self, table: str, rows: Sequence[Row]) -> Spans:
        starts, ends = whole([row[1] for row in rows]), whole([row[2] for row in rows])
        if starts is not None and ends is not None and _all_usable(starts) and _all_usable(ends):
            return Spans(rows, [row[0] for row in rows], starts, ends - starts)
        rows = [row for row in rows if self._has_time(table, row)]
        lengths = [row[2] - row[1] for row in rows]
        return Spans(rows, [row[0] for row in rows], [row[1] for row in rows], lengths)

    def _has_time(self, table: str, row: Row) -> bool:
        usable = type(row[1]) is int and type(row[2]) is int
        if not usable:
            self._out.skip(NO_TIME, self.place(table, row[0]))
        return usable


def _all_usable(times: I64) -> bool:
    return bool(np.min(times) > 0 and np.max(times) < LIMIT_NS)


class ObjectId(NamedTuple):
    """The object of a row: pid and thread of a process or thread, else device, context and stream."""

    kind: int
    first: int
    second: int
    third: int

    @classmethod
    def of(cls, kind: Any, blob: Any) -> ObjectId:
        """Return the id that two columns hold; missing parts are 0."""
        data = blob if isinstance(blob, bytes) else b""
        return cls(kind if isinstance(kind, int) else 0, *_UNION.unpack(data[:12].ljust(12, b"\0")))


class Tracks:
    """The tracks of a database, each made when it is first asked for.

        process 4711
          thread 2857740288            API calls and NVTX ranges
          GPU 0: Tesla V100
            Context 1
              Stream 7                 kernels, copies, memsets

    Devices, contexts and streams are numbered within a process, so that they are drawn below it. Which process a kernel
    belongs to is not stored: there is one process in a file, unless somebody has joined several; then the call that
    launched it tells.
    """

    def __init__(self, activities: Activities, out: Builder) -> None:
        self._activities = activities
        self._out = out
        self._names: dict[ObjectId, str] = {}
        self._streams: dict[tuple[Any, Any], str] = {}
        self._contexts: dict[Any, str] = {}
        self._null_streams: set[tuple[Any, Any]] = set()
        self.pids: list[int] = []
        self.devices: dict[Any, dict[str, Any]] = {}
        self.process, self.below_process = cache(self._process), cache(self._below_process)
        self.device, self.below_device = cache(self._device), cache(self._below_device)
        self.context, self.stream = cache(self._context), cache(self._stream)
        self.counter, self._unsigned_thread = cache(self._counter), cache(self._thread)
        self._read_names()
        self._read_devices()
        self._read_contexts()
        self._read_streams()

    def _read_names(self) -> None:
        for row, kind, blob, name in self._rows("NAME", ("objectKind", "objectId", "name")):
            text = self._activities.text(name, self._activities.place("NAME", row))
            named = ObjectId.of(kind, blob)
            self._names[named._replace(third=0) if kind in (PROCESS, THREAD) else named] = text

    def _read_devices(self) -> None:
        for row, number, name, major, minor, processors, size, bandwidth, clock, uuid in self._rows(
            "DEVICE", _DEVICE_COLUMNS
        ):
            info = {
                "id": number,
                "name": self._activities.text(name, self._activities.place("DEVICE", row)),
                "compute_capability": f"{major}.{minor}" if major is not None else None,
                "multiprocessors": processors,
                "memory_bytes": size,
                "memory_bandwidth_kb_per_s": bandwidth,
                "core_clock_khz": clock,
                "uuid": uuid.hex() if isinstance(uuid, bytes) else None,
            }
            self.devices[number] = {key: value for key, value in info.items() if value is not None}

    def _read_contexts(self) -> None:
        for _, context, api, null_stream in self._rows("CONTEXT", ("contextId", "computeApiKind", "nullStreamId")):
            self._contexts[context] = _cupti.named(_cupti.COMPUTE_API, api)
            self._null_streams.add((context, null_stream))

    def _read_streams(self) -> None:
        for _, context, stream, priority, flag in self._rows("STREAM", ("contextId", "streamId", "priority", "flag")):
            kind = _cupti.named(_cupti.STREAM_FLAG, flag)
            words = (kind if flag != _NULL_STREAM else "", f"priority {priority}" if priority else "")
            self._streams[context, stream] = ", ".join(filter(None, words))

    def _rows(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        rows = list(self._activities.rows(table, columns))
        if rows:
            self._out.balance.merged[DESCRIBING_ROWS] += len(rows)
        return rows

    def _process(self, pid: Any) -> TrackId:
        """Return a process; NO_TRACK if the number is none."""
        if not isinstance(pid, int) or pid <= 0:
            return NO_TRACK
        self.pids.append(pid)
        return self._out.tracks.process(self._names.get(ObjectId(PROCESS, pid, 0, 0), ""), pid=pid)

    def thread(self, pid: Any, number: Any) -> TrackId:
        """Return a thread: its number is the lower half of a pthread handle, stored as signed, and no tid."""
        return self._unsigned_thread(pid, number & _NONE if isinstance(number, int) else number)

    def _thread(self, pid: Any, number: Any) -> TrackId:
        of_pid = pid if isinstance(pid, int) else 0
        name = self._names.get(ObjectId(THREAD, of_pid, number, 0), "") if isinstance(number, int) else ""
        process = self.process(pid)
        label = f"thread {number}"
        if process == NO_TRACK:
            return self._out.tracks.add(name or label)
        return self._out.tracks.thread(process, None, f"{name} ({label})" if name else label)

    def _below_process(self, pid: Any, name: str, description: str = "") -> TrackId:
        return self._out.tracks.add(name, self.process(pid), description=description)

    def _device(self, pid: Any, device: Any) -> TrackId:
        info = self.devices.get(device, {})
        name = info.get("name") or self._names.get(ObjectId(DEVICE, _u32(device), 0, 0))
        label = f"GPU {device}" if device is not None else "GPU"
        words = [f"compute capability {info['compute_capability']}"] if "compute_capability" in info else []
        words += [f"{info['multiprocessors']} multiprocessors"] if "multiprocessors" in info else []
        words += [f"{info['memory_bytes'] >> 20} MiB"] if isinstance(info.get("memory_bytes"), int) else []
        return self._add(label, name, self.process(pid), ", ".join(words))

    def _below_device(self, pid: Any, device: Any, name: str, description: str = "") -> TrackId:
        parent = self.device(pid, device) if device not in (None, _NONE, -1) else self.process(pid)
        return self._out.tracks.add(name, parent, description=description)

    def _counter(self, pid: Any, device: Any, name: str, unit: str, description: str = "") -> TrackId:
        return self._out.tracks.counter(name, self.device(pid, device), unit=unit, description=description)

    def _context(self, pid: Any, device: Any, context: Any) -> TrackId:
        name = self._names.get(ObjectId(CONTEXT, _u32(device), _u32(context), 0), "")
        label = f"Context {context}" if context is not None else "no context"
        return self._add(label, name, self.device(pid, device), self._contexts.get(context, ""))

    def _stream(self, pid: Any, device: Any, context: Any, stream: Any) -> TrackId:
        if stream in (None, _NONE, -1):
            return self.context(pid, device, context)
        name = self._names.get(ObjectId(STREAM, _u32(device), _u32(context), _u32(stream)), "")
        default = "default stream" if (context, stream) in self._null_streams else ""
        words = ", ".join(filter(None, (default, self._streams.get((context, stream), ""))))
        return self._add(f"Stream {stream}", name, self.context(pid, device, context), words)

    def _add(self, label: str, name: str | None, parent: TrackId, description: str) -> TrackId:
        return self._out.tracks.add(f"{label}: {name}" if name else label, parent, description=description)


def _u32(number: Any) -> int:
    return number & _NONE if isinstance(number, int) else 0


def _names(prefix: str, text: str) -> dict[int, str]:
    """Return names by number: they count from 1, and a number in the text is that of the name after it."""
    names, number = {}, 1
    for word in text.split():
        if word.isdigit():
            number = int(word)
        else:
            names[number] = prefix + word
            number += 1
    return names


#: cuda*: what programs and libraries call, by the callback ids (cbid) under which nvprof stores them. Source: the
#: constants of `cupti_runtime_cbid.h` and `cupti_driver_cbid.h` of CUDA 11.8 and 12.9, without the version of the
#: signature (`_v3020`, `_v2`). An id never changes its function from one release to the next.
RUNTIME: Final = _names(
    "cuda",
    """
    DriverGetVersion RuntimeGetVersion GetDeviceCount GetDeviceProperties ChooseDevice GetChannelDesc CreateChannelDesc
    ConfigureCall SetupArgument GetLastError PeekAtLastError GetErrorString Launch FuncSetCacheConfig FuncGetAttributes
    SetDevice GetDevice SetValidDevices SetDeviceFlags Malloc MallocPitch Free MallocArray FreeArray MallocHost FreeHost
    HostAlloc HostGetDevicePointer HostGetFlags MemGetInfo Memcpy Memcpy2D MemcpyToArray Memcpy2DToArray MemcpyFromArray
    Memcpy2DFromArray MemcpyArrayToArray Memcpy2DArrayToArray MemcpyToSymbol MemcpyFromSymbol MemcpyAsync
    MemcpyToArrayAsync MemcpyFromArrayAsync Memcpy2DAsync Memcpy2DToArrayAsync Memcpy2DFromArrayAsync
    MemcpyToSymbolAsync MemcpyFromSymbolAsync Memset Memset2D MemsetAsync Memset2DAsync GetSymbolAddress GetSymbolSize
    BindTexture BindTexture2D BindTextureToArray UnbindTexture GetTextureAlignmentOffset GetTextureReference
    BindSurfaceToArray GetSurfaceReference GLSetGLDevice GLRegisterBufferObject GLMapBufferObject GLUnmapBufferObject
    GLUnregisterBufferObject GLSetBufferObjectMapFlags GLMapBufferObjectAsync GLUnmapBufferObjectAsync WGLGetDevice
    GraphicsGLRegisterImage GraphicsGLRegisterBuffer GraphicsUnregisterResource GraphicsResourceSetMapFlags
    GraphicsMapResources GraphicsUnmapResources GraphicsResourceGetMappedPointer GraphicsSubResourceGetMappedArray
    VDPAUGetDevice VDPAUSetVDPAUDevice GraphicsVDPAURegisterVideoSurface GraphicsVDPAURegisterOutputSurface
    D3D11GetDevice D3D11GetDevices D3D11SetDirect3DDevice GraphicsD3D11RegisterResource D3D10GetDevice D3D10GetDevices
    D3D10SetDirect3DDevice GraphicsD3D10RegisterResource D3D10RegisterResource D3D10UnregisterResource D3D10MapResources
    D3D10UnmapResources D3D10ResourceSetMapFlags D3D10ResourceGetSurfaceDimensions D3D10ResourceGetMappedArray
    D3D10ResourceGetMappedPointer D3D10ResourceGetMappedSize D3D10ResourceGetMappedPitch D3D9GetDevice D3D9GetDevices
    D3D9SetDirect3DDevice D3D9GetDirect3DDevice GraphicsD3D9RegisterResource D3D9RegisterResource D3D9UnregisterResource
    D3D9MapResources D3D9UnmapResources D3D9ResourceSetMapFlags D3D9ResourceGetSurfaceDimensions
    D3D9ResourceGetMappedArray D3D9ResourceGetMappedPointer D3D9ResourceGetMappedSize D3D9ResourceGetMappedPitch
    D3D9Begin D3D9End D3D9RegisterVertexBuffer D3D9UnregisterVertexBuffer D3D9MapVertexBuffer D3D9UnmapVertexBuffer
    ThreadExit SetDoubleForDevice SetDoubleForHost ThreadSynchronize ThreadGetLimit ThreadSetLimit StreamCreate
    StreamDestroy StreamSynchronize StreamQuery EventCreate EventCreateWithFlags EventRecord EventDestroy
    EventSynchronize EventQuery EventElapsedTime Malloc3D Malloc3DArray Memset3D Memset3DAsync Memcpy3D Memcpy3DAsync
    ThreadSetCacheConfig StreamWaitEvent D3D11GetDirect3DDevice D3D10GetDirect3DDevice ThreadGetCacheConfig
    PointerGetAttributes HostRegister HostUnregister DeviceCanAccessPeer DeviceEnablePeerAccess DeviceDisablePeerAccess
    PeerRegister PeerUnregister PeerGetDevicePointer MemcpyPeer MemcpyPeerAsync Memcpy3DPeer Memcpy3DPeerAsync
    DeviceReset DeviceSynchronize DeviceGetLimit DeviceSetLimit DeviceGetCacheConfig DeviceSetCacheConfig
    ProfilerInitialize ProfilerStart ProfilerStop DeviceGetByPCIBusId DeviceGetPCIBusId GLGetDevices IpcGetEventHandle
    IpcOpenEventHandle IpcGetMemHandle IpcOpenMemHandle IpcCloseMemHandle ArrayGetInfo FuncSetSharedMemConfig
    DeviceGetSharedMemConfig DeviceSetSharedMemConfig CreateTextureObject DestroyTextureObject
    GetTextureObjectResourceDesc GetTextureObjectTextureDesc CreateSurfaceObject DestroySurfaceObject
    GetSurfaceObjectResourceDesc MallocMipmappedArray GetMipmappedArrayLevel FreeMipmappedArray
    BindTextureToMipmappedArray GraphicsResourceGetMappedMipmappedArray StreamAddCallback StreamCreateWithFlags
    GetTextureObjectResourceViewDesc DeviceGetAttribute StreamDestroy StreamCreateWithPriority StreamGetPriority
    StreamGetFlags DeviceGetStreamPriorityRange MallocManaged OccupancyMaxActiveBlocksPerMultiprocessor
    StreamAttachMemAsync GetErrorName OccupancyMaxActiveBlocksPerMultiprocessor LaunchKernel GetDeviceFlags Launch_ptsz
    LaunchKernel_ptsz Memcpy_ptds Memcpy2D_ptds MemcpyToArray_ptds Memcpy2DToArray_ptds MemcpyFromArray_ptds
    Memcpy2DFromArray_ptds MemcpyArrayToArray_ptds Memcpy2DArrayToArray_ptds MemcpyToSymbol_ptds MemcpyFromSymbol_ptds
    MemcpyAsync_ptsz MemcpyToArrayAsync_ptsz MemcpyFromArrayAsync_ptsz Memcpy2DAsync_ptsz Memcpy2DToArrayAsync_ptsz
    Memcpy2DFromArrayAsync_ptsz MemcpyToSymbolAsync_ptsz MemcpyFromSymbolAsync_ptsz Memset_ptds Memset2D_ptds
    MemsetAsync_ptsz Memset2DAsync_ptsz StreamGetPriority_ptsz StreamGetFlags_ptsz StreamSynchronize_ptsz
    StreamQuery_ptsz StreamAttachMemAsync_ptsz EventRecord_ptsz Memset3D_ptds Memset3DAsync_ptsz Memcpy3D_ptds
    Memcpy3DAsync_ptsz StreamWaitEvent_ptsz StreamAddCallback_ptsz Memcpy3DPeer_ptds Memcpy3DPeerAsync_ptsz
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags MemPrefetchAsync MemPrefetchAsync_ptsz MemAdvise
    DeviceGetP2PAttribute GraphicsEGLRegisterImage EGLStreamConsumerConnect EGLStreamConsumerDisconnect
    EGLStreamConsumerAcquireFrame EGLStreamConsumerReleaseFrame EGLStreamProducerConnect EGLStreamProducerDisconnect
    EGLStreamProducerPresentFrame EGLStreamProducerReturnFrame GraphicsResourceGetMappedEglFrame MemRangeGetAttribute
    MemRangeGetAttributes EGLStreamConsumerConnectWithFlags LaunchCooperativeKernel LaunchCooperativeKernel_ptsz
    EventCreateFromEGLSync LaunchCooperativeKernelMultiDevice FuncSetAttribute ImportExternalMemory
    ExternalMemoryGetMappedBuffer ExternalMemoryGetMappedMipmappedArray DestroyExternalMemory ImportExternalSemaphore
    SignalExternalSemaphoresAsync SignalExternalSemaphoresAsync_ptsz WaitExternalSemaphoresAsync
    WaitExternalSemaphoresAsync_ptsz DestroyExternalSemaphore LaunchHostFunc LaunchHostFunc_ptsz GraphCreate
    GraphKernelNodeGetParams GraphKernelNodeSetParams GraphAddKernelNode GraphAddMemcpyNode GraphMemcpyNodeGetParams
    GraphMemcpyNodeSetParams GraphAddMemsetNode GraphMemsetNodeGetParams GraphMemsetNodeSetParams GraphAddHostNode
    GraphHostNodeGetParams GraphAddChildGraphNode GraphChildGraphNodeGetGraph GraphAddEmptyNode GraphClone
    GraphNodeFindInClone GraphNodeGetType GraphGetRootNodes GraphNodeGetDependencies GraphNodeGetDependentNodes
    GraphAddDependencies GraphRemoveDependencies GraphDestroyNode GraphInstantiate GraphLaunch GraphLaunch_ptsz
    GraphExecDestroy GraphDestroy StreamBeginCapture StreamBeginCapture_ptsz StreamIsCapturing StreamIsCapturing_ptsz
    StreamEndCapture StreamEndCapture_ptsz GraphHostNodeSetParams GraphGetNodes GraphGetEdges StreamGetCaptureInfo
    StreamGetCaptureInfo_ptsz GraphExecKernelNodeSetParams ThreadExchangeStreamCaptureMode DeviceGetNvSciSyncAttributes
    OccupancyAvailableDynamicSMemPerBlock StreamSetFlags StreamSetFlags_ptsz GraphExecMemcpyNodeSetParams
    GraphExecMemsetNodeSetParams GraphExecHostNodeSetParams GraphExecUpdate GetFuncBySymbol CtxResetPersistingL2Cache
    GraphKernelNodeCopyAttributes GraphKernelNodeGetAttribute GraphKernelNodeSetAttribute StreamCopyAttributes
    StreamCopyAttributes_ptsz StreamGetAttribute StreamGetAttribute_ptsz StreamSetAttribute StreamSetAttribute_ptsz
    DeviceGetTexture1DLinearMaxWidth GraphUpload GraphUpload_ptsz GraphAddMemcpyNodeToSymbol
    GraphAddMemcpyNodeFromSymbol GraphAddMemcpyNode1D GraphMemcpyNodeSetParamsToSymbol
    GraphMemcpyNodeSetParamsFromSymbol GraphMemcpyNodeSetParams1D GraphExecMemcpyNodeSetParamsToSymbol
    GraphExecMemcpyNodeSetParamsFromSymbol GraphExecMemcpyNodeSetParams1D ArrayGetSparseProperties
    MipmappedArrayGetSparseProperties GraphExecChildGraphNodeSetParams GraphAddEventRecordNode
    GraphEventRecordNodeGetEvent GraphEventRecordNodeSetEvent GraphAddEventWaitNode GraphEventWaitNodeGetEvent
    GraphEventWaitNodeSetEvent GraphExecEventRecordNodeSetEvent GraphExecEventWaitNodeSetEvent EventRecordWithFlags
    EventRecordWithFlags_ptsz DeviceGetDefaultMemPool MallocAsync MallocAsync_ptsz FreeAsync FreeAsync_ptsz
    MemPoolTrimTo MemPoolSetAttribute MemPoolGetAttribute MemPoolSetAccess ArrayGetPlane MemPoolGetAccess MemPoolCreate
    MemPoolDestroy DeviceSetMemPool DeviceGetMemPool MemPoolExportToShareableHandle MemPoolImportFromShareableHandle
    MemPoolExportPointer MemPoolImportPointer MallocFromPoolAsync MallocFromPoolAsync_ptsz
    SignalExternalSemaphoresAsync_v2 SignalExternalSemaphoresAsync_v2_ptsz WaitExternalSemaphoresAsync_v2
    WaitExternalSemaphoresAsync_v2_ptsz GraphAddExternalSemaphoresSignalNode GraphExternalSemaphoresSignalNodeGetParams
    GraphExternalSemaphoresSignalNodeSetParams GraphAddExternalSemaphoresWaitNode
    GraphExternalSemaphoresWaitNodeGetParams GraphExternalSemaphoresWaitNodeSetParams
    GraphExecExternalSemaphoresSignalNodeSetParams GraphExecExternalSemaphoresWaitNodeSetParams
    DeviceFlushGPUDirectRDMAWrites GetDriverEntryPoint GetDriverEntryPoint_ptsz GraphDebugDotPrint
    StreamGetCaptureInfo_v2 StreamGetCaptureInfo_v2_ptsz StreamUpdateCaptureDependencies
    StreamUpdateCaptureDependencies_ptsz UserObjectCreate UserObjectRetain UserObjectRelease GraphRetainUserObject
    GraphReleaseUserObject GraphInstantiateWithFlags GraphAddMemAllocNode GraphMemAllocNodeGetParams GraphAddMemFreeNode
    GraphMemFreeNodeGetParams DeviceGraphMemTrim DeviceGetGraphMemAttribute DeviceSetGraphMemAttribute
    GraphNodeSetEnabled GraphNodeGetEnabled ArrayGetMemoryRequirements MipmappedArrayGetMemoryRequirements
    LaunchKernelExC LaunchKernelExC_ptsz OccupancyMaxPotentialClusterSize OccupancyMaxActiveClusters
    CreateTextureObject_v2 GetTextureObjectTextureDesc_v2 GraphInstantiateWithParams GraphInstantiateWithParams_ptsz
    GraphExecGetFlags GetKernel GetDeviceProperties_v2 StreamGetId StreamGetId_ptsz GraphInstantiate InitDevice
    GraphAddNode GraphNodeSetParams GraphExecNodeSetParams MemAdvise_v2 MemPrefetchAsync_v2 MemPrefetchAsync_v2_ptsz
    FuncGetName StreamBeginCaptureToGraph StreamBeginCaptureToGraph_ptsz GraphConditionalHandleCreate GraphGetEdges_v2
    GraphNodeGetDependencies_v2 GraphNodeGetDependentNodes_v2 GraphAddDependencies_v2 GraphRemoveDependencies_v2
    GraphAddNode_v2 StreamGetCaptureInfo_v3 StreamGetCaptureInfo_v3_ptsz StreamUpdateCaptureDependencies_v2
    StreamUpdateCaptureDependencies_v2_ptsz DeviceRegisterAsyncNotification DeviceUnregisterAsyncNotification
    FuncGetParamInfo GetDriverEntryPointByVersion GetDriverEntryPointByVersion_ptsz LibraryLoadData LibraryLoadFromFile
    LibraryUnload LibraryGetKernel LibraryGetGlobal LibraryGetManaged LibraryGetUnifiedFunction LibraryGetKernelCount
    LibraryEnumerateKernels KernelSetAttributeForDevice StreamGetDevice StreamGetDevice_ptsz MemcpyBatchAsync
    MemcpyBatchAsync_ptsz Memcpy3DBatchAsync Memcpy3DBatchAsync_ptsz EventElapsedTime_v2
    """,
)

#: cu*: what the runtime, and a few programs, call.
DRIVER: Final = _names(
    "cu",
    """
    Init DriverGetVersion DeviceGet DeviceGetCount DeviceGetName DeviceComputeCapability DeviceTotalMem
    DeviceGetProperties DeviceGetAttribute CtxCreate CtxDestroy CtxAttach CtxDetach CtxPushCurrent CtxPopCurrent
    CtxGetDevice CtxSynchronize ModuleLoad ModuleLoadData ModuleLoadDataEx ModuleLoadFatBinary ModuleUnload
    ModuleGetFunction ModuleGetGlobal 64ModuleGetGlobal ModuleGetTexRef MemGetInfo 64MemGetInfo MemAlloc 64MemAlloc
    MemAllocPitch 64MemAllocPitch MemFree 64MemFree MemGetAddressRange 64MemGetAddressRange MemAllocHost MemFreeHost
    MemHostAlloc MemHostGetDevicePointer 64MemHostGetDevicePointer MemHostGetFlags MemcpyHtoD 64MemcpyHtoD MemcpyDtoH
    64MemcpyDtoH MemcpyDtoD 64MemcpyDtoD MemcpyDtoA 64MemcpyDtoA MemcpyAtoD 64MemcpyAtoD MemcpyHtoA MemcpyAtoH
    MemcpyAtoA Memcpy2D Memcpy2DUnaligned Memcpy3D 64Memcpy3D MemcpyHtoDAsync 64MemcpyHtoDAsync MemcpyDtoHAsync
    64MemcpyDtoHAsync MemcpyDtoDAsync 64MemcpyDtoDAsync MemcpyHtoAAsync MemcpyAtoHAsync Memcpy2DAsync Memcpy3DAsync
    64Memcpy3DAsync MemsetD8 64MemsetD8 MemsetD16 64MemsetD16 MemsetD32 64MemsetD32 MemsetD2D8 64MemsetD2D8 MemsetD2D16
    64MemsetD2D16 MemsetD2D32 64MemsetD2D32 FuncSetBlockShape FuncSetSharedSize FuncGetAttribute FuncSetCacheConfig
    ArrayCreate ArrayGetDescriptor ArrayDestroy Array3DCreate Array3DGetDescriptor TexRefCreate TexRefDestroy
    TexRefSetArray TexRefSetAddress 64TexRefSetAddress TexRefSetAddress2D 64TexRefSetAddress2D TexRefSetFormat
    TexRefSetAddressMode TexRefSetFilterMode TexRefSetFlags TexRefGetAddress 64TexRefGetAddress TexRefGetArray
    TexRefGetAddressMode TexRefGetFilterMode TexRefGetFormat TexRefGetFlags ParamSetSize ParamSeti ParamSetf ParamSetv
    ParamSetTexRef Launch LaunchGrid LaunchGridAsync EventCreate EventRecord EventQuery EventSynchronize EventDestroy
    EventElapsedTime StreamCreate StreamQuery StreamSynchronize StreamDestroy GraphicsUnregisterResource
    GraphicsSubResourceGetMappedArray GraphicsResourceGetMappedPointer 64GraphicsResourceGetMappedPointer
    GraphicsResourceSetMapFlags GraphicsMapResources GraphicsUnmapResources GetExportTable CtxSetLimit CtxGetLimit
    D3D10GetDevice D3D10CtxCreate GraphicsD3D10RegisterResource D3D10RegisterResource D3D10UnregisterResource
    D3D10MapResources D3D10UnmapResources D3D10ResourceSetMapFlags D3D10ResourceGetMappedArray
    D3D10ResourceGetMappedPointer D3D10ResourceGetMappedSize D3D10ResourceGetMappedPitch
    D3D10ResourceGetSurfaceDimensions D3D11GetDevice D3D11CtxCreate GraphicsD3D11RegisterResource D3D9GetDevice
    D3D9CtxCreate GraphicsD3D9RegisterResource D3D9GetDirect3DDevice D3D9RegisterResource D3D9UnregisterResource
    D3D9MapResources D3D9UnmapResources D3D9ResourceSetMapFlags D3D9ResourceGetSurfaceDimensions
    D3D9ResourceGetMappedArray D3D9ResourceGetMappedPointer D3D9ResourceGetMappedSize D3D9ResourceGetMappedPitch
    D3D9Begin D3D9End D3D9RegisterVertexBuffer D3D9MapVertexBuffer D3D9UnmapVertexBuffer D3D9UnregisterVertexBuffer
    GLCtxCreate GraphicsGLRegisterBuffer GraphicsGLRegisterImage WGLGetDevice GLInit GLRegisterBufferObject
    GLMapBufferObject GLUnmapBufferObject GLUnregisterBufferObject GLSetBufferObjectMapFlags GLMapBufferObjectAsync
    GLUnmapBufferObjectAsync VDPAUGetDevice VDPAUCtxCreate GraphicsVDPAURegisterVideoSurface
    GraphicsVDPAURegisterOutputSurface ModuleGetSurfRef SurfRefCreate SurfRefDestroy SurfRefSetFormat SurfRefSetArray
    SurfRefGetFormat SurfRefGetArray 64DeviceTotalMem 64D3D10ResourceGetMappedPointer 64D3D10ResourceGetMappedSize
    64D3D10ResourceGetMappedPitch 64D3D10ResourceGetSurfaceDimensions 64D3D9ResourceGetSurfaceDimensions
    64D3D9ResourceGetMappedPointer 64D3D9ResourceGetMappedSize 64D3D9ResourceGetMappedPitch 64D3D9MapVertexBuffer
    64GLMapBufferObject 64GLMapBufferObjectAsync D3D11GetDevices D3D11CtxCreateOnDevice D3D10GetDevices
    D3D10CtxCreateOnDevice D3D9GetDevices D3D9CtxCreateOnDevice 64MemHostAlloc MemsetD8Async 64MemsetD8Async
    MemsetD16Async 64MemsetD16Async MemsetD32Async 64MemsetD32Async MemsetD2D8Async 64MemsetD2D8Async MemsetD2D16Async
    64MemsetD2D16Async MemsetD2D32Async 64MemsetD2D32Async 64ArrayCreate 64ArrayGetDescriptor 64Array3DCreate
    64Array3DGetDescriptor 64Memcpy2D 64Memcpy2DUnaligned 64Memcpy2DAsync CtxCreate D3D10CtxCreate D3D11CtxCreate
    D3D9CtxCreate GLCtxCreate VDPAUCtxCreate ModuleGetGlobal MemGetInfo MemAlloc MemAllocPitch MemFree
    MemGetAddressRange MemHostGetDevicePointer Memcpy MemsetD8 MemsetD16 MemsetD32 MemsetD2D8 MemsetD2D16 MemsetD2D32
    TexRefSetAddress TexRefSetAddress2D TexRefGetAddress GraphicsResourceGetMappedPointer DeviceTotalMem
    D3D10ResourceGetMappedPointer D3D10ResourceGetMappedSize D3D10ResourceGetMappedPitch
    D3D10ResourceGetSurfaceDimensions D3D9ResourceGetSurfaceDimensions D3D9ResourceGetMappedPointer
    D3D9ResourceGetMappedSize D3D9ResourceGetMappedPitch D3D9MapVertexBuffer GLMapBufferObject GLMapBufferObjectAsync
    MemHostAlloc ArrayCreate ArrayGetDescriptor Array3DCreate Array3DGetDescriptor MemcpyHtoD MemcpyHtoDAsync MemcpyDtoH
    MemcpyDtoHAsync MemcpyDtoD MemcpyDtoDAsync MemcpyAtoH MemcpyAtoHAsync MemcpyAtoD MemcpyDtoA MemcpyAtoA Memcpy2D
    Memcpy2DUnaligned Memcpy2DAsync Memcpy3D Memcpy3DAsync MemcpyHtoA MemcpyHtoAAsync MemAllocHost StreamWaitEvent
    CtxGetApiVersion D3D10GetDirect3DDevice D3D11GetDirect3DDevice CtxGetCacheConfig CtxSetCacheConfig MemHostRegister
    MemHostUnregister CtxSetCurrent CtxGetCurrent Memcpy MemcpyAsync LaunchKernel ProfilerStart ProfilerStop
    PointerGetAttribute ProfilerInitialize DeviceCanAccessPeer CtxEnablePeerAccess CtxDisablePeerAccess MemPeerRegister
    MemPeerUnregister MemPeerGetDevicePointer MemcpyPeer MemcpyPeerAsync Memcpy3DPeer Memcpy3DPeerAsync CtxDestroy
    CtxPushCurrent CtxPopCurrent EventDestroy StreamDestroy TexRefSetAddress2D IpcGetMemHandle IpcOpenMemHandle
    IpcCloseMemHandle DeviceGetByPCIBusId DeviceGetPCIBusId GLGetDevices IpcGetEventHandle IpcOpenEventHandle
    CtxSetSharedMemConfig CtxGetSharedMemConfig FuncSetSharedMemConfig TexObjectCreate TexObjectDestroy
    TexObjectGetResourceDesc TexObjectGetTextureDesc SurfObjectCreate SurfObjectDestroy SurfObjectGetResourceDesc
    StreamAddCallback MipmappedArrayCreate MipmappedArrayGetLevel MipmappedArrayDestroy TexRefSetMipmappedArray
    TexRefSetMipmapFilterMode TexRefSetMipmapLevelBias TexRefSetMipmapLevelClamp TexRefSetMaxAnisotropy
    TexRefGetMipmappedArray TexRefGetMipmapFilterMode TexRefGetMipmapLevelBias TexRefGetMipmapLevelClamp
    TexRefGetMaxAnisotropy GraphicsResourceGetMappedMipmappedArray TexObjectGetResourceViewDesc LinkCreate LinkAddData
    LinkAddFile LinkComplete LinkDestroy StreamCreateWithPriority StreamGetPriority StreamGetFlags
    CtxGetStreamPriorityRange MemAllocManaged GetErrorString GetErrorName OccupancyMaxActiveBlocksPerMultiprocessor
    CompilePtx BinaryFree StreamAttachMemAsync PointerSetAttribute MemHostRegister GraphicsResourceSetMapFlags
    LinkCreate LinkAddData LinkAddFile OccupancyMaxPotentialBlockSize GLGetDevices DevicePrimaryCtxRetain
    DevicePrimaryCtxRelease DevicePrimaryCtxSetFlags DevicePrimaryCtxReset GraphicsEGLRegisterImage CtxGetFlags
    DevicePrimaryCtxGetState EGLStreamConsumerConnect EGLStreamConsumerDisconnect EGLStreamConsumerAcquireFrame
    EGLStreamConsumerReleaseFrame MemcpyHtoD_ptds MemcpyDtoH_ptds MemcpyDtoD_ptds MemcpyDtoA_ptds MemcpyAtoD_ptds
    MemcpyHtoA_ptds MemcpyAtoH_ptds MemcpyAtoA_ptds Memcpy2D_ptds Memcpy2DUnaligned_ptds Memcpy3D_ptds Memcpy_ptds
    MemcpyPeer_ptds Memcpy3DPeer_ptds MemsetD8_ptds MemsetD16_ptds MemsetD32_ptds MemsetD2D8_ptds MemsetD2D16_ptds
    MemsetD2D32_ptds GLMapBufferObject_ptds MemcpyAsync_ptsz MemcpyHtoAAsync_ptsz MemcpyAtoHAsync_ptsz
    MemcpyHtoDAsync_ptsz MemcpyDtoHAsync_ptsz MemcpyDtoDAsync_ptsz Memcpy2DAsync_ptsz Memcpy3DAsync_ptsz
    MemcpyPeerAsync_ptsz Memcpy3DPeerAsync_ptsz MemsetD8Async_ptsz MemsetD16Async_ptsz MemsetD32Async_ptsz
    MemsetD2D8Async_ptsz MemsetD2D16Async_ptsz MemsetD2D32Async_ptsz StreamGetPriority_ptsz StreamGetFlags_ptsz
    StreamWaitEvent_ptsz StreamAddCallback_ptsz StreamAttachMemAsync_ptsz StreamQuery_ptsz StreamSynchronize_ptsz
    EventRecord_ptsz LaunchKernel_ptsz GraphicsMapResources_ptsz GraphicsUnmapResources_ptsz GLMapBufferObjectAsync_ptsz
    EGLStreamProducerConnect EGLStreamProducerDisconnect EGLStreamProducerPresentFrame GraphicsResourceGetMappedEglFrame
    PointerGetAttributes OccupancyMaxActiveBlocksPerMultiprocessorWithFlags OccupancyMaxPotentialBlockSizeWithFlags
    EGLStreamProducerReturnFrame DeviceGetP2PAttribute TexRefSetBorderColor TexRefGetBorderColor MemAdvise
    StreamWaitValue32 StreamWaitValue32_ptsz StreamWriteValue32 StreamWriteValue32_ptsz StreamBatchMemOp
    StreamBatchMemOp_ptsz NVNbufferGetPointer NVNtextureGetArray NNSetAllocator MemPrefetchAsync MemPrefetchAsync_ptsz
    EventCreateFromNVNSync EGLStreamConsumerConnectWithFlags MemRangeGetAttribute MemRangeGetAttributes
    StreamWaitValue64 StreamWaitValue64_ptsz StreamWriteValue64 StreamWriteValue64_ptsz LaunchCooperativeKernel
    LaunchCooperativeKernel_ptsz EventCreateFromEGLSync LaunchCooperativeKernelMultiDevice FuncSetAttribute
    DeviceGetUuid StreamGetCtx StreamGetCtx_ptsz ImportExternalMemory ExternalMemoryGetMappedBuffer
    ExternalMemoryGetMappedMipmappedArray DestroyExternalMemory ImportExternalSemaphore SignalExternalSemaphoresAsync
    SignalExternalSemaphoresAsync_ptsz WaitExternalSemaphoresAsync WaitExternalSemaphoresAsync_ptsz
    DestroyExternalSemaphore StreamBeginCapture StreamBeginCapture_ptsz StreamEndCapture StreamEndCapture_ptsz
    StreamIsCapturing StreamIsCapturing_ptsz GraphCreate GraphAddKernelNode GraphKernelNodeGetParams GraphAddMemcpyNode
    GraphMemcpyNodeGetParams GraphAddMemsetNode GraphMemsetNodeGetParams GraphMemsetNodeSetParams GraphNodeGetType
    GraphGetRootNodes GraphNodeGetDependencies GraphNodeGetDependentNodes GraphInstantiate GraphLaunch GraphLaunch_ptsz
    GraphExecDestroy GraphDestroy GraphAddDependencies GraphRemoveDependencies GraphMemcpyNodeSetParams
    GraphKernelNodeSetParams GraphDestroyNode GraphClone GraphNodeFindInClone GraphAddChildGraphNode GraphAddEmptyNode
    LaunchHostFunc LaunchHostFunc_ptsz GraphChildGraphNodeGetGraph GraphAddHostNode GraphHostNodeGetParams DeviceGetLuid
    GraphHostNodeSetParams GraphGetNodes GraphGetEdges StreamGetCaptureInfo StreamGetCaptureInfo_ptsz
    GraphExecKernelNodeSetParams StreamBeginCapture StreamBeginCapture_ptsz ThreadExchangeStreamCaptureMode
    DeviceGetNvSciSyncAttributes OccupancyAvailableDynamicSMemPerBlock DevicePrimaryCtxRelease DevicePrimaryCtxReset
    DevicePrimaryCtxSetFlags MemAddressReserve MemAddressFree MemCreate MemRelease MemMap MemUnmap MemSetAccess
    MemExportToShareableHandle MemImportFromShareableHandle MemGetAllocationGranularity
    MemGetAllocationPropertiesFromHandle MemGetAccess StreamSetFlags StreamSetFlags_ptsz GraphExecUpdate
    GraphExecMemcpyNodeSetParams GraphExecMemsetNodeSetParams GraphExecHostNodeSetParams MemRetainAllocationHandle
    FuncGetModule IpcOpenMemHandle CtxResetPersistingL2Cache GraphKernelNodeCopyAttributes GraphKernelNodeGetAttribute
    GraphKernelNodeSetAttribute StreamCopyAttributes StreamCopyAttributes_ptsz StreamGetAttribute
    StreamGetAttribute_ptsz StreamSetAttribute StreamSetAttribute_ptsz GraphInstantiate DeviceGetTexture1DLinearMaxWidth
    GraphUpload GraphUpload_ptsz ArrayGetSparseProperties MipmappedArrayGetSparseProperties MemMapArrayAsync
    MemMapArrayAsync_ptsz GraphExecChildGraphNodeSetParams EventRecordWithFlags EventRecordWithFlags_ptsz
    GraphAddEventRecordNode GraphAddEventWaitNode GraphEventRecordNodeGetEvent GraphEventWaitNodeGetEvent
    GraphEventRecordNodeSetEvent GraphEventWaitNodeSetEvent GraphExecEventRecordNodeSetEvent
    GraphExecEventWaitNodeSetEvent ArrayGetPlane MemAllocAsync MemAllocAsync_ptsz MemFreeAsync MemFreeAsync_ptsz
    MemPoolTrimTo MemPoolSetAttribute MemPoolGetAttribute MemPoolSetAccess DeviceGetDefaultMemPool MemPoolCreate
    MemPoolDestroy DeviceSetMemPool DeviceGetMemPool MemAllocFromPoolAsync MemAllocFromPoolAsync_ptsz
    MemPoolExportToShareableHandle MemPoolImportFromShareableHandle MemPoolExportPointer MemPoolImportPointer
    MemPoolGetAccess GraphAddExternalSemaphoresSignalNode GraphExternalSemaphoresSignalNodeGetParams
    GraphExternalSemaphoresSignalNodeSetParams GraphAddExternalSemaphoresWaitNode
    GraphExternalSemaphoresWaitNodeGetParams GraphExternalSemaphoresWaitNodeSetParams
    GraphExecExternalSemaphoresSignalNodeSetParams GraphExecExternalSemaphoresWaitNodeSetParams GetProcAddress
    FlushGPUDirectRDMAWrites GraphDebugDotPrint StreamGetCaptureInfo StreamGetCaptureInfo_ptsz
    StreamUpdateCaptureDependencies StreamUpdateCaptureDependencies_ptsz UserObjectCreate UserObjectRetain
    UserObjectRelease GraphRetainUserObject GraphReleaseUserObject GraphAddMemAllocNode GraphAddMemFreeNode
    DeviceGraphMemTrim DeviceGetGraphMemAttribute DeviceSetGraphMemAttribute GraphInstantiateWithFlags
    DeviceGetExecAffinitySupport CtxCreate CtxGetExecAffinity DeviceGetUuid GraphMemAllocNodeGetParams
    GraphMemFreeNodeGetParams GraphNodeSetEnabled GraphNodeGetEnabled LaunchKernelEx LaunchKernelEx_ptsz
    ArrayGetMemoryRequirements MipmappedArrayGetMemoryRequirements GraphInstantiateWithParams
    GraphInstantiateWithParams_ptsz GraphExecGetFlags StreamWaitValue32 StreamWaitValue32_ptsz StreamWaitValue64
    StreamWaitValue64_ptsz StreamWriteValue32 StreamWriteValue32_ptsz StreamWriteValue64 StreamWriteValue64_ptsz
    StreamBatchMemOp StreamBatchMemOp_ptsz GraphAddBatchMemOpNode GraphBatchMemOpNodeGetParams
    GraphBatchMemOpNodeSetParams GraphExecBatchMemOpNodeSetParams ModuleGetLoadingMode MemGetHandleForAddressRange
    OccupancyMaxPotentialClusterSize OccupancyMaxActiveClusters GetProcAddress LibraryLoadData LibraryLoadFromFile
    LibraryUnload LibraryGetKernel LibraryGetModule KernelGetFunction LibraryGetGlobal LibraryGetManaged
    KernelGetAttribute KernelSetAttribute KernelSetCacheConfig GraphAddKernelNode GraphKernelNodeGetParams
    GraphKernelNodeSetParams GraphExecKernelNodeSetParams StreamGetId StreamGetId_ptsz CtxGetId GraphExecUpdate
    TensorMapEncodeTiled TensorMapEncodeIm2col TensorMapReplaceAddress LibraryGetUnifiedFunction CoredumpGetAttribute
    CoredumpGetAttributeGlobal CoredumpSetAttribute CoredumpSetAttributeGlobal CtxSetFlags MulticastCreate
    MulticastAddDevice MulticastBindMem MulticastBindAddr MulticastUnbind MulticastGetGranularity GraphAddNode
    GraphNodeSetParams GraphExecNodeSetParams MemAdvise MemPrefetchAsync MemPrefetchAsync_ptsz FuncGetName KernelGetName
    StreamBeginCaptureToGraph StreamBeginCaptureToGraph_ptsz GraphConditionalHandleCreate GraphAddNode GraphGetEdges
    GraphNodeGetDependencies GraphNodeGetDependentNodes GraphAddDependencies GraphRemoveDependencies
    StreamGetCaptureInfo StreamGetCaptureInfo_ptsz StreamUpdateCaptureDependencies StreamUpdateCaptureDependencies_ptsz
    FuncGetParamInfo KernelGetParamInfo DeviceRegisterAsyncNotification DeviceUnregisterAsyncNotification
    ModuleGetFunctionCount ModuleEnumerateFunctions LibraryGetKernelCount LibraryEnumerateKernels FuncIsLoaded FuncLoad
    GreenCtxCreate GreenCtxDestroy DeviceGetDevResource CtxGetDevResource GreenCtxGetDevResource DevResourceGenerateDesc
    GreenCtxRecordEvent GreenCtxWaitEvent DevSmResourceSplitByCount StreamGetGreenCtx CtxFromGreenCtx KernelGetLibrary
    CtxRecordEvent CtxWaitEvent CtxCreate GreenCtxStreamCreate StreamGetCtx StreamGetCtx_ptsz MemBatchDecompressAsync
    MemBatchDecompressAsync_ptsz LogsRegisterCallback LogsUnregisterCallback LogsCurrent LogsDumpToFile LogsDumpToMemory
    CheckpointProcessGetRestoreThreadId CheckpointProcessGetState CheckpointProcessLock CheckpointProcessCheckpoint
    CheckpointProcessRestore CheckpointProcessUnlock StreamGetDevice StreamGetDevice_ptsz MemcpyBatchAsync
    MemcpyBatchAsync_ptsz Memcpy3DBatchAsync Memcpy3DBatchAsync_ptsz EventElapsedTime TensorMapEncodeIm2colWide
    GreenCtxGetId StreamCreateForCaptureToCig
    """,
)
