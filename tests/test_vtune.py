"""VTune's reports, beyond what the golden cases pin; all inputs are written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from traceconv.api import read
from traceconv.errors import MalformedInput, TraceconvError
from traceconv.families.registry import Certainty
from traceconv.families.vtune import external, reports
from traceconv.families.vtune.reports import Vtune
from traceconv.io.source import Head
from traceconv.model.layout import lay_out, validate
from traceconv.model.trace import Trace


def converted(tmp_path: Path, text: str, **options: str) -> Trace:
    path = tmp_path / "input.csv"
    path.write_text(text, encoding="utf-8")
    trace = read(path, format="vtune", options=options)
    validate(lay_out(trace))
    return trace


def slices(trace: Trace) -> list[tuple[str, int, int]]:
    table = trace.slices
    rows = range(len(table.ts))
    return [(trace.strings[table.name[row]], int(table.ts[row]), int(table.dur[row])) for row in rows]


# -- headings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "delimiter", "kind"),
    [
        ("Function Stack,CPU Time:Self,Module", ",", "tree"),
        ("Function Stack;CPU Time: Self;Module", ";", "tree"),
        ("Function\tCPU Time\tModule", "\t", "table"),
        ("Function<->CPU Time<->Module", "<->", "table"),
        ('"Function","CPU Time","Module"', ",", "table"),
        ("timeBin,Process,Bin Start Time,Bin End Time,CPU Time:Self", ",", "timeline"),
        ("Hierarchy Level,Metric Name,Metric Value", ",", "summary"),
        ("Hardware Event Type,Hardware Event Count:Self", ",", "table"),
    ],
)
def test_headings_of_reports(line: str, delimiter: str, kind: str) -> None:
    report = reports.heading_of(line)
    assert report is not None
    assert (report.delimiter, report.kind) == (delimiter, kind)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Function",
        "Function,Calls,Total",
        "Module,Version",
        "name,start,end",
        "timeBin,a,b",
        "Functional,CPU Time",
        "Function of CPU Time",
    ],
)
def test_what_is_no_heading(line: str) -> None:
    assert reports.heading_of(line) is None
    assert external.heading_of(line) is None
    assert Vtune().sniff(Head(line.encode(), True, "x.csv")).certainty is Certainty.NO


@pytest.mark.parametrize("clock", ["QPC", "CLOCK_MONOTONIC_RAW", "RDTSC", "TSC", "UTC"])
@pytest.mark.parametrize(("ids", "count"), [("", 0), (",pid", 1), (",pid,tid", 2)])
def test_headings_of_external_data(clock: str, ids: str, count: int) -> None:
    heading = external.heading_of(f"name,start_tsc.{clock},end_tsc{ids}")
    assert heading is not None
    assert (heading.clock, heading.counters, heading.ids) == (clock, (), count)
    counters = external.heading_of(f"tsc.{clock},Reads:COUNT,Core.Temp.INST{ids}")
    assert counters is not None
    assert (counters.counters, counters.ids) == ((("Reads", "COUNT"), ("Core.Temp", "INST")), count)


# -- call trees -------------------------------------------------------------------------------------------------------


def test_a_call_tree_of_any_depth(tmp_path: Path) -> None:
    depth = 3000
    rows = [f"{' ' * level}f{level},0.001,lib" for level in range(depth)]
    trace = converted(tmp_path, "\n".join(["Function Stack,CPU Time:Self,Module", *rows]))
    found = slices(trace)
    assert len(found) == depth
    assert max(dur for _, _, dur in found) == depth * 1_000_000
    assert min(dur for _, _, dur in found) == 1_000_000


def test_children_lie_inside_their_caller_even_if_the_sums_are_rounded(tmp_path: Path) -> None:
    rows = ["Total,1.0", " a,0.3333334", " b,0.3333333", " c,0.3333334", "Other,0.5"]
    text = "\n".join(["Function Stack,CPU Time:Total", *rows])
    found = {name: (ts, dur) for name, ts, dur in slices(converted(tmp_path, text))}
    assert found["Total"] == (0, 1_000_000_100)
    assert found["c"] == (666_666_700, 333_333_400)
    assert found["Other"][0] == 1_000_000_100


def test_times_too_long_to_add_up_are_refused(tmp_path: Path) -> None:
    rows = "\n".join(f"f{n},4000000000" for n in range(3))
    with pytest.raises(MalformedInput, match="146 years"):
        converted(tmp_path, f"Function Stack,CPU Time:Total\n{rows}\n")


# -- timelines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [".", ","])
def test_the_sum_over_the_bins_is_that_of_the_report(mark: str, tmp_path: Path) -> None:
    rows = [f"{n};0.{n:03d}000;0.{n + 1:03d}000;0.000{n % 10}5" for n in range(100)]
    text = "\n".join(["timeBin;Bin Start Time;Bin End Time;CPU Time:Self", *rows]).replace(".", mark)
    trace = converted(tmp_path, text)
    values: Any = trace.counters.value
    assert len(values) == 101
    assert sum(values) == pytest.approx(sum((n % 10) * 1e-4 + 5e-5 for n in range(100)))
    assert trace.counters.ts.tolist() == [n * 1_000_000 for n in range(101)]


def test_values_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    trace = converted(tmp_path, "timeBin,Bin Start Time,Bin End Time,A,B\n0,0.0,0.1,high,2\n1,0.1,0.2,,7%\n")
    assert trace.counters.value.tolist() == [2, 7, 0]
    assert [(entry.code.name, entry.count) for entry in trace.sources[0].diagnostics] == [("vtune.no_number", 1)]


# -- external data ----------------------------------------------------------------------------------------------------


def test_ticks_become_nanoseconds_exactly(tmp_path: Path) -> None:
    ticks = 2**53 + 1
    trace = converted(tmp_path, f"name,start_tsc.TSC,end_tsc\nx,{ticks},{ticks + 3}\n", frequency_hz="3000000000")
    assert slices(trace) == [("x", (ticks + 1) // 3, 1)]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01 00:00:00", 0),
        ("1970-01-01 00:00:01.000000001", 1_000_000_001),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("2024-02-29 12:00:00.1234567", 1709208000123456700),
    ],
)
def test_times_in_utc(text: str, ns: int, tmp_path: Path) -> None:
    trace = converted(tmp_path, f"name,start_tsc.UTC,end_tsc\nx,{text},{text}\n")
    assert slices(trace) == [("x", ns, 0)]


@pytest.mark.parametrize("text", ["2024-02-30 12:00:00", "12:00:00", "1709208000", "2024-01-01 25:00:00", ""])
def test_what_is_no_time_in_utc_is_a_lost_row(text: str, tmp_path: Path) -> None:
    good = "2024-01-01 12:00:00"
    trace = converted(tmp_path, f"name,start_tsc.UTC,end_tsc\nx,{text},{text}\ny,{good},{good}\n")
    assert [name for name, _, _ in slices(trace)] == ["y"]
    assert trace.sources[0].balance.skipped["skipped (vtune.bad_external_row)"] == 1


def test_cut_anywhere_it_is_read_or_refused_in_our_words(tmp_path: Path) -> None:
    golden = Path(__file__).parent.parent / "golden" / "vtune"
    for case in ("call_tree", "timeline_threads_german", "external_tasks", "external_counters_utc", "summary"):
        data = (golden / case / "input.csv").read_bytes()
        path = tmp_path / f"{case}.csv"
        for length in range(0, len(data), 7):
            path.write_bytes(data[:length])
            try:
                trace = read(path, format="vtune")
            except TraceconvError:
                continue
            validate(lay_out(trace))


# -- shares -----------------------------------------------------------------------------------------------------------

TREE = ["Total,{},0.0", " main,{},1.0", "  work,{},3.0"]


def tree(tmp_path: Path, *totals: str) -> Trace:
    rows = [row.format(total) for row, total in zip(TREE, totals, strict=True)]
    return converted(tmp_path, "\n".join(["Function Stack,CPU Time:Total,CPU Time:Self", *rows]))


@pytest.mark.parametrize(
    "totals",
    [
        ("100.000000", "100.000000", "75.000000"),
        ("100.0%", "100.0%", "75.0%"),
        ("4.0", "4.0", "3.0"),
        ("4s", "4s", "3s"),
    ],
)
def test_a_share_is_no_time(tmp_path: Path, totals: tuple[str, str, str]) -> None:
    trace = tree(tmp_path, *totals)
    assert slices(trace) == [("Total", 0, 4 * 10**9), ("main", 0, 4 * 10**9), ("work", 0, 3 * 10**9)]
    assert not trace.sources[0].diagnostics


def test_a_hundred_seconds_are_no_share(tmp_path: Path) -> None:
    text = "Function Stack,CPU Time:Total,CPU Time:Self\nTotal,100.0,40.0\n main,60.0,60.0\n"
    assert slices(converted(tmp_path, text)) == [("Total", 0, 100 * 10**9), ("main", 0, 60 * 10**9)]


def test_rows_that_were_left_out_are_said(tmp_path: Path) -> None:
    trace = tree(tmp_path, "100.0%", "60.0%", "45.0%")
    assert slices(trace)[1] == ("main", 0, 4 * 10**9)
    assert [(entry.code.name, entry.count) for entry in trace.sources[0].diagnostics] == [("vtune.rows_missing", 2)]


def test_shares_alone_make_no_slices(tmp_path: Path) -> None:
    text = "Function Stack,CPU Time:Total,CPU Time:Self\nTotal,100.0%,0.0%\n main,100.0%,100.0%\n"
    trace = converted(tmp_path, text)
    assert (len(trace.slices.ts), len(trace.instants.ts)) == (0, 2)
    assert any("no seconds" in note for note in trace.sources[0].notes)


# -- aligned columns --------------------------------------------------------------------------------------------------


def test_a_title_that_goes_on_in_the_next_line() -> None:
    lines = ["Function Stack  CPU Time:  CPU Time:", "                Total      Self"]
    report = reports.heading_above(lines, "--------------  ---------  ---------")
    assert report is not None
    assert report.columns == ("Function Stack", "CPU Time:Total", "CPU Time:Self")
    assert report.starts == (0, 16, 27)


def test_a_timeline_in_aligned_columns(tmp_path: Path) -> None:
    text = """vtune: Using result path `C:\\sample\\r005hs'
timeBin  Bin Start Time  Bin End Time  CPU Time:Self
-------  --------------  ------------  -------------
0                 0.000         7.440       621.445s
1                 7.440        14.879       620.543s
vtune: Executing actions 100 % done
"""
    trace = converted(tmp_path, text)
    assert trace.counters.ts.tolist() == [0, 7_440_000_000, 14_879_000_000]
    assert trace.counters.value.tolist() == [621.445, 620.543, 0]


@pytest.mark.parametrize("rule", ["----", "---- x ----", "Function  CPU Time", ""])
def test_what_is_no_rule(rule: str) -> None:
    assert reports.heading_above(["Function  CPU Time"], rule) is None
