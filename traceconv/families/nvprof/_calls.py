"""Calls of the CUDA runtime and driver, what they launched, and the arrows between both.

A call and the kernels, copies and memsets that it launched carry the same correlation id, which is unique within a
process. If a runtime call has led to a driver call, both carry it: the arrow begins at the runtime call, which is the
one that the program made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from traceconv.families.common import cupti as _cupti
from traceconv.families.nvprof._cbids import DRIVER, RUNTIME
from traceconv.families.nvprof._tables import Activities, Row, Spans, spans_of
from traceconv.families.nvprof._tracks import Tracks
from traceconv.io.sqlite_columns import Block
from traceconv.model.builder import Builder, join_args
from traceconv.model.diagnostics import absent, noted
from traceconv.model.trace import I64

UNKNOWN_CALL = noted(
    "nvprof.unknown_call", "a call has a number (cbid) that is newer than the list of names: shown by its number"
)
NO_LAUNCH = absent(
    "nvprof.no_launch",
    "work of a device carries a correlation id that no recorded call has, or calls of several processes: no arrow",
)
UNMATCHED = absent(
    "nvprof.unmatched_row",
    "a row describes a call or kernel by a correlation id, or a marker by its id, that no other row has: left out",
)

#: Correlation ids are unsigned 32-bit numbers; 0 is none.
IDS = range(1, 1 << 32)

_API = {
    "RUNTIME": (RUNTIME, _cupti.RUNTIME_API),
    "DRIVER": (DRIVER, _cupti.DRIVER_API),
}
_API_COLUMNS = ("cbid", "processId", "threadId", "correlationId", "returnValue")
#: How the args of what has a correlation id begin.
ID_HEAD = b'{"correlation_id":'
_encode = msgspec.json.Encoder(enc_hook=str).encode


def correlation(number: Any) -> int:
    """A correlation id as stored, 0 for what is none."""
    if not isinstance(number, int):
        return 0
    return number if number in IDS else number & 0xFFFFFFFF if number < 0 else 0


def _has_ids(calls: Block) -> bool:
    """Whether all correlation ids are as CUPTI counts them, or 0."""
    ids = calls.column(6)
    return bool(np.min(ids) >= 0 and np.max(ids) < IDS.stop)


class Extras:
    """Rows that belong to another one, by its id, until that one is read; each is counted where it went."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._args: dict[int, dict[str, Any]] = {}
        self._tables: dict[int, Counter[str]] = {}

    def __len__(self) -> int:
        return len(self._args)

    def add(self, number: int, table: str, args: dict[str, Any]) -> None:
        """Keep what a row says about another one; of several values of one key all stay."""
        kept = self._args.setdefault(number, {})
        for key, value in args.items():
            before = kept.get(key)
            kept[key] = value if before is None else [*before, value] if isinstance(before, list) else [before, value]
        self._tables.setdefault(number, Counter())[table] += 1

    def take(self, number: int, what: str) -> dict[str, Any]:
        """All that is kept about a row, which is then used up."""
        args = self._args.pop(number, None)
        if args is None:
            return {}
        self._out.balance.merged[f"rows that became args of {what}"] += self._tables.pop(number).total()
        return args

    def report_left(self, place: str) -> None:
        """Count what nobody took."""
        left: Counter[str] = Counter()
        for tables in self._tables.values():
            left.update(tables)
        for table, count in left.items():
            self._out.skip(UNMATCHED, f"{place}:{table}", count=count)


