"""The inputs of a trace: what is known of each, how certain its times are, and the forms of one recording."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from traceconv.model.clocks import Verdict
from traceconv.model.columns import occurring
from traceconv.model.diagnostics import Balance, Code, Diagnostics
from traceconv.model.marks import NO_MARKS, FormatMarks

if TYPE_CHECKING:
    from traceconv.model.columns import I64
    from traceconv.model.trace import Trace


# -- placings ---------------------------------------------------------------------------------------------------------


class Placing(Struct, frozen=True, eq=False):
    """How one file was put on the time of a trace; inputs of one output share that of the output.

    Attributes:
        bound_ns: how wrong its times can be, ns; None if not known.
        apart: whether it is drawn beside the others without alignment.
        host: the host that it states, "" if it states none.
    """

    bound_ns: int | None = None
    apart: bool = False
    host: str = ""


def placing_of(file: str, alignment: Any) -> Placing:
    """Return the placing of a file from the alignment in the metadata of a trace, which may be damaged or missing."""
    lines = [line for line in alignment if isinstance(line, dict)] if isinstance(alignment, list) else []
    placings = [
        read_placing([line.get("bound_ns"), line.get("verdict"), line.get("host")])
        for line in lines
        if line.get("file") == file
    ]
    bounds = [line.bound_ns for line in placings if line.bound_ns is not None]
    bound = max(bounds) if placings and len(bounds) == len(placings) else None
    return Placing(bound, any(line.apart for line in placings), next((line.host for line in placings if line.host), ""))


def read_placing(values: Any) -> Placing:
    """Return a placing from its bound, verdict and host, as a file states them; the bound of a damaged one is None."""
    bound, verdict, host = values if isinstance(values, list) and len(values) == 3 else (None, "", "")
    known = bound if type(bound) is int and bound >= 0 else None
    return Placing(known, verdict == Verdict.SEPARATE, host if isinstance(host, str) else "")


def unshared(placings: tuple[Placing, ...], others: tuple[Placing, ...]) -> list[Placing]:
    """Return the placings that lie between two inputs: those of both, without those of outputs that hold both."""
    return [*(step for step in placings if step not in others), *(step for step in others if step not in placings)]


# -- forms ------------------------------------------------------------------------------------------------------------

#: A part of a recording that all its forms hold: its time in µs, 0 if it has none, and what it is.
Mark = tuple[int, Hashable]

#: The unit of the times of marks, ns.
MARK_NS = 1000
#: No more samples, and no more slices, are compared: the earliest ones.
_MOST_SAMPLES, _MOST_SLICES = 256, 4096
#: Tools print durations in hundredths of a microsecond.
_PRINTED_NS = 10


class Form(Struct, frozen=True):
    """The form of a file: what a tool records, or what it or others convert that to.

    An importer whose files may be such a form has the method `form`. It returns the rank of a file, and the function
    for the marks that all forms of a recording share.

    Attributes:
        rank: 0 for the recording itself, higher for what was made of it. The file of the lowest rank is read.
        marks: returns the marks of a trace, or of the start of one.
        timed: whether the times of a file are those of the recording, so that all forms have the same.
        least: the fewest shared marks that show that two files are of one recording. They are at least half of those
            that both could hold, too.
    """

    rank: int
    marks: Callable[[Trace], set[Mark]]
    least: int = 8
    timed: bool = True


def other_forms(files: Sequence[tuple[Form, set[Mark]]]) -> dict[int, int]:
    """Return the files that are another form of the recording of an earlier one, each with that one, by numbers.

    The best form comes first. They share half of the marks in the time of both.
    """
    owners: dict[Mark, int] = {}
    found: dict[int, int] = {}
    for number, (form, marks) in enumerate(files):
        shared = Counter(owners[mark] for mark in marks if mark in owners)
        for owner, count in shared.most_common(1):
            its_form, its_marks = files[owner]
            end = min(max(at for at, _ in of_file) for of_file in (marks, its_marks))
            least = min(sum(at <= end for at, _ in of_file) for of_file in (marks, its_marks))
            if form.rank != its_form.rank and count >= form.least and 2 * count >= least:
                found[number] = owner
        if number not in found:
            for mark in marks:
                owners.setdefault(mark, number)
    return found


def samples(trace: Trace) -> set[Mark]:
    """Return the earliest samples: their times and threads."""
    rows = _earliest(trace.samples.ts, _MOST_SAMPLES)
    times, tracks = trace.samples.ts[rows].tolist(), trace.samples.track[rows].tolist()
    return {(ts // MARK_NS, trace.tracks[track].tid or 0) for ts, track in zip(times, tracks, strict=True)}


def slices(trace: Trace) -> set[Mark]:
    """Return the earliest slices: their times and durations."""
    rows = _earliest(trace.slices.ts, _MOST_SLICES)
    times, durations = trace.slices.ts[rows].tolist(), trace.slices.dur[rows].tolist()
    return {(ts // MARK_NS, ("slice", dur // 1000)) for ts, dur in zip(times, durations, strict=True)}


def sums(trace: Trace) -> set[Mark]:
    """Return the sums of the durations of all slices of a name, for reports whose positions say nothing."""
    total = np.zeros(len(trace.strings), np.int64)
    np.add.at(total, trace.slices.name, trace.slices.dur)
    return {
        (0, ("sum", trace.strings[name], round(int(total[name]) / _PRINTED_NS)))
        for name in occurring(trace.slices.name)
    }


def _earliest(times: I64, most: int) -> I64:
    """Return the rows of the earliest times, and of all that are equal to the last one of these."""
    if len(times) <= most:
        return np.arange(len(times))
    return np.flatnonzero(times <= np.partition(times, most - 1)[most - 1])


class Layer(enum.IntEnum):
    """The layer of the software stack that the slices of a format are recorded in, outermost first.

    A slice of a framework contains the calls of the library below it, on the same thread. Device work runs when its
    queue reaches it, and lies inside no host call for certain.
    """

    FRAMEWORK = 1
    LIBRARY = 2
    DEVICE = 3


class PartOfRun(Struct, frozen=True):
    """How much of a run an input holds, where it states the time of the whole run: ns."""

    recorded_ns: int
    run_ns: int


class SourceInfo(Struct):
    """One input of a trace, with its balance and diagnostics.

    Attributes:
        name: the file as the user named it, without folders.
        format: the name of the importer.
        unit: the unit of `origin`: "event", "line", "row".
        notes: sentences about the input for the user, such as an assumption about its times.
        belongs_to: if the input holds totals only: the formats of the recordings that these may sum up.
        join_category: the category of the slices of that recording that the rows describe one by one; "" if rows are
            sums.
        runs_in: if the input states no process: the formats that record processes in which its recorder can run.
        real_ids: whether pids and tids are those of the operating system.
        several_at_once: whether a process can have several such recordings at the same time, such as logs, or those of
            tools outside the process.
        boot_id: the boot session that it was recorded in, as the system names it; "" if not stated.
        rank: the rank of the recorded process in its job, from 0; None if the input states none or several.
        world_size: the number of processes of that job; None if not stated.
        layer: the layer that its slices are recorded in; None if the format does not declare one.
        marks: the declarations of its format about slices and flows.
        without_periods: the names of samples whose periods are not stated, so that each has the weight 1.
        sampled: in a trace of several inputs: the names of its samples, which may be on threads of other inputs.
        stated: of an output of traceconv: its inputs, as far as answers need them; () if they are not stated.
        written: whether traceconv wrote the file: it can hold inputs whose clock bounds are not known, unless `stated`.
        ranks_inside: of an output of traceconv: the ranks of its inputs.
        form: the form of its recording that it is; None if its format has only one.
        placings: of an input that an output of traceconv states: how it was placed in the outputs that held it,
            innermost first; () for others.
        path: the file as the user named it, with folders, for commands in hints; "" if equal to `name`.
        digest: a hash of the unpacked content; b"" if no other input has the same start.
        fingerprint: the size and a checksum of the file as it is stored, by which copies of it are known; "" for a
            stream.
        part_of_run: how much of the run its slices take, where the input states how long that was, and they leave out
            a part that matters; None otherwise.
        room: the most bytes that an output may take for it, since none needs so many; 0 for no limit.
    """

    name: str
    format: str
    unit: str = "event"
    balance: Balance = field(default_factory=Balance)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    notes: list[str] = []
    belongs_to: tuple[str, ...] = ()
    join_category: str = ""
    runs_in: tuple[str, ...] = ()
    real_ids: bool = False
    several_at_once: bool = False
    boot_id: str = ""
    rank: int | None = None
    world_size: int | None = None
    layer: Layer | None = None
    marks: FormatMarks = NO_MARKS
    without_periods: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()
    stated: tuple[SourceInfo, ...] = ()
    written: bool = False
    ranks_inside: tuple[int, ...] = ()
    form: Form | None = None
    placings: tuple[Placing, ...] = ()
    path: str = ""
    digest: bytes = b""
    fingerprint: str = ""
    part_of_run: PartOfRun | None = None
    room: int = 0

    @property
    def place_in_job(self) -> str:
        """For messages: "rank 3 of 8", "rank 3", or "" if the input states none."""
        if self.rank is None:
            return ""
        return f"rank {self.rank}" if self.world_size is None else f"rank {self.rank} of {self.world_size}"

    def problem(self, code: Code, at: int | str = "", detail: str = "", count: int = 1, skipped: int = 0) -> None:
        """Count a problem.

        Args:
            code: what happened.
            at: the number of the event or line, or a position in words.
            detail: what exactly was found.
            count: how many occurrences this is.
            skipped: how many events do not reach the trace because of it; the caller counts them in the balance.
        """
        if isinstance(at, int) and self.diagnostics.count_late(code, count, at, skipped):
            return
        place, number = str(at), math.inf
        if isinstance(at, int):
            place, number = f"{self.name}:{self.unit} {at}", at
        self.diagnostics.add(code, f"{place}: {detail}" if detail else place, count, number, skipped)

    def skip(self, code: Code, at: int | str = "", detail: str = "", count: int = 1) -> None:
        """Count a problem, and in the balance the events that do not reach the trace because of it; see `problem`."""
        self.problem(code, at, detail, count, count)
        self.balance.skipped[code.skipped] += count

    def copy(self) -> SourceInfo:
        """Return a copy whose balance, diagnostics and notes can be changed independently."""
        diagnostics = Diagnostics()
        diagnostics.extend(self.diagnostics)
        return replace(self, balance=self.balance.copy(), diagnostics=diagnostics, notes=list(self.notes))
