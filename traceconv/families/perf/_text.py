"""The lines of `perf script`: the header, what begins an event, the frames of a call stack, the fields of a tracepoint.

    # hostname : vm
    python 18571/18571 [001]  2674.579460047:    2004008 cpu-clock:
    <TAB>           8ab00 pthread_getspecific@@GLIBC_2.34+0x0 (/usr/lib/x86_64-linux-gnu/libc.so.6)
    <blank>
              python 19570 [000]  2745.636397450:      sched:sched_switch: prev_comm=python prev_pid=19570 ...

Which fields a line has is up to `-F`, and their order is not: command, process/thread, [CPU], mode, date and time of
day, time, period, event, and then frames or the fields of the tracepoint. A single number before the time is the
thread. Without a call stack address, symbol and file stand on the line of the event. The name of a command may hold
anything. Checked against perf 6.1; other versions from the manual page.

The script report_sample.py of Android's simpleperf prints nearly the same, in three forms:

    Gecko<TAB>25122 [007] 115539.36601:<TAB><TAB>1000000 task-clock:u:     until NDK r17: microseconds without zeros
            b3cea6c4<TAB>Lock::unlock() (/system/lib/libc.so)
    Gecko<TAB>25122 [007] 115539.036601:<TAB><TAB>1000000 task-clock:u:    until NDK r21
    Gecko<TAB>25100/25122 [007] 115539.036601: 1000000 task-clock:u:       since
    <TAB>        b3cea6c4 Lock::unlock() (/system/lib/libc.so)

An address of 16 digits begins its line in the first two. The last form may have fields of tracepoints behind
`<TAB>tracing data:`, as lines `<TAB><TAB>key : value`. Source: the revisions of the script in AOSP's system/extras and
in the NDKs; tried on simple-perf.txt.gz of the tests of the Firefox Profiler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from traceconv.families.perf._tracks import CLOCK_NAMES, Header, Place, Task
from traceconv.model.numbers import hex_of, whole, whole_of, whole_or_text
from traceconv.model.times import S, parse_ns

#: A line of an event. Groups: comm, pid or tid, tid, cpu, time of day, seconds, decimals, type of a record, period,
#: event, the rest.
EVENT = re.compile(
    rb"\s*(?:(\S.{0,63}?)\s{1,64})??(?:(-?\d{1,10})(?:/(-?\d{1,10}))?\s+)?(?:\[(\d{1,6})\]\s+)?(?:[KUHGgCMEFSp]{1,5}\s+)?"
    rb"(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6,9})\s+)?(\d{1,12})\.(\d{6}(?:\d{3})?|\d{1,5}(?=:\t\t\d)):\s+"
    rb"(?:(PERF_RECORD_[A-Z0-9_]+)|(?:(\d{1,20})\s+)?(?:(\S+?):(?=\s|$))?)\s*(.*)"
)
#: An event line without a time, with its address in the same line or in the lines below.
UNTIMED = re.compile(
    rb"\S.{0,63}?(?<!\s)\s++(?:\d{1,10}/)?\d{1,10}\s++(?:\[\d+\]\s++)?(?:\d+\s++)?[\w:.-]+:"
    rb"(?:\s++[0-9a-f]{5,16} \S.*\))?"
)
#: An address with a symbol and a file, one of them or none.
FRAME = re.compile(rb"\s*([0-9a-f]{1,16})(?:[ \t](.*))?")
_UNINDENTED_FRAME = re.compile(rb"[0-9a-f]{16}\t\S.*\)")
_TRACING_DATA = b"\ttracing data:"
_FIELD = re.compile(rb"\t\t(\S.*?) : (.*)")
#: Messages of perf on stderr, which are often in the same file.
MESSAGE = (
    rb"\[ perf (?:record|script|inject): .*\]|Warning: .*|WARNING: .*|\[?\S+\]? with build id [0-9a-f]+ not found.*|"
    rb"Failed to open \S.*, continuing without symbols|no symbols found in \S.*|Processed \d+ events and lost .*|"
    rb"Check IO/CPU overload!|Samples .* do not have .*|Kernel address maps .* restricted.*|\(END\)"
)
_MESSAGE = re.compile(MESSAGE)
#: As above, after columns that are not part of it (data address, weight, kind of branch).
_LATE_FRAME = re.compile(rb"(?:.*\s)?([0-9a-f]{5,16}) (\S.*\))")
_MAX_REST = 4096
#: The first of the columns that perf prints behind the frames: registers, instructions, branches by address.
_BEHIND = re.compile(
    rb"\s?(?:ABI:\d|ilen: \d|insn: [0-9a-f]{2}\b|0x[0-9a-f]+(?:\([^()]*\))?/0x[0-9a-f]+(?:\([^()]*\))?/[PMN-]/)"
)
#: The end of a branch by address or symbol (-F brstack, brstacksym), and a frame that such branches may follow.
_BRANCH = re.compile(rb"/[PMN-]/[X-]/[A-]/\d{1,10}")
_FRAME_BEFORE = re.compile(rb"\s*[0-9a-f]{1,16} (?:.*? )?\([/\[][^()]*(?:\(deleted\))?\)")
_INDENTED_FRAME = re.compile(rb" +[0-9a-f]{5,16} \S.*\)\s*")
_SOURCE_LINE = re.compile(rb"  \S.*:\d+(?: \(discriminator \d+\))?(?: \(inlined\))?|  \?\?:\d+|  \S+\[[0-9a-f]+\]")
_TWO_ADDRESSES = re.compile(rb"\s*[0-9a-f]{5,16} (?!\()")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_UNKNOWN = "[unknown]"  # what perf prints for a symbol that it does not know
_TRACEPOINT = re.compile(r"[A-Za-z_][\w-]*:(?![ukhIGHpPSDWeb]+$)[A-Za-z_]\w*")
#: The name of a tracepoint without its system; a column with a number.
_NAME = re.compile(rb"[A-Za-z_]\w*")
_NUMBER_FIRST = re.compile(rb"(?:0x)?[0-9a-f]+(?:\s|$)")

_HEADER_FIELD = re.compile(r"# ?([a-z](?:[a-z_ ]*[a-z_])?)\s*+: (.*)")
_FIELD_NAMES = {
    "captured on": "captured_on_local_time",
    "nrcpus online": "nrcpus_online",
    "nrcpus avail": "nrcpus_avail",
}
_TEXT_FIELDS = ("hostname", "os release", "perf version", "arch", "cpudesc", "cpuid", "total memory", "cmdline")
_NOT_METADATA = ("header version", "data offset", "data size", "feat offset", "sample duration")
_SECONDS = re.compile(r"[0-9]{1,12}\.[0-9]{6,9}")
_EVENT_FIELD = re.compile(r"# event : name = (.*?), ")
_CLOCKID = re.compile(r"# clockid ?: (\w+)(?: \(([0-9]{1,3})\))?")
_REFERENCE = re.compile(r"# reference time: .*? = ([0-9]{1,12}\.[0-9]{6}) \(TOD\) = ([0-9]{1,12}\.[0-9]{9}) \(\w+\)")

_SWITCH = re.compile(
    r"prev_comm=(.{0,64}) prev_pid=([0-9]{1,10}) prev_prio=(-?[0-9]{1,6}) prev_state=(\S++) ==> "
    r"next_comm=(.{0,64}) next_pid=([0-9]{1,10}) next_prio=(-?[0-9]{1,6})"
)
_OLD_SWITCH = re.compile(
    r"(.{0,64}):([0-9]{1,10}) \[(-?[0-9]{1,6})\] (\S++) ==> (.{0,64}):([0-9]{1,10}) \[(-?[0-9]{1,6})\]"
)
_WAKEUP = re.compile(r"(?:comm=(.*) pid=([0-9]{1,10}) prio=(-?[0-9]{1,6})|(.*):([0-9]{1,10}) \[(-?[0-9]{1,6})\])\b.*")
_PROBE_PLACE = re.compile(r"\(([0-9a-f]{1,16}(?: <- [0-9a-f]{1,16})?)\)")
_KEY = re.compile(r"(?:^|,? )([A-Za-z_][\w.]*)(?:=|: (?=\S))")

_COMM = re.compile(r"(?:exec)?: (.*):(-?[0-9]{1,10})/(-?[0-9]{1,10})")
_FORK = re.compile(r"\(([0-9]{1,10}):([0-9]{1,10})\):\(([0-9]{1,10}):([0-9]{1,10})\)")
_MMAP = re.compile(
    r"(-?[0-9]{1,10})/(-?[0-9]{1,10}): \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ (0x[0-9a-f]++|0)[^\]]*+\]: (\S++) (.*)"
)
_SWITCH_RECORD = re.compile(r"(IN|OUT)( preempt)?(?:\s+(?:next|prev) pid/tid:\s*([0-9]+)/([0-9]+))?\s*")
#: The tracepoints that make states of threads, without their system.
_SCHEDULED = (b"sched_switch", b"sched_wakeup", b"sched_wakeup_new")
#: This many consecutive event lines without frames identify perf script.
_BARE_LINES = 8


# -- the header --------------------------------------------------------------------------------------------------------


def add_header_line(header: Header, line: bytes) -> None:
    """Read a line of the header, which starts with #."""
    text = line.decode("utf-8", "replace")
    clock, pair, event = _CLOCKID.match(text), _REFERENCE.match(text), _EVENT_FIELD.match(text)
    if clock is not None:
        header.clockid = whole(clock[2]) if clock[2] else CLOCK_NAMES.get(clock[1])
        header.info["clockid"] = clock[1]
    elif pair is not None:
        header.reference = (parse_ns(pair[1].encode(), S), parse_ns(pair[2].encode(), S))
        header.info["reference_time"] = text.removeprefix("# reference time: ").strip()
    elif event is not None:
        header.info.setdefault("events", []).append(event[1])
    else:
        _add_field(header, text)


