"""AMD ROCm: what rocprofv3 (ROCprofiler-SDK) and the older rocprof write as CSV and JSON.

    "Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",...
    "KERNEL_DISPATCH",1,1,10,"void add<float>(float*, float const*)",1,58378640000000,58378640010000,...

    "Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
    "HIP_RUNTIME_API","hipLaunchKernel",315155,315155,1,58378639990000,58378639996000

    {"rocprofiler-sdk-tool": [{"metadata": {"pid": 7}, "agents": [], "kernel_symbols": [], "strings": {},
      "buffer_records": {"kernel_dispatch": [], "hip_api": [], "memory_copy": []}}]}

Sources: the guides of rocprofv3 and rocprof (rocm.docs.amd.com), ROCprofiler-SDK's generateCSV.cpp and generateJSON.cpp
(ROCm 6.2 to 7), and public outputs. Columns differ by version: they are found by name, and what has no
other use is an arg. Times are ns of CLOCK_BOOTTIME, the same for host and device. One CSV holds one kind of record:
kernels, copies, allocations, calls, markers. Counters had no times in ROCm 6.2; rocprofv2 leaves a start of 0 where the
kernel was not timed. rocprof (v1) has `Index,KernelName,gpu-id,queue-id,...,BeginNs,EndNs` for kernels, with a column
for each counter (with `-i`, times only with `--timestamp on`), and Chrome JSON for traces:

    {"ph":"X","name":"hipMalloc","pid":"2","tid":"7","ts":"622108776102","dur":"13204",
     "args":{"BeginNs":"622108776102152","EndNs":"622108789306334"}}

There `ts` and `dur` are whole microseconds, rounded down, `dur` to 1 at least, and `ts` counts from the time in
begin_ts_file.txt, if there is one. The args hold the times that were measured, in ns of the same clock as the tables.
GPUs are processes called GPU0, GPU1, ..., with a tid for each stream, or 0. So are the calls of HIP, those of HSA, and
the copies of all GPUs: those of HIP have the number of the GPU as "dev-id" in their args. Flows called "dep" lead from
calls to their work (bin/dform.py, bin/sqlitedb.py and bin/tblextr.py of ROCm/rocprofiler 6.3, and a public file).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import structs

from traceconv.families.chrome import document
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.common import cupti as _cupti
from traceconv.families.common.collective_kernels import declare_kernels
from traceconv.families.common.text_lines import csv_rows
from traceconv.families.importer import Importer, Match, Signature
from traceconv.families.rocprof_sdk import BAD_ROW, Tracks, read_sdk
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.io.spill import forget as forget_mapping
from traceconv.model.args import AnyArgs, Args, join_args
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, NO_TIME, ClockDomain, Run, Zero
from traceconv.model.columns import I32, I64, Column, kept_rows, like_next, stable_order
from traceconv.model.diagnostics import BLANK_LINES, HEADINGS, ROWS, noted, skipped
from traceconv.model.marks import GPU_FLOWS, GPU_MARKS, CountMarks, TotalsMarks
from traceconv.model.numbers import NS, is_digits, number_of, parse_ns, whole, whole_of
from traceconv.model.source_info import Layer
from traceconv.model.track_table import NO_TRACK, TrackId, TrackKind

FURTHER_COUNTERS = Counted("further counter of a kernel", "further counters of a kernel")

NOT_EXACT = noted(
    "rocprof.not_exact",
    "the args of a call, copy or kernel hold no ns that ts and dur were cut from: its times are whole µs",
)
FOREIGN_LINE = skipped(
    "rocprof.foreign_line", "a line of the tool, or before the heading of the table: left out", quiet=True
)

#: The default clock of ROCprofiler-SDK (source/lib/common/utility.hpp); early versions took CLOCK_MONOTONIC.
CLOCK = BOOTTIME
#: The Chrome JSON of the old rocprof counts from its first record, if its args do not hold times of the boot clock.
V1_CLOCK = ClockDomain("rocprof time", Zero.UNKNOWN, Run.MONOTONIC, 1)

_HEADING = re.compile(
    rb'(?m)^(?=.*(?:Start_Timestamp"?,"?End_Timestamp|BeginNs"?,"?EndNs))"?[\w-]+"?,.*$', re.IGNORECASE
)
_STATS = re.compile(rb'(?m)^"Name","(?:Calls|TotalDurationNs)".*"(?:TotalDurationNs|AverageNs|Percentage)".*$')
_SDK_JSON = re.compile(rb'"rocprofiler-sdk-tool"\s*:')
_V1_JSON = re.compile(rb'"args"\s*:\s*\{\s*"name"\s*:\s*"(?:CPU HIP API|CPU HSA API|GPU\d+|COPY|Markers and Ranges)"')
_UNTIMED = re.compile(
    rb'(?mi)^(?!.*(?:Timestamp|BeginNs))(?:"?Index"?,"?KernelName"?,"?gpu-id"?,.*$'
    rb'|"?[\w-]+"?,(?>.*?Kernel_?Name"?,).*"?Counter_Name"?,"?Counter_Value"?[ \t\r]*$)'
)
#: The names of processes of the old rocprof's Chrome JSON, and the categories of calls.
_GPU = re.compile(r"(?a)GPU(\d{1,9})")
_COPIES = "COPY"
_CALLS = {"CPU HIP API": "hip_api", "CPU HSA API": "hsa_api"}
_US = 1000
_MOST_DIGITS = 18
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
    **{f"{what}_size_{axis}": f"{what}_{axis}" for what in ("workgroup", "grid") for axis in "xyz"},
    **{name: name for name in ("vgpr_count", "accum_vgpr_count", "sgpr_count", "kernel_id", "wave_size")},
    **{name: name for name in ("dispatch_id", "bytes", "correlation_id", "thread_id", "process_id")},
    "workgroup_size": "workgroup",
    "grid_size": "grid",
    "private_segment_size": "private_segment_bytes",
    "group_segment_size": "group_segment_bytes",
    "lds_block_size": "lds_bytes",
    "scratch_size": "scratch_bytes",
    "lds": "lds_bytes",
    "scr": "scratch_bytes",
    "arch_vgpr": "vgpr_count",
    "sgpr": "sgpr_count",
    "arch_vgpr_count": "vgpr_count",
    "vgpr": "vgpr_count",
    "accum_vgpr": "accum_vgpr_count",
    "grd": "grid",
    "wgr": "workgroup",
    "allocation_size": "bytes",
    "stream_id": "stream",
    "tid": "thread_id",
    "pid": "process_id",
}

#: The columns of the rows of counters: texts are numbers, args are places among those of the tables.
_COUNTED = {
    **dict.fromkeys(("dispatch", "start", "end", "at", "args_at", "value_at"), np.int64),
    **dict.fromkeys(("agent", "queue", "name", "counter", "args_len", "value_len"), np.int32),
}
#: The rows that are Python objects at a time.
_BLOCK = 1 << 13
#: The ids of dispatches that are kept as numbers; others are kept as texts.
_PLAIN_ID = re.compile(r"(?a)0|[1-9]\d{,17}")
_TIMES = (("start_timestamp", "begin_ns"), ("end_timestamp", "end_ns"))
#: The columns of process and thread, in the spelling of newer and of older versions.
_IDS = (("process_id", "pid"), ("thread_id", "tid"))


def take_exact_times(out: Builder) -> bool:
    """Give the slices the times in their args, and the others the same clock; return whether that could be done.

    A slice whose args hold no times, or none that its `ts` and `dur` were rounded from, keeps whole microseconds, and
    is counted. All are left as they are if that holds for half of them, or if other events have times.
    """
    tables = out.tables
    ts, dur, args_at, args_len, origin = tables.slice_columns("ts", "dur", "args_at", "args_len", "origin")
    args = tables.kept_args()
    begin, end = (_numbers(args, args_at, args_len, key) for key in (b"BeginNs", b"EndNs"))
    measured, shift = end - begin, begin - ts
    exact = (begin >= 0) & (measured >= 0) & (np.maximum(measured // _US, 1) * _US == np.maximum(dur, _US))
    if not exact.any():
        return False
    exact &= np.abs(shift - np.median(shift[exact])) < _US
    others = any(len(tables.columns[table]["ts"]) for table in ("instants", "counters"))
    whole = np.flatnonzero(~exact)
    if others or 2 * len(whole) >= len(ts):
        why = "an instant or counter has no ns" if others else "too few have them"
        out.problem(NOT_EXACT, int(np.min(origin)), why, count=len(ts))
        return False
    if len(whole):
        out.problem(NOT_EXACT, int(np.min(origin[whole])), count=len(whole))
    base = int(np.min(shift[exact])) // _US * _US
    begin, measured = np.where(exact, begin, ts + base), np.where(exact, measured, dur)
    del ts, dur, args_at, args_len, origin  # a column in use cannot be replaced
    tables.columns["slices"]["ts"].replace([begin])
    tables.columns["slices"]["dur"].replace([measured])
    return True


def declare_devices(out: Builder) -> None:
    """Declare the processes of GPUs as devices, and give what is on them, and calls, the categories of other files.

    A copy whose args name the GPU gets a track of it; others are in a process of their own, which is no device.
    """
    tables, gpus = out.tables, dict[TrackId, int]()
    names, category_of = tables.tracks.texts("name"), np.zeros(len(tables.tracks), np.int32)
    is_copies = np.zeros(len(category_of), bool)
    for row, above in enumerate(tables.tracks.column("parent").tolist()):
        match = _GPU.fullmatch(names[row]) if above == NO_TRACK else None
        if match or above in gpus:
            changed = out.tracks[TrackId(row)]
            changed.kind = TrackKind.TRACK
        if match:
            gpus[TrackId(row)], changed.pid = whole(match[1]), None
        elif above in gpus:
            changed.name, changed.tid = changed.name or f"Row {changed.tid}", None
            category_of[row] = tables.string(_cupti.KERNEL)
        elif above != NO_TRACK:
            is_copies[row] = names[above] == _COPIES
            category_of[row] = tables.string(_CALLS.get(names[above], ""))
    track, args_at, args_len = tables.slice_columns("track", "args_at", "args_len")
    categories, copies = category_of[track], np.flatnonzero(is_copies[track])
    device = _numbers(tables.kept_args(), args_at[copies], args_len[copies], b"dev-id")
    del track, args_at, args_len  # a column in use cannot be replaced
    for gpu, number in gpus.items():
        rows = copies[device == number]
        if len(rows):
            categories[rows] = tables.string(_cupti.MEMCPY)
            queue = out.tracks.add("Memory copies", gpu)
            tables.columns["slices"]["track"].change(rows, np.full(len(rows), queue))
    tables.columns["slices"]["category"].replace([categories])


def _numbers(args: Args, at: I64, length: I32, key: bytes) -> I64:
    """Return the whole number, quoted or not, that each JSON object holds under a key; -1 for none, or several."""
    numbers = np.full(len(at), -1, np.int64)
    for rows, starts, data in args.by_part(at, length):
        first, last = int(np.min(starts)), int(np.max(starts + length[rows]))
        text = np.append(data[first:last], np.zeros(_MOST_DIGITS + 2, np.uint8))
        places = _places(text, b'"%b":' % key)
        places += text[places] == ord('"')
        values, digits = np.zeros(len(places), np.int64), np.ones(len(places), bool)
        count = np.zeros(len(places), np.int64)
        for number in range(_MOST_DIGITS + 1):
            byte = text[places + number]
            digits &= (byte >= ord("0")) & (byte <= ord("9"))
            values = np.where(digits & (number < _MOST_DIGITS), 10 * values + (byte - ord("0")), values)
            count += digits
        is_whole = np.isin(text[places + np.minimum(count, _MOST_DIGITS)], tuple(b'",}'))
        values[~is_whole | (count == 0)] = -1
        order = np.argsort(starts, kind="stable")
        begins = starts[order] - first
        low, high = (np.searchsorted(places, edges) for edges in (begins, begins + length[rows][order]))
        found = high - low == 1
        numbers[rows[order[found]]] = values[low[found]]
    return numbers


def _places(text: np.ndarray[tuple[int], np.dtype[np.uint8]], wanted: bytes) -> I64:
    """Return the positions behind each occurrence of some bytes."""
    places = np.flatnonzero(text[: len(text) - len(wanted)] == wanted[0])
    for number in range(1, len(wanted)):
        places = places[text[places + number] == wanted[number]]
    return places + len(wanted)


def _plain(name: str) -> str:
    """Return the canonical name of a column: "Kernel_Name", "KernelName", "gpu-id" -> "kernel_name", "gpu_id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).replace("-", "_").lower()


