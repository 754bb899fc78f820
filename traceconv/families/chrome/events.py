"""Read the phases of the Trace Event Format into the builder.

The importers of the family (any Chrome trace, ONNX Runtime, MXNet, PyTorch) share this class; each overrides the
methods where its tool differs: the meaning of pids and tids, names and args.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw

from traceconv.families.chrome.event import (
    ABSENT,
    Empties,
    Event,
    Known,
    Rows,
    RowScanner,
    Values,
    compact,
    decode_event,
    extra_of,
    members_of,
    text_of,
)
from traceconv.families.chrome.flows import FlowSteps
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.io.shown import Counted
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.columns import I32, I64, ByKey, utf8
from traceconv.model.diagnostics import METADATA, absent, lost, repaired, skipped
from traceconv.model.numbers import LIMIT_NS, US, decode_json, flatten, number_of, parse_ns, whole_of, whole_or_text
from traceconv.model.trace import NO_CPU, StackId
from traceconv.model.track_table import NO_TRACK, TrackId

DUMPS_AND_MARKS = Counted("memory dump or clock mark kept as metadata", "memory dumps and clock marks kept as metadata")

BAD_TIME = lost(
    "chrome.bad_time",
    "an event has no time that can be read, or one beyond 146 years (in ns? -O ts_unit=ns), and was skipped",
)
BAD_DURATION = repaired(
    "chrome.bad_duration",
    "the duration of a complete event cannot be read: drawn with length 0 and marked `unfinished`, the value is kept "
    "in the args",
)
NO_DURATION = absent(
    "chrome.no_duration", "a complete event has no duration: drawn with length 0 and marked `unfinished`"
)
UNKNOWN_PHASE = lost("chrome.unknown_phase", "an event has a phase that the format does not know")
EMPTY_EVENT = skipped(
    "chrome.empty_event", "empty objects carry no data; some writers put one after the last event", quiet=True
)
NO_VALUE = absent("chrome.counter_without_value", "a counter event holds no number")
NO_NUMBER = absent("chrome.empty_counter_value", "one series of a counter event is null or NaN: nothing was measured")
BAD_VALUE = lost("chrome.bad_counter_value", "one series of a counter event is not a number")
NO_ID = lost("chrome.no_id", "an event of a kind that is matched by id has no id")
BAD_ARGS = repaired("chrome.bad_args", "args that are not a JSON object were kept under the key `args`")

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_ASYNC_PHASES = {"b": "begin", "e": "end", "n": "instant", "S": "begin", "F": "end", "T": "step", "p": "step"}
_ASYNC_PHASES |= {"(": "begin", ")": "end", "N": "begin", "D": "end", "O": "instant"}
_COMPLETE, _COUNTER = b"XC"
_BEGINS, _ENDS = list(b"BbS"), list(b"EeF")
_INSTANTS = list(b"iIR")
_FLOW_PHASES = _FLOW_START, _FLOW_STEP, _FLOW_END = tuple(b"stf")
_UNKNOWN = np.iinfo(np.int32).min
_MAX_TIME_TEXT = 22
_SURE_TIME_TEXT = 16  # a time with fewer characters is in range


class ChromeEvents:
    """Adds the events of one trace to the tables; ts and dur count 10**exponent ns, microseconds by the format."""

    #: The names of plain events that are passed to `watch`.
    watched_names: frozenset[str] = frozenset()

    def __init__(self, out: Builder, exponent: int = US) -> None:
        self.out = out
        self.flows = FlowSteps()
        self._exponent = exponent
        self._seen = 0
        self._rows = RowAdder(self)
        self._processes: dict[bytes, TrackId] = {}
        self._threads, self._async, self._counters = ByKey(), ByKey(), ByKey()  # tracks; threads by `thread_key`
        self._global = NO_TRACK
        self._samples = Samples(out, self.place)
        self._handlers: dict[str, Callable[[Event, int, int], None]] = {
            "X": self.complete,
            "B": self.begin,
            "E": self.end,
            "i": self.instant,
            "I": self.instant,
            "R": self.instant,
            "C": self.counter,
            "P": self._samples.add,
            "s": self.flow,
            "t": self.flow,
            "f": self.flow,
            **dict.fromkeys(_ASYNC_PHASES, self.asynchronous),
        }

    # -- reading ----------------------------------------------------------------------------------------------

    def add(self, batch: list[Event]) -> None:
        """Add the events of a batch, in file order."""
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
        """Add all events of a trace; plain ones are added as columns."""
        for batch in reader.rows(self._exponent):
            if isinstance(batch, Rows):
                self._rows.add(batch, self._seen)
                self._seen += len(batch)
            else:
                for event in batch:
                    self.prepare(event)
                self.add(batch)

    def time(self, raw: bytes) -> int:
        """Return the ns of a ts or dur of the file, exactly. Raises ValueError if it is not a time."""
        if self._exponent == US and len(raw) < _MAX_TIME_TEXT:
            try:  # nearly all writers print microseconds with three decimals or with none: 12.345 and 12
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

    def dispatch(self, event: Event, number: int) -> None:
        """Add one event of any phase; `number` is its position in the file, from 1."""
        phase = event.ph
        if phase == "M":
            self.metadata(event, number)
        elif phase in ("v", "V", "c"):
            _note_metadata(self.out, event, number)
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
        """Resolve flows and samples after the last event; `frames` are the `stackFrames` of the trace, by id."""
        self.flows.resolve(self.out)
        self._samples.write(frames)

    # -- tracks -----------------------------------------------------------------------------------------------

    def process(self, pid: bytes) -> TrackId:
        """Return the track of the process of an undecoded pid."""
        track = self._processes.get(pid)
        if track is None:
            same = self._processes.get(_spelled(pid))
            track = self.new_process(_number_or_text(pid)) if same is None else same
            self._processes[pid] = self._processes[_spelled(pid)] = track
        return track

    def thread(self, pid: bytes, tid: bytes) -> TrackId:
        """Return the track of the thread of an undecoded pid and tid."""
        key = thread_key(pid, tid)
        track = self._threads.get(key)
        if track < 0:
            track = self._declare_thread(pid, tid)
            self._threads.put(key, track)
        return TrackId(track)

    def known_thread(self, pid: bytes, tid: bytes) -> TrackId | None:
        """Return the track of a thread if it was met before, under this spelling."""
        track = self._threads.get(thread_key(pid, tid))
        return TrackId(track) if track >= 0 else None

    def _declare_thread(self, pid: bytes, tid: bytes) -> TrackId:
        spelled = _spelled(pid), _spelled(tid)
        if spelled != (pid, tid):
            return self.thread(*spelled)
        return self.new_thread(self.process(pid), _number_or_text(pid), _number_or_text(tid))

    def new_process(self, pid: int | str) -> TrackId:
        """Declare the track of a new pid; a text is its name."""
        return self.out.tracks.process(pid=pid) if isinstance(pid, int) else self.out.tracks.process(pid)

    def new_thread(self, process: TrackId, pid: int | str, tid: int | str) -> TrackId:
        """Declare the track of a new tid of a process."""
        return (
            self.out.tracks.thread(process, tid) if isinstance(tid, int) else self.out.tracks.thread(process, None, tid)
        )

    def place(self, event: Event) -> TrackId:
        return self.thread(bytes(event.pid), bytes(event.tid))

    def track_of(self, pid: bytes, tid: bytes, category: str, flow: str) -> int:
        """Return the track of a plain event, or that of a step of a flow or a placeholder of `flows` for it.

        `flow` is `f` for the end of a flow, `s` for another step of one, empty for an event that is none.
        """
        del category, flow
        return self.thread(pid, tid)

    def prepare(self, event: Event) -> None:
        """Correct an event of the tool before it is read; for plain events there is `rows_to_leave`."""

    def rows_to_leave(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Correct the columns of plain events of the tool; return which events are dispatched one by one instead."""
        return np.zeros(len(rows), bool)

    def watch(self, pids: list[bytes], ts: list[int], args: list[bytes], numbers: list[int]) -> None:
        """Look at plain instants with args and a watched name, in file order, in addition to their rows."""

    # -- phases -----------------------------------------------------------------------------------------------

    def complete(self, event: Event, ts: int, number: int) -> None:
        """Read X: a slice with a duration."""
        args = args_of(self.out, event, number, ("bind_id", "flow_in", "flow_out"))
        try:
            dur = self.time(bytes(event.dur))
        except ValueError as error:
            missing = event.dur is ABSENT or bytes(event.dur) == b"null"
            self.out.problem(NO_DURATION if missing else BAD_DURATION, number, f"{event.name!r}: {error}")
            recorded = {} if missing else {"recorded_dur": bytes(event.dur).decode("utf-8", "replace").strip('"')}
            dur, args = 0, join_args(args, {"unfinished": True} | recorded)
        track = self.place(event)
        row = self.out.slice(track, ts, dur, event.name, event.cat, args, number)
        self.out.balance.written += 1
        _add_flow_fields(self.flows, event, ts, number, track, row)

    def begin(self, event: Event, ts: int, number: int) -> None:
        """Read B: the start of a slice on its thread."""
        track = self.place(event)
        args = args_of(self.out, event, number, ("bind_id", "flow_in", "flow_out"))
        self.out.begin(track, ts, event.name, event.cat, args, number)
        _add_flow_fields(self.flows, event, ts, number, track)

    def end(self, event: Event, ts: int, number: int) -> None:
        """Read E: the end of a slice on its thread."""
        self.out.end(self.place(event), ts, event.name, args_of(self.out, event, number), number)

    def instant(self, event: Event, ts: int, number: int) -> None:
        """Read i, I, R: an instant of a thread, a process or the whole trace."""
        if event.s == "g":
            if self._global == NO_TRACK:
                self._global = self.out.tracks.add("Global events")
            track = self._global
        elif event.s == "p":
            track = self.process(bytes(event.pid))
        else:
            track = self.place(event)
        self.out.instant(track, ts, event.name, event.cat, args_of(self.out, event, number), number)
        self.out.balance.written += 1

    def counter(self, event: Event, ts: int, number: int) -> None:
        """Read C: one value for each series in the args."""
        values = values_of(self.out, event, number)
        written = [
            self.out.counter(self.counter_track(event, series), ts, value, number) for series, value in values.items()
        ]
        if values:
            self.out.count_values(any(written), not any(written))

    def counter_track(self, event: Event, series: str) -> TrackId:
        """Return the track of one series of a counter: named as the counter if the series adds nothing to it."""
        process = self.process(bytes(event.pid))
        name = event.name
        key = utf8(f"{process}\0{len(name)}\0{name}{series}\0")
        if event.id is not ABSENT:
            key += bytes(event.id)
        track = self._counters.get(key)
        if track < 0:
            name += f"[{text_of(bytes(event.id))}]" if event.id is not ABSENT else ""
            if series not in ("value", event.name, ""):
                name = f"{name} {series}"
            track = self.out.tracks.counter(name, process)
            self._counters.put(key, track)
        return TrackId(track)

    def asynchronous(self, event: Event, ts: int, number: int) -> None:
        """Read events that are grouped by an id instead of their thread: async events, contexts, objects."""
        identity = _async_id(event)
        if identity is None and event.ph == "n":
            self.instant(event, ts, number)
            return
        if identity is None:
            self.out.skip(NO_ID, number, f"{event.ph} {event.name!r}")
            return
        pid, spelled = identity
        scope = text_of(extra_of(event, "scope"))
        track = self.async_track(bytes(event.pid), pid, spelled, event.cat, event.name, scope)
        args = args_of(self.out, event, number, ("id", "id2", "scope", "bind_id", "flow_in", "flow_out"))
        kind = _ASYNC_PHASES[event.ph]
        if kind == "begin":
            self.out.begin(track, ts, event.name, event.cat, args, number)
            _add_flow_fields(self.flows, event, ts, number, track)
        elif kind == "end":
            self.out.end(track, ts, event.name, args, number)
        else:
            step = members_of(event).get("step") if kind == "step" else None
            name = f"{event.name}: {step}" if step is not None else event.name
            self.out.instant(track, ts, name, event.cat, args, number)
            self.out.balance.written += 1

    def async_track(self, process: bytes, pid: bytes, identity: bytes, category: str, name: str, scope: str) -> TrackId:
        """Return the track of an id, which the first event names.

        Tracks of equal name share lanes later, where they do not overlap. `pid` is empty for ids of the whole trace.
        """
        key = b"%b\0%b\0%d\0%b%b" % (pid, identity, len(category), utf8(category), utf8(scope))
        track = self._async.get(key)
        if track < 0:
            track = self.out.tracks.add(name, self.process(process), shares_lanes=True)
            self._async.put(key, track)
        return TrackId(track)

    def flow(self, event: Event, ts: int, number: int) -> None:
        """Read s, t, f: a step of a flow, bound to a slice of its thread."""
        if event.id is ABSENT:
            self.out.skip(NO_ID, number, f"{event.ph} {event.name!r}")
            return
        key = (event.cat, event.name, bytes(event.id).strip(b'"'))
        to_next = event.ph == "f" and event.bp != "e"
        track = self.track_of(bytes(event.pid), bytes(event.tid), event.cat, "f" if event.ph == "f" else "s")
        self.flows.add(key, event.ph, track, ts, number, to_next=to_next)

    # -- metadata ------------------------------------------------------------------------------------------------

    def metadata(self, event: Event, number: int) -> None:
        """Read M: names and order of processes and threads; others are kept as metadata."""
        args = members_of(event)
        self.out.balance.merged[METADATA] += 1
        if event.name == "process_name":
            self.out.tracks.rename(self.process(bytes(event.pid)), _label(args.get("name")))
        elif event.name == "thread_name":
            self.out.tracks.rename(self.place(event), _label(args.get("name")))
        elif event.name == "process_labels":
            labels = _label(args.get("labels"))
            self.out.tracks[self.process(bytes(event.pid))].labels = (labels,) if labels else ()
        elif event.name == "process_sort_index":
            self.out.tracks[self.process(bytes(event.pid))].rank = _rank(args.get("sort_index"))
        elif event.name == "thread_sort_index":
            self.out.tracks[self.place(event)].rank = _rank(args.get("sort_index"))
        else:
            place = f"pid {_number_or_text(bytes(event.pid))}"
            if event.tid is not ABSENT:
                place += f", tid {_number_or_text(bytes(event.tid))}"
            self.out.metadata[f"{event.name} ({place})"] = args