def _add_field(header: Header, text: str) -> None:
    field = _HEADER_FIELD.fullmatch(text.rstrip())
    if field is None or field[1] in _NOT_METADATA:
        return
    if field[1] == "captured on":
        header.known = True
    if field[1] in ("time of first sample", "time of last sample"):
        if _SECONDS.fullmatch(field[2]):
            ts = parse_ns(field[2].encode(), S)
            header.span = (
                (ts, ts) if field[1] == "time of first sample" or header.span is None else (header.span[0], ts)
            )
        return
    if field[1] in _FIELD_NAMES:
        value: str | int = field[2]
        if field[1].startswith("nrcpus"):
            value = whole_or_text(field[2])
        header.info[_FIELD_NAMES[field[1]]] = value
    elif field[1] in _TEXT_FIELDS:
        header.info[field[1].replace(" ", "_")] = field[2]


def begins_header(text: bytes) -> bool:
    """Return whether a text begins with the header of perf."""
    start = text[:400]
    return start.startswith(b"# ====") and b"\n# captured on" in start


def is_message(line: bytes) -> bool:
    """Return whether a line is a message of perf to the user."""
    return _MESSAGE.fullmatch(line.strip()) is not None


# -- frames ------------------------------------------------------------------------------------------------------------


def may_be_frame(line: bytes) -> bool:
    """Return whether a line starts like a frame: indented, or with a 16-digit address and a tab."""
    return line[:1] in (b"\t", b" ") or _UNINDENTED_FRAME.fullmatch(line.rstrip()) is not None


