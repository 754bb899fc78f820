"""The header of a recording and its clock, and the forms that hold little besides: header alone, report, JSON.

The clock. Without `-k` perf reads the clock of the scheduler: close to CLOCK_MONOTONIC, and none of the clocks that
others can read. With `-k` the header names the clock, and since perf 5.10 it holds a reading of it and of the wall
clock. In three recordings of perf 6.1 whose offset is known otherwise, that pair was 2.0 to 2.2 µs early: the wall
clock is read first and cut to microseconds.

The header, as `perf script --header` prints it; --header-only prints nothing else:

    # ========
    # captured on    : Sat Nov 21 07:07:40 2026
    # clockid: monotonic (1)
    # reference time: 2026-11-21 07:07:40.014999 = 1795244860.014999 (TOD) = 2674.541574960 (monotonic)

The text of `perf report --stdio`, whose columns begin and end where the dots do:

    # Samples: 268  of event 'cpu-clock'
    # Overhead  Command  Shared Object         Symbol
    # ........  .......  ....................  ..........................
         9.33%  python   libscipy_openblas.so  [.] blas_thread_server

JSON of `perf data convert --to-json`: samples with their call stacks, innermost frame first, symbols included.

    {"linux-perf-json-version": 1,
     "headers": {"hostname": "vm", "clockid": 1, "clock-time": 12719747160169, "real-time": 1795259822639102000, ...},
     "samples": [{"timestamp": 2673057758437, "pid": 18444, "tid": 18444, "cpu": 1, "comm": "python",
                  "callchain": [{"ip": "0x7febb41c82bc", "symbol": "_dl_relocate_object", "dso": "ld-linux.so"}]}, ...]}

Times are nanoseconds of the clock of the recording; the clock members stand there if it was recorded with -k. A
tracepoint prints its fields as further members of the sample, all as text, and even if they are called like a member
that was there before: the first one is meant. Each sample begins on a line of its own with two tabs, which is how a big
file is read in parts; one that was formatted anew is decoded as a whole. Source: tools/perf/util/data-convert-json.c
(what is printed, in which order), output of perf 6.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Importer, Match, Signature
from traceconv.families.perf.container import SINCE_BOOT, latest_ns, state_letters
from traceconv.families.perf.samples import NO_STACK, PerfTracks, Place, task_in
from traceconv.io.shown import Counted
from traceconv.io.source import CHUNK_BYTES, Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import (
    BOOTTIME,
    MONOTONIC,
    MONOTONIC_RAW,
    NO_TIME,
    REALTIME,
    TAI,
    ClockDomain,
    ClockSnapshot,
    Run,
    Zero,
    looks_like_unix_time,
)
from traceconv.model.diagnostics import EMPTY_LINES, LINES, SAMPLES, lost, noted, skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import S, double, hex_of, parse_ns, read_json, whole, whole_of, whole_or_text
from traceconv.model.source_info import Form, Mark, samples
from traceconv.model.trace import StackId, Trace
from traceconv.model.track_table import TrackId

KEPT_HEADINGS = Counted("heading kept as metadata", "headings kept as metadata")
KEPT_HEADER_LINES = Counted(
    "header line kept as metadata, or also as a row of a table",
    "header lines kept as metadata, some also as rows of a table",
)

CHAIN_LINE = skipped(
    "perf-report.call_chain",
    "lines of call chains are not read: convert the output of perf script, which has the stack of each sample",
)
BAD_SAMPLE = lost("perf-json.bad_sample", "a sample is not a JSON object with a time and a thread: left out")
CUT = lost("perf-json.cut", "the file ends inside its samples: the complete ones were read")
NEWER = noted("perf-json.unknown_version", "the file states an unknown version of its format: read like version 1")

PERF_CLOCK = ClockDomain("perf clock", Zero.UNKNOWN, Run.MONOTONIC)
#: The clock domain of times of --reltime.
SINCE_FIRST = ClockDomain("time since the first event of perf", Zero.RUN_START, Run.MONOTONIC)
#: The software events that count time.
PERF_MARKS = FormatMarks(
    spans="sched",
    times=r"(?:cpu|task)-clock(?:[:/].*)?",
    environment={
        "host": ("perf_header", "hostname"),
        "system": ("perf_header", "os_release"),
        "processor": ("perf_header", "cpudesc"),
        "processors": ("perf_header", "nrcpus_online"),
        "perf": ("perf_header", "perf_version"),
    },
)
#: Help for formats whose samples may have no CPU.
NO_CPU_HELP = (
    "Without -a or --sample-cpu, samples have no CPU and no counter of their event. Perfetto v52 shows an empty row "
    "`Cpu 0 EVENT (CPU not known)`."
)

#: How to align recordings of perf.
LINE_UP = (
    "Record with -k CLOCK_MONOTONIC: the header then relates it to the wall clock. If another file is on "
    "CLOCK_MONOTONIC or relates it to the wall clock, --clock FILE=monotonic places perf's default clock to within "
    "10 ms and 500 ppm of the time since boot (2 s per hour)."
)

#: The clock domains by clockid_t of Linux.
_CLOCKS = {0: REALTIME, 1: MONOTONIC, 4: MONOTONIC_RAW, 7: BOOTTIME, 11: TAI}
#: The latest time of the wall clock (2084), and the greatest difference of clocks since 1970, ns.
_LATEST_WALL, _APART = 36 * 10**17, 10**14
#: The names of clocks in the option `clockid` and in perf.
CLOCK_NAMES = {"realtime": 0, "monotonic": 1, "monotonic_raw": 4, "boottime": 7, "tai": 11}
#: The measured error of the pair of readings, with a margin.
PAIR_BOUND_NS = 5_000

_HEADER_FIELD = re.compile(r"# ?([a-z](?:[a-z_ ]*[a-z_])?)\s*+: (.*)")
#: The names in the metadata of the texts of the header.
_HEADER_TEXTS = {
    "captured on": "captured_on_local_time",
    "hostname": "hostname",
    "os release": "os_release",
    "perf version": "perf_version",
    "arch": "arch",
    "cpudesc": "cpudesc",
    "cpuid": "cpuid",
    "total memory": "total_memory",
    "cmdline": "cmdline",
}
_HEADER_NUMBERS = {"nrcpus online": "nrcpus_online", "nrcpus avail": "nrcpus_avail"}
_SECONDS = re.compile(r"[0-9]{1,12}\.[0-9]{6,9}")
_EVENT_FIELD = re.compile(r"# event : name = (.*?), ")
_CLOCKID = re.compile(r"# clockid ?: (\w+)(?: \(([0-9]{1,3})\))?")
_REFERENCE = re.compile(r"# reference time: .*? = ([0-9]{1,12}\.[0-9]{6}) \(TOD\) = ([0-9]{1,12}\.[0-9]{9}) \(\w+\)")

#: The metadata of a header alone: the time of the first sample, cut to microseconds, ns.
FIRST_SAMPLE = "first_sample_ns"


class Header(msgspec.Struct):
    info: dict[str, Any] = msgspec.field(default_factory=dict)  # for the metadata: hostname, arch, cmdline, ...
    clockid: int | None = None  # of -k; None for perf's default clock, or if not stated
    known: bool = False  # whether there is a header, so that no clockid means perf's default clock
    reference: tuple[int, int] | None = None  # ns since 1970 and on the clock of the recording at one instant
    span: tuple[int, int] | None = None  # the times of the first and the last sample, cut to microseconds

    def add_line(self, line: bytes) -> None:
        """Read a line of a printed header, which starts with #."""
        text = line.decode("utf-8", "replace")
        clock, pair, event = _CLOCKID.match(text), _REFERENCE.match(text), _EVENT_FIELD.match(text)
        field = _HEADER_FIELD.fullmatch(text.rstrip())
        if clock is not None:
            self.clockid = whole(clock[2]) if clock[2] else CLOCK_NAMES.get(clock[1])
            self.info["clockid"] = clock[1]
        elif pair is not None:
            self.reference = (parse_ns(pair[1].encode(), S), parse_ns(pair[2].encode(), S))
            self.info["reference_time"] = text.removeprefix("# reference time: ").strip()
        elif event is not None:
            self.info.setdefault("events", []).append(event[1])
        elif field is not None:
            self._add_field(field[1], field[2])

    def _add_field(self, name: str, text: str) -> None:
        self.known = self.known or name == "captured on"
        if name in ("time of first sample", "time of last sample") and _SECONDS.fullmatch(text):
            ts = parse_ns(text.encode(), S)
            self.span = (ts if self.span is None or name == "time of first sample" else self.span[0], ts)
        elif name in _HEADER_NUMBERS:
            self.info[_HEADER_NUMBERS[name]] = whole_or_text(text)
        elif name in _HEADER_TEXTS:
            self.info[_HEADER_TEXTS[name]] = text

    def covers(self, span: tuple[int, int] | None) -> bool:
        """Return whether samples are within the times that the header states (in microseconds)."""
        if self.span is None or span is None:
            return False
        return self.span[0] - 1000 <= span[0] and span[1] <= self.span[1] + 1000

    def tell(self, out: Builder, resolution_ns: int = 1, chosen: str = "", *, relative: bool = False) -> ClockDomain:
        """Set the clock of the input after all events, its relation to the wall clock, and the metadata.

        `chosen` is the clock that the user states, "" for none; `relative` times count from the first event.
        """
        if self.info:
            out.metadata["perf_header"] = self.info
        known = SINCE_FIRST if relative else self._domain(out, chosen)
        machine = str(self.info.get("hostname", ""))
        domain = replace(known, resolution_ns=resolution_ns, machine=machine)
        out.clocks.set_default(domain)
        if relative:
            out.note("the times count from the first event (--reltime): print them without it to merge with others")
        elif self.reference is not None and domain.zero is not Zero.UNIX_EPOCH:
            wall, here = self.reference
            wall_clock = replace(REALTIME, machine=machine)
            method = "reference time in the perf header"
            out.clocks.snapshot(ClockSnapshot(domain, here, wall_clock, wall, PAIR_BOUND_NS, method))
        return domain

    def _domain(self, out: Builder, chosen: str) -> ClockDomain:
        if self.clockid is not None:
            if chosen and CLOCK_NAMES[chosen] != self.clockid:
                out.note(f"the header names another clock than {chosen}: the header was believed")
            return _CLOCKS.get(self.clockid, PERF_CLOCK)
        if chosen:
            return _CLOCKS[CLOCK_NAMES[chosen]]
        if looks_like_unix_time(out.tables.first_ts()):
            out.note("the times count from 1970 by their size: taken as CLOCK_REALTIME (-k CLOCK_REALTIME)")
            return REALTIME
        out.note(
            "recorded with perf's default clock, which no other tool reads; record with -k CLOCK_MONOTONIC, which "
            "others read"
            if self.known
            else "the file does not name its clock (it is perf's default clock if recorded without -k)"
        )
        return PERF_CLOCK


