"""The CSV of rocprofv3 and rocprof."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.text_lines import csv_rows
from traceconv.families.rocprof._tracks import BAD_ROW, Tracks
from traceconv.io.source import Source
from traceconv.io.spill import forget as forget_mapping
from traceconv.model.args import AnyArgs, join_args
from traceconv.model.builder import Builder
from traceconv.model.columns import Column, kept_rows
from traceconv.model.counted import BLANK_LINES, FURTHER_COUNTERS, HEADINGS
from traceconv.model.diagnostics import skipped
from traceconv.model.never_set import NEVER_SET
from traceconv.model.numbers import is_digits, number_of, whole, whole_of
from traceconv.model.ordering import like_next, stable_order
from traceconv.model.times import NS, parse_ns
from traceconv.model.trace import NO_TRACK, TrackId

FOREIGN_LINE = skipped(
    "rocprof.foreign_line", "a line of the tool, or before the heading of the table: left out", quiet=True
)

_HEADINGS = (
    {"start_timestamp", "end_timestamp"},
    {"begin_ns", "end_ns"},
    {"name", "calls"},
    {"kernel_name", "counter_name", "counter_value"},
    {"index", "kernel_name", "gpu_id"},
)
#: What begins the lines of rocprof itself, which stand before a table or behind it.
_OF_TOOL = re.compile("(?i:rocprofiler|rpl): ")
#: What a heading contains.
_OF_HEADINGS = re.compile("(?i:timestamp|ns|calls|counter|gpu.id)")
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

#: The start and end of a record that were not both set.
_NEVER_SET = 0, 0


def _plain(name: str) -> str:
    """Return the canonical name of a column: "Kernel_Name", "KernelName", "gpu-id" -> "kernel_name", "gpu_id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).replace("-", "_").lower()


class _Kernel(NamedTuple):
    """A dispatch of a kernel; `times` are its start and end in ns, 0 if they were never set; None if not recorded."""

    agent: str
    queue: str
    times: tuple[int, int] | None
    name: str
    args: AnyArgs
    at: int


#: The columns of the rows of counters: texts are numbers, args are places among those of the tables.
_COUNTED = {
    **dict.fromkeys(("dispatch", "start", "end", "at", "args_at", "value_at"), np.int64),
    **dict.fromkeys(("agent", "queue", "name", "counter", "args_len", "value_len"), np.int32),
}
#: The rows that are Python objects at a time.
_BLOCK = 1 << 13
#: The ids of dispatches that are kept as numbers; others are kept as texts.
_PLAIN_ID = re.compile(r"(?a)0|[1-9]\d{,17}")


class _Counted:
    """Kernels with counters, which have a row each, anywhere in the file. The rows are kept as columns.

    Args:
        out: the builder that holds their args.
    """

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._texts: dict[str, int] = {}
        self._columns = {name: Column(dtype) for name, dtype in _COUNTED.items()}
        out.tables.kept_columns = list(self._columns.values())

    def add(self, kernel: _Kernel, dispatch: str, counter: str, value: int | float | str) -> None:
        """Add a counter of a dispatch, with the kernel of its row."""
        number = whole(dispatch) if _PLAIN_ID.fullmatch(dispatch) else -1 - self._text(dispatch)
        tables, columns = self._out.tables, self._columns
        columns["dispatch"].append(number)
        for name, text in (("agent", kernel.agent), ("queue", kernel.queue), ("name", kernel.name)):
            columns[name].append(self._text(text))
        columns["counter"].append(self._text(counter))
        for name, time in zip(("start", "end"), kernel.times or _NEVER_SET, strict=True):
            columns[name].append(time)
        columns["at"].append(kernel.at)
        for name, args in (("args", kernel.args), ("value", {counter: value})):
            at, length = tables.keep_args(args)
            columns[f"{name}_at"].append(at)
            columns[f"{name}_len"].append(length)
        tables.kept_rows(len(columns["at"]))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def kernels(self) -> Iterator[tuple[_Kernel, int]]:
        """Yield each dispatch with all its counters, and the number of its rows; in the order of the first rows.

        The rows are consumed.
        """
        tables = self._out.tables
        arrays, mappings = kept_rows(list(self._columns.values()))
        tables.kept_columns = ()
        texts, kept = list(self._texts), tables.kept_args(bool(mappings))

        def forget() -> None:
            kept.forget()
            for mapping in mappings:
                forget_mapping(mapping)

        for _, rows in groupby(self._by_dispatch(arrays, forget), itemgetter("first")):
            first: dict[str, int] = {}
            values: dict[int, tuple[int, int]] = {}
            count = 0
            for row in rows:
                count += 1
                first = first or row
                values[row["counter"]] = row["value_at"], row["value_len"]  # of equal counters the last one counts
            args = [kept.get(first["args_at"], first["args_len"]), *(kept.get(*place) for place in values.values())]
            joined = b"{%b}" % b",".join([one[1:-1] for one in args if one])
            times = first["start"], first["end"]
            agent, queue, name = (texts[first[field]] for field in ("agent", "queue", "name"))
            yield _Kernel(agent, queue, times, name, joined, first["at"]), count

    def _by_dispatch(self, arrays: Sequence[npt.NDArray[Any]], forget: Callable[[], None]) -> Iterator[dict[str, int]]:
        """Yield the rows, those of a dispatch together, each with the number of the first row of its dispatch."""
        if not len(arrays[0]):
            return
        named = dict(zip(self._columns, arrays, strict=True))
        order = stable_order((named["dispatch"], named["agent"]), forget)
        begins = np.append(True, ~like_next(order, named["dispatch"], named["agent"]))
        named["first"] = np.empty_like(order)
        named["first"][order] = order[begins][np.cumsum(begins, dtype=order.dtype) - 1]
        order = stable_order((named["first"],), forget)
        for start in range(0, len(order), _BLOCK):
            here = order[start : start + _BLOCK]
            for row in zip(*(column[here].tolist() for column in named.values()), strict=True):
                yield dict(zip(named, row, strict=True))
            forget()