def begins_tracing_data(line: bytes) -> bool:
    """Return whether fields of a tracepoint follow, one a line."""
    return line.rstrip() == _TRACING_DATA


def field_of(line: bytes) -> str | None:
    """Return the field of a tracepoint on a line of its own as `key=value`; None for another line."""
    match = _FIELD.fullmatch(line.rstrip())
    return None if match is None else f"{match[1].decode('utf-8', 'replace')}={match[2].decode('utf-8', 'replace')}"


def frame_of(line: bytes) -> Place | None:
    """Return symbol and file of a frame, without address and offset; None if the line is not a frame."""
    match = FRAME.fullmatch(line)
    if match is None:
        return None
    text = (match[2] or b"").strip().decode("utf-8", "replace")
    return _symbol_and_file(text) if text else Place(f"0x{match[1].decode()}", "", named=False)


def frame_on_event_line(rest: bytes) -> tuple[Place | None, bool]:
    """Return the frame on the line of an event, and whether there are columns besides it."""
    behind, branch = _BEHIND.search(rest), _BRANCH.search(rest)
    if behind is not None or branch is not None:
        before = _FRAME_BEFORE.match(rest) if behind is None else FRAME.fullmatch(rest, 0, behind.start())
        return None if before is None else frame_of(before[0]), True
    match = FRAME.fullmatch(rest)
    if match is not None and not (match[2] and _TWO_ADDRESSES.match(match[2])):
        return frame_of(rest), False
    late = _LATE_FRAME.fullmatch(rest) if len(rest) < _MAX_REST else None
    if late is not None:
        return _symbol_and_file(late[2].decode("utf-8", "replace")), True
    return None, True


