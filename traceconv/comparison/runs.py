"""Read the recordings of each run, and list the runs of a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from traceconv import api
from traceconv.align.placement import NoOverlap
from traceconv.align.receipt import ReceiptLine
from traceconv.answers.operations import OF_TRACKS, check_key
from traceconv.answers.selection import absent_args, check_between, holds, parse, places_of, window_of
from traceconv.answers.slice_tables import SliceTable, stated_inputs
from traceconv.answers.steps import NOT_RECORDED, no_steps, step_pattern, step_rows
from traceconv.comparison.comparison import Run
from traceconv.comparison.environment import environment
from traceconv.comparison.run_values import AS_THEY_ARE, OTHERS, Part, Values, part_of, run_values, without_address
from traceconv.errors import InputError, UsageError
from traceconv.io.folders import natural
from traceconv.io.shown import one_line
from traceconv.model.clocks import Zero
from traceconv.model.trace import Trace
from traceconv.model.track_table import BEYOND, TrackKind
from traceconv.recordings import Opened

#: The note about recordings that are taken as one run, and how each is taken as a run.
SEVERAL = "its recordings seem to be several runs, not the ranks of one: of one rank, or at different times"
AS_RUNS = "diff --before-runs DIR --after-runs DIR, or history DIR"
#: Texts of keys that say that there is none.
_UNNAMED = {"", OTHERS, NOT_RECORDED}
#: What shows what is no key of operations.
_TABLES = {
    "step": "the table diff_steps compares steps, --step-name names them",
    "kernel": "the table diff_kernels compares kernels",
    "layer": "layers are names: --by name",
    "primitive": "--by name,arg:impl,shape",
}


class Recorded(NamedTuple):
    """The slices of a run.

    Attributes:
        name: its name.
        table: its slices.
        resolution_ns: the largest step of its clocks, ns.
        is_several: whether its recordings seem to be runs themselves.
    """

    name: str
    table: SliceTable
    resolution_ns: int
    is_several: bool = False


class Selection:
    """What of each run is compared, and by which keys.

    Raises:
        UsageError: a key is not known, or a pattern, condition or window cannot be read.
    """

    def __init__(self, by: Sequence[str], where: str, between: str, step_name: str, *, keep_first: bool) -> None:
        for key in by:
            if key in _TABLES:
                raise UsageError(f"--by: {key!r} is not a key", hint=_TABLES[key])
            check_key(key)
        check_between(between)
        step_pattern(step_name)
        self.by, self.between, self.step_name = by, between, step_name
        self.wanted = Part.STEPS if keep_first else Part.LATER
        self.condition = parse(where) if where else None

    def slices(self, name: str, recordings: Opened) -> Recorded:
        """Return the slices of a run; its recordings are put on one clock first, as by `merge`.

        Args:
            name: its name.
            recordings: its recordings.

        Raises:
            UsageError: no slice has a name that is stated as that of steps.
        """
        trace, aligned = api.on_one_clock(recordings)
        try:
            window = window_of(SliceTable(trace), self.between) if self.between else None
        except UsageError as error:
            raise UsageError(error.message, at=name, hint=error.hint) from None
        chosen = partial(holds, condition=self.condition) if self.condition else None
        table = SliceTable(trace, chosen, window, step_name=self.step_name)
        table.check_sums()
        if self.step_name and not len(step_rows(table)):
            raise UsageError(no_steps(table), at=name)
        resolution = max((line.resolution_ns for line in aligned.receipt), default=1)
        return Recorded(name, table, resolution, _are_runs(trace, aligned.receipt))

    def run(
        self,
        recorded: Recorded,
        renamed: Mapping[str, str] = AS_THEY_ARE,
        again: Callable[[str], Recorded] | None = None,
    ) -> Run:
        """Return the values of a run.

        Args:
            recorded: its slices.
            renamed: other names for first texts of keys; a note says which of these nothing has then.
            again: reads a run of this name again, if another part of it is compared; None to keep its slices for that,
                as those of pipes are.
        """
        name, table, resolution, is_several = recorded
        read = again if again and can_be_read_again(name) else lambda _: recorded

        def of_table(table: SliceTable, part: Part) -> Mapping[str, Values]:
            places = places_of(table, self.condition)[0] if self.condition else None
            return run_values(table, self.by, part, renamed, places)

        def values_of(part: Part) -> Mapping[str, Values]:
            return of_table(read(name).table, part)

        part = part_of(table, self.wanted)
        values = of_table(table, part)
        absent = absent_args(table, self.condition) if self.condition else ()
        if not values:
            window = " in the window" if self.between else ""
            raise UsageError(f"there is nothing to compare: it has no operation with a duration{window}", at=name)
        made = {key[0] for found in values.values() for key in found.keys}
        names = {text for name in table.names for text in (name, without_address(name))}
        is_missed = (new not in made or (self.by[0] == "name" and old not in names) for old, new in renamed.items())
        missed = [*compress(renamed, is_missed)]
        notes = (
            *table.trace.losses(),
            *((f"{one_line(name)}: {SEVERAL}: {AS_RUNS}",) if is_several else ()),
            *(f"--where: no slice of {one_line(name)} has {arg}" for arg in absent),
            *((f"--where leaves no slice of {one_line(name)}",) if self.condition and not len(table.counted) else ()),
            *(f"--rename: nothing that is compared in {one_line(name)} is called {one_line(old)}" for old in missed),
        )
        content = tuple(source.fingerprint for source in table.trace.sources)
        content = content if all(content) else ()
        wall = _wall_clock(table.trace)
        ranks = frozenset(
            (source.world_size, source.rank)
            for source in stated_inputs(table.trace)
            if source.world_size and source.rank is not None
        )
        return Run(name, values, resolution, environment(table.trace), wall, part, values_of, notes, content, ranks)


def _are_runs(trace: Trace, receipt: Sequence[ReceiptLine]) -> bool:
    """Return whether inputs of a trace seem to be of different runs.

    Then one overlaps no other in time, or two of one format and rank are of different processes.
    """
    if any(isinstance(message, NoOverlap) for line in receipt for message in line.messages):
        return True
    pids, of_input = trace.tracks.numbers(), trace.tracks.column("source")
    is_process = (trace.tracks.column("kind") == TrackKind.PROCESS) & (pids > BEYOND)
    ranks: dict[tuple[str, int], list[set[int]]] = {}
    for number, source in enumerate(trace.sources):
        of_source = set(pids[is_process & (of_input == number)].tolist())
        if source.rank is not None and of_source:
            ranks.setdefault((source.format, source.rank), []).append(of_source)
    return any(len(found) > 1 and not set.intersection(*found) for found in ranks.values())


def _wall_clock(trace: Trace) -> tuple[int, int] | None:
    """Return the first and last time of a trace, ns since 1970; None if its clock does not say."""
    return trace.span() if trace.clocks and trace.clocks[0].zero is Zero.UNIX_EPOCH else None


def can_be_read_again(name: str) -> bool:
    """Return whether a run is a file or a folder, no pipe."""
    return Path(name).is_file() or Path(name).is_dir()


def runs_in(folder: str) -> list[str]:
    """Return the entries of a folder in natural order, each of which is a run: a file, an archive, or a folder.

    Raises:
        InputError: the folder cannot be read, or is empty.
    """
    try:
        names = [entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except NotADirectoryError:
        hint = "each entry of a folder is a run: unpack an archive of runs; a single run is given to --before, --after"
        raise InputError("not a folder of runs", hint=hint, at=folder) from None
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", at=folder) from None
    if not names:
        raise InputError("there is no run in this folder", hint="each entry is a run: a file, or a folder", at=folder)
    return [str(Path(folder, name)) for name in sorted(names, key=natural)]


def by_start(runs: Sequence[Run]) -> list[Run]:
    """Return runs by their starts, if all are known; else in their order."""
    starts = [run.span_ns[0] for run in runs if run.span_ns is not None]
    if len(starts) < len(runs):
        return list(runs)
    return [run for _, _, run in sorted(zip(starts, range(len(runs)), runs, strict=True), key=lambda place: place[:2])]


def unlike_keys(runs: Sequence[Run], by: Sequence[str]) -> list[str]:
    """Return a note for each key of places of operations that is another one in each of several runs, such as pids."""
    notes = []
    found = [run.values["operations"].keys for run in runs if "operations" in run.values]
    for at, key in enumerate(by):
        texts = [{each[at] for each in keys} - _UNNAMED for keys in found]
        is_unlike = len(texts) > 1 and all(texts) and sum(map(len, texts)) == len(set.union(*texts))
        if key in OF_TRACKS and is_unlike:
            notes.append(f"--by {key}: it is another one in each run, so that no rows match")
    return notes


def usual_run(runs: Sequence[Run]) -> Run:
    """Return the run whose value of the first table is the median, the lower one of the two in the middle."""
    first = [next(iter(run.values.values())).median if run.values else 0 for run in runs]
    return runs[sorted(range(len(runs)), key=first.__getitem__)[(len(runs) - 1) // 2]]
