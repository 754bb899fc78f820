"""Profiling reports of TVM: what `profile()` of the graph executor, the Relay VM and the Relax VM returns.

    Name            Duration (us)  Percent  Device  Count        Argument Shapes              Hash  perf::CYCLES
    fused_nn_dense          29.15     6.58    cpu0      1  float32[1, 4], float32  08cd4837d67d2477        90,211
    ----------
    Sum                     29.15     6.58              1
    Total                  442.83             cpu0      1

    Configuration
    -------------
    Number of threads: 2

The same as `report.csv()` and as `report.json()`: {"calls":[{"Duration (us)":{"microseconds":29.149}, ...}],
"device_metrics":{"cpu0":{...}}}. A report has durations and no times: of one run after three to warm up. JSON and CSV
hold each call, in order of completion; the text is mostly aggregated (Count calls of equal name and shapes) and sorted
by duration. Total is the time of the whole run on a device, more than the sum of its calls. Calls of functions of the
Relax VM contain the calls before them. The VM profiler of 0.6 and 0.7 printed sums of each function only.

Source: src/runtime/profiling.cc of tags v0.8 to v0.23 and from recordings; described at
https://tvm.apache.org/docs/v0.16.0/reference/api/python/runtime.html (tvm.runtime.profiling.Report).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from traceconv.families.importer import Importer, Match, Signature
from traceconv.families.tvm import report_forms as reports
from traceconv.families.tvm import text
from traceconv.families.tvm.report_forms import COUNT, DEVICE, DURATION, NAME, PERCENT, Call, Cell, Report
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.diagnostics import CALLS, LINES, absent
from traceconv.model.marks import CountMarks, FormatMarks, SumMarks
from traceconv.model.numbers import LIMIT_NS, double, format_us, number_of
from traceconv.model.source_info import Form, PartOfRun, sums
from traceconv.model.track_table import TrackId

NO_CLOCK = ClockDomain("order of TVM calls", Zero.UNKNOWN, Run.NONE)

NO_READING = absent(
    "tvm.counter_no_reading",
    "a hardware counter is -1: it overflowed or could not be read; drawn as 0, and -1 in the args",
)

_NUMERIC = frozenset(("count", "ratio", "percent"))
_OWN = frozenset((NAME, DURATION, PERCENT, DEVICE, COUNT))
_COUNTER_HELP = "from the start of each call to its end; positions are synthetic"
#: Durations of the text have two decimals of a microsecond: each is off by half of the last at most.
_ROUNDING_NS = 6
_DOUBLE_DIGITS = 17
#: Below this share of the whole run, calls leave out what a reader would want to know of.
_NEARLY_ALL = 0.9


class _Writer:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._roots: list[TrackId] = []

    def draw(self, report: Report) -> None:
        """Draw tracks for the devices of a report, its calls end to end."""
        report.measure()
        total_ns = _place(report.calls)
        outer = self._outer(report, total_ns) if _is_nested(report, total_ns) else None
        config = "; ".join(f"{key}: {value}" for key, value in report.configuration.items())
        size = f"{len(report.calls)} rows, their durations add up to {format_us(total_ns)} us"
        root = self._out.tracks.add("TVM profile", description=f"{size}. {config}".rstrip(". "))
        self._roots.append(root)
        devices: dict[str, TrackId] = {}
        counters: dict[tuple[str, str], TrackId] = {}
        at = last = 0
        for call in report.calls:
            at, last = call.at, max(last, call.ts + (call.dur or 0))
            device = call.text(DEVICE)
            if device not in devices:
                devices[device] = self._out.tracks.add(
                    f"{device or 'calls'} (synthetic)", root, description=_help(bool(report.in_order))
                )
            self._call(call, devices[device])
            if report.in_order and call.dur is not None and call is not outer:
                self._counters(call, devices[device], counters)
        for track in counters.values():
            self._out.counter(track, last, 0, at)
        self._totals(report, root, total_ns)

    def finish(self, reports: list[Report]) -> None:
        """Give each run a number if there are several; keep their settings."""
        if len(self._roots) > 1:
            for number, root in enumerate(self._roots, 1):
                self._out.tracks[root].name += f" run {number}"
        if any(report.configuration for report in reports):
            self._out.metadata["tvm_configuration"] = [report.configuration for report in reports]
        stated = [(whole, report) for report in reports if (whole := _whole_ns(report))]
        whole = sum(ns for ns, _ in stated)
        in_calls = sum(call.dur or 0 for _, report in stated for call in report.calls)
        if in_calls < _NEARLY_ALL * whole:
            self._out.info.part_of_run = PartOfRun(in_calls, whole)
            self._out.note(
                f"the calls take {format_us(in_calls)} us of {format_us(whole)} us of the whole run "
                f"({100 * in_calls / whole:.1f} %): the report does not state what took the rest"
            )

    def _call(self, call: Call, track: TrackId) -> None:
        args = _args(call)
        name = call.text(NAME) or "(no name)"
        self._out.balance.written += 1
        if call.dur is None:
            self._out.problem(text.BAD_DURATION, call.at, f"{name}: {call.text(DURATION)!r}")
            self._out.instant(track, call.ts, name, "call", args, call.at)
        else:
            self._out.slice(track, call.ts, call.dur, name, "call", args, call.at)

    def _counters(self, call: Call, parent: TrackId, counters: dict[tuple[str, str], TrackId]) -> None:
        """Draw values of the columns beyond those of each report: hardware counters, roofline analysis."""
        device = call.text(DEVICE)
        for column, cell in call.cells.items():
            if column in _OWN or cell.kind not in _NUMERIC:
                continue
            value = _value(cell)
            if cell.kind == "count" and value == -1:
                self._out.problem(NO_READING, call.at, column)
                value = 0
            track = counters.get((device, column))
            if track is None:
                track = self._out.tracks.counter(column, parent, description=_COUNTER_HELP)
                counters[device, column] = track
                if call.ts:
                    self._out.counter(track, 0, 0, call.at)
            self._out.counter(track, call.ts, value, call.at)
        for (counted, column), track in counters.items():
            if counted != device or column not in call.cells:
                self._out.counter(track, call.ts, 0, call.at)

    def _totals(self, report: Report, root: TrackId, total_ns: int) -> None:
        if not report.totals:
            return
        track = self._out.tracks.totals("totals", root, description="Total is the time of the whole run on a device.")
        for call in report.totals:
            name = " ".join(filter(None, (call.text(NAME) or "Total", call.text(DEVICE))))
            self._out.totals(track, name, "total", _args(call), call.at)
            self._out.balance.written += 1
            sum_ns = text.length_ns(call.cells[DURATION].value) if DURATION in call.cells else None
            if call.text(NAME) == "Sum" and sum_ns is not None and _differs(sum_ns, total_ns, report):
                detail = f"Sum {format_us(sum_ns)} us, the calls add up to {format_us(total_ns)} us"
                self._out.problem(text.SUM_DIFFERS, call.at, detail)

    def _outer(self, report: Report, total_ns: int) -> Call | None:
        """Return the call that is drawn around the others, whose sum is more than the run took.

        It is the last one, if that lasted as long as they; None if none is.
        """
        last = report.calls[-1]
        around = report.in_order and last.dur is not None and 2 * last.dur >= total_ns
        where = "drawn inside the last one, which lasted as long" if around else "drawn one after the other"
        self._out.note(
            "calls add up to more than Total: some contain others (functions in the Relax VM), but the report does "
            f"not state which: {where}"
        )
        if not around:
            return None
        last.ts = 0
        return last


def _is_nested(report: Report, total_ns: int) -> bool:
    """Return whether the calls last longer than the whole run on all devices."""
    whole = _whole_ns(report)
    return whole is not None and total_ns > whole + _ROUNDING_NS * (len(report.totals) + len(report.calls))


def _whole_ns(report: Report) -> int | None:
    """Return the time of the whole run on all devices, ns; None if the report does not state it."""
    known = [
        text.length_ns(call.cells[DURATION].value)
        for call in report.totals
        if DURATION in call.cells and call.text(NAME) != "Sum"
    ]
    return sum(ns or 0 for ns in known) if known and None not in known else None


def _differs(printed_ns: int, found_ns: int, report: Report) -> bool:
    """Return whether a sum is off by more than the rounding of its parts to two decimals."""
    return abs(printed_ns - found_ns) > _ROUNDING_NS * (len(report.calls) + 1)


def _help(in_order: bool) -> str:
    order = (
        "in the order in which the calls were completed"
        if in_order
        else "as the table is sorted; a slice is the sum of Count calls"
    )
    return f"Durations were measured, positions are synthetic: one after the other, {order}."


def _place(calls: list[Call]) -> int:
    """Put calls one after the other, from 0, and drop durations beyond the last possible time; return their sum."""
    total = 0
    for call in calls:
        call.ts = total
        if call.dur is not None and total + call.dur > LIMIT_NS:
            call.dur = None
        total += call.dur or 0
    return total


def _value(cell: Cell) -> float:
    """Return the number in a cell; 0 where no number is of such a size."""
    return number_of(cell.value.decode("latin-1")) or 0


def _shown(cell: Cell) -> Any:
    """Return a cell for args; doubles of JSON, which TVM prints with 17 decimals, as short as they can be."""
    if not cell.is_number:
        return cell.value.decode("utf-8", "replace")
    shown = text.as_json(cell.value)
    is_long = len(cell.value) > _DOUBLE_DIGITS and b"." in cell.value
    return double(cell.value.decode("latin-1")) if is_long and isinstance(shown, msgspec.Raw) else shown


def _args(call: Call) -> dict[str, Any]:
    """Return all cells; those of each report under names with their unit."""
    renamed = {DURATION: "duration_us", PERCENT: "percent", COUNT: "count", DEVICE: "device"}
    args: dict[str, Any] = {}
    for column, cell in call.cells.items():
        if column != NAME:
            args[renamed.get(column, column)] = _shown(cell)
    count = call.cells.get(COUNT)
    if call.dur is not None and count is not None and count.is_number and (calls := _value(count)) > 1:
        args["mean_us"] = msgspec.Raw(format_us(int(call.dur // calls)).encode())
    return args


@dataclass(frozen=True)
class TvmProfile(Importer):
    name = "tvm-profile"
    title = "TVM profiling report (text table, CSV, JSON)"
    url = "https://tvm.apache.org/docs/v0.16.0/reference/api/python/runtime.html"
    versions = "0.8 to 0.23: graph executor, Relay VM, Relax VM; VM profiler of 0.6 and 0.7; numbers of any locale"
    signature = Signature('"calls" | "device_metrics" | "configuration" | duration (us) | duration(us)')
    clock = NO_CLOCK
    record = "open('report.json', 'w').write(module.profile(**inputs).json())"
    skips = (text.OTHER_LINE,)

    line_up = "It has no clock: use --offset or --anchor."
    with_perf = (
        "# A report has no times that samples of perf could lie in. TVM counts itself, if it was built from source "
        "with USE_PAPI, and if the CPU's counters are there. Wheels on PyPI are not: 0.25 to 0.27 have no profiler.\n"
        "# In run.py, with module and dev as TVM's guide for its profiler has them:\n"
        "from tvm.runtime.profiling import PAPIMetricCollector\n"
        "counters = PAPIMetricCollector({dev: ['perf::CYCLES', 'perf::INSTRUCTIONS', 'perf::CACHE-MISSES']})\n"
        "open('report.json', 'w').write(module.profile(collectors=[counters], **inputs).json())\n"
        "# In a terminal:\n"
        "python run.py\n"
        "traceconv report report.json --section layers"
    )
    becomes = (
        ("call, or row of Count calls", "slice of its duration on the track of its device, in the order of the report"),
        ("hardware counters, roofline columns", "counters, if the calls are in order; args in any case"),
        ("Sum, Total, device_metrics", "totals without a timeline"),
        ("Configuration", "metadata and description"),
    )
    lost = (
        "It is not known which calls contain others (Relax VM).",
        "The text lacks the single calls of a row with Count above 1, and their order; JSON and CSV have both.",
    )
    marks = FormatMarks(
        shapes=("Argument Shapes",),
        libraries="libtvm",
        sums=SumMarks(("call",), "count"),
        # Columns of PAPI, and those of the roofline analysis that are sums.
        counts=CountMarks(("call",), r"\w+::.+|PAPI_\w+|Estimated FLOPs|Loaded Bytes"),
        environment={
            "threads": ("tvm_configuration", "Number of threads"),
            "executor": ("tvm_configuration", "Executor"),
        },
    )

    def form(self, head: Head) -> Form:
        """Return which form of a recording a file is: CSV lacks the configuration of JSON, text the calls."""
        return Form(("json", "csv", "text").index(reports.form_of(head.text) or "text"), sums, 3, timed=False)

    def sniff(self, head: Head) -> Match:
        """Return YES for the columns of a report; MAYBE if a table of the debugger is there as well."""
        form = reports.form_of(head.text)
        if not form:
            return Match.no("no columns Name, Duration (us), Percent, and no JSON with calls")
        if form == "text" and any(text.TABLE_HEADER.search(text.clean(line)) for line in head.data.splitlines()):
            return Match.maybe("a report, beside a table of the debugger")
        return Match.yes(f"a report as {form}")

    def read(self, source: Source, out: Builder) -> None:
        form = reports.form_of(source.head().text)
        out.clocks.set_default(NO_CLOCK.owned_by(out.info.name))
        out.counts(CALLS if form == "json" else LINES)
        if form == "json":
            parsed = reports.read_json(source, out)
        else:
            parsed = reports.read_csv(source, out) if form == "csv" else reports.TextReader(out).read(source)
        if not parsed:
            raise source.malformed(
                "no report found, expected a header line with Name, Duration (us), Percent",
                hint=f"record one with {self.record}",
            )
        writer = _Writer(out)
        for report in parsed:
            writer.draw(report)
        writer.finish(parsed)
        if not any(report.calls for report in parsed):
            out.note("a report without calls: nothing ran, or its output was cut")
        else:
            out.note("durations were measured, but positions are synthetic: a report has no times")
