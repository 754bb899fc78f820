"""Add scanned events, whose plain ones are columns already, to the tables of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceconv.families.chrome.event import Known, decode_event
from traceconv.families.chrome.rows import Rows, RowScanner
from traceconv.model.trace import I32, I64

if TYPE_CHECKING:
    from traceconv.families.chrome.events import ChromeEvents

_COMPLETE, _BEGIN, _END = b"XBE"
_INSTANTS = list(b"iIR")
_FLOW_PHASES = _FLOW_START, _FLOW_STEP, _FLOW_END = tuple(b"stf")
_UNKNOWN = np.iinfo(np.int32).min


class RowAdder:
    """Adds the rows of a scanner to the tables; events that are not plain are dispatched one by one."""

    def __init__(self, events: ChromeEvents) -> None:
        self._events = events
        # By numbers of the RowScanner: the known texts, their interned strings, the watched ones, the tracks of stands.
        self._texts = 0
        self._text_strings = self._stand_tracks = np.empty(0, np.int32)
        self._watched_texts: list[int] = []

    def add(self, rows: Rows, count: int) -> None:
        """Add rows, with `count` events before them. Every event of a large file passes through here."""
        self._look(rows, count)
        origin = np.arange(count + 1, count + 1 + len(rows))
        args_start = self._events.out.tables.args_part(rows.args)
        args_at = np.where(rows.args_len, rows.args_at + args_start, 0)
        is_flow = (rows.phase == _FLOW_START) | (rows.phase == _FLOW_STEP) | (rows.phase == _FLOW_END)
        is_slice = rows.phase == _COMPLETE
        is_mark = (rows.phase == _BEGIN) | (rows.phase == _END)
        is_instant = (rows.phase != 0) & ~is_slice & ~is_flow & ~is_mark
        for own in (is_slice, is_instant, is_mark):
            track, ts, *others = (
                self._stand_tracks[rows.stand[own]],
                rows.ts[own],
                self._text_strings[rows.name[own]],
                self._text_strings[rows.category[own]],
                args_at[own],
                rows.args_len[own].astype(np.int32),
                origin[own],
            )
            if own is is_slice:
                self._events.out.bulk.slice_rows(track, ts, rows.dur[own], *others)
            elif own is is_instant:
                self._events.out.bulk.instants(track, ts, *others)
            else:
                name, category, *rest = others
                is_begin = rows.phase[own] == _BEGIN
                category = np.where(is_begin, category, np.int32(0))
                self._events.out.bulk.begins_and_ends(track, ts, is_begin.astype(np.uint8), name, category, *rest)
        self._events.out.balance.written += int(np.count_nonzero(is_slice | is_instant))
        if np.any(is_flow):
            self._add_flows(rows, np.flatnonzero(is_flow), origin)

    def _look(self, rows: Rows, count: int) -> None:
        """Read, in file order, the events that are not plain, have a new text or stand, or are watched."""
        self._make_room(rows.scanner)
        is_watched = np.zeros(len(rows), bool)
        for number in self._watched_texts:
            is_watched |= rows.name == number
        if np.any(is_watched):
            is_watched &= np.isin(rows.phase, _INSTANTS) & (rows.args_len > 0)
        looked = np.flatnonzero(rows.is_fresh | is_watched | (rows.phase == 0))
        watched: list[int] = []  # consecutive ones
        for row, phase, is_fresh, is_one in zip(
            *(column.tolist() for column in (looked, rows.phase[looked], rows.is_fresh[looked], is_watched[looked])),
            strict=True,
        ):
            if watched and (is_fresh or not phase):
                self._watch(rows, watched, count)
                watched = []
            if not phase:
                event = decode_event(rows.raw(row))
                self._events.prepare(event)
                self._events.dispatch(event, count + row + 1)
            elif is_fresh:
                self._meet(rows, row)
            if is_one:
                watched.append(row)
        if watched:
            self._watch(rows, watched, count)

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
        known, count = self._texts, scanner.text_count()
        watched = self._events.watched_names
        if watched:
            self._watched_texts += [n for n in range(known, count) if scanner.name(n) in watched]
        self._texts = count
        self._text_strings = _with_room(self._text_strings, count)
        self._stand_tracks = _with_room(self._stand_tracks, scanner.stand_count())

    def _meet(self, rows: Rows, row: int) -> None:
        """Register the new texts and the new stand of an event."""
        stand, name, category = (int(column[row]) for column in (rows.stand, rows.name, rows.category))
        if self._stand_tracks[stand] == _UNKNOWN:
            self._stand_tracks[stand] = self._events.track_of(*rows.scanner.stand(stand))
        if rows.phase[row] not in _FLOW_PHASES:
            for number in (name,) if rows.phase[row] == _END else (name, category):
                if self._text_strings[number] != _UNKNOWN:
                    continue
                self._text_strings[number] = self._events.out.tables.string(rows.scanner.name(number))

    def _add_flows(self, rows: Rows, own: I64, origin: I64) -> None:
        flows, name_of = self._events.flows, rows.scanner.name
        kinds: Known[tuple[int, int], int] = Known(lambda texts: flows.kind(*map(name_of, texts)))
        texts = zip(rows.category[own].tolist(), rows.name[own].tolist(), strict=True)
        to_next = (rows.phase[own] == _FLOW_END) & ~rows.is_enclosing[own]
        flows.extend(
            [kinds[pair] for pair in texts],
            flows.ids(rows.data, rows.id_at[own], rows.id_len[own]),
            rows.phase[own],
            self._stand_tracks[rows.stand[own]].astype(np.int64),
            rows.ts[own],
            origin[own],
            to_next,
        )


def _with_room(column: I32, count: int) -> I32:
    if count <= len(column):
        return column
    return np.append(column, np.full(max(count - len(column), len(column) // 2), _UNKNOWN, np.int32))