def is_possible_pair(clockid: int, wall: int, here: int) -> bool:
    """Return whether two times, in ns, can be of the wall clock and of the clock of that number."""
    if not 0 <= wall <= _LATEST_WALL or not 0 <= here <= latest_ns(clockid):
        return False
    return clockid in SINCE_BOOT or abs(wall - here) < _APART


def marks_of_perf(trace: Trace) -> set[Mark]:
    """Return the first samples of a recording, and its command with the time of the first sample or tracepoint."""
    header = trace.metadata.get("perf_header", {})
    instants = zip(trace.instants.ts.tolist(), trace.instants.name.tolist(), strict=True)
    tracepoints = [ts for ts, name in instants if not trace.strings[name].startswith("PERF_RECORD_")]
    firsts = [min(times) for times in (trace.samples.ts.tolist(), tracepoints) if times]
    if FIRST_SAMPLE in header:
        firsts = [header[FIRST_SAMPLE]]
    begin = {(first // 1000, ("begin", header["cmdline"])) for first in firsts if "cmdline" in header}
    return samples(trace) | begin


def begins_header(text: bytes) -> bool:
    """Return whether a text begins with the header of perf."""
    start = text[:400]
    return start.startswith(b"# ====") and b"\n# captured on" in start


@dataclass(frozen=True)
class PerfHeader(Importer):
    name = "perf-header"
    title = "Linux perf header alone (perf script --header-only)"
    url = "https://man7.org/linux/man-pages/man1/perf-script.1.html"
    versions = "checked with perf 6.1"
    signature = Signature("# captured on")
    clock = PERF_CLOCK
    record = "perf record -k CLOCK_MONOTONIC python run.py && perf script --header-only > perf.header.txt"

    line_up = (
        "It relates CLOCK_MONOTONIC to the wall clock, for all files of its machine. Better use perf script "
        "--header, which prints the events, too."
    )
    becomes = (
        ("fact (host, command, version, events)", "row of a table without a timeline, and metadata"),
        ("clockid, reference time", "clock, snapshot of clock and wall clock"),
    )

    def form(self, head: Head) -> Form:
        """Return the last form of a recording: the header alone, known by its command and first sample."""
        return Form(3, marks_of_perf, 1)

    def sniff(self, head: Head) -> Match:
        """Return YES for a header, MAYBE if events may follow beyond what can be seen."""
        if not begins_header(head.text):
            return Match.no("no header of perf")
        if any(line and not line.startswith(b"#") for line in head.text.splitlines()):
            return Match.no("a header of perf with events")
        return Match.yes("a header of perf without events") if head.complete else Match.maybe("a header of perf")

    def read(self, source: Source, out: Builder) -> None:
        """Read all lines. Raises MalformedInput if there is no header."""
        out.counts(LINES)
        header = Header()
        for number, line in TextLines(out).read(source):
            if line.strip() and not line.startswith(b"#"):
                raise source.malformed(
                    "events follow the header, expected lines that begin with #",
                    hint="read it with --from perf-script",
                    where=f"line {number}",
                )
            header.add_line(line)
        if not header.info:
            raise source.malformed(
                "no entry of a perf header found, expected lines such as `# hostname : vm`", hint=self.record
            )
        out.balance.kept[KEPT_HEADER_LINES] += out.balance.read
        if header.span is not None:
            header.info[FIRST_SAMPLE] = header.span[0]
        table = out.tracks.totals("perf header")
        for name, value in header.info.items():
            out.totals(table, name, "fact", {"value": value})
        header.tell(out)
        out.note("a header without events: only its text and its clocks are used")


# -- perf report -------------------------------------------------------------------------------------------------------

_SAMPLES_OF = re.compile(r"# Samples: (\S+)\s+of events? '(.*)'.*")
_COUNT = re.compile(r"# Event count \(approx\.\): ([0-9]+)")
_LOST = re.compile(r"# Total Lost Samples: ([0-9]+)")
_RULE = re.compile(rb"# *\.\.[. ]*")
_ROW = re.compile(r"\s*\d+[.,]\d+%")
_PERCENT = re.compile(r"[0-9]{1,9}[.,][0-9]{1,9}%")
_SYMBOL_KIND = re.compile(r"\[(\S)\] ")
_REPORT_MARK = re.compile(rb"(?m)^# Samples: .* of events? '")


class _ReportReader:
    """Reads one report: headings, and the rows of a table for each event."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._header = Header()
        self._events: list[dict[str, Any]] = []
        self._heading = ""
        self._track: TrackId | None = None
        self._columns: list[tuple[str, int, int | None]] = []

    def read(self, source: Source) -> None:
        for number, line in TextLines(self._out).read(source):
            self._line(number, line)
        if self._track is None:
            raise source.malformed(
                "no table found, expected a heading `# Overhead  Command ...` with a line of dots below it",
                hint="write it with perf report --stdio",
            )
        if self._header.info:
            self._out.metadata["perf_header"] = self._header.info
        self._out.metadata["perf_report"] = self._events

    def _line(self, number: int, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if text[:1] == "#":
            self._comment(line, text)
            self._heading = text
            self._out.balance.merged[KEPT_HEADINGS] += 1
        elif not (stripped := text.strip()):
            self._out.balance.merged[EMPTY_LINES] += 1
        elif "%" in text and self._track is not None and _ROW.match(text):
            self._row(number, text, self._track)
        else:
            self._out.skip(CHAIN_LINE, number, stripped[:60])

    def _comment(self, line: bytes, text: str) -> None:
        event_samples, count, lost_samples = _SAMPLES_OF.fullmatch(text.rstrip()), _COUNT.match(text), _LOST.match(text)
        if event_samples is not None:
            number = whole_or_text(event_samples[1])  # "2K" where it is large
            self._events.append({"event": event_samples[2], "samples": number})
        elif count is not None and self._events:
            self._events[-1]["event_count"] = whole_or_text(count[1])
        elif lost_samples is not None:
            self._out.metadata["perf_lost_samples"] = whole_or_text(lost_samples[1])
        elif _RULE.fullmatch(line) and self._heading:
            self._begin_table(text)
        else:
            self._header.add_line(line)

    def _begin_table(self, rule: str) -> None:
        """Begin a table, whose heading is the line before the dots, cut where they begin."""
        starts = [match.start() for match in re.finditer(r"\.+", rule)]
        ends: list[int | None] = [*starts[1:], None]
        self._columns = [
            (self._heading[start:end].strip().lower().replace(" ", "_"), start, end)
            for start, end in zip(starts, ends, strict=True)
        ]
        event = self._events[-1] if self._events else {}
        about = f"{event.get('samples', '?')} samples, {event.get('event_count', '?')} events (approx.)"
        name = f"perf report: {event.get('event', 'samples')}"
        self._track = self._out.tracks.totals(name, description=f"{about}.")

    def _row(self, number: int, text: str, track: TrackId) -> None:
        args: dict[str, Any] = {}
        for name, start, end in self._columns:
            # The first column is right-aligned in a width that the dots have; a long value moves the others.
            args.update(_cell(name, text[start:end].strip()))
        name = str(args.pop("symbol", "") or args.get("shared_object") or args.get("command") or "row")
        self._out.totals(track, name, str(args.get("shared_object", "")), args, number)
        self._out.balance.written += 1


def _cell(name: str, text: str) -> dict[str, Any]:
    """Return the args of a cell: percentages and counts as numbers, the kind of a symbol separately from its name."""
    if _PERCENT.fullmatch(text):
        return {f"{name}_percent": double(text[:-1].replace(",", "."))}
    if (number := whole_of(text)) is not None:
        return {name: number}
    kind = _SYMBOL_KIND.match(text) if name == "symbol" else None
    if kind is not None:
        return {"symbol": text[kind.end() :], "level": {"k": "kernel", ".": "user"}.get(kind[1], kind[1])}
    return {name: text} if text else {}


@dataclass(frozen=True)
class PerfReport(Importer):
    name = "perf-report"
    title = "Linux perf report text"
    url = "https://man7.org/linux/man-pages/man1/perf-report.1.html"
    versions = "perf report --stdio, checked with perf 6.1"
    signature = Signature("# samples:")
    clock = NO_TIME
    record = "perf report --stdio --no-children -g none > perf.report.txt"
    skips = (CHAIN_LINE,)

    line_up = "Merged with one perf.data or output of perf script, its tables are shown under that input."
    becomes = (
        ("table of an event", "table without a timeline"),
        ("row", "instant with overhead, command, file and symbol as args"),
        ("number of samples, event count, header", "metadata"),
    )
    lost = ("Call chains (-g) are not read; the samples themselves have them.",)
    marks = FormatMarks(totals=TotalsMarks(calls=("samples",), percent=("overhead_percent", "self_percent")))

    def sniff(self, head: Head) -> Match:
        """Return YES by the heading `# Samples: N of event 'NAME'`."""
        if _REPORT_MARK.search(head.data):
            return Match.yes("a heading of perf report")
        return Match.no("no `# Samples: N of event`")

    def read(self, source: Source, out: Builder) -> None:
        out.counts(LINES)
        _ReportReader(out).read(source)
        out.belongs_to(("perf-script", "perf-data", "perf-json"))


# -- JSON --------------------------------------------------------------------------------------------------------------

_VERSION = re.compile(rb'"linux-perf-json-version"\s*:\s*(\d{1,9})')
_HEADERS = re.compile(rb'"headers"\s*:\s*(?=\{)')
_SAMPLES = re.compile(rb'"samples"\s*:\s*\[')
_START, _END = b"\n\t\t{", b"\n\t\t}"
#: No header is longer than this.
_MAX_HEADER = 16 << 20
#: A sample whose last member is the call chain, and not a field of a tracepoint.
_PLAIN = re.compile(rb"\]\s*\}\s*\Z")
_TAIL = 16
_MEMBERS = ("timestamp", "pid", "tid", "cpu", "comm", "callchain")
_METADATA = {
    "hostname": "hostname",
    "os-release": "os_release",
    "perf-version": "perf_version",
    "arch": "arch",
    "cpu-desc": "cpu_desc",
    "cpuid": "cpuid",
    "nrcpus-online": "cpus_online",
    "captured-on": "captured_on",
}
#: Bits of prev_state, as the kernel has had them since 4.14; the next one is a thread that could have gone on.
_STATES = ((1, "S"), (2, "D"), (4, "T"), (8, "t"), (16, "X"), (32, "Z"), (64, "P"), (128, "I"))


class _Frame(msgspec.Struct, gc=False):
    ip: str = ""
    symbol: str = ""
    dso: str = "[unknown]"


class _Sample(msgspec.Struct, gc=False):
    timestamp: int
    pid: int
    tid: int
    cpu: int = -1
    comm: str = ""
    callchain: msgspec.Raw = msgspec.Raw(b"[]")


_decode_sample = msgspec.json.Decoder(_Sample).decode
_decode_frames = msgspec.json.Decoder(list[_Frame]).decode


class _JsonReader:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._tracks = PerfTracks(out)
        self._threads: dict[tuple[int, int, str], TrackId] = {}
        self._stacks: dict[bytes, StackId] = {}
        self._cut = False
        self._latest = 0

    def read(self, source: Source) -> None:
        with source.open() as stream:
            head, rest = self._head(stream, source)
            headers = _headers(head)
            clock = headers.get("clockid")
            self._latest = latest_ns(clock if isinstance(clock, int) else None)
            for text in self._samples(stream, rest):
                self._read_sample(text)
        if self._cut:
            self._out.balance.read += 1
            self._out.skip(CUT, self._out.balance.read)
        self._tracks.finish()
        version = _VERSION.search(head)
        if version is not None and whole(version[1]) != 1:
            self._out.problem(NEWER, "header", f"version {whole(version[1])}")
        _header_of(headers).tell(self._out)
        self._out.note("perf data convert prints no names of events and no periods: each sample counts 1")

    def _head(self, stream: IO[bytes], source: Source) -> tuple[bytes, bytes]:
        """Return the text before the samples, and the text read so far behind their bracket."""
        text = b""
        while (match := _SAMPLES.search(text)) is None and len(text) < _MAX_HEADER:
            more = stream.read(CHUNK_BYTES)
            if not more:
                break
            text += more
        if match is None:
            raise source.malformed(
                "no list of samples found, expected what perf data convert --to-json prints",
                hint="was perf ended before it wrote the first sample? Convert perf.data again, or read it directly",
            )
        return text[: match.start()], text[match.end() :]

    def _samples(self, stream: IO[bytes], rest: bytes) -> Iterator[bytes]:
        """Yield the text of each sample."""
        if not rest.startswith(_START):
            yield from self._samples_of_one_text(rest + stream.read())
            return
        more = b""
        while True:
            *complete, rest = (rest + more).split(_END)
            for text in complete:
                yield text + _END
            more = stream.read(CHUNK_BYTES)
            if not more:
                break
        self._cut = not rest.lstrip().startswith(b"]")

    def _samples_of_one_text(self, rest: bytes) -> Iterator[bytes]:
        """Yield the samples of a file that was reformatted."""
        decoder = json.JSONDecoder()
        text = rest.decode("utf-8", "replace")
        at = _skip_separators(text, 0)
        while at < len(text) and text[at] == "{":
            try:
                _, end = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            yield text[at:end].encode()
            at = _skip_separators(text, end)
        self._cut = text[at : at + 1] != "]"

    def _read_sample(self, text: bytes) -> None:
        self._out.balance.read += 1
        number = self._out.balance.read
        text = text.lstrip(b",\r\n\t ")
        fields: dict[str, Any] = {}
        try:
            if not _PLAIN.search(text, len(text) - _TAIL):
                text, fields = _without_fields(text)
            sample = _decoded(text)
            if not 0 <= sample.timestamp <= self._latest:
                raise ValueError(f"a time of {sample.timestamp} ns")
            stack = self._stack(bytes(sample.callchain))
        except (ValueError, RecursionError) as error:
            self._out.skip(BAD_SAMPLE, number, str(error))
            return
        self._out.balance.written += 1
        thread, ts, cpu = self._thread(sample), sample.timestamp, sample.cpu if sample.cpu >= 0 else None
        if not fields:
            self._tracks.sample(thread, ts, stack, "samples", 1, number, cpu)
        elif {"prev_pid", "prev_state", "next_pid"} <= fields.keys():
            state = fields["prev_state"]
            letters = state_letters(state, _STATES) if isinstance(state, int) else str(state)
            self._tracks.switch(ts, cpu, task_in(fields, "prev_"), letters, task_in(fields, "next_"), number, stack)
        else:
            args = fields if cpu is None else {"cpu": cpu, **fields}
            self._tracks.tracepoint(thread, ts, "tracepoint", args, stack, number, cpu)

    def _thread(self, sample: _Sample) -> TrackId:
        key = (sample.pid, sample.tid, sample.comm)
        if key not in self._threads:
            self._threads = {known: track for known, track in self._threads.items() if known[1] != sample.tid}
            self._threads[key] = self._tracks.thread(*key)
        return self._threads[key]

    def _stack(self, chain: bytes) -> StackId:
        known = self._stacks.get(chain)
        if known is None:
            frames = [Place(frame.symbol or frame.ip, frame.dso, bool(frame.symbol)) for frame in _decode_frames(chain)]
            known = self._stacks[chain] = self._tracks.stack(frames) if frames else NO_STACK
        return known


def _skip_separators(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _decoded(text: bytes) -> _Sample:
    """Decode a sample. Raises ValueError if it is invalid."""
    try:
        return _decode_sample(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_sample(text.decode("utf-8", "replace").encode())


def _without_fields(text: bytes) -> tuple[bytes, dict[str, Any]]:
    """Return a sample of a tracepoint without its fields, and the fields. Raises ValueError if it is invalid."""
    pairs: list[tuple[str, Any]] = []

    def keep(members: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = members  # the outermost object comes last
        return dict(members)

    read_json(text, object_pairs_hook=keep)
    sample: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in _MEMBERS and key not in sample:
            sample[key] = value
        else:
            fields[key] = _number(value)
    return json.dumps(sample).encode(), fields


def _number(value: Any) -> Any:
    """Return a field as a number if its text is one."""
    if not isinstance(value, str):
        return value
    number = hex_of(value) if value[:2] == "0x" else None
    return whole_or_text(value) if number is None else number


def _headers(head: bytes) -> dict[str, Any]:
    match = _HEADERS.search(head)
    if match is None:
        return {}
    try:
        text = head[match.end() :].decode("utf-8", "replace")
        headers = read_json(text[: json.JSONDecoder().raw_decode(text)[1]].encode())
    except (ValueError, RecursionError):
        return {}
    return headers if isinstance(headers, dict) else {}


def _header_of(headers: dict[str, Any]) -> Header:
    info = {name: headers[key] for key, name in _METADATA.items() if headers.get(key) not in (None, "", "(null)")}
    command = headers.get("cmdline")
    if isinstance(command, list):
        info["cmdline"] = " ".join(map(str, command))
    header = Header(info, known=bool(headers))
    clock, here, wall = (headers.get(key) for key in ("clockid", "clock-time", "real-time"))
    if isinstance(clock, int):
        header.clockid = clock
        if isinstance(here, int) and isinstance(wall, int) and is_possible_pair(clock, wall, here):
            header.reference = (wall, here)
    return header


@dataclass(frozen=True)
class PerfJson(Importer):
    name = "perf-json"
    title = "JSON of Linux perf (perf data convert --to-json)"
    url = "https://man7.org/linux/man-pages/man1/perf-data.1.html"
    versions = "linux-perf-json-version 1 (perf 5.15 to 6.18)"
    signature = Signature('"linux-perf-json-version"')
    clock = PERF_CLOCK
    record = "perf record -k CLOCK_MONOTONIC -g -- python run.py; perf data convert --to-json perf.json"

    line_up = LINE_UP
    becomes = (
        ("sample", "sample of its thread, with call stack and CPU"),
        ("tracepoint (newer versions print its fields)", "instant, or state of a thread (sched_switch)"),
        ("headers", "metadata, clock"),
    )
    lost = (
        "Names of events and periods are not in the file: each sample counts 1.",
        "Lost events, switches and other records are not in the file.",
    )

    def form(self, head: Head) -> Form:
        """Return the second form of a recording: a conversion of all events."""
        return Form(1, marks_of_perf)

    def sniff(self, head: Head) -> Match:
        """Recognise the key that states the version."""
        if head.text.startswith(b"{") and _VERSION.search(head.data[:4096]):
            return Match.yes("the key linux-perf-json-version")
        return Match.no("no key linux-perf-json-version")

    def read(self, source: Source, out: Builder) -> None:
        out.counts(SAMPLES)
        _JsonReader(out).read(source)
