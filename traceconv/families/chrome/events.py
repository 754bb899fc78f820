"""What each phase of the Trace Event Format means, in the builder's verbs.

The importers of the family (any Chrome trace, ONNX Runtime, MXNet, PyTorch) share this class; each overrides what its
tool does differently: what its pids and tids stand for, how its names and args are to be read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Raw

from traceconv.families.chrome._times import microseconds
from traceconv.families.chrome.flows import FlowSteps
from traceconv.families.chrome.json_reader import (
    ABSENT,
    ChromeReader,
    Empties,
    Event,
    compact,
    decode_event,
    decode_json,
    text_of,
)
from traceconv.families.chrome.lenient_json import MAX_DEPTH, flatten, may_be_deep
from traceconv.families.chrome.rows import Rows, RowScanner
from traceconv.families.common.numbers import number_of
from traceconv.model.builder import Builder, join_args
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.times import LIMIT_NS, US, parse_ns
from traceconv.model.trace import I64, NO_CPU, NO_TRACK, StackId, TrackId

BAD_TIME = declare(
    "chrome.bad_time",
    ProblemKind.LOST,
    "an event has no time that can be read, or one beyond 146 years (in ns? -O ts_unit=ns), and was skipped",
)
BAD_DURATION = declare(
    "chrome.bad_duration",
    ProblemKind.REPAIRED,
    "the duration of a complete event cannot be read: drawn with length 0 and marked `unfinished`",
)
NO_DURATION = declare(
    "chrome.no_duration",
    ProblemKind.ABSENT,
    "a complete event has no duration: drawn with length 0 and marked `unfinished`",
)
UNKNOWN_PHASE = declare("chrome.unknown_phase", ProblemKind.LOST, "an event has a phase that the format does not know")
EMPTY_EVENT = declare(
    "chrome.empty_event",
    ProblemKind.SKIPPED,
    "empty objects, which some writers put after the last event, mean nothing",
    quiet=True,
)
NO_VALUE = declare("chrome.counter_without_value", ProblemKind.ABSENT, "a counter event holds no number")
NO_NUMBER = declare(
    "chrome.empty_counter_value",
    ProblemKind.ABSENT,
    "one series of a counter event is null or NaN: nothing was measured",
)
BAD_VALUE = declare("chrome.bad_counter_value", ProblemKind.LOST, "one series of a counter event is not a number")
NO_ID = declare("chrome.no_id", ProblemKind.LOST, "an event that belongs together with others by its id has none")
BAD_ARGS = declare(
    "chrome.bad_args", ProblemKind.REPAIRED, "args that are no JSON object were kept under the key `args`"
)

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_ASYNC_PHASES = {"b": "begin", "e": "end", "n": "instant", "S": "begin", "F": "end", "T": "step", "p": "step"}
_ASYNC_PHASES |= {"(": "begin", ")": "end", "N": "begin", "D": "end", "O": "instant"}
_SHALLOW = 2 * MAX_DEPTH  # as many bytes cannot hold more brackets within brackets
_MAX_TIME_TEXT = 22
_SURE_TIME_TEXT = 16  # with fewer characters no time is out of range
_LARGEST = sys.float_info.max
_INT32 = range(-(2**31), 2**31)
_COMPLETE, _BEGIN, _END = b"XBE"
_FLOW_PHASES = _FLOW_START, _FLOW_STEP, _FLOW_END = tuple(b"stf")
_UNKNOWN = np.iinfo(np.int64).min


class _Known(dict[_Key, _Value]):
    """What belongs to each key, made when the key is met first: one lookup in the loops over all events."""

    def __init__(self, make: Callable[[_Key], _Value]) -> None:
        self._make = make

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._make(key)
        return value


class _Columns(NamedTuple):
    """What complete events become without a closer look at each; times in ns."""

    ts: Sequence[int] | I64
    dur: Sequence[int] | I64
    args: list[bytes]


class ChromeEvents:
    """Turns the events of one trace into rows.

    Args:
        out: where they go.
        exponent: the unit of ts and dur as a power of ten of ns; microseconds by the format.
    """

    #: Names of plain events that `watch` wants to see.
    watched_names: frozenset[str] = frozenset()

    def __init__(self, out: Builder, exponent: int = US) -> None:
        self.out = out
        self.flows = FlowSteps()
        self._exponent = exponent
        self._seen = 0
        # By the numbers of a RowScanner: how many texts were met, their interned strings, those to be watched, the
        # tracks of stands.
        self._texts = 0
        self._text_strings = self._stand_tracks = np.empty(0, np.int64)
        self._watched_texts: list[int] = []
        self._processes: dict[bytes, TrackId] = {}
        self._threads: _Known[tuple[bytes, bytes], TrackId] = _Known(lambda key: self._declare_thread(*key))
        self._async: dict[tuple[bytes, str, str, bytes], TrackId] = {}
        self._counters: dict[tuple[bytes, str, bytes, str], TrackId] = {}
        self._global = NO_TRACK
        self._strings = _Known(out.string)
        self._samples: list[tuple[int, TrackId, int, str, Raw, int, int]] = []
        self._handlers: dict[str, Callable[[Event, int, int], None]] = {
            "X": self.complete,
            "B": self.begin,
            "E": self.end,
            "i": self.instant,
            "I": self.instant,
            "R": self.instant,
            "C": self.counter,
            "P": self.sample,
            "s": self.flow,
            "t": self.flow,
            "f": self.flow,
            **dict.fromkeys(_ASYNC_PHASES, self.asynchronous),
        }

    # -- reading ----------------------------------------------------------------------------------------------

    def add(self, batch: list[Event]) -> None:
        """All events of a batch, in the order of the file."""
        if isinstance(batch, Empties):
            self.out.skip(EMPTY_EVENT, self._seen + 1, count=batch.size)
            self._seen += batch.size
            return
        number = self._seen
        for event in batch:
            number += 1
            self.dispatch(event, number)
        self._seen = number

    def add_all(self, reader: ChromeReader) -> None:
        """All events of a trace whose complete events need no change: these go in as whole columns."""
        for batch in reader.rows(self._exponent):
            if isinstance(batch, Rows):
                self.add_rows(batch)
            elif isinstance(batch, Empties):
                self.add(batch)
            else:
                self.add_plain(batch)

    def add_rows(self, rows: Rows) -> None:
        """Events of which the plain ones are columns already. This is what sees every event of a big file."""
        self._look(rows)
        origin = np.arange(self._seen + 1, self._seen + 1 + len(rows))
        self._seen += len(rows)
        args_start = self.out.args_part(rows.args)
        args_at = np.where(rows.args_len, rows.args_at + args_start, 0)
        is_flow = (rows.phase == _FLOW_START) | (rows.phase == _FLOW_STEP) | (rows.phase == _FLOW_END)
        is_slice = rows.phase == _COMPLETE
        is_mark = (rows.phase == _BEGIN) | (rows.phase == _END)
        is_instant = (rows.phase != 0) & ~is_slice & ~is_flow & ~is_mark
        for own in (is_slice, is_instant, is_mark):
            track, ts, *others = (
                self._stand_tracks[rows.stand[own]].astype(np.int32),
                rows.ts[own],
                self._text_strings[rows.name[own]].astype(np.int32),
                self._text_strings[rows.category[own]].astype(np.int32),
                args_at[own],
                rows.args_len[own].astype(np.int32),
                origin[own],
            )
            if own is is_slice:
                self.out.slice_rows(track, ts, rows.dur[own], *others)
            elif own is is_instant:
                self.out.instants(track, ts, *others)
            else:
                name, category, *rest = others
                is_begin = rows.phase[own] == _BEGIN
                category = np.where(is_begin, category, np.int32(0))
                self.out.begins_and_ends(track, ts, is_begin.astype(np.uint8), name, category, *rest)
        self.out.balance.written += int(np.count_nonzero(is_slice | is_instant))
        if np.any(is_flow):
            self._add_flows(rows, np.flatnonzero(is_flow), origin)

    def _look(self, rows: Rows) -> None:
        """See, in their order, all events that are not plain, bring something new, or are watched."""
        self._make_room(rows.scanner)
        is_watched = np.zeros(len(rows), bool)
        for number in self._watched_texts:
            is_watched |= (rows.name == number) & (rows.phase != 0)
        for row in np.flatnonzero(rows.is_fresh | is_watched | (rows.phase == 0)).tolist():
            if not rows.phase[row]:
                event = decode_event(rows.raw(row))
                self.prepare(event)
                self.dispatch(event, self._seen + row + 1)
                continue
            if rows.is_fresh[row]:
                self._meet(rows, row)
            if is_watched[row]:
                self.watch(rows, row, self._seen + row + 1)

    def _make_room(self, scanner: RowScanner) -> None:
        """Prepare for all texts and stands that the scanner has met."""
        known, count = self._texts, scanner.text_count()
        if self.watched_names:
            self._watched_texts += [n for n in range(known, count) if scanner.name(n) in self.watched_names]
        self._texts = count
        self._text_strings = _with_room(self._text_strings, count)
        self._stand_tracks = _with_room(self._stand_tracks, scanner.stand_count())

    def _meet(self, rows: Rows, row: int) -> None:
        """What an event brings that no plain event before it had."""
        stand, name, category = (int(column[row]) for column in (rows.stand, rows.name, rows.category))
        if self._stand_tracks[stand] == _UNKNOWN:
            self._stand_tracks[stand] = self.track_of(*rows.scanner.stand(stand))
        if rows.phase[row] not in _FLOW_PHASES:
            for number in (name,) if rows.phase[row] == _END else (name, category):
                self._text_strings[number] = self.out.string(rows.scanner.name(number))

    def _add_flows(self, rows: Rows, own: I64, origin: I64) -> None:
        texts: _Known[int, str] = _Known(rows.scanner.name)
        data = rows.data
        columns = (rows.category[own], rows.name[own], rows.id_at[own], rows.id_at[own] + rows.id_len[own])
        keys = [
            (texts[category], texts[name], data[start:end].strip(b'"'))
            for category, name, start, end in zip(*(column.tolist() for column in columns), strict=True)
        ]
        to_next = (rows.phase[own] == _FLOW_END) & ~rows.is_enclosing[own]
        self.flows.extend(
            keys, rows.phase[own], self._stand_tracks[rows.stand[own]], rows.ts[own], origin[own], to_next
        )

    def add_plain(self, batch: list[Event]) -> None:
        """The same for events that are not columns yet."""
        for event in batch:
            self.prepare(event)
        absent = ABSENT
        plain = [event for event in batch if event.ph == "X" and event.extra is None and event.id is absent]
        columns = self._columns(plain)
        if columns is None:
            for event in batch:
                self._seen += 1
                self.dispatch(event, self._seen)
            return
        threads, strings = self._threads, self._strings
        tracks: list[int] = []
        names: list[int] = []
        categories: list[int] = []
        origins: list[int] = []
        number = self._seen
        for event in batch:
            number += 1
            if event.ph == "X" and event.extra is None and event.id is absent:
                tracks.append(threads[bytes(event.pid), bytes(event.tid)])
                names.append(strings[event.name])
                categories.append(strings[event.cat])
                origins.append(number)
            else:
                self.dispatch(event, number)
        self._seen = number
        self.out.slices(tracks, columns.ts, columns.dur, names, categories, columns.args, origins)
        self.out.balance.written += len(plain)

    def _columns(self, plain: list[Event]) -> _Columns | None:
        """Times, durations and args of complete events; None if one of them needs a closer look."""
        args = [compact(memoryview(event.args)) for event in plain]
        for piece in args:
            if piece[:1] not in (b"{", b"") or (len(piece) > _SHALLOW and may_be_deep(piece)):
                return None
        try:
            ts = self._times([event.ts for event in plain])
            dur = self._times([event.dur for event in plain])
        except ValueError:
            return None
        return None if len(dur) and np.min(dur) < 0 else _Columns(ts, dur, args)

    def _times(self, raws: list[Raw]) -> Sequence[int] | I64:
        found = microseconds(raws) if self._exponent == US else None
        return [self.time(bytes(raw)) for raw in raws] if found is None else found

    def dispatch(self, event: Event, number: int) -> None:
        """One event of any phase; `number` is its place in the file, from 1."""
        phase = event.ph
        if phase == "M":
            self.metadata(event, number)
        elif phase in ("v", "V", "c"):
            self.global_fact(event, number)
        elif phase in self._handlers:
            try:
                ts = self.time(bytes(event.ts))
            except ValueError as error:
                self.out.skip(BAD_TIME, number, f"ts of {event.name!r}: {error}")
                return
            self._handlers[phase](event, ts, number)
        elif not phase and event.extra is None and event.ts is ABSENT and not event.name:
            self.out.skip(EMPTY_EVENT, number)
        else:
            self.out.skip(UNKNOWN_PHASE, number, repr(phase))

    def finish(self, frames: dict[str, Any] | None = None) -> None:
        """Put together what belongs together, once all events are in.

        Args:
            frames: the `stackFrames` of the trace, by id.
        """
        self.out.pair()
        self.flows.resolve(self.out)
        stacks: dict[str, StackId] = {}
        frames = frames if isinstance(frames, dict) else {}
        frames = {key: entry for key, entry in frames.items() if isinstance(entry, dict)}
        for ts, track, number, name, raw, weight, cpu in self._samples:
            stack = self._stack(text_of(bytes(raw)), frames, stacks) if raw is not ABSENT else None
            stack = self.out.frame(name) if stack is None else stack
            self.out.sample(track, ts, stack, name, weight, number, cpu=cpu)

    def time(self, raw: bytes) -> int:
        """Nanoseconds of a ts or dur as it stands in the file. Raises ValueError when it is none."""
        if self._exponent == US and len(raw) < _MAX_TIME_TEXT:
            try:  # the shapes that nearly all events have: 12.345 and 12
                value = int(raw[:-4] + raw[-3:]) if raw[-4:-3] == b"." else int(raw) * 1000
                if len(raw) < _SURE_TIME_TEXT or -LIMIT_NS <= value <= LIMIT_NS:
                    return value
            except ValueError:
                pass
        if raw[:1] == b'"':
            raw = raw[1:-1]
        if not raw or raw == b"null":
            raise ValueError("missing")
        return parse_ns(raw, self._exponent)

    # -- tracks -----------------------------------------------------------------------------------------------

    def process(self, pid: bytes) -> TrackId:
        """The process of a pid as it stands in the file."""
        track = self._processes.get(pid)
        if track is None:
            same = self._processes.get(_spelled(pid))
            track = self.new_process(_number_or_text(pid)) if same is None else same
            self._processes[pid] = self._processes[_spelled(pid)] = track
        return track

    def thread(self, pid: bytes, tid: bytes) -> TrackId:
        """The thread of a pid and tid as they stand in the file."""
        return self._threads[pid, tid]

    def _declare_thread(self, pid: bytes, tid: bytes) -> TrackId:
        key = _spelled(pid), _spelled(tid)
        if key != (pid, tid):
            return self._threads[key]
        return self.new_thread(self.process(pid), _number_or_text(pid), _number_or_text(tid))

    def new_process(self, pid: int | str) -> TrackId:
        """The track for a pid that was not seen before; texts are names."""
        return self.out.process(pid=pid) if isinstance(pid, int) else self.out.process(pid)

    def new_thread(self, process: TrackId, pid: int | str, tid: int | str) -> TrackId:
        """The track for a tid that was not seen before in its process."""
        return self.out.thread(process, tid) if isinstance(tid, int) else self.out.thread(process, None, tid)

    def place(self, event: Event) -> TrackId:
        """The thread that an event stands on."""
        return self.thread(bytes(event.pid), bytes(event.tid))

    def track_of(self, pid: bytes, tid: bytes, category: str, is_flow_end: bool) -> int:
        """The track of a plain event or of a step of a flow, or a placeholder of `flows` for it."""
        del category, is_flow_end
        return self.thread(pid, tid)

    def prepare(self, event: Event) -> None:
        """Change what an event of the importer's tool says wrongly; plain ones of the scanner do not need it."""

    def watch(self, rows: Rows, row: int, number: int) -> None:
        """See a plain event with one of the watched names; it will become a row in any case."""

    def global_track(self) -> TrackId:
        """The track for what concerns the whole trace."""
        if self._global == NO_TRACK:
            self._global = self.out.track("Global events")
        return self._global

    # -- args -------------------------------------------------------------------------------------------------

    def args(self, event: Event, number: int, used: Iterable[str] = ()) -> bytes:
        """The args of an event, with all of its fields that have no other place in the trace."""
        args = bytes(event.args)
        if args[:1] != b"{":
            if args not in (b"", b"null"):
                self.out.problem(BAD_ARGS, number)
                args = b'{"args":' + args + b"}"
            else:
                args = b""
        args = compact(flatten(args))
        more = {key: Raw(flatten(bytes(raw))) for key, raw in (event.extra or {}).items() if key not in used}
        if event.id is not ABSENT and "id" not in used:
            more["id"] = event.id
        return join_args(args, msgspec.json.encode(more)) if more else args

    def members(self, event: Event) -> dict[str, Any]:
        """The args of an event, decoded."""
        raw = bytes(event.args)
        members = decode_json(raw) if raw[:1] == b"{" else None
        return members if isinstance(members, dict) else {}

    def extra(self, event: Event, key: str) -> bytes:
        """A rare field of an event as it stands in the file, or nothing."""
        return bytes(event.extra[key]) if event.extra and key in event.extra else b""

    # -- phases -----------------------------------------------------------------------------------------------

    def complete(self, event: Event, ts: int, number: int) -> None:
        """X: a slice with a duration."""
        args = self.args(event, number, ("bind_id", "flow_in", "flow_out"))
        try:
            dur = self.time(bytes(event.dur))
        except ValueError as error:
            missing = event.dur is ABSENT or bytes(event.dur) == b"null"
            self.out.problem(NO_DURATION if missing else BAD_DURATION, number, f"{event.name!r}: {error}")
            dur, args = 0, join_args(args, {"unfinished": True})
        track = self.place(event)
        row = self.out.slice(track, ts, dur, event.name, event.cat, args, number)
        self.out.balance.written += 1
        self._flow_fields(event, ts, number, track, row)

    def begin(self, event: Event, ts: int, number: int) -> None:
        """B: the begin of a slice on its thread."""
        track = self.place(event)
        args = self.args(event, number, ("bind_id", "flow_in", "flow_out"))
        self.out.begin(track, ts, event.name, event.cat, args, number)
        self._flow_fields(event, ts, number, track)

    def end(self, event: Event, ts: int, number: int) -> None:
        """E: the end of a slice on its thread."""
        self.out.end(self.place(event), ts, event.name, self.args(event, number), number)

    def instant(self, event: Event, ts: int, number: int) -> None:
        """i, I, R: a point in time of a thread, a process or the whole trace."""
        if event.s == "g":
            track = self.global_track()
        elif event.s == "p":
            track = self.process(bytes(event.pid))
        else:
            track = self.place(event)
        self.out.instant(track, ts, event.name, event.cat, self.args(event, number), number)
        self.out.balance.written += 1

    def counter(self, event: Event, ts: int, number: int) -> None:
        """C: one value for each series in the args."""
        values = self.values(event, number)
        written = [
            self.out.counter(self.counter_track(event, series), ts, value, number) for series, value in values.items()
        ]
        if values:
            self.out.count_values(any(written), not any(written))

    def values(self, event: Event, number: int) -> dict[str, float]:
        """The numbers of a counter event by series; an event without any is skipped here."""
        values: dict[str, float] = {}
        for series, value in self.members(event).items():
            number_value = _number(value)
            if number_value is None:
                empty = value is None or value == "NaN"
                self.out.problem(NO_NUMBER if empty else BAD_VALUE, number, f"{event.name} {series}: {str(value)[:40]}")
            else:
                values[series] = number_value
        if not values:
            self.out.skip(NO_VALUE, number, repr(event.name))
        return values

    def counter_track(self, event: Event, series: str) -> TrackId:
        """The track of one series of a counter: named as the counter if the series adds nothing to it."""
        key = (bytes(event.pid), event.name, bytes(event.id), series)
        track = self._counters.get(key)
        if track is None:
            name = event.name + (f"[{text_of(bytes(event.id))}]" if event.id is not ABSENT else "")
            if series not in ("value", event.name, ""):
                name = f"{name} {series}"
            track = self._counters[key] = self.out.counter_track(name, self.process(bytes(event.pid)))
        return track

    def asynchronous(self, event: Event, ts: int, number: int) -> None:
        """Events that belong together by an id and not by their thread: async, contexts, objects."""
        identity = self._async_id(event)
        if identity is None and event.ph == "n":
            self.instant(event, ts, number)
            return
        if identity is None:
            self.out.skip(NO_ID, number, f"{event.ph} {event.name!r}")
            return
        track = self.async_track(event, *identity)
        args = self.args(event, number, ("id", "id2", "scope", "bind_id", "flow_in", "flow_out"))
        kind = _ASYNC_PHASES[event.ph]
        if kind == "begin":
            self.out.begin(track, ts, event.name, event.cat, args, number)
            self._flow_fields(event, ts, number, track)
        elif kind == "end":
            self.out.end(track, ts, event.name, args, number)
        else:
            step = self.members(event).get("step") if kind == "step" else None
            name = f"{event.name}: {step}" if step is not None else event.name
            self.out.instant(track, ts, name, event.cat, args, number)
            self.out.balance.written += 1

    def _async_id(self, event: Event) -> tuple[bytes, bytes] | None:
        """The pid and the id that an async event is known by; the pid is empty for an id of the whole trace."""
        if event.id is not ABSENT:
            return _spelled(bytes(event.pid)), _spelled(bytes(event.id))
        raw = self.extra(event, "id2")
        members = _decode_object(raw) if raw[:1] == b"{" else {}
        if "global" in members:
            return b"", _spelled(bytes(members["global"]))
        return (_spelled(bytes(event.pid)), _spelled(bytes(members["local"]))) if "local" in members else None

    def async_track(self, event: Event, pid: bytes, identity: bytes) -> TrackId:
        """The track of one id. Those of one name share lanes later, where they do not overlap."""
        key = (pid, event.cat, text_of(self.extra(event, "scope")), identity)
        track = self._async.get(key)
        if track is None:
            track = self._async[key] = self.out.track(event.name, self.process(bytes(event.pid)))
            self.out.track_info(track).shares_lanes = True
        return track

    def flow(self, event: Event, ts: int, number: int) -> None:
        """s, t, f: a step of a flow, bound to a slice of its thread."""
        if event.id is ABSENT:
            self.out.skip(NO_ID, number, f"{event.ph} {event.name!r}")
            return
        key = (event.cat, event.name, bytes(event.id).strip(b'"'))
        to_next = event.ph == "f" and event.bp != "e"
        track = self.track_of(bytes(event.pid), bytes(event.tid), event.cat, event.ph == "f")
        self.flows.add(key, event.ph, track, ts, number, to_next=to_next)

    def _flow_fields(self, event: Event, ts: int, number: int, track: TrackId, row: int = -1) -> None:
        """flow_in and flow_out of a slice: it takes part in the flow of its bind_id."""
        bind = self.extra(event, "bind_id")
        if not bind:
            return
        comes, goes = (self.extra(event, key) == b"true" for key in ("flow_in", "flow_out"))
        if comes or goes:
            phase = "t" if comes and goes else "s" if goes else "f"
            self.flows.add(("", "", bind.strip(b'"')), phase, track, ts, number, row=row, counts=False)

    def sample(self, event: Event, ts: int, number: int) -> None:
        """P: what a thread was doing, as a call stack if the event has one."""
        frame = event.extra["sf"] if event.extra and "sf" in event.extra else ABSENT
        weight = _number(decode_json(self.extra(event, "weight") or b"1"))
        if weight is None or not 1 <= abs(weight) < 2**63:
            weight = 1
        cpu = _number(decode_json(self.extra(event, "cpu") or b"-1"))
        on_cpu = int(cpu) if cpu is not None and cpu >= 0 else NO_CPU
        self._samples.append((ts, self.place(event), number, event.name, frame, int(weight), on_cpu))
        self.out.balance.written += 1

    def _stack(self, frame: str, frames: dict[str, Any], known: dict[str, StackId]) -> StackId | None:
        """The stack that ends in a frame of the `stackFrames` table."""
        chain: dict[str, None] = {}
        last = frame
        while last in frames and last not in known and last not in chain:
            chain[last] = None
            last = str(frames[last].get("parent", ""))
        for name in reversed(chain):
            entry = frames[name]
            parent = known.get(str(entry.get("parent", "")), StackId(-1))
            known[name] = self.out.frame(str(entry.get("name", "")), str(entry.get("category", "")), parent)
        return known.get(frame)

    # -- facts ------------------------------------------------------------------------------------------------

    def metadata(self, event: Event, number: int) -> None:
        """M: names and order of processes and threads; anything else is a fact about the trace."""
        args = self.members(event)
        self.out.balance.merged["metadata"] += 1
        if event.name == "process_name":
            self.out.track_info(self.process(bytes(event.pid))).name = _label(args.get("name"))
        elif event.name == "thread_name":
            self.out.track_info(self.place(event)).name = _label(args.get("name"))
        elif event.name == "process_labels":
            labels = _label(args.get("labels"))
            self.out.track_info(self.process(bytes(event.pid))).labels = (labels,) if labels else ()
        elif event.name == "process_sort_index":
            self.out.track_info(self.process(bytes(event.pid))).rank = _rank(args.get("sort_index"))
        elif event.name == "thread_sort_index":
            self.out.track_info(self.place(event)).rank = _rank(args.get("sort_index"))
        else:
            place = f"pid {_number_or_text(bytes(event.pid))}"
            if event.tid is not ABSENT:
                place += f", tid {_number_or_text(bytes(event.tid))}"
            self.out.metadata(f"{event.name} ({place})", args)

    def global_fact(self, event: Event, number: int) -> None:
        """v, V, c: memory dumps and clock marks, which are kept as they are."""
        kind = "clock_sync" if event.ph == "c" else "memory_dump"
        fact = {"name": event.name, "ts": bytes(event.ts).decode(), "args": self.members(event)}
        self.out.metadata(f"{kind} (event {number})", fact)
        self.out.balance.kept["memory dumps and clock marks kept as metadata"] += 1


def _with_room(column: I64, count: int) -> I64:
    if count <= len(column):
        return column
    return np.append(column, np.full(max(count - len(column), len(column)), _UNKNOWN))


def _spelled(raw: bytes) -> bytes:
    """One spelling for a pid, tid or id: 7 and "7" are the same."""
    return raw[1:-1] if raw[:1] == b'"' and raw[1:-1].isdigit() else raw


def _number_or_text(raw: bytes) -> int | str:
    """A pid or tid: a whole number if it is one, also inside a string."""
    text = text_of(raw)
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= len(str(LIMIT_NS)) + 1 else text


def _number(value: object) -> float | None:
    """The number that a counter value is, also as text; an int stays exact."""
    if isinstance(value, str):
        value = number_of(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _LARGEST else None


def _rank(value: object) -> int | None:
    return value if isinstance(value, int) and value in _INT32 else None


def _label(value: object) -> str:
    return "" if value is None else str(value)
