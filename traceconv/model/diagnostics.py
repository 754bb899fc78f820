"""Declared problems with their counts, and the balance of each input: events read = written + merged + kept + skipped.

A problem is declared once, beside the code that reports it, with its kind and a sentence of help. Each occurrence is
counted. Only the positions of the first few in the file are kept, in whatever order they were found: so a million bad
lines cost no more than three, and importers that read a file in another order report the same.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from traceconv.io.shown import Counted, quantity

# -- what is counted in several places: units of inputs and outputs -------------------------------------------------

LINES = Counted("line", "lines")
ROWS = Counted("row", "rows")
EVENTS = Counted("event", "events")
RECORDS = Counted("record", "records")
CALLS = Counted("call", "calls")
SAMPLES = Counted("sample", "samples")
PACKETS = Counted("packet", "packets")
SLICES = Counted("slice", "slices")
INSTANTS = Counted("instant", "instants")
COUNTER_VALUES = Counted("counter value", "counter values")
FLOWS = Counted("flow", "flows")
LOG_ENTRIES = Counted("log entry", "log entries")
TRACKS = Counted("track", "tracks")
FILES = Counted("file", "files")
MORE_ROWS = Counted("more row", "more rows")
THREADS = Counted("thread", "threads")
COUNTERS = Counted("counter", "counters")

# -- what became of parts of an input: keys of its `Balance` ---------------------------------------------------------

METADATA = Counted("metadata", "metadata")
JOINED_ENDS = Counted("end joined to its start", "ends joined to their start")
HEADINGS = Counted("heading", "headings")
TABLE_HEADINGS = Counted("heading of tables", "headings of tables")
BLANK_LINES = Counted("blank line", "blank lines")
EMPTY_LINES = Counted("empty line", "empty lines")
LINES_OUTSIDE = Counted("line outside of tables", "lines outside of tables")
TABLE_LINES = Counted("table line without values", "table lines without values")


# -- problems ---------------------------------------------------------------------------------------------------------

KEPT_PLACES = 3


class ProblemKind(enum.Enum):
    """What happened to the data that a problem of a conversion is about; the values are the words for messages.

    Attributes:
        LOST: it is in the input, but not in the output. `--strict` fails on this kind only.
        ABSENT: the input holds only half of something: an end without its start, one end of a flow, an event without
            its time, events that the recorder dropped. Only that half is missing in the output.
        REPAIRED: it was damaged or impossible, and is in the output as it was evidently meant, or with the nearest
            value.
        SKIPPED: it was left out by design, since it has no place on a timeline or an option asks for that. The help of
            the code states the reason; `traceconv formats NAME` prints it.
        NOTED: nothing is missing; users should know about it.
    """

    LOST = "lost"
    ABSENT = "absent"
    REPAIRED = "repaired"
    SKIPPED = "skipped by design"
    NOTED = "notice"


class Severity(enum.IntEnum):
    """The severity of a diagnostic, in ascending order."""

    INFO = 0
    NOTICE = 1
    DATA_LOSS = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The word for messages, such as "data loss"."""
        return self.name.lower().replace("_", " ")


class Code(msgspec.Struct, frozen=True):
    """A declared problem.

    Attributes:
        name: "<format>.<what>", unique and stable.
        severity: of a conversion it follows from the kind.
        help: one sentence for the user: what it means and what was done about it.
        kind: what happened to the data; None for a finding of `check`.
        unmeasured: whether times were not measured, so that answers about the rest are incomplete as by a loss.
    """

    name: str
    severity: Severity
    help: str
    kind: ProblemKind | None = None
    unmeasured: bool = False

    @property
    def skipped(self) -> str:
        """The reason in the balance for events that were left out because of it."""
        return f"skipped ({self.name})"

    @property
    def label(self) -> str:
        """The word for messages: the kind, or the severity of a finding of `check`."""
        return self.kind.value if self.kind else self.severity.label


#: The codes that the modules imported so far have declared, by name.
DECLARED: dict[str, Code] = {}


class _Declare(Protocol):
    def __call__(self, name: str, help: str, *, quiet: bool = False, unmeasured: bool = False) -> Code: ...


def _of_kind(kind: ProblemKind) -> _Declare:
    """Return the function that declares problems of a kind."""

    def declare(name: str, help: str, *, quiet: bool = False, unmeasured: bool = False) -> Code:
        """Declare a problem of a conversion; if `quiet`, only `--verbose` shows it. ValueError if the name is taken."""
        shown = Severity.INFO if quiet else Severity.NOTICE
        severity = Severity.DATA_LOSS if kind is ProblemKind.LOST else shown
        return register(Code(name, severity, help, kind, unmeasured))

    return declare


lost, absent, repaired, skipped, noted = map(_of_kind, ProblemKind)


def register(code: Code) -> Code:
    """Add a code to the declared ones. Raises ValueError if its name is taken."""
    if code.name in DECLARED:
        raise ValueError(f"diagnostic {code.name} is declared twice")
    DECLARED[code.name] = code
    return code


