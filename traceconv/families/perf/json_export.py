"""JSON of `perf data convert --to-json`: samples with their call stacks, symbols included.

    {"linux-perf-json-version": 1,
     "headers": {"hostname": "vm", "clockid": 1, "clock-time": 12719747160169, "real-time": 1795259822639102000, ...},
     "samples": [{"timestamp": 2673057758437, "pid": 18444, "tid": 18444, "cpu": 1, "comm": "python",
                  "callchain": [{"ip": "0x7febb41c82bc", "symbol": "_dl_relocate_object", "dso": "ld-linux.so"}]}, ...]}

Times are nanoseconds of the clock of the recording; the clock members stand there if it was recorded with -k. Frames
are innermost first; without a symbol there is the address only. Names of events and periods are not printed, nor any
other record. A tracepoint prints its fields as further members of the sample, all as text, and even if they are called
like a member that was there before: of two members with one name, the first is meant.

Each sample begins on a line of its own with two tabs, which is how a big file is read in parts; one that was formatted
anew is decoded as a whole. Source: tools/perf/util/data-convert-json.c (what is printed, in which order), output of
perf 6.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import msgspec

from traceconv.families.importer import Match
from traceconv.families.perf._tracks import (
    NO_STACK,
    PERF_CLOCK,
    Header,
    PerfTracks,
    Place,
    Task,
    is_possible_pair,
    latest_ns,
    marks_of_perf,
)
from traceconv.io.source import CHUNK_BYTES, Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.counted import SAMPLES
from traceconv.model.diagnostics import lost, noted
from traceconv.model.forms import Form
from traceconv.model.json_values import flatten
from traceconv.model.numbers import hex_of, whole, whole_or_text
from traceconv.model.trace import StackId, TrackId

BAD_SAMPLE = lost("perf-json.bad_sample", "a sample is not a JSON object with a time and a thread: left out")
CUT = lost("perf-json.cut", "the file ends inside its samples: the complete ones were read")
NEWER = noted("perf-json.unknown_version", "the file states an unknown version of its format: read like version 1")

_VERSION = re.compile(rb'"linux-perf-json-version"\s*:\s*(\d{1,9})')
_HEADERS = re.compile(rb'"headers"\s*:\s*(?=\{)')
_SAMPLES = re.compile(rb'"samples"\s*:\s*\[')
_START, _END = b"\n\t\t{", b"\n\t\t}"
#: No header is longer than this.
_MAX_HEADER = 16 << 20
#: A sample whose last member is the call chain, and not a field of a tracepoint.
_PLAIN = re.compile(rb"\]\s*\}\s*\Z")
_TAIL = 16
_NO_NAME, _NO_TRACEPOINT_NAME = "samples", "tracepoint"
_KNOWN = ("timestamp", "pid", "tid", "cpu", "comm", "callchain")
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
#: Bits of prev_state, as the kernel has had them since 4.14; the last one is a thread that could have gone on.
_STATES = ((1, "S"), (2, "D"), (4, "T"), (8, "t"), (16, "X"), (32, "Z"), (64, "P"), (128, "I"))
_PREEMPTED = 256


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


class _Reader:
    """Reads one file into a builder."""

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
        self._tell(head, headers)

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
        while True:
            more = stream.read(CHUNK_BYTES)
            if not more:
                break
            *whole, rest = (rest + more).split(_END)
            for text in whole:
                yield text + _END
        *whole, rest = rest.split(_END)
        for text in whole:
            yield text + _END
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

    # -- samples ----------------------------------------------------------------------------------------------

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
        thread = self._thread(sample)
        if fields:
            self._tracepoint(sample, thread, fields, stack, number)
        else:
            cpu = sample.cpu if sample.cpu >= 0 else None
            self._tracks.sample(thread, sample.timestamp, stack, _NO_NAME, 1, number, cpu)

    def _thread(self, sample: _Sample) -> TrackId:
        key = (sample.pid, sample.tid, sample.comm)
        if key not in self._threads:
            self._threads = {known: track for known, track in self._threads.items() if known[1] != sample.tid}
            self._threads[key] = self._tracks.thread(*key)
        return self._threads[key]

    def _stack(self, chain: bytes) -> StackId:
        known = self._stacks.get(chain)
        if known is None:
            frames = [Place(one.symbol or one.ip, one.dso, bool(one.symbol)) for one in _decode_frames(chain)]
            known = self._stacks[chain] = self._tracks.stack(frames) if frames else NO_STACK
        return known

    def _tracepoint(
        self, sample: _Sample, thread: TrackId, fields: dict[str, Any], stack: StackId, number: int
    ) -> None:
        cpu = sample.cpu if sample.cpu >= 0 else None
        if {"prev_pid", "prev_state", "next_pid"} <= fields.keys():
            prev, following = _task(fields, "prev_"), _task(fields, "next_")
            self._tracks.switch(sample.timestamp, cpu, prev, _letters(fields), following, number, stack)
            return
        args = fields if cpu is None else {"cpu": cpu, **fields}
        self._tracks.tracepoint(thread, sample.timestamp, _NO_TRACEPOINT_NAME, args, stack, number, cpu)

    # -- the end ----------------------------------------------------------------------------------------------

    def _tell(self, head: bytes, headers: dict[str, Any]) -> None:
        """Set the clock and the metadata."""
        version = _VERSION.search(head)
        if version is not None and whole(version[1]) != 1:
            self._out.problem(NEWER, "header", f"version {whole(version[1])}")
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
        header.tell(self._out)
        self._out.note("perf data convert prints no names of events and no periods: each sample counts 1")


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

    json.loads(flatten(text).decode("utf-8", "replace"), object_pairs_hook=keep, parse_int=whole_or_text)
    own: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in _KNOWN and key not in own:
            own[key] = value
        else:
            fields[key] = _number(value)
    return json.dumps(own).encode(), fields


def _number(value: Any) -> Any:
    """Return a field as a number if its text is one."""
    if not isinstance(value, str):
        return value
    return whole_or_text(value) if (number := hex_of(value) if value[:2] == "0x" else None) is None else number


def _task(fields: dict[str, Any], prefix: str) -> Task:
    tid, priority = fields[f"{prefix}pid"], fields.get(f"{prefix}prio")
    comm = str(fields.get(f"{prefix}comm", ""))
    return Task(comm, tid if isinstance(tid, int) else -1, priority if isinstance(priority, int) else None)


def _letters(fields: dict[str, Any]) -> str:
    state = fields["prev_state"]
    if not isinstance(state, int):
        return str(state)
    letters = "|".join(letter for bit, letter in _STATES if state & bit) or "R"
    return letters + "+" if state & _PREEMPTED else letters


def _headers(head: bytes) -> dict[str, Any]:
    match = _HEADERS.search(head)
    if match is None:
        return {}
    try:
        headers, _ = json.JSONDecoder().raw_decode(head[match.end() :].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return headers if isinstance(headers, dict) else {}


@dataclass(frozen=True)
class PerfJson:
    """JSON of perf data convert."""

    name: ClassVar[str] = "perf-json"
    title: ClassVar[str] = "JSON of Linux perf (perf data convert --to-json)"
    url: ClassVar[str] = "https://man7.org/linux/man-pages/man1/perf-data.1.html"
    versions: ClassVar[str] = "linux-perf-json-version 1 (perf 5.15 to 6.18)"
    clock: ClassVar[ClockDomain] = PERF_CLOCK
    record: ClassVar[str] = "perf record -k CLOCK_MONOTONIC -g -- python run.py; perf data convert --to-json perf.json"
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sample", "sample of its thread, with call stack and CPU"),
        ("sample of a tracepoint (newer versions print its fields)", "instant, or state of a thread (sched_switch)"),
        ("headers", "metadata, clock"),
    )
    lost: ClassVar[tuple[str, ...]] = (
        "The names of events and the periods are not in the file: each sample counts 1.",
        "Lost events, switches and other records of the recording are not in the file.",
    )
    checked = (("perf 6.1", "recorded", "threads and times against perf.data of the same recording"),)
    line_up: ClassVar[str] = (
        "Record with -k CLOCK_MONOTONIC. The headers then hold readings of it and of the wall clock, which "
        "align the file with files on either. No other tool reads perf's default clock (without -k). If "
        "another file is on CLOCK_MONOTONIC or relates it to the wall clock, --clock FILE=monotonic places it, to "
        "within 10 ms and 500 ppm of the time since boot (2 s per hour)."
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
        """Read the whole file."""
        out.info.unit = "sample"
        out.balance.unit = SAMPLES
        _Reader(out).read(source)