def _symbol_and_file(text: str) -> Place:
    """Return symbol and file of a frame: the file is in the last parentheses; both may contain others."""
    if not text.endswith(")"):
        return Place(_OFFSET.sub("", text), "", named=text != _UNKNOWN)
    at = max(text.rfind(" (/"), text.rfind(" (["))
    if at < 0:
        at = text.rfind(" (", 0, len(text) - len(" (deleted))")) if text.endswith(" (deleted))") else text.rfind(" (")
    if at < 0:
        symbol, file = ("", text[1:-1]) if text.startswith("(") else (text, "")
    else:
        symbol, file = text[:at], text[at + 2 : -1]
    if file == "inlined":
        return Place(f"{symbol} (inlined)", "")
    symbol = _OFFSET.sub("", symbol) or _UNKNOWN
    return Place(symbol, _OFFSET.sub("", file), named=symbol != _UNKNOWN)


def has_columns_only(line: bytes) -> bool:
    """Return whether a line has columns that perf prints behind the frames of an event."""
    return _BEHIND.match(line) is not None or _BRANCH.search(line) is not None


def is_source_line(line: bytes) -> bool:
    """Return whether the line is the place in the source of the frame before it."""
    return _SOURCE_LINE.fullmatch(line) is not None


# -- tracepoints and other records -------------------------------------------------------------------------------------


def is_tracepoint(event: str) -> bool:
    """Return whether an event is "system:name", and not a name with modifiers such as cycles:ppp."""
    return _TRACEPOINT.fullmatch(event) is not None


def may_be_fields(name: bytes, rest: bytes) -> bool:
    """Return whether the fields of a tracepoint may follow; versions until about 3.3 do not print its system."""
    return _NAME.fullmatch(name) is not None and not has_columns_only(rest) and _NUMBER_FIRST.match(rest) is None


def switch_of(text: str) -> tuple[Task, str, Task] | None:
    """Parse sched_switch: the stopping thread, its state, the next thread; None if the form is unknown."""
    match = _SWITCH.fullmatch(text) or _OLD_SWITCH.fullmatch(text)
    if match is None:
        return None
    return Task(match[1], whole(match[2]), whole(match[3])), match[4], Task(match[5], whole(match[6]), whole(match[7]))


def woken_task(text: str) -> Task | None:
    """Parse sched_wakeup: the thread that may run again; None if the form is unknown."""
    match = _WAKEUP.fullmatch(text)
    if match is None:
        return None
    comm, tid, prio = match.groups()[:3] if match[2] else match.groups()[3:]
    return Task(comm, whole(tid), whole(prio))


def fields_of(text: str) -> dict[str, Any]:
    """Return the fields of a tracepoint.

    `a=1 b=two`, `a: 0x1, b: 2`; decimal numbers as numbers, anything else as text.
    """
    place = _PROBE_PLACE.match(text)  # of a probe
    start = place.end() if place else 0
    keys = list(_KEY.finditer(text, start))
    if not keys or keys[0].start() > start:
        return {"text": text} if text else {}
    ends = [key.start() for key in keys[1:]] + [len(text)]
    fields: dict[str, Any] = {"address": place[1]} if place else {}
    fields.update((key[1], _value(text[key.end() : end])) for key, end in zip(keys, ends, strict=True))
    return fields