class Diagnostic(msgspec.Struct):
    """The occurrences of one code in one input: their number, and the positions of the first ones.

    Attributes:
        places: the first positions, in the order of the file; those without a number come last, as they were found.
        numbers: the numbers of the places, by which they are sorted.
        skipped: how many events (or lines, or rows) were left out because of it.
    """

    code: Code
    count: int = 0
    places: list[str] = msgspec.field(default_factory=list)
    numbers: list[float] = msgspec.field(default_factory=list)
    skipped: int = 0

    def keep(self, place: str, number: float) -> None:
        """Keep the place if it is among the first ones of the file."""
        rank = bisect_right(self.numbers, number)
        if rank < KEPT_PLACES:
            self.places.insert(rank, place)
            self.numbers.insert(rank, number)
            del self.places[KEPT_PLACES:], self.numbers[KEPT_PLACES:]

    def message(self, file: str = "") -> str:
        """Return one line for users: kind, count, help, first places; these do not repeat the name of the `file`."""
        times = f"{self.count} x " if self.count > 1 else ""
        more = "; ..." if self.count > len(self.places) else ""
        prefix = f"{file}:" if file else ""
        places = f" [{'; '.join(place.removeprefix(prefix) for place in self.places)}{more}]" if self.places else ""
        return f"{self.code.label}: {times}{self.code.help} ({self.code.name}){places}"


def _first_place(entry: Diagnostic) -> tuple[float, str]:
    """Return what diagnostics are sorted by; those without numbers come last and stay in the order they were found."""
    number = entry.numbers[0] if entry.numbers else math.inf
    return number, entry.code.name if number < math.inf else ""


class Diagnostics:
    """The diagnostics of one input, in the order of their first places, whatever order they were found in."""

    def __init__(self) -> None:
        self._by_name: dict[str, Diagnostic] = {}

    def add(self, code: Code, place: str = "", count: int = 1, number: float = math.inf, skipped: int = 0) -> None:
        """Count a problem, and keep its place if it is among the first ones of the file.

        Args:
            place: the position, in words; may be empty.
            count: how many occurrences this is.
            number: the number of the event or line, if it has one, by which places are sorted.
            skipped: how many events were left out because of it.
        """
        entry = self._by_name.get(code.name)
        if entry is None:
            entry = self._by_name[code.name] = Diagnostic(code)
        entry.count += count
        entry.skipped += skipped
        if place:
            entry.keep(place, number)

    def count_late(self, code: Code, count: int = 1, number: float = math.inf, skipped: int = 0) -> bool:
        """Count a frequent problem if its place is not among the first ones; return whether it was counted."""
        entry = self._by_name.get(code.name)
        if entry is None or len(entry.numbers) < KEPT_PLACES or number < entry.numbers[-1]:
            return False
        entry.count += count
        entry.skipped += skipped
        return True

    def is_full(self, code: Code) -> bool:
        """Return whether all places are known that will be kept of a code, for an importer that reads in file order."""
        entry = self._by_name.get(code.name)
        return entry is not None and len(entry.numbers) == KEPT_PLACES

    def extend(self, other: Diagnostics) -> None:
        """Add all diagnostics of another part of the same input."""
        for entry in other:
            self.add(entry.code, count=entry.count, skipped=entry.skipped)
            for place, number in zip(entry.places, entry.numbers, strict=True):
                self._by_name[entry.code.name].keep(place, number)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(sorted(self._by_name.values(), key=_first_place))

    def __len__(self) -> int:
        return len(self._by_name)

    def count(self, code: Code) -> int:
        """Return how often the code occurred."""
        entry = self._by_name.get(code.name)
        return entry.count if entry else 0

    @property
    def data_left_out(self) -> Diagnostic | None:
        """Return the diagnostic that left out most data, None if none did; SKIPPED ones do not count."""
        left_out = [
            entry
            for entry in self
            if entry.code.kind is ProblemKind.LOST or (entry.skipped and entry.code.kind is not ProblemKind.SKIPPED)
        ]
        return min(left_out, key=lambda entry: (-(entry.skipped or entry.count), entry.code.name), default=None)

    @property
    def lost(self) -> int:
        """The number of occurrences of kind LOST."""
        return sum(entry.count for entry in self if entry.code.kind is ProblemKind.LOST)


class Balance(Struct):
    """The account of an input: what became of each event (or line, or row).

    Attributes:
        unit: what is counted, such as LINES.
        written: the number that became rows of the trace.
        kept: the number that became metadata or clock snapshots, by what they became.
        merged: the number that became part of another row ("end joined to its start"), or frame the others (headings,
            empty lines), by what they became.
        skipped: the number that was left out, by reason: plain texts, as "skipped (x.bad_line)".
    """

    unit: Counted = EVENTS
    read: int = 0
    written: int = 0
    kept: Counter[Counted] = field(default_factory=Counter)
    merged: Counter[Counted] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def even(self) -> bool:
        """Whether read = written + merged + kept + skipped."""
        return self.read == self.written + self.kept.total() + self.merged.total() + self.skipped.total()

    def copy(self) -> Balance:
        """Return an independent copy."""
        return replace(self, kept=self.kept.copy(), merged=self.merged.copy(), skipped=self.skipped.copy())

    def extend(self, other: Balance) -> None:
        """Add the numbers of another part of the same input."""
        self.read += other.read
        self.written += other.written
        self.kept.update(other.kept)
        self.merged.update(other.merged)
        self.skipped.update(other.skipped)

    def by_reason(self) -> dict[str, int]:
        """Return what was skipped, sorted: which reason comes first depends on how many events are read at a time."""
        return dict(sorted((+self.skipped).items()))

    def describe(self) -> str:
        """Return one line, such as "10 events = 8 written + 2 ends joined to their start"."""
        became = [*(self.kept + self.merged).items(), *self.by_reason().items()]
        parts = [_counted(count, what) for what, count in became]
        return f"{_counted(self.read, self.unit)} = {' + '.join([f'{self.written} written', *parts])}"


def _counted(count: int, what: str) -> str:
    """Return a count with its words; a plain text is the same for any number."""
    return quantity(count, what) if isinstance(what, Counted) else f"{count} {what}"