class _Kernel(NamedTuple):
    """A dispatch of a kernel; `times` are its start and end in ns."""

    agent: str
    queue: str
    times: tuple[int, int]
    name: str
    args: AnyArgs
    at: int


class _Counted:
    """Kernels with counters, which have a row each, anywhere in the file. The rows are kept as columns."""

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
        for name, time in zip(("start", "end"), kernel.times, strict=True):
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
        """Yield each dispatch with all its counters, and the number of its rows; in the order of the first rows."""
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
            joined = b"{%b}" % b",".join([members[1:-1] for members in args if members])
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


def _times(row: dict[str, str]) -> tuple[int, int] | None:
    """Start and end of a record, taken out of its row; None if it has none."""
    texts = [row.pop(new, "") or row.pop(old, "") for new, old in _TIMES]
    if not all(texts):
        return None
    start, end = (parse_ns(text.encode(), NS) for text in texts)
    return start, end


def _has_times(source: Source) -> bool:
    """Return whether a row has a start and an end that were set."""
    places: list[int] = []
    for _, cells in csv_rows(source, lambda error: [str(error)]):
        if _is_heading(cells):
            places = [at for at, cell in enumerate(cells) if _plain(cell) in chain(*_TIMES)]
            if not places:
                return False
        elif places and len(cells) > places[-1] and all(cells[at].strip("0") for at in places):
            return True
    return False