def thread_key(pid: bytes, tid: bytes) -> bytes:
    """Return an undecoded pid and tid as one key: there may be millions, and a tuple of both takes twice the memory."""
    return b"%b\0%b" % (pid, tid)


def pid_and_tid(key: bytes) -> tuple[bytes, bytes]:
    """Return the pid and tid of a `thread_key`; JSON has no NUL inside a value."""
    pid, _, tid = key.partition(b"\0")
    return pid, tid


def _spelled(raw: bytes) -> bytes:
    """Return a pid, tid or id in its canonical form, since 7 and "7" are the same."""
    return raw[1:-1] if raw[:1] == b'"' and raw[1:-1].isdigit() else raw


def _number_or_text(raw: bytes) -> int | str:
    """Return a pid or tid as an integer if it is one, also inside a string; else as text."""
    number = whole_of(raw)
    return whole_or_text(text_of(raw)) if number is None else number


def _rank(value: object) -> int | None:
    return value if isinstance(value, int) and -(2**31) <= value < 2**31 else None


def _label(value: object) -> str:
    return "" if value is None else str(value)


def args_of(out: Builder, event: Event, number: int, used: Iterable[str] = ()) -> bytes:
    """Return the args of an event, with its fields that have no other place in the trace."""
    args = bytes(event.args)
    if args[:1] != b"{":
        if args not in (b"", b"null"):
            out.problem(BAD_ARGS, number)
            args = b'{"args":' + args + b"}"
        else:
            args = b""
    args = compact(flatten(args))
    more = {key: Raw(flatten(bytes(raw))) for key, raw in (event.extra or {}).items() if key not in used}
    if event.id is not ABSENT and "id" not in used:
        more["id"] = event.id
    return join_args(args, msgspec.json.encode(more)) if more else args


