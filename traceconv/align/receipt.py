"""What alignment returns: maps to one time axis, and a line for each of them for people and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from traceconv.align.identity import Together
from traceconv.align.machines import Machine
from traceconv.align.messages import Message, Text
from traceconv.model.clocks import ClockDomain, ClockMap, Run, Verdict, worse

if TYPE_CHECKING:
    from traceconv.align.collective_matching import Matched
    from traceconv.align.duration_layout import Placement
    from traceconv.align.inputs import ClockInput, HostsApart
    from traceconv.align.pairs import PairEstimate


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """How one clock of one input was put on trace time.

    Attributes:
        file: the input.
        format: its importer.
        clock: the name of the domain.
        method: where the relation is known from.
        offset_ns: what was added to each time of that clock.
        bound_ns: how wrong the position can be at most, the resolution of the clock included; None: not known.
        verdict: "ok" when the file says so; "assumed" when it rests on what the user states or on an assumption, or
            when positions are synthetic; that of the estimate when its best place was taken though it is not certain;
            "separate" when it was not aligned at all.
        drift_ppm: how much faster trace time runs than the clock.
        matches: how many events were matched with those of another input, if it rests on that.
        residual_ns: how far apart these are, the median; None without any.
        warnings: reasons against it, or an assumption that is wrong.
        note: which of its events are where, if not all were placed in the same way; "" if they were.
        host: the host that the input says it is of, "" if it states none.
        rank: the number in its job of the process that the input records, None if it states none.
        world_size: how many processes that job has, None if the input does not say.
        two_hosts: whether it takes the wall clocks of two hosts for one, so that its bound is not known.
    """

    file: str
    format: str
    clock: str
    method: str
    offset_ns: int
    bound_ns: int | None
    verdict: str
    drift_ppm: float = 0.0
    matches: int = 0
    residual_ns: int | None = None
    warnings: tuple[str, ...] = ()
    note: str = ""
    host: str = ""
    rank: int | None = None
    world_size: int | None = None
    two_hosts: bool = False

    @property
    def bound_text(self) -> str:
        """The bound for people."""
        return str((Text.BOUND_OF_TWO_HOSTS if self.two_hosts else Text.BOUND)(bound=self.bound_ns))

    def as_json(self) -> dict[str, Any]:
        """Return the members for metadata, without those that do not apply."""
        members = asdict(self)
        absent = {"drift_ppm": not self.drift_ppm, "matches": not self.matches, "residual_ns": self.residual_ns is None}
        absent |= {name: not members[name] for name in ("warnings", "note", "host", "two_hosts")}
        absent |= {name: members[name] is None for name in ("rank", "world_size")}
        return {name: value for name, value in members.items() if not absent.get(name)}


@dataclass(frozen=True, slots=True)
class Alignment:
    """A trace time, and for each input a map from each of its clocks to it.

    Attributes:
        clock: what the times of the output count.
        maps: for each input, by clock index, the map of each clock that events use.
        receipt: a line for each of these maps.
        pairs: what the events said about pairs of clocks, where they were asked.
        placements: for inputs without times whose slices lie inside those of others, which in which.
        files: the names of all inputs; the receipt has no line of those without events.
        machines: for each input the machine that its pids and tids belong to.
        notes: for some inputs, what else is to be known about them.
        hosts: for each input a name of its host, "" where all are taken for one.
        together: which of their processes and threads are one.
        hosts_apart: between what the wall clocks of each two hosts differ, by the collectives of their ranks.
    """

    clock: ClockDomain
    maps: list[dict[int, ClockMap]]
    receipt: list[ReceiptLine]
    pairs: list[PairEstimate] = field(default_factory=list)
    placements: dict[int, Placement] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    notes: dict[int, list[Message]] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    together: Together = field(default_factory=Together)
    hosts_apart: Sequence[HostsApart] = ()

    def doubted(self, inputs: Sequence[int], verdict: Verdict, text: object) -> Alignment:
        """Return the same with verdicts of some inputs no better than one; the last input gets a warning."""
        maps = [
            {clock: replace(way, verdict=worse(way.verdict, verdict)) for clock, way in found.items()}
            if index in inputs
            else found
            for index, found in enumerate(self.maps)
        ]
        lines = iter(self.receipt)
        receipt = [
            replace(
                line,
                verdict=str(worse(Verdict(line.verdict), verdict)),
                warnings=(*line.warnings, str(text)) if index == inputs[-1] else line.warnings,
            )
            if index in inputs
            else line
            for index, found in enumerate(self.maps)
            for line in islice(lines, len(found))
        ]
        left = self.together.without(inputs) if verdict.refused else self.together
        return replace(self, maps=maps, receipt=receipt, together=left)


@dataclass(frozen=True, slots=True)
class Aligned:
    """How the inputs of a trace were placed.

    Attributes:
        alignment: the maps of their clocks; None if nothing was to be placed.
        matched: the collectives that several ranks recorded; None without any.
    """

    alignment: Alignment | None = None
    matched: Matched | None = None

    @property
    def receipt(self) -> Sequence[ReceiptLine]:
        """How each clock was placed."""
        return self.alignment.receipt if self.alignment else ()


def receipt_line(
    clock: ClockInput,
    way: ClockMap,
    pairs: Sequence[PairEstimate],
    warnings: Sequence[Message | str],
    placement: Placement | None,
    host: str,
) -> ReceiptLine:
    """Return what is said of a clock.

    Args:
        clock: the clock.
        way: its map to trace time.
        pairs: what the events said; those that the map rests on count.
        warnings: what is to be said of it.
        placement: which of its slices lie where, if it has no times.
        host: the host that the input says it is of.
    """
    source, domain = clock.trace.sources[0], clock.domain
    used = [pair.estimate for pair in pairs if clock.key in pair.keys and pair.carries(way)]
    basis = max(used, key=lambda estimate: estimate.matches, default=None)
    method = way.method if way.steps else str(Text.ITS_OWN_TIMES())
    if way.bends:
        method = str(Text.ALONG_LINES(method=method, n=len(way.lines)))
    invented = domain.synthetic and way.by_user  # the user places one instant of it, and the others are not known
    laid = placement if domain.run is Run.NONE else None
    return ReceiptLine(
        source.name,
        source.format,
        domain.name,
        method,
        way.offset_ns,
        None if way.bound_ns is None or invented else way.bound_ns + domain.resolution_ns,
        str(Verdict.ASSUMED if domain.synthetic and way.verdict is Verdict.OK else way.verdict),
        round(way.drift_ppm, 4),
        laid.matches if laid else basis.matches if basis else 0,
        round(basis.residuals.median) if basis and basis.residuals.n and not laid else None,
        tuple(map(str, warnings)),
        str(laid.note) if laid else "",
        host,
        source.rank,
        source.world_size,
        way.two_hosts,
    )