class Table:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._tracks = Tracks(out)
        self._totals: TrackId = NO_TRACK
        self._untimed: TrackId = NO_TRACK
        self._has_times = False  # whether kernels have any
        self._keys: dict[str, str] = {}  # what the values of the columns are called as args
        self._guids: dict[str, None] = {}  # the processes of a table of rocpd2csv
        self._agents_of: dict[str, str] = {}  # the agents of allocations by address
        self._counted = _Counted(out)

    def read(self, source: Source) -> None:
        """Read all rows."""
        header: list[str] | None = None
        balance = self._out.balance
        self._has_times = _has_times(source)
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
            self._draw(kernel, timed=self._has_times)
            if count > 1:
                balance.merged[FURTHER_COUNTERS] += count - 1
        self._name_first_process()

    def _heading(self, cells: list[str]) -> list[str]:
        self._out.balance.merged[HEADINGS] += 1
        header = [_plain(cell) for cell in cells]
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
        times, is_kernel = _times(row), "kernel_name" in row and not row.get("function")
        if is_kernel and (times is not None or not self._has_times):
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
        """Return the track of a record that is neither a kernel nor a copy."""
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
        """Add a dispatch; those with counters are drawn at the end. `times` is None if the table has none."""
        name = row.pop("kernel_name")
        place = row.pop("agent_id", "") or row.pop("gpu_id", "") or "?", row.pop("queue_id", "?")
        counter, value = row.pop("counter_name", None), row.pop("counter_value", "")
        for known in ("function", "kind"):
            row.pop(known, None)
        dispatch = row.get("dispatch_id", str(number))
        agent = self._of_process(_agent(place[0]), row)
        kernel = _Kernel(agent, f"Queue {place[1]}", times or (0, 0), name, self._args(row), number)
        if counter is None:
            self._draw(kernel, timed=times is not None)
        else:
            self._counted.add(kernel, dispatch, counter, number_in(value))

    def _draw(self, kernel: _Kernel, *, timed: bool) -> None:
        """Draw a slice on its queue, or a row of a table."""
        out = self._out
        out.balance.written += 1
        if not timed:
            if self._untimed == NO_TRACK:
                self._untimed = out.tracks.totals("ROCm kernels")
            args = join_args({"agent": kernel.agent, "queue": kernel.queue}, kernel.args)
            out.totals(self._untimed, kernel.name, _cupti.KERNEL, args, kernel.at)
            return
        start, end = kernel.times
        track = self._tracks.queue(kernel.agent, kernel.queue)
        out.slice(track, start, end - start, kernel.name, _cupti.KERNEL, kernel.args, kernel.at)

    def _args(self, row: dict[str, str]) -> dict[str, Any]:
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


