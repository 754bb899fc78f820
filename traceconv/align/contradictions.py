"""What events say against what files or the user say about clocks.

Files that contradict their events are refused, or moved where only the zone of a local time was guessed. The user is
contradicted by warnings only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from traceconv.align.anchors import Instant
from traceconv.align.domains import Key, Warnings
from traceconv.align.estimate import MOST_RIVALS, Method
from traceconv.align.estimators import estimate_pair
from traceconv.align.input_warnings import local_time_of, same_recording, zone_behind, zone_text
from traceconv.align.inputs import ClockInput, Inputs, Policy, Ways, is_timed, of_other_pids
from traceconv.align.launches import early_work, host_and_device
from traceconv.align.messages import Message, Text
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate, is_accepted, stated_outer
from traceconv.align.sequence_candidates import LEAST_MARGIN
from traceconv.errors import InconsistentClocks
from traceconv.model.clocks import ClockMap, Verdict
from traceconv.model.trace import Layer

#: All pairs of so many inputs are asked for what their events say. Not tuned: 15 pairs take some seconds.
ALL_PAIRS = 6
#: What files state is not held against estimates from traces with more slices: that takes minutes.
_MOST_SLICES = 50_000
#: Activity contradicts what files state from so far away on, ns, and from so many times the bounds of both on: its
#: bound is a probable one. Not tuned: the worst of all recorded estimates by activity was 0.8 ms off.
_LEAST_CONTRADICTION_NS = 1_000_000
_CONTRADICTED_BOUNDS = 10
#: So far from where the user puts a clock events are looked for that fit in several places, ns.
_NEAR_NS = (50_000, _LEAST_CONTRADICTION_NS)


def contradiction(
    a: ClockInput, b: ClockInput, known: ClockMap, policy: Policy, made: PairEstimate | None
) -> tuple[PairEstimate | None, Warnings]:
    """Return what the events are certain of, if it is something else than what files say, and what is to be said.

    The two must be further apart than the bounds of both allow. Against what a file states, activity counts only from
    far away, since its bound is a probable one. What the user says is not judged here.

    Args:
        a, b: two clocks.
        known: from a to b, as files have it.
        policy: which names mean the same work, and whether the user says that all is of one run.
        made: what the events said near to that; it is not asked again unless that was too near.
    """
    stated = known.verdict is Verdict.OK
    if known.by_user or (known.bound_ns is None and not stated):
        return None, ()
    if stated and known.bound_ns is not None and _too_many(a, b):
        checked_in_parts = stated_outer(a, b) is not None and Layer.DEVICE not in (a.layer, b.layer)
        text = Text.TOO_MANY_TO_CHECK(other=b.name, most=_MOST_SLICES)
        return None, () if checked_in_parts else [(a.key, text)]
    left_open, found = _left_open(known, a, b), made
    if known.bound_ns is not None:
        said = [(a.key, Text.WRONG_OR_TWO_RUNS(other=b.name))]
        if known.bound_ns < _LEAST_CONTRADICTION_NS:
            found = estimate_pair(a, b, replace(known, bound_ns=_LEAST_CONTRADICTION_NS), policy.names)
        if found is None:
            return None, ()
        if found.estimate.verdict.refused:
            # Events that tell no place near to what files say may tell one far from it.
            by_names = found.estimate.method is Method.SEQUENCE
            settled = found.estimate.verdict is not Verdict.INSUFFICIENT if by_names else stated
            if settled:
                elsewhere = stated and _fits_elsewhere(found) and not _fits(found, known, left_open)
                return None, said if elsewhere else ()
            found = estimate_pair(a, b, None, policy.names)
            if stated and found is not None and _fits_elsewhere(found):
                return None, said
    if found is None or not is_accepted(found.estimate, same_run=policy.same_run):
        return None, ()
    # What files state is refused, what they assume is moved: by named events only if these are very certain.
    by_names = found.estimate.method is Method.SEQUENCE
    if by_names and not stated and found.estimate.margin < 2 * LEAST_MARGIN:
        return None, ()
    least = left_open + found.bound_ns
    if stated and not by_names and found.estimate.method is not Method.LAUNCHES:
        least = _CONTRADICTED_BOUNDS * least + _LEAST_CONTRADICTION_NS
    apart = min(abs(found.way.at(ts) - known.at(ts)) for ts in a.span())
    return found if apart > least else None, ()


def _too_many(a: ClockInput, b: ClockInput) -> bool:
    return max(len(side.trace.slices.ts) for side in (a, b)) > _MOST_SLICES


def _left_open(known: ClockMap, a: ClockInput, b: ClockInput) -> int:
    """Return how far off what files state of two clocks can be, and how coarse their times are, together, ns."""
    return known.stated_bound_ns + _steps(a, b)


def _fits_elsewhere(found: PairEstimate) -> bool:
    return found.estimate.verdict is Verdict.AMBIGUOUS and found.estimate.method is Method.SEQUENCE


def _stated_by(known: ClockMap) -> Message | str:
    """Return where it is known from how two clocks relate, each way once."""
    ways = tuple(dict.fromkeys(step.text for step in known.steps))
    return Text.STEPS(steps=ways) if ways else Text.BOTH_FILES_SAY()


# -- a zone that was guessed ------------------------------------------------------------------------------------------


def moved_by_zone(pair: PairEstimate, known: ClockMap, assumed: Sequence[ClockInput]) -> tuple[ClockInput, Message]:
    """Return the clock that is not where its file puts it, since only the zone of its local time was guessed.

    Args:
        pair: what the events are certain of.
        known: what files say, from a to b of the pair.
        assumed: those of the two whose place was only assumed.

    Returns:
        The clock, and what is to be said of it.

    Raises:
        InconsistentClocks: it is more than a zone.
    """
    apart = pair.way.at(pair.a.span()[0]) - known.at(pair.a.span()[0])
    moves = [(side, apart if side is pair.a else -apart) for side in assumed or [pair.a]]
    zones: list[Message] = []
    for side, move in moves:
        local = local_time_of(side.trace, side.clock)
        zone = zone_behind(local, move, (known.bound_ns or 0) + pair.bound_ns) if local else None
        if local is None or zone is None:
            continue
        option = Text.ZONE_OPTION(file=side.name, zone=zone_text(zone))
        if local.guessed:
            other = (pair.b if side is pair.a else pair.a).name
            was, fits = zone_text(local.ahead_ns), zone_text(zone)
            matches = pair.estimate.matches
            return side, Text.ZONE_MOVED(was=was, matches=matches, other=other, zone=fits, option=option)
        zones.append(option)
    side, move = moves[0]
    settle = Text.ZONES_WOULD_AGREE(options=tuple(zones)) if zones else ""
    raise InconsistentClocks(
        Text.EVENTS_CONTRADICT(
            a=pair.a.name, b=pair.b.name, by=_stated_by(known), n=pair.estimate.matches, file=side.name, move=move
        ),
        hint=Text.BELIEVE_OR_LEAVE(settle=settle, file=side.name, move=move),
        pairs=[pair],
    )


# -- work before its launch -------------------------------------------------------------------------------------------


def refuse_early_work(host: ClockInput, device: ClockInput, ways: tuple[ClockMap, ClockMap]) -> None:
    """Refuse what files state of two clocks if work of the one starts before the calls of the other one launched it.

    Args:
        host, device: the clock of the calls, and that of the work.
        ways: how both become times of one clock.

    Raises:
        InconsistentClocks: it does, by more than the files leave open.
    """
    known = ways[0].then(ways[1].inverse())
    if known.verdict is not Verdict.OK or known.by_user:
        return
    left_open = _left_open(known, host, device)
    early = early_work(host.trace, host.clock, device.trace, device.clock, ways, left_open)
    if early is not None:
        text = Text.WORK_TOO_EARLY(
            host=host.name, device=device.name, by=_stated_by(known), early=early[0], most=left_open
        )
        raise InconsistentClocks(text, hint=Text.OFFSET_OR_LEAVE(file=device.name, move=early[1]))


# -- what the user says -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Doubt:
    """What the events say against the user.

    Attributes:
        pair: what they say.
        begin, end: by how much they would move clock a of it further, at its first and at its last time, ns.
        allowed: how much of that both leave open, ns; 0 if the events fit elsewhere, but in several places.
        weak: whether the events are not certain of it themselves.
    """

    pair: PairEstimate
    begin: int
    end: int
    allowed: int
    weak: bool = False

    def against(self, side: ClockInput) -> Message:
        """Return the warning for one of the two clocks."""
        is_a = side.key == self.pair.a.key
        moves = (self.begin, self.end) if is_a else (-self.begin, -self.end)
        other = (self.pair.b if is_a else self.pair.a).name
        if not self.allowed:
            return Text.FITS_IN_SEVERAL_PLACES(other=other)
        steady = abs(moves[1] - moves[0]) <= self.allowed
        where = Text.MOVE(move=moves[0]) if steady else Text.MOVES(begin=moves[0], end=moves[1])
        estimate = self.pair.estimate
        if self.weak:
            return Text.FITS_BETTER(other=other, where=where, verdict=estimate.verdict, reason=estimate.reason)
        text = Text.BELONGS_ELSEWHERE(other=other, where=where, n=estimate.matches, within=self.allowed)
        if side.offset is None or not steady:
            return text
        return Text.OFFSET_WOULD_AGREE(text=text, file=side.name, move=side.offset.offset_ns + moves[0])


def doubts(
    inputs: Inputs, ways: Ways, policy: Policy, pairs: Sequence[PairEstimate]
) -> tuple[list[PairEstimate], list[tuple[Key, Message]]]:
    """Return what the events say against the user, as estimates that are new and as warnings.

    Args:
        inputs: the clocks.
        ways: how they were put on trace time.
        policy: which names mean the same work.
        pairs: what was estimated before; it is not estimated again.
    """
    placed = [one for one in inputs.clocks if is_timed(one, ways)]
    many = len({one.index for one in placed}) > ALL_PAIRS
    said: dict[Key, Message] = {}
    new: list[PairEstimate] = []
    for a, b in combinations(placed, 2):
        if a.index == b.index or not (ways[a.key].by_user or ways[b.key].by_user) or of_one_tool(a, b):
            continue
        if of_other_pids(a, b, inputs.clocks) or (many and of_other_events(a, b, pairs)):
            continue
        found = doubt(
            a, b, ways[a.key].then(ways[b.key].inverse()), policy.names, [*pairs, *new], inputs.stated.instants
        )
        if found is not None:
            new += [] if found.pair in pairs else [found.pair]
            one = b if ways[b.key].by_user else a
            said.setdefault(one.key, found.against(one))
    files = host_and_device(inputs.traces)
    hosts, devices = ([one for one in placed if files and one.index == files[end]] for end in (0, 1))
    for host, device in product(hosts, devices):
        both = ways[host.key], ways[device.key]
        by_user = [one for one, way in zip((host, device), both, strict=True) if way.by_user]
        left_open = _left_open(both[0].then(both[1].inverse()), host, device)
        sides = host.trace, host.clock, device.trace, device.clock
        early = early_work(*sides, both, left_open) if by_user else None
        if early is not None:
            text = Text.EARLY_WORK_WARNING(host=host.name, device=device.name, early=early[0])
            said.setdefault(by_user[-1].key, text)
    return new, list(said.items())


def doubt(
    a: ClockInput,
    b: ClockInput,
    said: ClockMap,
    names: NameMap,
    made: Sequence[PairEstimate] = (),
    instants: Sequence[Instant] = (),
) -> Doubt | None:
    """Return what the events say, if they are certain, and of something else than what the user says.

    Args:
        a, b: two clocks.
        said: from a to b, as the user has it.
        names: which names mean the same work.
        made: what was estimated before; it is not estimated again.
        instants: the anchors: there, what the user says is more exact than anywhere else.
    """
    if _too_many(a, b):
        return None
    keys = a.key, b.key
    # What was looked for near a wrong place says nothing of other places.
    known = [one for one in made if one.keys == keys and (one.known is None or is_accepted(one.estimate))]
    found = known[0] if known else estimate_pair(a, b, None, names)
    if found is None:
        return None
    instants = [one for one in instants if (one.one, one.other) == keys]
    within = max((one.within_ns for one in instants), default=said.bound_ns or 0)
    left_open = within + _steps(a, b)
    if found.estimate.verdict is not Verdict.OK:
        bounds = (replace(said, bound_ns=max(said.bound_ns or 0, within)) for within in _NEAR_NS)
        near = [pair for way in bounds if (pair := estimate_pair(a, b, way, names)) is not None]
        fits = [pair for pair in near if pair.estimate.verdict is Verdict.OK]
        if not fits:
            if _fits_elsewhere(found):
                return None if any(_fits(pair, said, left_open) for pair in near) else Doubt(found, 0, 0, 0)
            weak = found.estimate.verdict in (Verdict.AMBIGUOUS, Verdict.UNVERIFIED) and found.estimate.matches > 0
            if not weak or _fits(found, said, left_open):
                return None
            begin, end = (found.way.at(ts) - said.at(ts) for ts in found.a.span())
            allowed = left_open + (found.way.bound_ns or _LEAST_CONTRADICTION_NS)
            return Doubt(found, begin, end, allowed, weak=True)
        found = fits[0]
    if found.way.bound_ns is None:
        return None
    seen = (min(one.ts for one in instants), max(one.ts for one in instants)) if instants else a.span()
    begin, end = (found.way.at(ts) - said.at(ts) for ts in seen)
    allowed = found.way.bound_ns + left_open
    return Doubt(found, begin, end, allowed) if max(abs(begin), abs(end)) > allowed else None


def leaves_anchor_out(pair: PairEstimate, instants: Sequence[Instant]) -> bool:
    """Return whether what the events of two clocks say leaves an anchor of the two out."""
    return any(
        abs(pair.way.at(one.ts) - one.other_ts) > pair.bound_ns + one.within_ns + _steps(pair.a, pair.b)
        for one in instants
        if (one.one, one.other) == pair.keys
    )


def of_one_tool(one: ClockInput, other: ClockInput) -> bool:
    """Return whether two recordings cannot have seen the same events, however similar their work: two ranks of a job.

    A tool that records a process records each event once, so what looks the same is of different events, and how far
    apart they are says nothing about the clocks.
    """
    sources = [side.trace.sources[0] for side in (one, other)]
    one_tool = sources[0].format == sources[1].format and not sources[0].marks.any_tool
    return one_tool and not same_recording(one.trace, other.trace)


def of_other_events(one: ClockInput, other: ClockInput, pairs: Iterable[PairEstimate]) -> bool:
    """Return whether two recordings are certain not to be of the same events, by what others are certain of.

    One of them is of the events of a third one, and this third one and the other are of one tool: with many recordings
    of similar work most need not be compared.
    """
    for pair in pairs:
        if pair.estimate.verdict is Verdict.OK:
            for mine, theirs in ((one, other), (other, one)):
                if mine.key in pair.keys:
                    third = pair.b if mine.key == pair.a.key else pair.a
                    if third.index != theirs.index and of_one_tool(third, theirs):
                        return True
    return False


def _steps(a: ClockInput, b: ClockInput) -> int:
    """Return how coarse the times of two clocks are, together, ns."""
    return a.domain.resolution_ns + b.domain.resolution_ns


def _fits(pair: PairEstimate, said: ClockMap, left_open: int) -> bool:
    """Return whether one of the places of an estimate, which is not certain of any, is that of the user."""
    if pair.estimate.verdict is Verdict.INSUFFICIENT:
        return False
    if len(pair.estimate.rivals) >= MOST_RIVALS:
        return True  # there may be more than are listed
    begin = pair.a.span()[0]
    apart, sign = pair.way.at(begin) - said.at(begin), -1 if pair.swapped else 1
    places = [apart, *(apart + sign * offset for offset in pair.rival_offsets())]
    return any(abs(place) <= left_open + (pair.way.bound_ns or _LEAST_CONTRADICTION_NS) for place in places)
