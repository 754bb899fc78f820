"""What the importers share: zones, numbers and colours are read in one way, whatever the format."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from traceconv import api
from traceconv.errors import UsageError
from traceconv.families.chrome.events import number_in as _chrome_number
from traceconv.families.common.ansi import plain, plain_text
from traceconv.families.common.local_time import ahead_minutes, local_ns, zone_of
from traceconv.families.common.text_lines import number_of as number_in_report
from traceconv.families.deepsparse.log import number_in as _deepsparse_number
from traceconv.families.nvprof.console import split_value
from traceconv.families.perf.stat import csv_row as perf_stat_row
from traceconv.families.registry import importers, option_names
from traceconv.families.rocprof import number_in as _rocprof_number
from traceconv.families.vtune.external import _number as _vtune_number
from traceconv.model.numbers import number_of
from traceconv.model.trace import Trace

GOLDEN = Path(__file__).parent.parent.parent / "golden"
#: An input of each format that takes a zone, with the other options it needs for that.
WITH_ZONE: dict[str, tuple[str, dict[str, str]]] = {
    "onnxruntime": ("v1.31-one-thread", {}),
    "perf-script": ("time_of_day", {}),
    "perf-stat": ("csv_local_time", {}),
    "timed-log": ("python-logging-zone", {}),
    "tvm-debugger": ("midnight", {"date": "2018-10-26"}),
}


# -- zones ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_zone(tmp_path: Path) -> Callable[[str, str], Trace]:
    """Reads the golden input of a format with a zone."""

    def read(format_name: str, zone: str) -> Trace:
        case, options = WITH_ZONE[format_name]
        (path,) = (GOLDEN / format_name / case).glob("input.*")
        if format_name == "onnxruntime":
            path = Path(shutil.copy(path, tmp_path / "onnxruntime_profile__2026-11-21_09-17-34.json"))
        return api.read(path, options=options | {"utc_offset": zone})

    return read


def wall_clock(trace: Trace) -> int:
    """A time of the trace in ns since 1970: of its snapshot, or of its first log entry."""
    return int(trace.snapshots[0].other_ts) if trace.snapshots else int(trace.logs.ts[0])


def test_every_option_for_a_zone_has_one_name() -> None:
    with_zone = {name for name, cls in importers().items() if "utc_offset" in option_names(cls)}
    assert with_zone == set(WITH_ZONE)
    assert not [name for name, cls in importers().items() if {"tz", "zone", "timezone"} & set(option_names(cls))]


@pytest.mark.parametrize("format_name", WITH_ZONE)
def test_zones_mean_the_same_to_all(in_zone: Callable[[str, str], Trace], format_name: str) -> None:
    at_utc = wall_clock(in_zone(format_name, "UTC"))
    assert {wall_clock(in_zone(format_name, zone)) for zone in ("Z", "utc", "GMT", "+00:00", "-0000")} == {at_utc}
    hours = {wall_clock(in_zone(format_name, zone)) for zone in ("+02:00", "+0200", "+02")}
    assert hours == {at_utc - 7200 * 10**9}


@pytest.mark.parametrize("format_name", WITH_ZONE)
@pytest.mark.parametrize("zone", ["-15:00", "+02:75", "02:00", "Europe/Berlin", "+٠٢:00"])
def test_what_is_no_zone_is_none_to_all(in_zone: Callable[[str, str], Trace], format_name: str, zone: str) -> None:
    with pytest.raises(UsageError, match=f"option utc_offset of {format_name}") as error:
        in_zone(format_name, zone)
    assert "+02:00" in error.value.hint


def test_zones() -> None:
    assert [ahead_minutes(text) for text in ("z", "+14:00", "-0530", "-14")] == [0, 840, -330, -840]
    assert zone_of("any", "").utcoffset(None) == zone_of("any", "UTC").utcoffset(None)


def test_local_times() -> None:
    zone = zone_of("any", "+02:00")
    assert local_ns("1970-01-01 02:00:01.000000001", zone) == local_ns("1970-01-01T02:00:01,000000001", zone)
    assert local_ns("1970-01-01 02:00:01.000000001", zone) == 1_000_000_001
    with pytest.raises(ValueError, match="no date"):
        local_ns("1970-01-01", zone)


def test_a_zone_without_a_day_is_refused() -> None:
    with pytest.raises(UsageError, match="needs the day"):
        api.read(GOLDEN / "tvm-debugger" / "midnight" / "input.log", options={"utc_offset": "+02:00"})


def test_a_day_that_is_not_used_is_told() -> None:
    case = GOLDEN / "tvm-debugger" / "means-of-repeats"
    trace = api.read(case / "input.log", options={"date": "2018-10-26"})
    assert any("date was not used" in note for note in trace.sources[0].notes)


# -- numbers ----------------------------------------------------------------------------------------------------------

#: What `int` or `float` of Python reads, and no tool means.
NO_NUMBERS = ["1_0", "1_0.5", "٣", "٣.٥", "nan", "inf", "-Infinity", "1e999", "9" * 400]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("-12", -12),
        ("+3", 3),
        (" 7 ", 7),
        ("007", 7),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("9" * 30, 10**30 - 1),
    ],
)
def test_numbers(text: str, number: float) -> None:
    found = number_of(text)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize("text", [*NO_NUMBERS, "", " ", "-", ".", "1,5", "1 2", "0x10", "1e", "12abc"])
def test_what_is_no_number(text: str) -> None:
    assert number_of(text) is None


def test_decimal_commas() -> None:
    assert (number_of("1,5", ","), number_of("1e3", ","), number_of("1.5", ",")) == (1.5, 1000.0, None)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_no_format_has_numbers_of_its_own(text: str) -> None:
    assert number_in_report(text, ".") is None
    assert _rocprof_number(text) == text
    assert _deepsparse_number(text) == text
    assert _chrome_number(text) is None
    with pytest.raises(ValueError, match="not a number"):
        _vtune_number(text)


@pytest.mark.parametrize("text", ["²", "٣", "1_0"])
def test_digits_of_other_scripts_are_no_counts(text: str) -> None:
    assert perf_stat_row(f"1234;;cycles;{text};100.00;;", ";") is None
    assert split_value(f"{text}ms") is None


# -- control sequences ------------------------------------------------------------------------------------------------

SEQUENCES = {
    "colour": "\x1b[1;31m",
    "colour of 256": "\x1b[38:5:196m",
    "cursor": "\x1b[?25l",
    "erase": "\x1b[2K",
    "link": "\x1b]8;;https://example.org/a?b=c\x1b\\",
    "title": "\x1b]0;running\x07",
}
#: Inputs that are read by line, whatever colours them.
BY_LINE = (
    "deepsparse/four-threads",
    "mxnet-table/v1.9-text",
    "nvprof-text/gpu-trace",
    "onednn-verbose/all-ts",
    "openvino/log",
    "perf-stat/csv_local_time",
    "perf-stat/text",
    "pytorch-table/conv",
    "rocprof/kernels",
    "timed-log/python-logging",
    "tvm-debugger/midnight",
)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_control_sequences(kind: str) -> None:
    line = f"a{SEQUENCES[kind]}b\x1b[0m c µ"
    assert plain(line.encode()).decode() == plain_text(line) == "ab c µ"


@pytest.mark.parametrize("line", ["no escape", "a\x1bb", "cut \x1b[38:5", "cut \x1b]8;;https://example.org"])
def test_what_is_no_control_sequence_stays(line: str) -> None:
    assert plain_text(line) == line


@pytest.mark.parametrize("case", BY_LINE)
def test_coloured_lines_are_the_same_lines(case: str, tmp_path: Path) -> None:
    (path,) = (GOLDEN / case).glob("input.*")
    lines = path.read_bytes().splitlines(keepends=True)
    ends = [line[len(line.rstrip(b"\r\n")) :] for line in lines]
    link = SEQUENCES["link"].encode()
    dressed = [
        b"\x1b[38:5:196m" + link + line.rstrip(b"\r\n") + b"\x1b]8;;\x07\x1b[0m" + end
        for line, end in zip(lines, ends, strict=True)
    ]
    (tmp_path / path.name).write_bytes(b"".join(dressed))
    name = case.partition("/")[0]
    want, found = api.read(path, format=name), api.read(tmp_path / path.name, format=name)
    assert found.sources[0].balance == want.sources[0].balance
    assert want.slices.ts.size + want.instants.ts.size + want.counters.ts.size + want.logs.ts.size > 0
    for table in ("slices", "instants", "counters", "logs"):
        one, other = getattr(found, table), getattr(want, table)
        assert one.ts.tolist() == other.ts.tolist()
    assert found.strings == want.strings
