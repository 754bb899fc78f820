"""The section `ranks`: the ranks that make others wait, their collectives, and the clocks of their hosts.

The check of the alignment (`align.collectives`) matches the records of several ranks. The wait of a rank follows from
durations, and is limited by the clocks where they are related. The last rank follows from starts, and is reported only
beyond the bounds of the clocks. docs/answers.md has the definitions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.answers.collective_waits import Waits, waits
from traceconv.answers.device_work import work
from traceconv.answers.late_ranks import late_causes
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Rows, SliceTable, median_of
from traceconv.answers.steps import no_steps, step_rows
from traceconv.io.shown import one_line, quantity, shown_ranks
from traceconv.model.diagnostics import RECORDS
from traceconv.model.numbers import format_short
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace_inputs import inputs_of

if TYPE_CHECKING:
    from traceconv.align.collective_matching import Matched
    from traceconv.align.receipt import Aligned, Alignment, ReceiptLine

_RANKS = (
    Column("rank", "rank", Unit.COUNT),
    Column("collectives", "matched", Unit.COUNT),
    Column("unmatched", "alone", Unit.COUNT),
    Column("last", "last", Unit.COUNT),
    Column("caused_ns", "caused", Unit.NS),
    Column("caused_share", "share", Unit.SHARE),
    Column("suffered_ns", "suffered", Unit.NS),
    Column("suffered_share", "share", Unit.SHARE),
    Column("step_p50_ns", "step p50", Unit.NS),
    Column("steps", "steps", Unit.COUNT, detail=True),
    Column("step_max_ns", "step max", Unit.NS, detail=True),
    Column("left_late_ns", "left late", Unit.NS, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
_COLLECTIVES = (
    Column("collective", "collective", Unit.TEXT),
    Column("start_ns", "start", Unit.NS),
    Column("last", "came last", Unit.TEXT),
    Column("transfer_ns", "transfer", Unit.NS),
    Column("longest_wait_ns", "waited", Unit.NS),
    Column("longest_wait_rank", "who", Unit.COUNT),
    Column("last_rank", "last rank", Unit.COUNT, detail=True),
    Column("lead_ns", "lead", Unit.NS, detail=True),
    Column("bound_ns", "within", Unit.NS, detail=True),
    Column("waits_ns", "waits of all", Unit.NS, detail=True),
    Column("group", "group", Unit.TEXT, detail=True),
    Column("seq", "number", Unit.COUNT, detail=True),
    Column("ranks", "ranks", Unit.COUNT, detail=True),
    Column("missing", "missing", Unit.TEXT, detail=True),
)
_NO_COLLECTIVE = "no records of different ranks are certain to be of one collective"
_NO_COMMUNICATION = "no communication is recorded"
_NOT_KNOWN = (
    "who waits for whom is not known: no two ranks recorded collectives of a known group in which all wait for all"
)
_HOSTS = (
    Column("host", "host", Unit.TEXT),
    Column("ranks", "ranks", Unit.TEXT),
    Column("moved_ns", "moved", Unit.NS, bound="bound_ns"),
    Column("drift_ppm", "drift, ppm", Unit.RATE),
    Column("bound_ns", "within", Unit.NS),
    Column("verdict", "verdict", Unit.TEXT),
    Column("method", "placed by", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
#: A rank is said to have come last by durations if they say so in this share of the collectives in question.
_MOST_OF = 0.9
#: The most ranks that are named in a list.
_MOST_NAMED = 8


def ranks(table: SliceTable, aligned: Aligned) -> list[Section]:
    """Return the tables `ranks`, `collectives` and `hosts`: a row for each rank, collective, and clock of a host.

    `late_causes` follows the first one if it is known which ranks came last.

    Args:
        table: the slices.
        aligned: the alignment of its inputs, and the collectives of their ranks.
    """
    sources = table.trace.sources
    by_rank: defaultdict[int, list[int]] = defaultdict(list)
    for number, source in enumerate(sources):
        if source.rank is not None:
            by_rank[source.rank].append(number)
    sections = [Section("ranks", _RANKS), Section("collectives", _COLLECTIVES), Section("hosts", _HOSTS)]
    if len(by_rank) < 2:
        said = "no input states the rank that it recorded"
        for rank, inputs in by_rank.items():
            said = "one input alone states the rank that it recorded"
            if len(inputs) > 1:
                said = f"{len(inputs)} inputs state the rank that they recorded, and all of them rank {rank}"
        sections[0].notes.append(f"who waits for whom is not known: {said}")
        sections[0].notes += notes_of_merged(sources)
        return sections[:1]
    of_ranks, of_collectives, of_hosts = sections
    matched, alignment = aligned.matched, aligned.alignment
    who = None
    if matched is not None:
        matched = _in_window(matched, table)
    if matched is not None and alignment is not None:
        who = who_waited(matched, alignment)
        _add_collectives(of_collectives, who, matched, table.start)
    if not of_collectives.rows:
        communicates = np.any(table.is_exchange) or np.any(work(table).is_communication)
        of_collectives.notes.append(_NO_COLLECTIVE if communicates else _NO_COMMUNICATION)
    steps = step_rows(table)
    if not len(steps):
        of_ranks.notes.append(no_steps(table))
    _add_ranks(of_ranks, table, by_rank, who, steps[table.in_window(table.trace.slices.ts[steps])])
    of_ranks.notes += table.untimed_notes(steps, "step times leave out")
    of_ranks.notes += _notes(sources, who, matched)
    (of_ranks if of_collectives.rows else of_collectives).notes += _not_counted(matched)
    if alignment is not None:
        _add_hosts(of_hosts, [line for line in alignment.receipt if line.rank is not None])
    if who is not None:
        sections.insert(1, late_causes(table, who.waited, who.unknown))
    return [section for section in sections if section.rows or section.name != "late_causes"]


def notes_of_merged(sources: Sequence[SourceInfo]) -> list[str]:
    """Return a note for each output of traceconv that holds several ranks: the relations between ranks are not kept."""
    return [
        f"{source.name} shows ranks {shown_ranks(source.ranks_inside)}, but does not keep their collectives and clocks "
        "apart: tables by rank are in the report of the files that it was made of"
        for source in sources
        if len(source.ranks_inside) > 1
    ]


def _in_window(matched: Matched, table: SliceTable) -> Matched:
    """Return the collectives whose first rank starts in the window, and the records without a partner in it."""
    records = matched.occurrences
    first = np.flatnonzero(np.diff(records.number, prepend=-1))
    begins = np.minimum.reduceat(records.start, first) if len(first) else records.start
    chosen = np.repeat(table.in_window(begins), np.diff(np.append(first, len(records.number))))
    alone = matched.unmatched.where(table.in_window(matched.unmatched.start))
    return replace(matched, occurrences=records.where(chosen), unmatched=alone)


class WhoWaited(Struct, frozen=True):
    """The results for each collective."""

    waited: Waits
    missing: list[set[int]]
    unknown: list[str]
    inputs: frozenset[int]
    alone: Counter[int]


def who_waited(matched: Matched, alignment: Alignment) -> WhoWaited:
    """Return who waited for whom in each collective."""
    from traceconv.align.devices import among_devices  # few reports need it

    records, rest = among_devices(matched.occurrences, alignment.device_bounds), matched.unmatched
    waited = waits(records, np.array(alignment.related, np.int64)[records.input])
    parts = pairwise(np.append(waited.first, len(records.number)).tolist())
    missing = [
        set(matched.terms.members[int(records.group[low])]) - set(records.rank[low:high].tolist())
        for low, high in parts
    ]
    unknown = [_unknown(waited, number, len(lacks)) for number, lacks in enumerate(missing)]
    inputs = frozenset(records.input.tolist()) | frozenset(rest.input.tolist())
    return WhoWaited(waited, missing, unknown, inputs, Counter(rest.rank.tolist()))


# -- a row for each collective ----------------------------------------------------------------------------------------


def _add_collectives(section: Section, who: WhoWaited, matched: Matched, begin: int) -> None:
    """Add a row for each collective, the longest wait first, and a note on those without a known last rank."""
    waited, records = who.waited, who.waited.records
    kinds = {number: kind for kind, number in matched.terms.kinds.items()}
    for number, (low, high) in enumerate(pairwise(np.append(waited.first, len(records.number)).tolist())):
        last, longest = int(waited.last[number]), low + int(np.argmax(waited.wait[low:high]))
        lead, unknown, comparable = int(waited.lead[number]), who.unknown[number], bool(waited.comparable[number])
        section.rows.append(
            (
                kinds[int(records.kind[low])],
                int(np.min(records.start[low:high])) - begin,
                unknown or f"{records.rank[last]} by {format_short(lead)}",
                int(waited.transfer[number]),
                int(waited.wait[longest]),
                int(records.rank[longest]) if waited.wait[longest] else None,
                None if unknown else int(records.rank[last]),
                lead if comparable else None,
                int(waited.bound[number]) if comparable else None,
                int(waited.total[number]),
                shown_ranks(matched.terms.members[int(records.group[low])]),
                int(records.seq[low]) if records.seq[low] >= 0 else None,
                high - low,
                shown_ranks(who.missing[number]),
            )
        )
    wait, start = section.place("longest_wait_ns"), section.place("start_ns")
    section.rows.sort(key=lambda row: (-int(row[wait] or 0), int(row[start] or 0)))
    if not section.rows:
        return
    why = Counter(filter(None, who.unknown))
    section.notes += [f"{why[reason]} of {len(section.rows)}: who came last is {reason}" for reason in sorted(why)]
    section.notes += _shortest(who)
    section.legend.append(
        "transfer: the shortest duration of any rank; waited: the longest duration without it; who: of which rank"
    )
    if any(who.missing):
        section.notes.append("where ranks are missing, transfers may be shorter, and waits longer")


def _shortest(who: WhoWaited) -> list[str]:
    """Return a note on the rank that took the least time in most collectives whose last rank clocks do not tell."""
    records, collective = who.waited.records, who.waited.collective
    is_shortest = np.maximum(records.end - records.start, 0) == who.waited.transfer[collective]
    is_single = np.bincount(collective[is_shortest], minlength=len(who.unknown)) == 1
    asked = np.array([bool(why) and not lacks for why, lacks in zip(who.unknown, who.missing, strict=True)], bool)
    taken = Counter(records.rank[is_shortest & (asked & is_single)[collective]].tolist())
    rank, count = max(taken.items(), key=lambda item: item[1], default=(0, 0))
    whole = int(np.count_nonzero(asked))
    if not count or count < _MOST_OF * whole:
        return []
    return [f"rank {rank} took the least time in {count} of these {whole}: it came last, if all leave at one time"]


def _unknown(waited: Waits, number: int, missing: int) -> str:
    """Return the reason why the last rank of a collective is not known, "" if it is."""
    if missing:
        return f"not known ({missing} rank{'s' if missing > 1 else ''} missing)"
    if not waited.comparable[number]:
        return "not known (no bound)"
    return "" if waited.beyond[number] else "not known (within the bound)"


# -- a row for each rank ----------------------------------------------------------------------------------------------


def _add_ranks(
    section: Section, table: SliceTable, by_rank: dict[int, list[int]], who: WhoWaited | None, steps: Rows
) -> None:
    """Add a row for each recorded rank."""
    trace = table.trace
    source = inputs_of(trace, "slices")[steps]
    caused, last = Counter[int](), Counter[int]()
    whole = 0
    if who is not None:
        waited = who.waited
        whole = int(waited.total.sum())
        for number in (number for number, unknown in enumerate(who.unknown) if not unknown):
            at = int(waited.last[number])
            rank = int(waited.records.rank[at])
            last[rank] += 1
            caused[rank] += int(waited.total[number] - waited.wait[at])
    for rank, inputs in sorted(by_rank.items()):
        cells: tuple[Cell, ...] = (None,) * 7
        late = None  # if no input of the rank has collectives
        if who is not None and who.inputs.intersection(inputs):
            of_rank = who.waited.records.rank == rank
            late = int(who.waited.late[of_rank].sum())
            suffered = int(who.waited.wait[of_rank].sum())
            of_whole = [part / whole if whole else None for part in (caused[rank], suffered)]
            known = not all(who.unknown[number] for number in who.waited.collective[of_rank].tolist())
            blamed = (last[rank], caused[rank], of_whole[0]) if known else (None, None, None)
            cells = (int(of_rank.sum()), who.alone[rank], *blamed, suffered, of_whole[1])
        timed_steps = steps[np.isin(source, inputs) & table.timed[steps]]
        durations = trace.slices.dur[timed_steps]
        middle, most = median_of(durations), int(np.max(durations)) if len(durations) else None
        names = ", ".join(trace.sources[number].name for number in inputs)
        section.rows.append((rank, *cells, middle, len(durations) or None, most, late, names))
    if whole:
        rest = whole - sum(caused.values())
        unknown = f"; caused by whom is not known for {format_short(rest)} of it" if rest else ""
        section.notes.append(f"ranks waited {format_short(whole)} in all{unknown}")


def _notes(sources: Sequence[SourceInfo], who: WhoWaited | None, matched: Matched | None) -> list[str]:
    """Return the notes: missing ranks, inputs without the needed information, records that do not match."""
    notes = []
    recorded = {source.rank for source in sources if source.rank is not None}
    world = max((source.world_size or 0 for source in sources), default=0)
    missing = set(range(world)) - recorded
    if missing:
        notes.append(f"no recording of rank{'s' if len(missing) > 1 else ''} {shown_ranks(missing)} of {world}")
    if not world:
        notes.append("no input states how many ranks the job has: whether some are missing is not known")
    silent = [source.name for source in sources if source.rank is None and len(source.ranks_inside) < 2]
    if silent:
        notes.append(f"no rank is stated by {_named(silent)}")
    notes += notes_of_merged(sources)
    if matched is None or who is None:
        return [*notes, _NOT_KNOWN]
    untold = [
        source.name for number, source in enumerate(sources) if source.rank is not None and number not in who.inputs
    ]
    if len(matched.ranks) < 2:
        notes.append(_NOT_KNOWN)
    elif untold:
        notes.append(f"no collectives of a known group in which all wait for all are recorded by {_named(untold)}")
    untimed = sum(matched.terms.untimed.values())
    if untimed:
        notes.append(f"left out: {quantity(untimed, RECORDS)} of collectives whose duration was not recorded")
    if matched.alone:
        notes.append(
            f"alone: {quantity(matched.alone, RECORDS)} of collectives without a certain partner in another rank"
        )
    for odd in matched.odd:
        pair = sorted({int(odd.wrong.records.rank[row]) for row in (odd.wrong.early[0], odd.wrong.late[0])})
        notes.append(f"the records of ranks {shown_ranks(pair)} fit in no way: some are missing, or a clock was set")
    return notes


def _not_counted(matched: Matched | None) -> list[str]:
    """Return the notes on records of collectives that tell nothing about waits."""
    notes = []
    of_kind = sum(matched.terms.not_for_all.values(), Counter[str]()) if matched is not None else {}
    if of_kind:
        counts = _named([f"{quantity(count, RECORDS)} of {one_line(kind)}" for kind, count in sorted(of_kind.items())])
        notes.append(f"not counted, since not every rank is known to wait for all others: {counts}")
    of_unknown = sum(matched.terms.of_unknown_group.values()) if matched is not None else 0
    if of_unknown:
        notes.append(f"not matched: {quantity(of_unknown, RECORDS)} of collectives without their group")
    return notes


def _named(names: Sequence[str]) -> str:
    """Return names for people; of many only the first."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


# -- a row for each clock of a host -----------------------------------------------------------------------------------


def _add_hosts(section: Section, lines: Sequence[ReceiptLine]) -> None:
    """Add a row for each host, and for each of its clocks if they were placed differently."""
    placed: defaultdict[tuple[Cell, ...], list[ReceiptLine]] = defaultdict(list)
    for line in lines:
        moved = None if line.drift_ppm else line.moved_ns  # with a drift, it depends on the first event of the rank
        placed[line.host, moved, line.drift_ppm, line.bound_ns, line.verdict, line.method].append(line)
    groups = [sorted(group, key=lambda line: line.rank or 0) for group in placed.values()]
    for group in sorted(groups, key=lambda group: group[0].rank or 0):
        first, ranks_of_host = group[0], {line.rank or 0 for line in group}
        files = ", ".join(dict.fromkeys(line.file for line in group))
        rest = (first.moved_ns, first.drift_ppm, first.bound_ns, first.verdict, first.method, files)
        section.rows.append((first.host or None, shown_ranks(ranks_of_host), *rest))
    if len({line.host for line in lines}) > 1:
        section.notes += list(
            dict.fromkeys(f"{line.host or '(no host)'}: {line.method}; bound: {line.bound_text}" for line in lines)
        )
