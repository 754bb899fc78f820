"""Read device work: kernels, copies and memsets, on their streams.

Copies have no name in the file; they get the one that nvprof prints.

Events and metrics are measured per kernel and are stored by its correlation id, without a time: they become args of
the kernel. Their names are in the tool and not in the file, which holds numbers only. A metric is 8 bytes whose type
depends on the metric: see `metric_value`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from traceconv.demangle import demangle
from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import Described, Known, Row, Spans
from traceconv.families.nvprof._calls import ID_ARG, Extras, ProcessLaunches, correlation, correlations
from traceconv.families.nvprof._tables import GRID, SHAPE, Activities
from traceconv.families.nvprof._tracks import Tracks
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.trace import I64

#: One of these, but for devices without concurrent kernels, holds all; the third those that kernels launched.
_KERNEL_TABLES = ("CONCURRENT_KERNEL", "KERNEL", "CDP_KERNEL")
#: After the row id and the times: where it ran, what is equal for all launches of a kernel of one shape, and the rest.
_PLACE = ("deviceId", "contextId", "streamId")
_SHAPE = ("name", "launchType", *GRID, *SHAPE)
_LAUNCH = ("correlationId", "gridId", "completed", "queued", "submitted")
#: Of kernels that kernels launched only.
_PARENT = ("parentGridId", "parentBlockX", "parentBlockY", "parentBlockZ")
_SHAPE_FROM = 3 + len(_PLACE)
_SHAPE_TO = _SHAPE_FROM + len(_SHAPE)
#: Left out where they are 0.
_RARE = frozenset(("localMemoryPerThread", "localMemoryTotal", "sharedMemoryExecuted"))

_COPY_COLUMNS = (*_PLACE, "correlationId", "copyKind", "srcKind", "dstKind", "flags", "bytes")
_PEER_COLUMNS = ("srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId")
_MEMSET_COLUMNS = (*_PLACE, "correlationId", "value", "memoryKind", "flags", "bytes")
_ASYNC = 1
#: The args of nearly all kernels.
_USUAL = ID_ARG.replace(b"%b", b',"grid_id":%d%b')

_encode = msgspec.json.Encoder(enc_hook=str).encode


class DeviceWork:
    """Reads the tables of what ran on devices."""

    def __init__(self, activities: Activities, tracks: Tracks, launches: ProcessLaunches, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._launches = launches
        self._out = out
        self._counted = Extras(out)
        self._names: dict[Any, int] = {}
        self._mangled: dict[Any, str] = {}
        self._grids: dict[Any, int] = {}
        self._grids_of: list[tuple[list[Any], I64]] = []

    def read(self) -> None:
        """Read all work of devices."""
        self._read_counted()
        for table in _KERNEL_TABLES:
            self._read_kernels(table)
        for table, more in (("MEMCPY", ()), ("MEMCPY2", _PEER_COLUMNS)):
            for spans in self._activities.spans(table, (*_COPY_COLUMNS, *more)):
                self._add(spans, _cupti.MEMCPY, self._copy_name, self._copy_args)
        for spans in self._activities.spans("MEMSET", _MEMSET_COLUMNS):
            self._add(spans, _cupti.MEMSET, lambda _: "[CUDA memset]", self._memset_args)
        self._counted.report_left(self._out.info.name)

    # -- slices ---------------------------------------------------------------------------------------------------

    def _add(
        self, spans: Spans, category: str, name: Callable[[Row], str], args: Callable[[Row, int], dict[str, Any]]
    ) -> None:
        """Read copies and memsets, whose args are made one by one."""
        string, tracks = self._out.tables.string, Known(self._track)
        places = tracks.of([row[3:6] for row in spans.rows], spans.rows)
        kinds = [
            Described(track, string(name(row)), string(category), b"", process)
            for row, (track, process) in zip(spans.rows, places, strict=True)
        ]
        ids = correlations([row[6] for row in spans.rows])
        self._put(spans, kinds, ids, [_encode(args(row, dur)) for row, _, dur in spans.each()])

    def _track(self, row: Row, number: int = 0) -> tuple[int, int]:
        """Return the stream of a row and a number for its process.

        The process is the only one there is, else that of the call with the correlation id `number`, which launched it.
        The stream is -1 if only such a call tells it.
        """
        known = self._tracks.pids()
        if len(known) > 1 and not number:
            return -1, 0
        pid = self._launches.pid_of(number) if len(known) > 1 else known[0] if known else None
        return self._tracks.stream(pid, *row[3:6]), self._launches.number(pid)

    def _put(self, spans: Spans, kinds: Sequence[Described], ids: I64, args: Sequence[bytes]) -> I64:
        """Draw rows; return their slices."""
        if len(self._tracks.pids()) > 1:
            places = map(self._track, spans.rows, ids.tolist())
            kinds = [kind._replace(track=at[0], process=at[1]) for kind, at in zip(kinds, places, strict=True)]
        slices, processes = spans.add_to(self._out, kinds, args)
        self._launches.add_work(processes, ids, slices)
        return slices

    # -- kernels --------------------------------------------------------------------------------------------------

    def _read_kernels(self, table: str) -> None:
        kinds = Known(partial(self._kind, table))
        parent = _PARENT if self._activities.has(table, *_PARENT[:1]) else ()
        for spans in self._activities.spans(table, (*_PLACE, *_SHAPE, *_LAUNCH, *parent)):
            rows = spans.rows
            kinds_of_rows = kinds.of([row[3:_SHAPE_TO] for row in rows], rows)
            ids = correlations([row[_SHAPE_TO] for row in rows])
            slices = self._put(spans, kinds_of_rows, ids, self._args(rows, ids.tolist(), kinds_of_rows))
            if table == "CDP_KERNEL":
                self._join_to_parents(spans, slices)
            else:
                self._grids_of.append(([row[_SHAPE_TO + 1] for row in rows], slices))

    def _kind(self, table: str, row: Row) -> Described:
        """Return the properties that launches of a kernel of one shape share."""
        category, name = self._out.tables.string(_cupti.KERNEL), self._kernel_name(table, row)
        mangled = self._mangled.get(row[_SHAPE_FROM])
        args = _shape_args(row[_SHAPE_FROM:_SHAPE_TO]) | ({"mangled": mangled} if mangled else {})
        track, process = self._track(row)
        return Described(track, name, category, _members(args), process)

    def _args(self, rows: Sequence[Row], ids: list[int], kinds: list[Described]) -> list[bytes]:
        """Return the args of kernels."""
        launches = [row[_SHAPE_TO + 1 :] for row in rows]
        made = [
            _USUAL % (number, launch[0], kind[3])
            if number and launch[0] and launch[1] == row[2] and not any(launch[2:])
            else join_args(_launch_args(row, number), b"{" + kind.args.lstrip(b","))
            for row, launch, number, kind in zip(rows, launches, ids, kinds, strict=True)
        ]
        if not self._counted:
            return made
        pairs = zip(made, ids, strict=True)
        return [join_args(args, self._counted.take(number, "kernels")) if number else args for args, number in pairs]

    def _kernel_name(self, table: str, row: Row) -> int:
        number = row[_SHAPE_FROM]
        name = self._names.get(number)
        if name is None:
            text = self._activities.text(number, self._activities.place(table, row[0])) or "kernel without a name"
            name = self._names[number] = self._out.tables.string(demangle(text))
            if demangle(text) != text:
                self._mangled[number] = text
        return name

    def _join_to_parents(self, spans: Spans, slices: I64) -> None:
        """Add flows to kernels from the kernels that launched them on the device."""
        for grids, of_grids in self._grids_of:
            self._grids.update((grid, one) for grid, one in zip(grids, of_grids.tolist(), strict=True) if grid)
        self._grids_of.clear()
        parent_at = _SHAPE_TO + len(_LAUNCH)
        pairs = [
            (self._grids[row[parent_at]], one, row[0])
            for row, one in zip(spans.rows, slices.tolist(), strict=True)
            if row[parent_at:] and row[parent_at] and row[parent_at] in self._grids
        ]
        same = [self._out.tables.string(_cupti.LAUNCH_FLOW)] * len(pairs)
        sources, targets, origins = ([pair[column] for pair in pairs] for column in range(3))
        self._out.bulk.flows(sources, targets, same, same, origins)

    # -- events and metrics -----------------------------------------------------------------------------------------

    def _read_counted(self) -> None:
        rows = self._activities.rows
        for _, number, value, kernel in rows("EVENT", ("id", "value", "correlationId")):
            self._counted.add(correlation(kernel), "EVENT", {f"event_{number}": value})
        for _, number, value, instance, kernel in rows("EVENT_INSTANCE", ("id", "value", "instance", "correlationId")):
            self._counted.add(correlation(kernel), "EVENT_INSTANCE", {f"event_{number}_instance_{instance}": value})
        for _, number, value, kernel in rows("METRIC", ("id", "value", "correlationId")):
            self._counted.add(correlation(kernel), "METRIC", {f"metric_{number}": metric_value(value)})
        for _, number, value, instance, kernel in rows("METRIC_INSTANCE", ("id", "value", "instance", "correlationId")):
            args = {f"metric_{number}_instance_{instance}": metric_value(value)}
            self._counted.add(correlation(kernel), "METRIC_INSTANCE", args)

    # -- copies and memsets -----------------------------------------------------------------------------------------

    def _copy_name(self, row: Row) -> str:
        return f"[CUDA memcpy {_cupti.named(_cupti.MEMCPY_KIND, row[7])}]"

    def _copy_args(self, row: Row, dur: int) -> dict[str, Any]:
        args = _sized(row, row[11], dur)
        args["src"] = _cupti.named(_cupti.MEMORY_KIND, row[8])
        args["dst"] = _cupti.named(_cupti.MEMORY_KIND, row[9])
        args["async"] = _is_async(row[10])
        names = ("src_device", "src_context", "dst_device", "dst_context")
        args |= dict(zip(names, row[12:], strict=False))
        return args

    def _memset_args(self, row: Row, dur: int) -> dict[str, Any]:
        args = _sized(row, row[10], dur)
        args["value"] = row[7]
        if row[8] is not None:
            args["memory"] = _cupti.named(_cupti.MEMORY_KIND, row[8])
        args["async"] = _is_async(row[9])
        return args


def _sized(row: Row, size: Any, dur: int) -> dict[str, Any]:
    """Return the args of all that moves bytes."""
    args: dict[str, Any] = {"correlation_id": correlation(row[6])} if correlation(row[6]) else {}
    args["bytes"] = size
    rate = _cupti.throughput_gb_per_s(size, dur) if isinstance(size, int) else None
    return args | ({_cupti.THROUGHPUT: rate} if rate is not None else {})


def _is_async(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & _ASYNC)


def _shape_args(shape: Row) -> dict[str, Any]:
    """Return the args that all launches of a kernel of one shape have in common; `shape` is the values of _SHAPE."""
    grid, rest = shape[2:8], shape[8:]
    args: dict[str, Any] = {}
    if any(size is not None for size in grid):
        args = {"grid": grid[:3], "block": grid[3:]}
    used = zip(SHAPE.items(), rest, strict=True)
    args |= {name: value for (column, name), value in used if value or (value == 0 and column not in _RARE)}
    if shape[1]:
        args["launch_type"] = _cupti.named(_cupti.LAUNCH_TYPE, shape[1])
    return args


def _members(args: dict[str, Any]) -> bytes:
    """Return the end of a JSON object, after its first member."""
    return b"," + _encode(args)[1:] if args else b"}"


def _launch_args(row: Row, number: int) -> dict[str, Any]:
    """Return the args of one launch: how long it waited, and its place in a tree of kernels."""
    start, end = row[1:3]
    grid, completed, queued, submitted, *parent = row[_SHAPE_TO + 1 :]
    args: dict[str, Any] = {"correlation_id": number} if number else {}
    for name, since, until in (
        ("queued_before_start_ns", queued, start),
        ("submitted_before_start_ns", submitted, start),
        ("completed_after_end_ns", end, completed),
    ):
        if isinstance(since, int) and isinstance(until, int) and 0 < since < until:
            args[name] = until - since
    if grid:
        args["grid_id"] = grid
    if parent and parent[0]:
        args |= {"parent_grid_id": parent[0], "parent_block": parent[1:]}
    return args


_UNSIGNED, _DOUBLE, _SIGNED = struct.Struct("<Q"), struct.Struct("<d"), struct.Struct("<q")


def metric_value(value: Any) -> Any:
    """Return the number in the union CUpti_MetricValue, whose type the file does not state.

    The exponent of a double decides: 0 there is an integer below 2**52 (or 0.0), all ones is a negative integer, and
    anything else would be an integer above 2**52, which nothing counts in a kernel.

    >>> metric_value(struct.pack("<d", 0.5)), metric_value(struct.pack("<Q", 12)), metric_value(struct.pack("<q", -1))
    (0.5, 12, -1)
    """
    if not isinstance(value, bytes):
        return value
    if len(value) != _DOUBLE.size:
        return value.hex()
    (unsigned,) = _UNSIGNED.unpack(value)
    exponent = unsigned >> 52 & 0x7FF
    (number,) = (_UNSIGNED if exponent == 0 and unsigned < 1 << 52 else _DOUBLE).unpack(value)
    if exponent == 0x7FF and math.isnan(number):
        (number,) = _SIGNED.unpack(value)
    return number if not isinstance(number, float) or math.isfinite(number) else str(number)