class Launches:
    """Joins device work to the calls that launched it, when all rows are read."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._calls: list[tuple[I64, I64, I64]] = []
        self._work: list[tuple[I64, I64, I64]] = []
        self._pids: dict[Any, int] = {}
        self._pid_of: dict[int, Any] | None = None

    def add_calls(self, correlations: Sequence[int] | I64, pids: I64, first_slice: int, rank: int) -> None:
        """Calls that became slices from `first_slice` on; of two with one id that of the lower rank is the launch."""
        ids = np.array(correlations, np.int64) | (pids << 32)
        self._calls.append((ids, np.arange(first_slice, first_slice + len(ids)), np.full(len(ids), rank)))
        self._pid_of = None

    def add_work(self, correlations: Sequence[int] | I64, pids: I64, first_slice: int) -> None:
        """Device work that became slices from `first_slice` on."""
        ids = np.array(correlations, np.int64)
        keys = ids | (pids << 32)
        self._work.append((keys, np.arange(first_slice, first_slice + len(ids)), ids))

    def pid_numbers(self, pids: Sequence[Any]) -> I64:
        """Processes by the numbers that they have here."""
        for pid in set(pids):
            self._pids.setdefault(pid, len(self._pids))
        return np.array([self._pids[pid] for pid in pids], np.int64)

    def pid_of(self, number: int) -> Any:
        """The only process with a call of that correlation id, None if there is none or more than one."""
        if self._pid_of is None:
            self._pid_of = {}
            pids = list(self._pids)
            for keys, _, _ in self._calls:
                for key in keys.tolist():
                    pid = pids[key >> 32]
                    self._pid_of[key & 0xFFFFFFFF] = pid if self._pid_of.get(key & 0xFFFFFFFF, pid) == pid else None
        return self._pid_of.get(number)

    def draw(self, place: str) -> None:
        """Add the arrows."""
        if not self._calls or not self._work:
            return
        keys, slices, ranks = (np.concatenate(column) for column in zip(*self._calls, strict=True))
        if not np.all(keys[1:] > keys[:-1]):
            order = np.lexsort((slices, ranks, keys))
            keys, first = np.unique(keys[order], return_index=True)
            slices = slices[order][first]
        wanted, targets, ids = (np.concatenate(column) for column in zip(*self._work, strict=True))
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found = (keys[at] == wanted) & (ids > 0)
        missing = int(np.count_nonzero((ids > 0) & ~found))
        if missing:
            self._out.problem(NO_LAUNCH, place, count=missing)
        sources, targets, origins = slices[at[found]], targets[found], ids[found]
        category = self._out.string(_cupti.LAUNCH_FLOW)
        same = np.full(len(sources), category)
        self._out.flows(sources, targets, same, same, origins)


class Calls:
    """Reads RUNTIME and DRIVER."""

    def __init__(self, activities: Activities, tracks: Tracks, launches: Launches, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._launches = launches
        self._out = out
        self._extras = Extras(out)
        self._args: dict[tuple[Any, Any], bytes] = {}
        self._names: dict[tuple[str, Any], int] = {}
        self.failed = 0

    def read(self) -> None:
        """All calls, with what other tables say about them."""
        self._read_cuda_events()
        self._read_external()
        for rank, table in enumerate(_API):
            self._read_table(table, rank)
        self._extras.report_left(self._out.info.name)

    def _read_cuda_events(self) -> None:
        """cudaEventRecord: which event, on which stream."""
        columns = ("correlationId", "contextId", "streamId", "eventId")
        for _, number, context, stream, event in self._activities.rows("CUDA_EVENT", columns):
            args = {"event_id": event, "event_context": context, "event_stream": stream}
            self._extras.add(correlation(number), "CUDA_EVENT", args)

    def _read_external(self) -> None:
        """What another library (OpenACC, a framework) calls the operation that this call is part of."""
        columns = ("correlationId", "externalKind", "externalId")
        for _, number, kind, external in self._activities.rows("EXTERNAL_CORRELATION", columns):
            self._extras.add(correlation(number), "EXTERNAL_CORRELATION", {f"external_id_kind_{kind}": external})

    def _read_table(self, table: str, rank: int) -> None:
        for piece in self._activities.pieces(table, _API_COLUMNS):
            first = self._out.slice_count()
            category = self._out.string(_API[table][1])
            numbers: Sequence[int] | I64
            if isinstance(piece, Block) and not self._extras and _has_ids(piece):
                numbers, pids = self._add_block(table, category, piece)
            else:
                numbers, pids = self._add_rows(table, category, spans_of(piece))
            self._out.balance.written += len(numbers)
            self._launches.add_calls(numbers, pids, first, rank)

    def _add_rows(self, table: str, category: int, spans: Spans) -> tuple[Sequence[int], I64]:
        """Draw some calls; their correlation ids and processes."""
        rows, ts, dur = spans
        numbers = [correlation(row[6]) for row in rows]
        self._out.slices(
            [self._tracks.thread(row[4], row[5]) for row in rows],
            ts,
            dur,
            [self._name(table, row) for row in rows],
            [category] * len(rows),
            [self._args_of(row, number) for row, number in zip(rows, numbers, strict=True)],
            [row[0] for row in rows],
        )
        return numbers, self._launches.pid_numbers([row[4] for row in rows])

    def _add_block(self, table: str, category: int, block: Block) -> tuple[I64, I64]:
        """The same for many at once."""
        threads, thread_of = block.groups(4, 5)
        kinds, kind_of = block.groups(3, 7)
        tracks = np.array([self._tracks.thread(row[4], row[5]) for row in threads])
        names = np.array([self._name(table, row) for row in kinds])
        failed = np.array([row[7] not in (0, None) for row in kinds])
        self.failed += int(np.count_nonzero(failed[kind_of]))
        args, lengths = block.objects([6], [ID_HEAD], [self._args_end(row) for row in kinds], kind_of)
        self._out.slice_rows(
            ts=block.column(1),
            dur=block.column(2) - block.column(1),
            track=tracks[thread_of],
            name=names[kind_of],
            category=np.full(block.length, category),
            args_at=self._out.args_part(args) + np.cumsum(lengths) - lengths,
            args_len=lengths.astype(np.int32),
            origin=block.column(0),
        )
        return block.column(6), self._launches.pid_numbers([row[4] for row in threads])[thread_of]

    def _name(self, table: str, row: Row) -> int:
        cbid = row[3]
        name = self._names.get((table, cbid))
        if name is None:
            names, category = _API[table]
            if cbid not in names:
                self._out.problem(UNKNOWN_CALL, self._activities.place(table, row[0]), f"{category}#{cbid!s:.20}")
            name = self._out.string(names.get(cbid, f"{category}#{cbid!s:.20}"))
            self._names[table, cbid] = name
        return name

    def _args_end(self, row: Row) -> bytes:
        """What stands behind the correlation id."""
        key = row[3], row[7]
        end = self._args.get(key)
        if end is None:
            facts = {"cbid": row[3]} | ({"return_value": row[7]} if row[7] else {})
            end = self._args[key] = b"," + _encode(facts)[1:]
        return end

    def _args_of(self, row: Row, number: int) -> bytes:
        self.failed += row[7] not in (0, None)
        args = ID_HEAD + b"%d" % number + self._args_end(row)
        if self._extras and number:
            args = join_args(args, self._extras.take(number, "calls"))
        return args
