"""Calls of the CUDA runtime and driver, what they launched, and the flows between both.

A call and the kernels, copies and memsets that it launched have the same correlation id, which is unique within a
process. If a runtime call made a driver call, both have it: the flow starts at the runtime call, which the program
made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import IDS_END, Described, Known, Launches, Row, whole
from traceconv.families.nvprof._cbids import DRIVER, RUNTIME
from traceconv.families.nvprof._tables import Activities
from traceconv.families.nvprof._tracks import Tracks
from traceconv.io.shown import Counted
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import absent, noted
from traceconv.model.trace import I64

UNKNOWN_CALL = noted(
    "nvprof.unknown_call", "a call has a number (cbid) that is newer than the list of names: the number is shown"
)
NO_LAUNCH = absent(
    "nvprof.no_launch",
    "the correlation id of device work is in no recorded call, or in calls of several processes: no flow",
)
UNMATCHED = absent(
    "nvprof.unmatched_row",
    "a row describes a call, kernel or marker by an id that no other row has: left out",
)

_API = {
    "RUNTIME": (RUNTIME, _cupti.RUNTIME_API),
    "DRIVER": (DRIVER, _cupti.DRIVER_API),
}
_API_COLUMNS = ("processId", "threadId", "cbid", "returnValue", "correlationId")
#: The args of what has a correlation id: the id, and the rest.
ID_ARG = b'{"correlation_id":%d%b'
_encode = msgspec.json.Encoder(enc_hook=str).encode


def correlation(number: Any) -> int:
    """Return a stored correlation id, 0 for other values."""
    if not isinstance(number, int):
        return 0
    return number if 0 < number < IDS_END else number & 0xFFFFFFFF if number < 0 else 0


def correlations(numbers: Sequence[Any]) -> I64:
    """Return stored correlation ids, 0 for other values."""
    ids = whole(numbers)
    ids = np.array([number or 0 for number in numbers], np.int64) if ids is None else ids
    return np.where(ids < IDS_END, np.where(ids < 0, ids & 0xFFFFFFFF, ids), 0)


class Extras:
    """Rows that belong to another one, kept by its id until that one is read; each is counted in the balance."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._args: dict[int, dict[str, Any]] = {}
        self._tables: dict[int, Counter[str]] = {}

    def __len__(self) -> int:
        return len(self._args)

    def add(self, number: int, table: str, args: dict[str, Any]) -> None:
        """Keep the args of a row for another one; all values of one key are kept."""
        kept = self._args.setdefault(number, {})
        for key, value in args.items():
            before = kept.get(key)
            kept[key] = value if before is None else [*before, value] if isinstance(before, list) else [before, value]
        self._tables.setdefault(number, Counter())[table] += 1

    def take(self, number: int, owner: str) -> dict[str, Any]:
        """Remove and return the args that are kept for a row."""
        args = self._args.pop(number, None)
        if args is None:
            return {}
        became = Counted(f"row that became args of {owner}", f"rows that became args of {owner}")
        self._out.balance.merged[became] += self._tables.pop(number).total()
        return args

    def report_left(self, place: str) -> None:
        """Count the rows that were not used."""
        left: Counter[str] = Counter()
        for tables in self._tables.values():
            left.update(tables)
        for table, count in left.items():
            self._out.skip(UNMATCHED, f"{place}:{table}", count=count)


class ProcessLaunches(Launches):
    """Joins device work to the calls that launched it, when all rows are read. Processes may be of any value."""

    def __init__(self, out: Builder) -> None:
        super().__init__()
        self._out = out
        self._numbers: dict[Any, int] = {}
        self._pids: dict[int, Any] = {}

    def number(self, pid: Any) -> int:
        """Return the number that stands for a process here, a new one for a new pid."""
        return self._numbers.setdefault(pid, len(self._numbers))

    def pid_of(self, number: int) -> Any:
        """Return the only process with a call of that correlation id, None if there is none or more than one.

        To be asked once all calls are there.
        """
        if not self._pids:
            pids = list(self._numbers)
            for processes, ids, _ in self._calls:
                for process, one in zip(processes.tolist(), ids.tolist(), strict=True):
                    pid = pids[process]
                    self._pids[one] = pid if self._pids.get(one, pid) == pid else None
        return self._pids.get(number)

    def draw(self, place: str) -> None:
        """Add the flows."""
        sources, targets, origins, missing = self.pairs()
        if missing:
            self._out.problem(NO_LAUNCH, place, count=missing)
        same = np.full(len(sources), self._out.tables.string(_cupti.LAUNCH_FLOW))
        self._out.bulk.flows(sources, targets, same, same, origins)


class Calls:
    """Reads RUNTIME and DRIVER."""

    def __init__(self, activities: Activities, tracks: Tracks, launches: ProcessLaunches, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._launches = launches
        self._out = out
        self._extras = Extras(out)
        self._unknown: set[tuple[str, Any]] = set()
        self.failed = 0

    def read(self) -> None:
        """Read all calls, with what other tables say about them."""
        self._read_cuda_events()
        self._read_external()
        for table in _API:  # of two calls with one id that of the runtime comes first, and is the launch
            self._read_table(table)
        self._extras.report_left(self._out.info.name)

    def _read_cuda_events(self) -> None:
        """Read cudaEventRecord: which event, on which stream."""
        columns = ("correlationId", "contextId", "streamId", "eventId")
        for _, number, context, stream, event in self._activities.rows("CUDA_EVENT", columns):
            args = {"event_id": event, "event_context": context, "event_stream": stream}
            self._extras.add(correlation(number), "CUDA_EVENT", args)

    def _read_external(self) -> None:
        """Read what another library (OpenACC, a framework) calls the operation that this call is part of."""
        columns = ("correlationId", "externalKind", "externalId")
        for _, number, kind, external in self._activities.rows("EXTERNAL_CORRELATION", columns):
            self._extras.add(correlation(number), "EXTERNAL_CORRELATION", {f"external_id_kind_{kind}": external})

    def _read_table(self, table: str) -> None:
        kinds = Known(partial(self._kind, table))
        for spans in self._activities.spans(table, _API_COLUMNS):
            kinds_of_rows = kinds.of([row[3:7] for row in spans.rows], spans.rows)
            ids = correlations([row[7] for row in spans.rows])
            slices, processes = spans.add_to(self._out, kinds_of_rows, self._args(ids, kinds_of_rows))
            self._launches.add_calls(processes, ids, slices)
            self.failed += len(kinds_of_rows) - [row[6] or 0 for row in spans.rows].count(0)

    def _kind(self, table: str, row: Row) -> Described:
        pid, thread, cbid, result = row[3:7]
        names, category = _API[table]
        category_string = self._out.tables.string(category)
        name = names.get(cbid, f"{category}#{cbid!s:.20}")
        if cbid not in names and (table, cbid) not in self._unknown:
            self._unknown.add((table, cbid))
            self._out.problem(UNKNOWN_CALL, self._activities.place(table, row[0]), name)
        info = {"cbid": cbid} | ({"return_value": result} if result else {})
        args = b"," + _encode(info)[1:]
        track = self._tracks.thread(pid, thread)
        return Described(track, self._out.tables.string(name), category_string, args, self._launches.number(pid))

    def _args(self, ids: I64, kinds: list[Described]) -> list[bytes]:
        args = [ID_ARG % (number, kind.args) for number, kind in zip(ids.tolist(), kinds, strict=True)]
        if not self._extras:
            return args
        pairs = zip(args, ids.tolist(), strict=True)
        return [join_args(one, self._extras.take(number, "calls")) if number else one for one, number in pairs]
