"""Read the samples and counters of Nsight Systems: call stacks, thread states, metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traceconv.families.common.sqlite_tables import Row
from traceconv.families.nsight import _schema as schema
from traceconv.families.nsight._export import Export, Tracks
from traceconv.families.nsight._slices import NO_TIME
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.trace import NO_CPU, StackId, TrackId

NO_VALUE = declare("nsys.no_value", ProblemKind.LOST, "a row of a counter has no time or no number")
NEGATIVE = declare(
    "nsys.negative_unsigned",
    ProblemKind.REPAIRED,
    "a value is below zero, but the export says that its metric is an unsigned integer of so many bytes: it was read "
    "as one",
)
UNPAIRED = declare(
    "nsys.unpaired_schedule",
    ProblemKind.ABSENT,
    "a thread is scheduled out but not in, or in but not out before the end of the recording: only one "
    "side of its state is known",
)

_RUNNING = "Running"
#: Users count those with cycles only as samples; what the others are is not described.
_NOT_SAMPLED = "call stack without CPU cycles"
_NO_STACK = "[no call stack]"
_UNKNOWN = "[unknown]"


class Sampled:
    """Reads the tables of samples, schedules and counters."""

    def __init__(self, export: Export, out: Builder, tracks: Tracks) -> None:
        self._export = export
        self._out = out
        self._tracks = tracks
        self._frames: dict[tuple[Any, Any, Any], StackId] = {}

    def read(self) -> set[str]:
        """Read the tables of samples, schedules and counters; return their names."""
        self._samples()
        self._schedules()
        for table, (value, key) in schema.COUNTERS.items():
            if table in self._export.tables:
                self._counters(table, value, key)
        return {"COMPOSITE_EVENTS", "SCHED_EVENTS", *schema.COUNTERS}

    # -- call stacks ----------------------------------------------------------------------------------------------

    def _samples(self) -> None:
        """Read the samples: both tables in the order of their id, so that no stack has to be kept."""
        out = self._out
        if "COMPOSITE_EVENTS" not in self._export.tables:
            return
        stacks = self._stacks()
        waiting = next(stacks, None)
        columns = ("id", "start", "globalTid", "cpuCycles", "cpu")
        number = 0
        for number, (sample, ts, thread, cycles, cpu) in enumerate(
            self._export.rows("COMPOSITE_EVENTS", columns, order=self._order("COMPOSITE_EVENTS", "id")), 1
        ):
            stack: StackId | None = None
            while waiting is not None and isinstance(sample, int) and waiting[0] <= sample:
                stack = waiting[1] if waiting[0] == sample else None
                waiting = next(stacks, None)
            if type(ts) is not int:
                out.skip(NO_TIME, f"COMPOSITE_EVENTS row {number}", f"start {ts!r:.40}")
                continue
            if stack is None:
                stack = out.frame(_NO_STACK)
            name = _NOT_SAMPLED if cycles == 0 else "CPU sample"
            on_cpu = cpu if type(cpu) is int and cpu >= 0 else NO_CPU
            out.sample(self._tracks.thread(thread), ts, stack, name, 1, number, cpu=on_cpu)
            out.balance.written += 1
        out.balance.read += number

    def _order(self, table: str, *columns: str) -> tuple[str, ...]:
        return columns if self._export.has(table, *columns) else ()

    def _stacks(self) -> Iterator[tuple[int, StackId]]:
        """Yield the innermost frame of each stack, by id."""
        table = "SAMPLING_CALLCHAINS"
        order = ("id", "stackDepth DESC") if self._export.has(table, "id", "stackDepth") else ()
        current, parent = None, StackId(-1)
        for number, symbol, module in self._export.rows(table, ("id", "symbol", "module"), order=order):
            if not isinstance(number, int):
                continue
            if number != current:
                if current is not None:
                    yield current, parent
                current, parent = number, StackId(-1)
            parent = self._frame(symbol, module, parent)
        if current is not None:
            yield current, parent

    def _frame(self, symbol: Any, module: Any, parent: StackId) -> StackId:
        key = (symbol, module, parent)
        known = self._frames.get(key)
        if known is None:
            text = self._export.text
            known = self._frames[key] = self._out.frame(
                text(symbol) or _UNKNOWN, text(module), parent, named=bool(text(symbol))
            )
        return known

    # -- thread states ----------------------------------------------------------------------------------------------

    def _schedules(self) -> None:
        """Draw slices for the time on a CPU, and for the time off it with the reason that the export states."""
        table, out = "SCHED_EVENTS", self._out
        columns = ("start", "cpu", "isSchedIn", "globalTid", "threadState", "threadBlock")
        last: dict[Any, tuple[int, Row]] = {}
        number = 0
        order = self._order(table, "start")
        for number, row in enumerate(self._export.rows(table, columns, order=order), 1):
            if type(row[0]) is not int:
                out.skip(NO_TIME, f"{table} row {number}", f"start {row[0]!r:.40}")
                continue
            thread = row[3]
            before = last.get(thread)
            last[thread] = (number, row)
            if before is None:
                if not row[2]:
                    out.problem(UNPAIRED, f"{table} row {number}")
                continue
            self._state(thread, before, row)
        for row_number, row in last.values():
            self._state_to_the_end(row_number, row)
        out.balance.read += number

    def _state(self, thread: Any, before: tuple[int, Row], row: Row) -> None:
        number, (start, cpu, is_in, _, state, block) = before
        name = _RUNNING
        args: dict[str, Any] = {"cpu": cpu}
        if not is_in:
            name = str(self._export.enum("threadState", state)) if state is not None else "Not running"
            word = self._export.enum("threadBlock", block)
            args = {} if word is None else {"blocked_by": word}
        self._out.slice(self._states_of(thread), start, row[0] - start, name, "thread_state", args, number)
        self._out.balance.written += 1

    def _state_to_the_end(self, number: int, row: Row) -> None:
        """Draw the last state of a thread, of unknown duration, as an instant."""
        name = _RUNNING if row[2] else "Not running"
        self._out.instant(self._states_of(row[3]), row[0], name, "thread_state", {"cpu": row[1]}, number)
        self._out.balance.written += 1

    def _states_of(self, thread: Any) -> TrackId:
        return self._tracks.part_of(self._tracks.thread(thread), "state")

    # -- counters -----------------------------------------------------------------------------------------------------

    def _counters(self, table: str, value: str, key: tuple[str, ...]) -> None:
        out, export = self._out, self._export
        time = "timestamp" if export.has(table, "timestamp") else "start"
        names = self._names(table)
        ranges = self._unsigned_ranges() if table == "GPU_METRICS" else {}
        tracks: dict[Row, TrackId] = {}
        for first, rows in export.portions(table, (time, value, *key)):
            out.balance.read += len(rows)
            for number, row in enumerate(rows, first):
                if type(row[0]) is not int or not isinstance(row[1], int | float):
                    out.skip(NO_VALUE, f"{table} row {number}", f"{time} {row[0]!r:.40}, {value} {row[1]!r:.40}")
                    continue
                whose = row[2:]
                track = tracks.get(whose)
                if track is None:
                    track = tracks[whose] = self._counter(table, whose, names)
                counted = row[1]
                if counted < 0 and whose in ranges and counted + ranges[whose] >= 0:
                    counted += ranges[whose]
                    out.problem(NEGATIVE, f"{table} row {number}", f"{row[1]} is {counted}")
                is_there = out.counter(track, row[0], counted, number)
                out.count_values(is_there, not is_there)

    def _unsigned_ranges(self) -> dict[Row, int]:
        """Return the number of values of each metric, by type and metric, that is an unsigned integer of a known size.

        GPU metrics are the fields of a generic event. nsys 2025.3 exports a field of one byte as if it were signed.
        """
        columns = ("typeId", "fieldIdx", "size", "type")
        return {
            (kind, field): 1 << 8 * size
            for kind, field, size, number in self._export.rows("GENERIC_EVENT_TYPE_FIELDS", columns)
            if number == schema.UNSIGNED_FIELD and isinstance(size, int) and 0 < size <= 8
        }

    def _names(self, table: str) -> dict[Any, tuple[str, str, str]]:
        """Return name, unit and description of each metric."""
        rows = self._export.rows
        names: dict[Any, tuple[str, str, str]] = {}
        if table in ("GPU_METRICS", "SOC_METRICS"):
            for kind, metric, name in rows(f"TARGET_INFO_{table}", ("typeId", "metricId", "metricName")):
                unit = _unit(str(name))
                stored = schema.STORED_UNIT if table == "GPU_METRICS" else {}
                names[kind, metric] = (str(name), *stored.get(unit, (unit, "")))
        elif table.startswith("NET_"):
            columns = ("metricsListId", "metricsIdx", "name", "unit", "description")
            for kind, metric, *words in rows("TARGET_INFO_NETWORK_METRICS", columns):
                names[kind, metric] = (str(words[0]), str(words[1] or ""), str(words[2] or ""))
        else:
            for metric, *words in rows("TARGET_INFO_PERF_METRIC", ("id", "name", "unit", "description")):
                names[metric] = (str(words[0]), str(words[1] or ""), str(words[2] or ""))
        return names

    def _counter(self, table: str, key: Row, names: dict[Any, tuple[str, str, str]]) -> TrackId:
        tracks = self._tracks
        if table == "GPU_METRICS":
            gpu = key[0] & schema.GPU_OF_TYPE_MASK if isinstance(key[0], int) else key[0]
            parent = tracks.metrics_of(gpu)
        elif table == "SOC_METRICS":
            parent = tracks.group("SoC metrics")
        elif table.startswith("NET_"):
            parent = tracks.group(f"Network device {key[0]} port {key[1]}")
        else:
            component = self._component(key[0])
            parent = tracks.group(f"CPU metrics {component}".strip())
        wanted = key if len(key) == 2 and table.endswith("_METRICS") else key[2:] if len(key) == 4 else key[1]
        name, unit, description = names.get(wanted, (f"metric {key[-1]}", "", ""))
        return tracks.counter(parent, name, unit, description=description)

    def _component(self, number: Any) -> str:
        for component, name, instance in self._export.rows(
            "TARGET_INFO_COMPONENT", ("componentId", "name", "instance")
        ):
            if component == number and number is not None:
                return f"{name} {'' if instance is None else instance}".strip()
        return "" if number is None else str(number)


def _unit(name: str) -> str:
    """Return the unit in a name: SMs Active [Throughput %] -> %, GPC Clock Frequency [MHz] -> MHz."""
    inside = name.rpartition("[")[2].removesuffix("]") if name.endswith("]") else ""
    return "%" if "%" in inside else inside