def values_of(out: Builder, event: Event, number: int) -> dict[str, float]:
    """Return the values of a counter event by series; an event without any is counted as skipped."""
    values: dict[str, float] = {}
    for series, value in members_of(event).items():
        number_value = number_in(value)
        if number_value is None:
            empty = value is None or value == "NaN"
            out.problem(NO_NUMBER if empty else BAD_VALUE, number, f"{event.name} {series}: {str(value)[:40]}")
        else:
            values[series] = number_value
    if not values:
        out.skip(NO_VALUE, number, repr(event.name))
    return values


def _async_id(event: Event) -> tuple[bytes, bytes] | None:
    """Return the pid and the id of an async event; the pid is b"" for an id of the whole trace."""
    if event.id is not ABSENT:
        return _spelled(bytes(event.pid)), _spelled(bytes(event.id))
    raw = extra_of(event, "id2")
    members = _decode_object(raw) if raw[:1] == b"{" else {}
    if "global" in members:
        return b"", _spelled(bytes(members["global"]))
    return (_spelled(bytes(event.pid)), _spelled(bytes(members["local"]))) if "local" in members else None


def _add_flow_fields(flows: FlowSteps, event: Event, ts: int, number: int, track: TrackId, row: int = -1) -> None:
    """Add the flow of the bind_id of a slice, by its flow_in and flow_out."""
    bind = extra_of(event, "bind_id")
    if not bind:
        return
    comes, goes = (extra_of(event, key) == b"true" for key in ("flow_in", "flow_out"))
    if comes or goes:
        phase = "t" if comes and goes else "s" if goes else "f"
        flows.add(("", "", bind.strip(b'"')), phase, track, ts, number, row=row, counts=False)