def _value(text: str) -> str | int:
    text = text.strip().rstrip(",")
    number = whole_of(text)
    return text.removeprefix('"').removesuffix('"') if number is None else number


def comm_of(rest: str) -> tuple[str, int, int] | None:
    """Return name, process and thread of PERF_RECORD_COMM."""
    match = _COMM.fullmatch(rest)
    return None if match is None else (match[1], whole(match[2]), whole(match[3]))


def fork_of(rest: str) -> tuple[int, int, int, int] | None:
    """Return process and thread, then those of the parent, of PERF_RECORD_FORK and EXIT."""
    match = _FORK.fullmatch(rest)
    return None if match is None else (whole(match[1]), whole(match[2]), whole(match[3]), whole(match[4]))


def mmap_of(rest: str) -> tuple[int, int, dict[str, Any]] | None:
    """Return process, thread and mapping of PERF_RECORD_MMAP and MMAP2."""
    match = _MMAP.fullmatch(rest)
    if match is None:
        return None
    args = {
        "file": match[7],
        "address": match[3],
        "size_bytes": hex_of(match[4]),
        "file_offset": match[5],
        "protection": match[6].rstrip(":"),
    }
    return whole(match[1]), whole(match[2]), args


def switch_record_of(rest: str) -> tuple[bool, bool] | None:
    """Return whether the thread of a PERF_RECORD_SWITCH starts to run, and whether it was preempted."""
    match = _SWITCH_RECORD.fullmatch(rest)
    return None if match is None else (match[1] == "IN", bool(match[2]))


# -- recognising -------------------------------------------------------------------------------------------------------


def is_certain(match: re.Match[bytes], after: bytes) -> bool:
    """Return whether an event line is of perf script for certain."""
    record, name, rest = match[8], match[10], match[11]
    if record is not None:
        return True
    if name in _SCHEDULED and match[2] is not None:
        fields = rest.decode("utf-8", "replace")
        return switch_of(fields) is not None or woken_task(fields) is not None
    if name is not None and match[2] is not None and is_tracepoint(name.decode("utf-8", "replace")):
        return True
    if name is not None and match[9] is not None and not rest:
        return True
    if after[:1] == b"\t":
        return FRAME.fullmatch(after) is not None
    if name is not None and match[2] is not None and _INDENTED_FRAME.fullmatch(after):
        return True
    if _BEHIND.search(rest) or _BRANCH.search(rest):
        return match[2] is not None and (frame_on_event_line(rest)[0] is not None or _BEHIND.match(rest) is not None)
    return rest.endswith(b")") and FRAME.fullmatch(rest) is not None


def are_bare_events(lines: Sequence[bytes], with_fields: bool = False) -> bool:
    """Return whether the first lines are times with names of events alone, or of tracepoints with thread and fields."""
    first = [line.rstrip() for line in lines if line.strip() and not line.startswith(b"#")][:_BARE_LINES]
    matches = [EVENT.fullmatch(line) for line in first]
    if with_fields:
        return len(first) == _BARE_LINES and all(
            match is not None and match[2] and match[9] is None and match[10] and may_be_fields(match[10], match[11])
            for match in matches
        )
    return len(first) == _BARE_LINES and all(match is not None and match[10] and not match[11] for match in matches)


def are_untimed(lines: Sequence[bytes]) -> bool:
    """Return whether the first lines are events with frames, but without times."""
    first = [line.rstrip() for line in lines if line.strip() and not line.startswith(b"#")][:_BARE_LINES]
    frames = [line for line in first if line[:1] in b" \t" and FRAME.fullmatch(line)]
    events = [line for line in first if line not in frames]
    has_addresses = bool(frames) or any(line.endswith(b")") for line in events)
    return bool(events) and has_addresses and all(map(UNTIMED.fullmatch, events))