_TIMES = (("start_timestamp", "begin_ns"), ("end_timestamp", "end_ns"))
#: The columns of process and thread, in the spelling of newer and of older versions.
_IDS = (("process_id", "pid"), ("thread_id", "tid"))


def _times(row: dict[str, str]) -> tuple[int, int] | None:
    """Begin and end of a record, taken out of its row: 0 and 0 if one of them was never set; None if it has none."""
    texts = [row.pop(new, "") or row.pop(old, "") for new, old in _TIMES]
    if not all(texts):
        return None
    start, end = (parse_ns(text.encode(), NS) for text in texts)
    return (start, end) if start > 0 and end > 0 else _NEVER_SET


class Table:
    """Reads one CSV into a builder."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._tracks = Tracks(out)
        self._totals: TrackId = NO_TRACK
        self._untimed: TrackId = NO_TRACK
        self._has_times = False  # whether the file has columns for them
        self._keys: dict[str, str] = {}  # what the values of the columns are called as args
        self._guids: dict[str, None] = {}  # the processes of a table of rocpd2csv
        self._agents_of: dict[str, str] = {}  # the agents of allocations by address
        self._counted = _Counted(out)

    def read(self, source: Source) -> None:
        """Read all rows."""
        header: list[str] | None = None
        balance = self._out.balance
        for number, cells in csv_rows(source, lambda error: [str(error)]):
            balance.read += 1
            if not cells:
                balance.skipped[BLANK_LINES] += 1
            elif _is_heading(cells):
                header = self._heading(cells)
            elif header is None or _OF_TOOL.match(cells[0]):
                self._out.skip(FOREIGN_LINE, number)
            else:
                self._row(dict(zip(header, cells, strict=False)), len(cells) < len(header), number)
        for kernel, count in self._counted.kernels():
            self._draw(kernel)
            self._out.balance.written += 1
            if count > 1:
                self._out.balance.merged[FURTHER_COUNTERS] += count - 1
        self._name_first_process()

    def _heading(self, cells: list[str]) -> list[str]:
        self._out.balance.merged[HEADINGS] += 1
        header = [_plain(cell) for cell in cells]
        self._has_times |= not {"start_timestamp", "begin_ns"}.isdisjoint(header)
        self._keys = {plain: _ARGS.get(plain, cell) for plain, cell in zip(header, cells, strict=True)}
        return header

    def _row(self, row: dict[str, str], cut: bool, number: int) -> None:
        try:
            if cut:
                raise ValueError("the row is cut")
            if "calls" in row:
                self._sum(row, number)
            else:
                self._record(row, number)
        except (ValueError, KeyError) as error:
            self._out.skip(BAD_ROW, number, str(error))

    def _sum(self, row: dict[str, str], number: int) -> None:
        if self._totals == NO_TRACK:
            self._totals = self._out.tracks.totals("ROCm statistics")
        args = {key: number_in(value) for key, value in row.items()}
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
            track = self._tracks.queue(self._of_process(target, row), "Memory copies")
            out.slice(track, start, end - start, name, _cupti.MEMCPY, self._args(row) | places, number)
        else:
            track = self._place(row)
            name = row.pop("function", "") or row.pop("operation", "") or row.pop("name", "") or row.get("kind", "?")
            category = row.pop("domain", "") or row.pop("kind", "")
            out.slice(track, start, end - start, name, category, self._args(row), number)
        out.balance.written += 1

    def _place(self, row: dict[str, str]) -> TrackId:
        """Return the track of a record that is neither a kernel nor a copy.

        It is the thread, or the agent without a thread.
        """
        pid, tid = (_int(row.pop(new, None) or row.pop(old, None)) for new, old in _IDS)
        if tid is None:
            address = row.get("address", "") and row.get("guid", "") + row["address"]
            agent = row.pop("agent_id", "") or self._agents_of.get(address, "")  # a FREE names only the address
            if agent:
                if address:
                    self._agents_of[address] = agent
                return self._tracks.queue(self._of_process(_agent(agent), row), "Memory allocations")
        return self._tracks.thread(pid, tid)

    def _of_process(self, agent: str, row: dict[str, str]) -> str:
        """Return the name of a device: the number of an agent is unique only within a process."""
        guid = row.get("guid", "")
        self._guids.setdefault(guid)
        return agent if guid == next(iter(self._guids)) else f"{agent}, process {guid}"

    def _name_first_process(self) -> None:
        """Name the first process in its devices, too, if there are several."""
        first = next(iter(self._guids), "")
        for kind, name, *_ in list(self._tracks.known) if len(self._guids) > 1 and first else ():
            if kind == "agent" and ", process " not in name:
                self._out.tracks[self._tracks.known[kind, name]].name += f", process {first}"

    def _kernel(self, row: dict[str, str], times: tuple[int, int] | None, number: int) -> None:
        """Add a dispatch; those with counters are drawn at the end."""
        name = row.pop("kernel_name")
        place = row.pop("agent_id", "") or row.pop("gpu_id", "") or "?", row.pop("queue_id", "?")
        counter, value = row.pop("counter_name", None), row.pop("counter_value", "")
        for known in ("function", "kind"):
            row.pop(known, None)
        dispatch = row.get("dispatch_id", str(number))
        agent = self._of_process(_agent(place[0]), row)
        kernel = _Kernel(agent, f"Queue {place[1]}", times, name, self._args(row), number)
        if counter is not None:
            self._counted.add(kernel, dispatch, counter, number_in(value))
        else:
            self._draw(kernel)
            self._out.balance.written += 1

    def _draw(self, kernel: _Kernel) -> None:
        """Draw a slice on its queue, or a row of a table if its time is not known."""
        out = self._out
        if kernel.times in (None, _NEVER_SET):
            if self._has_times:
                out.problem(NEVER_SET, kernel.at, kernel.name)
            if self._untimed == NO_TRACK:
                self._untimed = out.tracks.totals("ROCm kernels")
            args = join_args({"agent": kernel.agent, "queue": kernel.queue}, kernel.args)
            out.totals(self._untimed, kernel.name, _cupti.KERNEL, args, kernel.at)
            return
        start, end = kernel.times or _NEVER_SET
        track = self._tracks.queue(kernel.agent, kernel.queue)
        out.slice(track, start, end - start, kernel.name, _cupti.KERNEL, kernel.args, kernel.at)

    def _args(self, row: dict[str, str]) -> dict[str, Any]:
        """Return the args of a row: the columns without another use."""
        return {self._keys[key]: number_in(value) for key, value in row.items() if value}


def _is_heading(cells: list[str]) -> bool:
    if _OF_HEADINGS.search(",".join(cells)) is None:
        return False
    names = {_plain(cell) for cell in cells}
    return any(names >= needed for needed in _HEADINGS)


def _agent(text: str) -> str:
    """Return a number, or a text such as "Agent 7"."""
    return f"Agent {text}" if is_digits(text) else text


def _int(text: str | None) -> int | None:
    return whole_of(text) if text and is_digits(text) else None


#: Longer ones are ids or hashes.
_MOST_DIGITS = 40


def number_in(text: str) -> int | float | str:
    number = number_of(text)
    return text if number is None or len(text) >= _MOST_DIGITS else number