def number_in(text: str) -> int | float | str:
    number = number_of(text)
    return text if number is None or len(text) >= 40 else number


@dataclass(frozen=True)
class Rocprof(Importer):
    name = "rocprof"
    title = "AMD ROCm: rocprofv3 and rocprof traces"
    url = "https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html"
    versions = "rocprofv3 CSV and JSON (ROCm 6.2 to 7), rocprofv2 CSV, rocprof CSV and JSON"
    signature = Signature(
        '"rocprofiler-sdk-tool" | "cpu hip api" | "cpu hsa api" | "gpu | "copy" | "markers and ranges" | '
        'end_timestamp | beginns | "name","calls" | "name","totaldurationns" | counter_value',
        (rb'kernelname"?,"?gpu-id',),
    )
    clock = CLOCK
    layer = Layer.DEVICE
    record = "rocprofv3 --sys-trace --output-format json -- python run.py"
    skips = (EMPTY_EVENT, FOREIGN_LINE)

    line_up = (
        "Times of host and device count from boot. The JSON names the host, which aligns it with other files on "
        "clocks since boot; else `--offset FILE=TIME`."
    )
    becomes = (
        ("kernel dispatches", "slices on the queues of their device, with sizes and registers as args"),
        ("memory copies", "slices on a track of the device that they go to, with bytes where the file has them"),
        ("HIP, HSA, RCCL calls, markers", "slices on their thread"),
        ("correlation of call and kernel or copy (JSON)", "flows"),
        (
            "counter_collection (CSV, JSON)",
            "slices of the kernels with the counters as args; rows of totals if it has no times, or all are 0",
        ),
        ("memory allocations", "slices on a track of their device, with the bytes; a free on that of its address"),
        ("statistics (*_stats.csv)", "rows of totals"),
    )
    lost = (
        "CSV has no flows between calls and kernels, since each file holds one kind of record; the JSON has them.",
        "Counters of the old rocprof have times only with `--timestamp on`; else they are totals.",
        "In Chrome JSON of the old rocprof, copies of HSA name no GPU: they are in no table of devices.",
        "All kernels of RCCL have one name. Its calls name the operation, but return before it is done.",
        "Addresses, code objects and samples of the program counter in the JSON are not read.",
        "Databases are not read: `rocpd convert --output-format csv -i FILE` writes those of rocprofv3 as CSV, and the "
        "first rocprof wrote results.json and results.csv beside its results.db.",
    )
    unrecorded = "no AMD GPU was at hand. Public files of all three versions were read, too."
    marks = structs.replace(
        GPU_MARKS,
        launch_flows=rf"{GPU_FLOWS}|^dep$",
        zero_before_work=True,
        # Counters of the hardware, also summed up over its units, and the derived ones that are sums and no ratios.
        counts=CountMarks(
            (_cupti.KERNEL,),
            r"[A-Z]{2,9}[0-9]?_[A-Z0-9_]+(?:_sum)?(?:\[\d+\])?|FetchSize|WriteSize|FETCH_SIZE|WRITE_SIZE",
            rows_are_calls=True,
            others=r"(?!(?:Dispatch|Complete)Ns$)(?:[A-Z][A-Z0-9]++[a-z]|[A-Z][a-z0-9]++[A-Z])[A-Za-z0-9]*+(?:\[\d+\])?"
            r"|[A-Z]{2,9}[0-9]?_\w+(?:\[\d+\])?|Wavefronts",
        ),
        totals=TotalsMarks(
            calls=("calls",),
            total=("total_duration_ns",),
            mean=("average_ns",),
            least=("min_ns",),
            most=("max_ns",),
            percent=("percentage",),
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the key of the JSON or the heading of a table."""
        if _SDK_JSON.search(head.data[:4096]):
            return Match.yes("JSON of ROCprofiler-SDK")
        if head.text[:1] in (b"{", b"["):  # the search for headings is slow
            is_of_chrome = b'"traceEvents"' in head.data[:4096] and b'"traceconv"' not in head.data[:4096]
            if is_of_chrome and _V1_JSON.search(head.data):
                return Match.yes("Chrome JSON with the process names of rocprof")
            return Match.no("no key or process names of rocprof")
        heading = _HEADING.search(head.data) or _STATS.search(head.data) or _UNTIMED.search(head.data)
        if heading and re.search(rb"Kernel_?Name|Function|Agent_Id|Correlation_Id|Calls", heading[0], re.IGNORECASE):
            return Match.yes("the heading of a rocprof table")
        return Match.no("no table heading of rocprof")

    def read(self, source: Source, out: Builder) -> None:
        head = source.head()
        if head.text[:1] == b"{":
            if _SDK_JSON.search(head.data):
                read_sdk(source, out, self.clock)
                declare_kernels(out, _cupti.KERNEL)
                return
            reader = ChromeReader(source, out)
            events = ChromeEvents(out)
            events.add_all(reader)
            top = document.top_level(reader, out)
            events.finish(top.get("stackFrames"))
            declare_devices(out)
            document.set_clock(top, out, self.clock if take_exact_times(out) else V1_CLOCK)
            return
        out.counts(ROWS, "line")
        out.info.real_ids = True
        if _STATS.search(head.data) or _UNTIMED.search(head.data):
            out.clocks.set_default(NO_TIME)
            out.belongs_to((self.name,))
        Table(out).read(source)
        if not out.balance.written:
            raise source.malformed("no rows of rocprof found", hint=f"record with: {self.record}")
        declare_kernels(out, _cupti.KERNEL)