def _note_metadata(out: Builder, event: Event, number: int) -> None:
    """Keep memory dumps and clock marks (phases v, V, c) as metadata."""
    kind = "clock_sync" if event.ph == "c" else "memory_dump"
    fact = {"name": event.name, "ts": bytes(event.ts).decode(), "args": members_of(event)}
    out.metadata[f"{kind} (event {number})"] = fact
    out.balance.kept[DUMPS_AND_MARKS] += 1


# -- columns -----------------------------------------------------------------------------------------------------------


class RowAdder:
    """Adds the rows of a scanner to the tables; events that are not plain are dispatched one by one."""

    def __init__(self, events: ChromeEvents) -> None:
        self._events = events
        # By numbers of the RowScanner: the known texts, their interned strings, the watched ones, the tracks of stands.
        self._texts = 0
        self._text_strings = self._stand_tracks = self._series_tracks = np.empty(0, np.int32)
        self._watched_texts: list[int] = []

    def add(self, rows: Rows, count: int) -> None:
        """Add rows, with `count` events before them. Every event of a large file passes through here."""
        is_left = self._events.rows_to_leave(rows)
        rows.phase[is_left] = rows.args_len[is_left] = 0
        is_counter = rows.phase == _COUNTER
        values = rows.scanner.values(rows, np.flatnonzero(is_counter)) if np.any(is_counter) else None
        self._look(rows, count, values)
        origin = np.arange(count + 1, count + 1 + len(rows))
        has_args = np.any(rows.args_len[~is_counter])  # those of counters are their values
        args_start = self._events.out.tables.args_part(rows.args if has_args else b"")
        args_at = np.where(rows.args_len, rows.args_at + args_start, 0)
        is_flow = (rows.phase == _FLOW_START) | (rows.phase == _FLOW_STEP) | (rows.phase == _FLOW_END)
        is_slice = rows.phase == _COMPLETE
        is_begin: Any = np.isin(rows.phase, _BEGINS)
        is_mark = is_begin | np.isin(rows.phase, _ENDS)
        is_instant = (rows.phase != 0) & ~is_slice & ~is_flow & ~is_mark & ~is_counter
        for chosen in (is_slice, is_instant, is_mark):
            track, ts, *others = (
                self._stand_tracks[rows.stand[chosen]],
                rows.ts[chosen],
                self._text_strings[rows.name[chosen]],
                self._text_strings[rows.category[chosen]],
                args_at[chosen],
                rows.args_len[chosen].astype(np.int32),
                origin[chosen],
            )
            if chosen is is_slice:
                self._events.out.bulk.slice_rows(track, ts, rows.dur[chosen], *others)
            elif chosen is is_instant:
                self._events.out.bulk.instants(track, ts, *others)
            else:
                name, category, *rest = others
                begins = is_begin[chosen]
                category = np.where(begins, category, np.int32(0))
                self._events.out.bulk.begins_and_ends(track, ts, begins.astype(np.uint8), name, category, *rest)
        self._events.out.balance.written += int(np.count_nonzero(is_slice | is_instant))
        if np.any(is_flow):
            self._add_flows(rows, np.flatnonzero(is_flow), origin)
        if values is not None:
            self._add_values(rows, values, origin)

    def _look(self, rows: Rows, count: int, values: Values | None) -> None:
        """Read, in file order, the events that are not plain, have a new series, or are watched.

        New texts and stands get their numbers in that order, too: before each of these events, those before it.
        """
        scanner = rows.scanner
        self._make_room(scanner)
        new_series = self._new_series(rows, values) if values is not None else {}
        is_watched = np.zeros(len(rows), bool)
        for number in self._watched_texts:
            is_watched |= rows.name == number
        if np.any(is_watched):
            is_watched &= np.isin(rows.phase, _INSTANTS) & (rows.args_len > 0)
        is_looked = is_watched | (rows.phase == 0)
        is_looked[list(new_series)] = True
        looked = np.flatnonzero(is_looked)
        text_rows, texts = self._new_texts(rows)
        stand_rows, stands = self._new_stands(rows)
        last_texts, last_stands = (np.searchsorted(found, looked, "right") for found in (text_rows, stand_rows))
        watched: list[int] = []  # consecutive ones
        text = stand = 0
        columns = (looked, rows.phase[looked], is_watched[looked], last_texts, last_stands)
        for row, phase, is_watched_row, last_text, last_stand in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            has_new = last_text > text or last_stand > stand
            if watched and (has_new or not phase or row in new_series):
                self._watch(rows, watched, count)
                watched = []
            if has_new:
                self._meet(scanner, texts[text:last_text], stands[stand:last_stand])
                text, stand = last_text, last_stand
            if not phase:
                event = decode_event(rows.raw(row))
                self._events.prepare(event)
                self._events.dispatch(event, count + row + 1)
            elif row in new_series:
                self._meet_series(rows, row, new_series[row])
            if is_watched_row:
                watched.append(row)
        if watched:
            self._watch(rows, watched, count)
        self._meet(scanner, texts[text:], stands[stand:])

    def _watch(self, rows: Rows, watched: list[int], count: int) -> None:
        """Let the format look at rows, with `count` events before all rows."""
        stands = rows.stand[watched].tolist()
        pid_of = {stand: rows.scanner.pid(stand) for stand in set(stands)}
        starts, ends = rows.args_at[watched], rows.args_at[watched] + rows.args_len[watched]
        args = [rows.args[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        self._events.watch(
            [pid_of[stand] for stand in stands], rows.ts[watched].tolist(), args, [count + row + 1 for row in watched]
        )

    def _make_room(self, scanner: RowScanner) -> None:
        """Extend the columns to all texts and stands that the scanner has seen."""
        known, count = self._texts, scanner.text_count
        watched = self._events.watched_names
        if watched:
            self._watched_texts += [n for n in range(known, count) if scanner.name(n) in watched]
        self._texts = count
        self._text_strings = _with_room(self._text_strings, count)
        self._stand_tracks = _with_room(self._stand_tracks, scanner.stand_count)

    def _new_texts(self, rows: Rows) -> tuple[npt.NDArray[np.intp], list[int]]:
        """Return the texts of plain events that no event had, in file order, and the row of each."""
        plain = np.flatnonzero((rows.phase != 0) & (rows.phase != _COUNTER) & ~np.isin(rows.phase, _FLOW_PHASES))
        # An event has its name before its category; that of an end says nothing.
        texts = np.column_stack((rows.name[plain], rows.category[plain])).ravel()
        is_new = self._text_strings[texts] == _UNKNOWN
        is_new[1::2] &= ~np.isin(rows.phase[plain], _ENDS)
        found = _firsts(texts, np.flatnonzero(is_new))
        return plain[found // 2], texts[found].tolist()

    def _new_stands(self, rows: Rows) -> tuple[npt.NDArray[np.intp], list[tuple[int, int]]]:
        """Return the stands of plain events that no event had, each with its first name, and the row of each."""
        plain = np.flatnonzero((rows.phase != 0) & (rows.phase != _COUNTER))
        plain = plain[self._stand_tracks[rows.stand[plain]] == _UNKNOWN]
        plain = _firsts(rows.stand, plain)
        return plain, [*zip(rows.stand[plain].tolist(), rows.name[plain].tolist(), strict=True)]

    def _meet(self, scanner: RowScanner, texts: list[int], stands: list[tuple[int, int]]) -> None:
        """Register new texts, and new stands with their first names."""
        tracks, strings = self._stand_tracks.data, self._text_strings.data
        for stand, name in stands:
            pid, tid, text, kind = scanner.stand(stand)
            if kind == "b":
                key = _spelled(pid), _spelled(tid), text, scanner.name(name)
                tracks[stand] = self._events.async_track(pid, *key, scope="")
            else:
                tracks[stand] = self._events.track_of(pid, tid, text, kind)
        for number, string in zip(texts, self._events.out.tables.numbers(scanner.names(texts)), strict=True):
            strings[number] = string

    def _new_series(self, rows: Rows, values: Values) -> dict[int, list[tuple[int, str]]]:
        """Return the number and key of each new series by the row of the counter."""
        self._series_tracks = _with_room(self._series_tracks, rows.scanner.series_count)
        new: dict[int, list[tuple[int, str]]] = {}
        unknown = np.flatnonzero(self._series_tracks[values.series] == _UNKNOWN)
        series, first = np.unique(values.series[unknown], return_index=True)
        for number, at in sorted(zip(series.tolist(), unknown[first].tolist(), strict=True), key=itemgetter(1)):
            new.setdefault(int(values.row[at]), []).append((number, values.key(rows, at)))
        return new

    def _meet_series(self, rows: Rows, row: int, series: Iterable[tuple[int, str]]) -> None:
        """Register the new series of a counter."""
        event = decode_event(rows.raw(row))
        self._events.prepare(event)
        for number, key in series:
            self._series_tracks[number] = self._events.counter_track(event, key)

    def _add_values(self, rows: Rows, values: Values, origin: I64) -> None:
        """Add the values of the counters that are plain."""
        kept = rows.phase[values.row] == _COUNTER
        row, series, value, is_integer, *_ = (column[kept] for column in values)
        out = self._events.out
        out.bulk.counters(self._series_tracks[series], rows.ts[row], value, is_integer, origin[row])
        out.count_values(int(np.count_nonzero(rows.phase == _COUNTER)), 0)

    def _add_flows(self, rows: Rows, chosen: I64, origin: I64) -> None:
        flows, name_of = self._events.flows, rows.scanner.name
        kinds: Known[tuple[int, int], int] = Known(lambda texts: flows.kind(*map(name_of, texts)))
        texts = zip(rows.category[chosen].tolist(), rows.name[chosen].tolist(), strict=True)
        to_next = (rows.phase[chosen] == _FLOW_END) & ~rows.is_enclosing[chosen]
        flows.extend(
            [kinds[pair] for pair in texts],
            flows.ids(rows.data, rows.id_at[chosen], rows.id_len[chosen]),
            rows.phase[chosen],
            self._stand_tracks[rows.stand[chosen]].astype(np.int64),
            rows.ts[chosen],
            origin[chosen],
            to_next,
        )


def _firsts(numbers: I64, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return those of some ascending rows at which a number stands for the first time among them."""
    if not len(rows):
        return rows
    first = np.empty(int(np.max(numbers[rows])) + 1, np.intp)
    first[numbers[rows[::-1]]] = rows[::-1]  # of equal places, the last one holds
    firsts: npt.NDArray[np.intp] = rows[first[numbers[rows]] == rows]
    return firsts


def _with_room(column: I32, count: int) -> I32:
    if count <= len(column):
        return column
    return np.append(column, np.full(max(count - len(column), len(column) // 2), _UNKNOWN, np.int32))


# -- samples -----------------------------------------------------------------------------------------------------------


def number_in(value: object) -> float | None:
    """Return the number in a counter value, which may be a text; integers stay exact."""
    if isinstance(value, str):
        value = number_of(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= sys.float_info.max else None


class Samples:
    """Collects samples, whose call stacks are known only at the end of the file; `place` returns the track of one."""

    def __init__(self, out: Builder, place: Callable[[Event], TrackId]) -> None:
        self._out, self._place = out, place
        self._samples: list[tuple[int, TrackId, int, str, Raw, int, int]] = []

    def add(self, event: Event, ts: int, number: int) -> None:
        """Read P: a sample of a thread, with a call stack if the event has one."""
        frame = event.extra["sf"] if event.extra and "sf" in event.extra else ABSENT
        weight = number_in(decode_json(extra_of(event, "weight") or b"1"))
        if weight is None or not 1 <= abs(weight) < 2**63:
            weight = 1
        cpu = number_in(decode_json(extra_of(event, "cpu") or b"-1"))
        on_cpu = int(cpu) if cpu is not None and cpu >= 0 else NO_CPU
        self._samples.append((ts, self._place(event), number, event.name, frame, int(weight), on_cpu))
        self._out.balance.written += 1

    def write(self, frames: dict[str, Any] | None) -> None:
        """Write all samples; `frames` are the `stackFrames` of the trace, by id."""
        stacks: dict[str, StackId] = {}
        frames = frames if isinstance(frames, dict) else {}
        frames = {key: entry for key, entry in frames.items() if isinstance(entry, dict)}
        for ts, track, number, name, raw, weight, cpu in self._samples:
            stack = self._stack(text_of(bytes(raw)), frames, stacks) if raw is not ABSENT else None
            stack = self._out.frame(name) if stack is None else stack
            self._out.sample(track, ts, stack, name, weight, number, cpu=cpu)

    def _stack(self, frame: str, frames: dict[str, Any], known: dict[str, StackId]) -> StackId | None:
        """Return the stack that ends in a frame of the `stackFrames` table."""
        chain: dict[str, None] = {}
        last = frame
        while last in frames and last not in known and last not in chain:
            chain[last] = None
            last = str(frames[last].get("parent", ""))
        for name in reversed(chain):
            entry = frames[name]
            parent = known.get(str(entry.get("parent", "")), StackId(-1))
            known[name] = self._out.frame(str(entry.get("name", "")), str(entry.get("category", "")), parent)
        return known.get(frame)
