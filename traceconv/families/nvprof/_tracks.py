"""The tracks of a database of nvprof: processes with their threads, devices with their contexts and streams.

    process 4711
      thread 2857740288            API calls and NVTX ranges
      GPU 0: Tesla V100
        Context 1
          Stream 7                 kernels, copies, memsets

Devices, contexts and streams are numbered within a process, so that they are drawn below it. Which process a kernel
belongs to is not stored: there is one process in a file, unless somebody has joined several; then the call that
launched it tells.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from traceconv.families.common import cupti as _cupti
from traceconv.families.nvprof._tables import Activities
from traceconv.model.builder import Builder
from traceconv.model.counted import DESCRIBING_ROWS
from traceconv.model.trace import NO_TRACK, TrackId

#: CUpti_ActivityObjectKind.
PROCESS, THREAD, DEVICE, CONTEXT, STREAM = 1, 2, 3, 4, 5

_UNION = struct.Struct("<III")
#: "No stream", "no context", and the CPU as a device of unified memory.
_NONE = 0xFFFFFFFF
#: CUpti_ActivityStreamFlag: the context says the same.
_NULL_STREAM = 3
_DEVICE_COLUMNS = (
    "id",
    "name",
    "computeCapabilityMajor",
    "computeCapabilityMinor",
    "numMultiprocessors",
    "globalMemorySize",
    "globalMemoryBandwidth",
    "coreClockRate",
    "uuid",
)


class ObjectId(NamedTuple):
    """The object of a row.

    Of a process or thread the first two count (pid, thread), of a device, context or stream all three (device, context,
    stream).
    """

    kind: int
    first: int
    second: int
    third: int

    @classmethod
    def of(cls, kind: Any, blob: Any) -> ObjectId:
        """Return the id that two columns hold; missing parts are 0."""
        data = blob if isinstance(blob, bytes) else b""
        return cls(kind if isinstance(kind, int) else 0, *_UNION.unpack(data[:12].ljust(12, b"\0")))


def unsigned(number: Any) -> Any:
    """Return a 32-bit number, stored as signed, as unsigned: thread ids are the lower half of pthread handles."""
    return number & _NONE if isinstance(number, int) else number


class Tracks:
    """Makes each track when it is first used."""

    def __init__(self, activities: Activities, out: Builder) -> None:
        self._activities = activities
        self._out = out
        self._made: dict[tuple[Any, ...], TrackId] = {}
        self._names: dict[ObjectId, str] = {}
        self._streams: dict[tuple[Any, Any], str] = {}
        self.devices: dict[Any, dict[str, Any]] = {}
        self._contexts: dict[Any, str] = {}
        self._null_streams: set[tuple[Any, Any]] = set()
        self._read_names()
        self._read_devices()
        self._read_contexts()
        self._read_streams()

    # -- what the tables say about them ---------------------------------------------------------------------------

    def _read_names(self) -> None:
        for row, kind, blob, name in self._rows("NAME", ("objectKind", "objectId", "name")):
            text = self._activities.text(name, self._activities.place("NAME", row))
            one = ObjectId.of(kind, blob)
            if kind in (PROCESS, THREAD):
                one = one._replace(third=0)
            self._names[one] = text

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
            words = [kind if flag != _NULL_STREAM else "", f"priority {priority}" if priority else ""]
            self._streams[context, stream] = ", ".join(word for word in words if word)

    def _rows(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        rows = list(self._activities.rows(table, columns))
        if rows:
            self._out.balance.merged[DESCRIBING_ROWS] += len(rows)
        return rows

    # -- tracks ---------------------------------------------------------------------------------------------------

    def process(self, pid: Any) -> TrackId:
        """Return a process; NO_TRACK if the number is none."""
        if not isinstance(pid, int) or pid <= 0:
            return NO_TRACK
        key = ("process", pid)
        if key not in self._made:
            self._made[key] = self._out.tracks.process(self._names.get(ObjectId(PROCESS, pid, 0, 0), ""), pid=pid)
        return self._made[key]

    def pids(self) -> list[int]:
        """Return the processes so far."""
        return [key[1] for key in self._made if key[0] == "process"]

    def thread(self, pid: Any, number: Any) -> TrackId:
        """Return a thread. Its number is part of a pointer, not what the operating system calls it."""
        number = unsigned(number)
        key = ("thread", pid, number)
        if key not in self._made:
            of_pid = pid if isinstance(pid, int) else 0
            name = self._names.get(ObjectId(THREAD, of_pid, number, 0), "") if isinstance(number, int) else ""
            process = self.process(pid)
            label = f"thread {number}"
            if process == NO_TRACK:
                self._made[key] = self._out.tracks.add(name or label)
            else:
                self._made[key] = self._out.tracks.thread(process, None, f"{name} ({label})" if name else label)
        return self._made[key]

    def below_process(self, pid: Any, name: str, description: str = "") -> TrackId:
        """Return a track of a process that is not a thread."""
        key = ("other", pid, name)
        if key not in self._made:
            self._made[key] = self._out.tracks.add(name, self.process(pid), description=description)
        return self._made[key]

    def device(self, pid: Any, device: Any) -> TrackId:
        """Return a device as seen by a process."""
        key = ("device", pid, device)
        if key not in self._made:
            name = self.devices.get(device, {}).get("name") or self._names.get(ObjectId(DEVICE, _u32(device), 0, 0))
            label = f"GPU {device}" if device is not None else "GPU"
            self._made[key] = self._out.tracks.add(
                f"{label}: {name}" if name else label, self.process(pid), description=self._device_words(device)
            )
        return self._made[key]

    def _device_words(self, device: Any) -> str:
        info = self.devices.get(device, {})
        words = []
        if "compute_capability" in info:
            words.append(f"compute capability {info['compute_capability']}")
        if "multiprocessors" in info:
            words.append(f"{info['multiprocessors']} multiprocessors")
        if isinstance(info.get("memory_bytes"), int):
            words.append(f"{info['memory_bytes'] >> 20} MiB")
        return ", ".join(words)

    def below_device(self, pid: Any, device: Any, name: str, description: str = "") -> TrackId:
        """Return a track of a device that is not a context."""
        key = ("on device", pid, device, name)
        if key not in self._made:
            parent = self.device(pid, device) if device not in (None, _NONE, -1) else self.process(pid)
            self._made[key] = self._out.tracks.add(name, parent, description=description)
        return self._made[key]

    def counter(self, pid: Any, device: Any, name: str, unit: str, description: str = "") -> TrackId:
        """Return a track for values that a device has."""
        key = ("counter", pid, device, name)
        if key not in self._made:
            parent = self.device(pid, device)
            self._made[key] = self._out.tracks.counter(name, parent, unit=unit, description=description)
        return self._made[key]

    def context(self, pid: Any, device: Any, context: Any) -> TrackId:
        """Return a context of a device."""
        key = ("context", pid, device, context)
        if key not in self._made:
            name = self._names.get(ObjectId(CONTEXT, _u32(device), _u32(context), 0), "")
            label = f"Context {context}" if context is not None else "no context"
            self._made[key] = self._out.tracks.add(
                f"{label}: {name}" if name else label,
                self.device(pid, device),
                description=self._contexts.get(context, ""),
            )
        return self._made[key]

    def stream(self, pid: Any, device: Any, context: Any, stream: Any) -> TrackId:
        """Return a stream of a context."""
        if stream in (None, _NONE, -1):
            return self.context(pid, device, context)
        key = ("stream", pid, device, context, stream)
        if key not in self._made:
            name = self._names.get(ObjectId(STREAM, _u32(device), _u32(context), _u32(stream)), "")
            label = f"Stream {stream}"
            default = "default stream" if (context, stream) in self._null_streams else ""
            words = [default, self._streams.get((context, stream), "")]
            self._made[key] = self._out.tracks.add(
                f"{label}: {name}" if name else label,
                self.context(pid, device, context),
                description=", ".join(word for word in words if word),
            )
        return self._made[key]


def _u32(number: Any) -> int:
    return number & _NONE if isinstance(number, int) else 0
