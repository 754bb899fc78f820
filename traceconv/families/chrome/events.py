"""Read the phases of the Trace Event Format into the builder.

The importers of the family (any Chrome trace, ONNX Runtime, MXNet, PyTorch) share this class; each overrides the
methods where its tool differs: the meaning of pids and tids, names and args.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Raw

from traceconv.families.chrome._row_adder import RowAdder
from traceconv.families.chrome._samples import Samples, number_in
from traceconv.families.chrome._times import Times
from traceconv.families.chrome.event import (
    ABSENT,
    Empties,
    Event,
    Known,
    compact,
    extra_of,
    members_of,
    text_of,
)
from traceconv.families.chrome.flows import FlowSteps
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.chrome.rows import Rows
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.counted import DUMPS_AND_MARKS, METADATA
from traceconv.model.diagnostics import absent, lost, repaired, skipped
from traceconv.model.json_values import MAX_DEPTH, flatten, may_be_deep
from traceconv.model.numbers import whole_of, whole_or_text
from traceconv.model.times import US
from traceconv.model.trace import I64, NO_TRACK, TrackId

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
_SHALLOW = 2 * MAX_DEPTH  # values with fewer bytes cannot be nested deeper


class _Columns(NamedTuple):
    """The columns of complete events that need no individual treatment; times in ns."""

    ts: Sequence[int] | I64
    dur: Sequence[int] | I64
    args: list[bytes]


class ChromeEvents:
    """Adds the events of one trace to the tables.

    Args:
        out: the builder.
        exponent: the unit of ts and dur as a power of ten of ns; microseconds by the format.
    """

    #: The names of plain events that are passed to `watch`.
    watched_names: frozenset[str] = frozenset()

    def __init__(self, out: Builder, exponent: int = US) -> None:
        self.out = out
        self.flows = FlowSteps()
        self._exponent = exponent
        self._times = Times(exponent)
        #: Converts a ts or dur of the file to ns. Raises ValueError if it is not a time.
        self.time = self._times.one
        self._seen = 0
        self._rows = RowAdder(self)
        self._processes: dict[bytes, TrackId] = {}
        self._threads: dict[bytes, TrackId] = {}  # by `thread_key`
        self._async: dict[tuple[bytes, str, str, bytes], TrackId] = {}
        self._counters: dict[tuple[bytes, str, bytes, str], TrackId] = {}
        self._global = NO_TRACK
        self._strings = Known(out.tables.string)
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
            elif isinstance(batch, Empties):
                self.add(batch)
            else:
                self.add_plain(batch)

    def add_plain(self, batch: list[Event]) -> None:
        """Add events that were read as objects."""
        for event in batch:
            self.prepare(event)
        absent = ABSENT
        plain = [event for event in batch if event.ph == "X" and event.extra is None and event.id is absent]
        columns = _columns_of(plain, self._times)
        if columns is None:
            for event in batch:
                self._seen += 1
                self.dispatch(event, self._seen)
            return
        thread, strings = self.thread, self._strings
        tracks: list[int] = []
        names: list[int] = []
        categories: list[int] = []
        origins: list[int] = []
        number = self._seen
        for event in batch:
            number += 1
            if event.ph == "X" and event.extra is None and event.id is absent:
                tracks.append(thread(bytes(event.pid), bytes(event.tid)))
                names.append(strings[event.name])
                categories.append(strings[event.cat])
                origins.append(number)
            else:
                self.dispatch(event, number)
        self._seen = number
        self.out.bulk.slices(tracks, columns.ts, columns.dur, names, categories, columns.args, origins)
        self.out.balance.written += len(plain)

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
        """Finish after the last event: resolve flows, asynchronous events and samples.

        Args:
            frames: the `stackFrames` of the trace, by id.
        """
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
        if track is None:
            track = self._threads[key] = self._declare_thread(pid, tid)
        return track

    def known_thread(self, pid: bytes, tid: bytes) -> TrackId | None:
        """Return the track of a thread if it was met before, under this spelling."""
        return self._threads.get(thread_key(pid, tid))

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
        """Return the track of the thread of an event."""
        return self.thread(bytes(event.pid), bytes(event.tid))

    def track_of(self, pid: bytes, tid: bytes, category: str, flow: str) -> int:
        """Return the track of a plain event, or that of a step of a flow or a placeholder of `flows` for it.

        Args:
            pid, tid, category: of the event.
            flow: `f` for the end of a flow, `s` for another step of one, empty for an event that is none.
        """
        del category, flow
        return self.thread(pid, tid)

    def prepare(self, event: Event) -> None:
        """Correct an event of the tool before it is read; plain events of the scanner do not need it."""

    def watch(self, pids: list[bytes], ts: list[int], args: list[bytes], numbers: list[int]) -> None:
        """Look at plain instants with args and a watched name, in file order, in addition to their rows.

        Args:
            pids: their processes, as they stand in the file.
            ts: their times, ns.
            args: a JSON object of each.
            numbers: their numbers in the file.
        """

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
        key = (bytes(event.pid), event.name, bytes(event.id), series)
        track = self._counters.get(key)
        if track is None:
            name = event.name + (f"[{text_of(bytes(event.id))}]" if event.id is not ABSENT else "")
            if series not in ("value", event.name, ""):
                name = f"{name} {series}"
            track = self._counters[key] = self.out.tracks.counter(name, self.process(bytes(event.pid)))
        return track

    def asynchronous(self, event: Event, ts: int, number: int) -> None:
        """Read events that are grouped by an id instead of their thread: async events, contexts, objects."""
        identity = _async_id(event)
        if identity is None and event.ph == "n":
            self.instant(event, ts, number)
            return
        if identity is None:
            self.out.skip(NO_ID, number, f"{event.ph} {event.name!r}")
            return
        track = self.async_track(event, *identity)
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

    def async_track(self, event: Event, pid: bytes, identity: bytes) -> TrackId:
        """Return the track of an id. Tracks of equal name share lanes later, where they do not overlap."""
        key = (pid, event.cat, text_of(extra_of(event, "scope")), identity)
        track = self._async.get(key)
        if track is None:
            track = self._async[key] = self.out.tracks.add(event.name, self.process(bytes(event.pid)))
            self.out.tracks[track].shares_lanes = True
        return track

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


def _columns_of(plain: list[Event], times: Times) -> _Columns | None:
    """Return the columns of complete events; None if one of them needs individual treatment."""
    args = [compact(memoryview(event.args)) for event in plain]
    for chunk in args:
        if chunk[:1] not in (b"{", b"") or (len(chunk) > _SHALLOW and may_be_deep(chunk)):
            return None
    try:
        ts = times.many([event.ts for event in plain])
        dur = times.many([event.dur for event in plain])
    except ValueError:
        return None
    return None if len(dur) and np.min(dur) < 0 else _Columns(ts, dur, args)
