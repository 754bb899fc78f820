"""Attach tables of sums to the recording that they summarise.

In a merge with exactly one input of a format that a table without times may summarise, the tracks of the table go under
the process of that input. Where each row describes one slice (a kernel that was measured by replay), the row becomes
args of that slice: the nth row of a name belongs to the nth slice of that name in order of launch, and only if there
are as many rows as slices. All other rows stay where they are, with a note.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from traceconv.io.shown import Counted
from traceconv.model.args import with_more_args
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.layout import renumbered, sort_events
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Instants, Slices, Trace, take
from traceconv.model.track_table import NO_TRACK, TrackId, TrackKind

COUNTS_DIFFER = declare(
    "merge.rows_and_slices_differ",
    ProblemKind.NOTED,
    "a name has more or fewer rows than slices, so it is not known which belong together: the rows stay in their table",
)

_ANONYMOUS = re.compile(r"\((?:anonymous namespace|unnamed)\)::|<unnamed>::")
_MANY_UNKNOWN = 0.8


def host_of(sources: Sequence[SourceInfo], index: int) -> int | None:
    """Return the only input that the totals of input `index` may summarise; None if there is none or more than one."""
    hosts = _possible_hosts(sources, index)
    return hosts[0] if len(hosts) == 1 else None


def _possible_hosts(sources: Sequence[SourceInfo], index: int) -> list[int]:
    """Return the inputs of the right format that are no totals themselves: a format may have recordings and totals."""
    formats = sources[index].belongs_to
    return [number for number, other in enumerate(sources) if other.format in formats and not other.belongs_to]


def join_totals(traces: Sequence[Trace]) -> list[Trace]:
    """Move rows that describe a slice of another trace into the args of that slice; return the traces."""
    joined = list(traces)
    sources = [trace.sources[0] for trace in traces]
    for index, source in enumerate(sources):
        host = host_of(sources, index)
        if host is not None:
            _note_unknown_names(joined[index], joined[host])
        if host is not None and source.join_category:
            joined[index], joined[host] = _join(joined[index], joined[host], source.join_category)
    return joined


def adopt_totals(trace: Trace) -> Trace:
    """Return the merged trace with each table of totals under the process of the input that it summarises."""
    parents: dict[int, TrackId] = {}
    for index, source in enumerate(trace.sources):
        if source.belongs_to:
            host = host_of(trace.sources, index)
            _note(trace.sources, index, host)
            if host is not None:
                parents[index] = _top_process(trace, host)
    if not parents:
        return trace
    kind, parent, source_of = (
        trace.tracks.column("kind"),
        trace.tracks.column("parent"),
        trace.tracks.column("source"),
    )
    is_top = (kind == TrackKind.TRACK) & (parent == NO_TRACK)
    for index, process in parents.items():
        parent[is_top & (source_of == index)] = process
    return _sources_last(trace.with_tables(tracks=trace.tracks.replaced(parent=parent)), list(parents))


def _sources_last(trace: Trace, last: list[int]) -> Trace:
    """Return the trace with the tracks of the inputs `last` behind all others, since parents come first."""
    ordered = renumbered(trace, np.argsort(np.isin(trace.tracks.column("source"), last), kind="stable"))
    return trace if ordered is trace else sort_events(ordered)


def _top_process(trace: Trace, source: int) -> TrackId:
    """Return the first process of an input; NO_TRACK if it has none: then a table is put beside its tracks."""
    kind, sources = trace.tracks.column("kind"), trace.tracks.column("source")
    own = np.flatnonzero((sources == source) & (kind == TrackKind.PROCESS))
    return TrackId(int(own[0])) if len(own) else NO_TRACK


def _note(sources: Sequence[SourceInfo], index: int, host: int | None) -> None:
    source = sources[index]
    if host is None:
        fitting = [sources[number].name for number in _possible_hosts(sources, index)]
        what = f"could be about {' or '.join(fitting)}" if fitting else f"no {' or '.join(source.belongs_to)} input"
        source.notes.append(f"the table is shown on its own: {what}")
    else:
        source.notes.append(f"the table is shown with {sources[host].name}")


def _note_unknown_names(totals: Trace, host: Trace) -> None:
    """Add a note if the table shares few names with the recording: it may be of another run."""
    names = {plain_name(totals.strings[name]) for name in np.unique(totals.instants.name).tolist()}
    known = {plain_name(text) for text in host.strings} | {plain_name(frame.name) for frame in host.frames}
    unknown_names = names - known
    if not len(host.slices.ts):
        return  # samples may hold addresses where the table has function names
    if len(unknown_names) > _MANY_UNKNOWN * len(names):
        totals.sources[0].notes.append(
            f"{len(unknown_names)} of the {len(names)} names in the table do not occur in {host.sources[0].name}: "
            "is it of the same run?"
        )


def plain_name(name: str) -> str:
    """Return a function name without return type, namespaces, template arguments and parameters.

    >>> plain_name("void at::native::(anonymous namespace)::add_kernel<float, 4>(int, float*)")
    'add_kernel'
    """
    head = re.split(r"[<(]", _ANONYMOUS.sub("", name), maxsplit=1)[0].strip()
    return head.rpartition(" ")[2].rpartition("::")[2] or name


# -- rows that describe slices --------------------------------------------------------------------------------------


def _join(totals: Trace, host: Trace, category: str) -> tuple[Trace, Trace]:
    rows = _by_name(totals, totals.instants, totals.instants.ts, np.arange(len(totals.instants.ts)))
    kernels = np.flatnonzero(host.slices.category == _string(host, category))
    slices = _by_name(host, host.slices, _launches(host), kernels)
    pairs: list[tuple[int, int]] = []
    for name, own in rows.items():
        others = slices.get(name, [])
        if len(own) == len(others):
            pairs += zip(own, others, strict=True)
        else:
            source = totals.sources[0]
            source.diagnostics.add(COUNTS_DIFFER, f"{name}: {len(own)} rows, {len(others)} slices", len(own))
    table, args = totals.instants, totals.args
    more = (args.get(int(table.args_at[row]), int(table.args_len[row])) for row, _ in pairs)
    return _without(totals, [row for row, _ in pairs], host), with_more_args(host, (at for _, at in pairs), more)


def _string(trace: Trace, text: str) -> int:
    return trace.strings.index(text) if text in trace.strings else -1


def _by_name(trace: Trace, table: Instants | Slices, order: Any, rows: Any) -> dict[str, list[int]]:
    """Return the rows of each name, in the given order."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for row in rows[np.argsort(order[rows], kind="stable")].tolist():
        by_name[plain_name(trace.strings[table.name[row]])].append(row)
    return by_name


def _launches(trace: Trace) -> Any:
    """Return the launch time of each slice, ns: the start of the slice that a flow comes from, else its own start."""
    times = trace.slices.ts.copy()
    times[trace.flows.to_slice] = trace.slices.ts[trace.flows.from_slice]
    return times


def _without(totals: Trace, rows: list[int], host: Trace) -> Trace:
    source = totals.sources[0]
    onto = host.sources[0].name
    joined = Counted(f"row joined onto a slice of {onto}", f"rows joined onto the slices of {onto}")
    balance = replace(source.balance, written=source.balance.written - len(rows))
    balance.merged = balance.merged + Counter({joined: len(rows)})
    kept = np.ones(len(totals.instants.ts), bool)
    kept[rows] = False
    instants = take(totals.instants, np.flatnonzero(kept))
    return totals.with_tables(sources=[replace(source, balance=balance)], instants=instants)
