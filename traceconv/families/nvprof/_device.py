"""What ran on the devices: kernels, copies and memsets, each on the stream that it was put into.

Copies have no name in the file; they get the one that nvprof prints.

Events and metrics are measured per kernel and are stored by its correlation id, without a time: they become args of
the kernel. Their names are in the tool and not in the file, which holds numbers only. A metric is 8 bytes whose type
depends on the metric: see `metric_value`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from traceconv.demangle import demangle
from traceconv.families.common import cupti as _cupti
from traceconv.families.nvprof._calls import ID_HEAD, IDS, Extras, Launches, correlation
from traceconv.families.nvprof._tables import GRID, SHAPE, Activities, Row, Spans, spans_of
from traceconv.families.nvprof._tracks import Tracks
from traceconv.io.sqlite_columns import NULL, Block
from traceconv.model.builder import Builder, join_args
from traceconv.model.trace import I64

#: One of these, but for devices without concurrent kernels, holds all; the third those that kernels launched.
_KERNEL_TABLES = ("CONCURRENT_KERNEL", "KERNEL", "CDP_KERNEL")
#: After the row id and the times: where it ran and who launched it.
_PLACE = ("deviceId", "contextId", "streamId", "correlationId")
_KERNEL_TIMES = ("completed", "queued", "submitted")
#: Left out where they are 0.
_RARE = frozenset(("localMemoryPerThread", "localMemoryTotal", "sharedMemoryExecuted"))
_PARENT = ("gridId", "parentGridId", "parentBlockX", "parentBlockY", "parentBlockZ")
#: The columns from the name on are equal for all launches of a kernel of one shape.
_KERNEL_COLUMNS = (*_PLACE, *_KERNEL_TIMES, *_PARENT, "name", "launchType", *GRID, *SHAPE)
_SHAPE_FROM = 3 + len(_PLACE) + len(_KERNEL_TIMES) + len(_PARENT)
_MAX_SHAPES = 1 << 16

_COPY_COLUMNS = (*_PLACE, "copyKind", "srcKind", "dstKind", "flags", "bytes")
_PEER_COLUMNS = ("srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId")
_MEMSET_COLUMNS = (*_PLACE, "value", "memoryKind", "flags", "bytes")
_ASYNC = 1
_GRID_ID = b',"grid_id":'

_encode = msgspec.json.Encoder(enc_hook=str).encode


class DeviceWork:
    """Reads the tables of what ran on devices."""

    def __init__(self, activities: Activities, tracks: Tracks, launches: Launches, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._launches = launches
        self._out = out
        self._counted = Extras(out)
        self._names: dict[Any, int] = {}
        self._mangled: dict[Any, str] = {}
        self._shapes: dict[Row, bytes] = {}
        self._grids: dict[Any, int] = {}
        self._grids_of: list[tuple[Sequence[Any] | I64, int]] = []
        self._streams: dict[tuple[Any, ...], int] = {}

    def read(self) -> None:
        """All of it."""
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
        """Copies and memsets: their args are made one by one."""
        names = [self._out.string(name(row)) for row in spans.rows]
        made = [_encode(args(row, length)) for row, length in zip(spans.rows, spans.dur, strict=True)]
        self._put(spans, category, names, made)

    def _put(self, spans: Spans, category: str, names: list[int], args: list[bytes]) -> None:
        """Draw some rows."""
        rows, ts, dur = spans
        first = self._out.slice_count()
        numbers = [correlation(row[6]) for row in rows]
        pids = self._pids(numbers)
        self._out.slices(
            [self._stream(pid, row) for pid, row in zip(pids, rows, strict=True)],
            ts,
            dur,
            names,
            [self._out.string(category)] * len(rows),
            args,
            [row[0] for row in rows],
        )
        self._out.balance.written += len(rows)
        self._launches.add_work(numbers, self._launches.pid_numbers(pids), first)

    def _pids(self, numbers: list[int]) -> list[Any]:
        """The process of each row: the only one there is, else that of the call which launched it."""
        known = self._tracks.pids()
        if len(known) <= 1:
            return [known[0] if known else None] * len(numbers)
        return [self._launches.pid_of(number) for number in numbers]

    def _stream(self, pid: Any, row: Row) -> int:
        key = pid, *row[3:6]
        track = self._streams.get(key)
        if track is None:
            track = self._streams[key] = self._tracks.stream(*key)
        return track

    # -- kernels --------------------------------------------------------------------------------------------------

    def _read_kernels(self, table: str) -> None:
        for piece in self._activities.pieces(table, _KERNEL_COLUMNS):
            first = self._out.slice_count()
            self._out.string(_cupti.KERNEL)
            if isinstance(piece, Block) and self._is_plain(table, piece):
                self._add_block(table, piece)
                self._grids_of.append((piece.column(10), first))
                continue
            spans = spans_of(piece)
            names = [self._kernel_name(table, row) for row in spans.rows]
            self._put(spans, _cupti.KERNEL, names, [self._kernel_args(row) for row in spans.rows])
            if table == "CDP_KERNEL":
                self._join_to_parents(spans, first)
            else:
                self._grids_of.append(([row[10] for row in spans.rows], first))

    def _is_plain(self, table: str, block: Block) -> bool:
        """Whether all kernels of a block are as nearly all kernels are; see `_kernel_args`."""
        if table == "CDP_KERNEL" or self._counted or len(self._tracks.pids()) > 1:
            return False
        ids, grids, absent = block.column(6), block.column(10), block.columns[[8, 9, 11], : block.length]
        return bool(
            (np.min(ids) > 0 and np.max(ids) < IDS.stop and np.min(grids) > 0)
            and np.array_equal(block.column(7), block.column(2))
            and np.all((absent == 0) | (absent == NULL))
        )

    def _add_block(self, table: str, block: Block) -> None:
        """Draw kernels, many at once."""
        first = self._out.slice_count()
        streams, stream_of = block.groups(3, 4, 5)
        shapes, shape_of = block.groups(*range(_SHAPE_FROM, len(block.columns)))
        (pid,) = self._pids([0])
        tracks = np.array([self._stream(pid, row) for row in streams])
        names = np.array([self._kernel_name(table, row) for row in shapes])
        ends = [self._shape_end(row[_SHAPE_FROM:]) for row in shapes]
        args, lengths = block.objects([6, 10], [ID_HEAD, _GRID_ID], ends, shape_of)
        self._out.slice_rows(
            ts=block.column(1),
            dur=block.column(2) - block.column(1),
            track=tracks[stream_of],
            name=names[shape_of],
            category=np.full(block.length, self._out.string(_cupti.KERNEL)),
            args_at=self._out.args_part(args) + np.cumsum(lengths) - lengths,
            args_len=lengths.astype(np.int32),
            origin=block.column(0),
        )
        self._out.balance.written += block.length
        pids = self._launches.pid_numbers([pid])
        self._launches.add_work(block.column(6), np.repeat(pids, block.length), first)

    def _kernel_name(self, table: str, row: Row) -> int:
        number = row[_SHAPE_FROM]
        name = self._names.get(number)
        if name is None:
            text = self._activities.text(number, self._activities.place(table, row[0])) or "kernel without a name"
            name = self._names[number] = self._out.string(demangle(text))
            if demangle(text) != text:
                self._mangled[number] = text
        return name

    def _shape_end(self, shape: Row) -> bytes:
        """The end of the args of all launches of one shape."""
        end = self._shapes.get(shape)
        if end is None:
            if len(self._shapes) == _MAX_SHAPES:
                self._shapes.clear()
            mangled = self._mangled.get(shape[0])
            end = _members(_shape_args(shape) | ({"mangled": mangled} if mangled else {}))
            self._shapes[shape] = end
        return end

    def _kernel_args(self, row: Row) -> bytes:
        number = correlation(row[6])
        end = self._shape_end(row[_SHAPE_FROM:])
        end_ts, completed, queued, submitted, grid, parent = row[2], *row[7:12]
        if number and grid and type(grid) is int and completed == end_ts and not (queued or submitted or parent):
            args = ID_HEAD + b"%d" % number + _GRID_ID + b"%d" % grid + end  # nearly all kernels
        else:
            args = join_args(_launch_args(row, number), b"{" + end.lstrip(b","))
        if self._counted and number:
            args = join_args(args, self._counted.take(number, "kernels"))
        return args

    def _join_to_parents(self, spans: Spans, first: int) -> None:
        """A kernel that was launched by another one on the device."""
        for grids, first_of in self._grids_of:
            self._grids.update((grid, number) for number, grid in enumerate(grids, first_of) if grid)
        self._grids_of.clear()
        pairs = [
            (self._grids[row[11]], number, row[0])
            for number, row in enumerate(spans.rows, first)
            if row[11] and row[11] in self._grids
        ]
        same = [self._out.string(_cupti.LAUNCH_FLOW)] * len(pairs)
        sources, targets, origins = ([pair[column] for pair in pairs] for column in range(3))
        self._out.flows(sources, targets, same, same, origins)

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
    """The args of all that moves bytes."""
    args: dict[str, Any] = {"correlation_id": correlation(row[6])} if correlation(row[6]) else {}
    args["bytes"] = size
    rate = _cupti.throughput_gb_per_s(size, dur) if isinstance(size, int) else None
    return args | ({_cupti.THROUGHPUT: rate} if rate is not None else {})


def _is_async(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & _ASYNC)


def _shape_args(shape: Row) -> dict[str, Any]:
    """The args that all launches of a kernel of one shape have in common; `shape` is the end of _KERNEL_COLUMNS."""
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
    """The end of a JSON object, after its first member."""
    return b"," + _encode(args)[1:] if args else b"}"


def _launch_args(row: Row, number: int) -> dict[str, Any]:
    """The args of one launch: how long it waited, and its place in a tree of kernels."""
    start, end, completed, queued, submitted = row[1], row[2], *row[7:10]
    args: dict[str, Any] = {"correlation_id": number} if number else {}
    for name, since, until in (
        ("queued_before_start_ns", queued, start),
        ("submitted_before_start_ns", submitted, start),
        ("completed_after_end_ns", end, completed),
    ):
        if isinstance(since, int) and isinstance(until, int) and 0 < since < until:
            args[name] = until - since
    if row[10]:
        args["grid_id"] = row[10]
    if row[11]:
        args |= {"parent_grid_id": row[11], "parent_block": row[12:15]}
    return args


_UNSIGNED, _DOUBLE, _SIGNED = struct.Struct("<Q"), struct.Struct("<d"), struct.Struct("<q")


def metric_value(value: Any) -> Any:
    """The number in the union CUpti_MetricValue, whose type the file does not tell.

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
