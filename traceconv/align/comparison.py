"""Compare what events say with what files or the user say about clocks.

Files that their events contradict are refused, or moved if only the zone of a local time was guessed. Statements of the
user are used as they are: events that contradict them make warnings only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.anchors import Instant
from traceconv.align.candidates import LEAST_MARGIN
from traceconv.align.constraints import NameMap
from traceconv.align.domains import Key, Warnings
from traceconv.align.duplicates import same_recording
from traceconv.align.estimate import MOST_RIVALS, Method, PairEstimate, is_accepted, relined, stated_outer
from traceconv.align.evidence import by_statement, estimate_pair
from traceconv.align.inputs import (
    ClockInput,
    Inputs,
    Placed,
    Policy,
    allowed_ns,
    is_timed,
    of_other_pids,
    resolutions_ns,
)
from traceconv.align.launches import early_work, host_and_device
from traceconv.align.placement import local_time_of, zone_behind, zone_text
from traceconv.errors import InconsistentClocks
from traceconv.io.shown import listed
from traceconv.model.clocks import (
    DRIFT_UNIT,
    HOSTS_DRIFT,
    ONE_HOST_DRIFT,
    WELL_KNOWN_NS,
    ClockDomain,
    ClockGraph,
    ClockMap,
    Verdict,
)
from traceconv.model.numbers import earlier_or_later, format_option, format_short, format_time, format_uncertainty
from traceconv.model.source_info import Layer

#: With at most this many inputs the events of all pairs are compared. Not tuned: 15 pairs take some seconds.
ALL_PAIRS = 6
#: Statements about inputs with more slices are not checked here: that takes minutes.
_MOST_SLICES = 50_000
#: How far estimates by activity must be from what files state to contradict it: this, ns, and this many times both
#: bounds, since their own bound is a probable one. Not tuned: the worst of all recorded ones was 0.8 ms off.
_LEAST_CONTRADICTION_NS = 1_000_000
_CONTRADICTED_BOUNDS = 10
_FIT_AT_SEVERAL = "its events do not fit those of {} at this offset, but at several others"
#: If events are certain of no offset, they are compared again this far around the one that the user states, ns.
_NEAR_NS = (50_000, _LEAST_CONTRADICTION_NS)


def contradiction(
    a: ClockInput, b: ClockInput, known: ClockMap, policy: Policy, earlier: PairEstimate | None
) -> tuple[PairEstimate | None, Warnings]:
    """Return the estimate that contradicts what files state or assume about two clocks, and warnings about the check.

    The estimate must be certain, and further from the statement than the bounds of both allow. What the user states is
    not checked here.

    Args:
        known: the map from a to b by the files.
        earlier: the estimate for offsets near to that map, if there is one.
    """
    is_stated = known.verdict is Verdict.OK  # else it is assumed
    if known.by_user or (known.bound_ns is None and not is_stated):
        return None, ()
    if is_stated and known.bound_ns is not None:
        if _has_too_many_slices(a, b):
            has_check_of_calls = stated_outer(a, b) is not None and Layer.DEVICE not in (a.layer, b.layer)
            text = (
                f"its clock was not checked against the events of {b.name}: there are more than {_MOST_SLICES} slices"
            )
            return None, () if has_check_of_calls else [(a.key, text)]
        if _tell_no_more(a, b):
            return None, ()
    allowed = allowed_ns(known, a, b)
    if is_stated and _confirmed(a, b, known, policy.names, allowed):
        return None, ()
    estimate, fits_elsewhere = _searched(a, b, known, policy.names, earlier, allowed)
    if fits_elsewhere:
        return None, [(a.key, f"{_FIT_AT_SEVERAL.format(b.name)}: a clock is wrong, or they are of two runs")]
    if estimate is None or not is_accepted(estimate.estimate, same_run=policy.same_run):
        return None, ()
    return estimate if _contradicts(estimate, known, allowed) else None, ()


def _confirmed(a: ClockInput, b: ClockInput, stated: ClockMap, names: NameMap, allowed: int) -> bool:
    """Return whether the events match at the stated offset as those of one run do; other offsets are not tried."""
    pair = by_statement(a, b, stated, names) if stated.bound_ns is not None else None
    if pair is None or pair.estimate.verdict is not Verdict.OK:
        return False
    return not _contradicts(pair, stated, allowed)


def _searched(
    a: ClockInput, b: ClockInput, known: ClockMap, names: NameMap, earlier: PairEstimate | None, allowed: int
) -> tuple[PairEstimate | None, bool]:
    """Return the estimate near to what files say, or at any offset; and whether names fit at several others instead."""
    if known.bound_ns is None:
        return earlier, False
    is_stated, estimate = known.verdict is Verdict.OK, earlier
    if known.bound_ns < _LEAST_CONTRADICTION_NS:
        estimate = estimate_pair(a, b, replace(known, bound_ns=_LEAST_CONTRADICTION_NS), names)
    if estimate is None or not estimate.estimate.verdict.unusable:
        return estimate, False
    # Nothing is certain near to the statement. Unless that is settled, look at all offsets.
    found = estimate.estimate
    by_names, by_launches = found.method is Method.SEQUENCE, found.method is Method.LAUNCHES
    # Launches are inconsistent if they are certain of an offset that is not near.
    is_far = by_launches and found.verdict is Verdict.INCONSISTENT
    is_settled = found.verdict is not Verdict.INSUFFICIENT if by_names else is_stated and not is_far
    if is_settled:
        return None, is_stated and _names_fit_at_several(estimate) and not _fits(estimate, known, allowed)
    estimate = estimate_pair(a, b, None, names)
    return estimate, is_stated and estimate is not None and _names_fit_at_several(estimate)


def _contradicts(pair: PairEstimate, known: ClockMap, allowed: int) -> bool:
    """Return whether an accepted estimate is certain enough, and too far from what files say."""
    is_stated, by_names = known.verdict is Verdict.OK, pair.estimate.method is Method.SEQUENCE
    # An assumption is moved without asking: named events must be very certain for that.
    if by_names and not is_stated and pair.estimate.margin < 2 * LEAST_MARGIN:
        return False
    least = allowed + pair.bound_ns
    if is_stated and not by_names and pair.estimate.method is not Method.LAUNCHES:
        least = _CONTRADICTED_BOUNDS * least + _LEAST_CONTRADICTION_NS
    return min(abs(pair.clock_map.at(ts) - known.at(ts)) for ts in pair.a.span) > least


def _tell_no_more(a: ClockInput, b: ClockInput) -> bool:
    """Return whether events of two clocks cannot contradict what files state of them.

    Near to a statement, samples and counters are searched less far than an estimate by them would have to be from it.
    Equal times of one recording that is given twice tell the offset exactly.
    """
    have_slices = len(a.trace.slices.ts) and len(b.trace.slices.ts)
    return not have_slices and not same_recording(a.trace, b.trace)


def _has_too_many_slices(a: ClockInput, b: ClockInput) -> bool:
    return max(len(a.trace.slices.ts), len(b.trace.slices.ts)) > _MOST_SLICES


def _names_fit_at_several(pair: PairEstimate) -> bool:
    """Return whether named events fit at several offsets."""
    return pair.estimate.verdict is Verdict.AMBIGUOUS and pair.estimate.method is Method.SEQUENCE


def _fits(pair: PairEstimate, stated: ClockMap, allowed: int) -> bool:
    """Return whether one of the offsets at which uncertain events fit is the stated one, to within some ns."""
    if pair.estimate.verdict is Verdict.INSUFFICIENT:
        return False
    if len(pair.estimate.rivals) >= MOST_RIVALS:
        return True  # there may be more than are listed
    start = pair.a.span[0]
    apart, sign = pair.clock_map.at(start) - stated.at(start), -1 if pair.swapped else 1
    all_apart = [apart, *(apart + sign * offset for offset in pair.rival_offsets())]
    return any(abs(away) <= allowed + (pair.clock_map.bound_ns or _LEAST_CONTRADICTION_NS) for away in all_apart)


def _sources_of(known: ClockMap) -> str:
    """Return where a map of the files is known from, each source once."""
    return listed(dict.fromkeys(step.text for step in known.steps), ", then ") or "as both files state them"


def moved_by_zone(pair: PairEstimate, known: ClockMap, assumed: Sequence[ClockInput]) -> tuple[ClockInput, str]:
    """Return the clock whose local time was read in a wrong zone, as its events show, and the warning for it.

    Args:
        pair: the estimate that contradicts the files.
        known: the map from a to b of the pair by the files.
        assumed: those of the two clocks whose relation to trace time was only assumed.

    Raises:
        InconsistentClocks: no other zone of a guessed local time explains the contradiction.
    """
    apart = pair.clock_map.at(pair.a.span[0]) - known.at(pair.a.span[0])
    # A log whose writer took local time for UTC is moved, rather than the framework whose operators hold its calls.
    moved = pair.b if stated_outer(pair.a, pair.b) is pair.a else pair.a
    moves = [(side, apart if side is pair.a else -apart) for side in assumed or [moved]]
    options: list[str] = []
    for side, move in moves:
        local = local_time_of(side.trace, side.clock)
        zone = zone_behind(local, move, (known.bound_ns or 0) + pair.bound_ns) if local else None
        if local is None or zone is None:
            continue
        option = f"--tz {quote(side.name)}={zone_text(zone)}"
        if local.guessed:
            other = (pair.b if side is pair.a else pair.a).name
            was, fits = zone_text(local.ahead_ns), zone_text(zone)
            matches = pair.estimate.matches
            return side, (
                f"its local time was read as {was}, but {matches} matches with {other} fit only in {fits}; "
                f"{fits} is used: {option} states it"
            )
        options.append(option)
    side, move = moves[0]
    at_start, at_end = (pair.clock_map.at(ts) - known.at(ts) for ts in pair.a.span)
    within = abs(at_end - at_start) + pair.bound_ns
    settle = f"{listed(options, ' and ')} would agree with the events; " if options else ""
    raise InconsistentClocks(
        f"{pair.a.name} and {pair.b.name}: their clocks ({_sources_of(known)}) contradict their "
        f"events: {pair.estimate.matches} events fit only if {side.name} is moved by "
        f"{format_time(move)}",
        hint=(
            f"{settle}--offset {quote(side.name)}={format_option(move)}~{format_uncertainty(within)} "
            "follows the events; --anchor names one event in both files"
        ),
        pairs=[pair],
    )


def refuse_early_work(host: ClockInput, device: ClockInput, known: ClockMap) -> None:
    """Refuse what files state of two clocks if work of a device starts before the calls that launched it.

    Args:
        host, device: the clock of the calls, and that of the work.
        known: the map from the former to the latter.

    Raises:
        InconsistentClocks: work starts too early by more than the bounds of the files.
    """
    if known.verdict is not Verdict.OK or known.by_user:
        return
    allowed = allowed_ns(known, host, device)
    early = early_work(host.trace, host.clock, device.trace, device.clock, (known, ClockMap()), allowed)
    if early is not None:
        raise InconsistentClocks(
            f"{host.name} and {device.name}: their clocks ({_sources_of(known)}) contradict their events: "
            f"{early[0]}, and at most {format_time(allowed)} is possible",
            hint=f"if you know the offset: --offset {quote(device.name)}=TIME; it is at least {format_time(early[1])}",
        )


def _launching(inputs: Inputs, clocks: Sequence[ClockInput]) -> Iterator[tuple[ClockInput, ClockInput]]:
    """Yield each clock of calls with each clock of the work that they launched, if they are in two files."""
    if files := host_and_device(inputs.traces):
        hosts, devices = ([clock for clock in clocks if clock.index == index] for index in files)
        yield from product(hosts, devices)


class Doubt(Struct, frozen=True):
    """An estimate that contradicts the user.

    Attributes:
        pair: the estimate.
        at_start, at_end: by how much it would move clock a of the pair, at its first and at its last time, ns.
        allowed: by how much it may without a contradiction, ns; 0 if events fit at several offsets, all others.
        is_weak: whether the estimate itself is not certain.
        agrees: whether it contradicts nothing, but is less exact than the user.
    """

    pair: PairEstimate
    at_start: int
    at_end: int
    allowed: int
    is_weak: bool = False
    agrees: bool = False

    @property
    def apart_ns(self) -> int | None:
        """How wrong the user's place may be by the events, ns; None if they fit at several offsets."""
        return max(abs(self.at_start), abs(self.at_end)) + (self.pair.clock_map.bound_ns or 0) if self.allowed else None

    def warning(self, side: ClockInput) -> str:
        """Return the warning for one of the two clocks."""
        is_a = side.key == self.pair.a.key
        moves = (self.at_start, self.at_end) if is_a else (-self.at_start, -self.at_end)
        other = (self.pair.b if is_a else self.pair.a).name
        if not self.allowed:
            return _FIT_AT_SEVERAL.format(other)
        is_steady = abs(moves[1] - moves[0]) <= self.allowed
        start, end = map(earlier_or_later, moves)
        where = start if is_steady else f"{start} at its start and {end} at its end"
        estimate = self.pair.estimate
        if self.is_weak:
            return (
                f"its events and those of {other} would fit better {where}, but that is {estimate.verdict}: "
                f"{estimate.reason}"
            )
        text = (
            f"its events and those of {other} fit {where} ({estimate.matches} matches, within "
            f"{format_time(self.allowed)})"
        )
        if side.offset is None or not is_steady:
            return text
        within = abs(moves[1] - moves[0]) + self.pair.bound_ns
        move = side.offset.offset_ns + moves[0]
        return f"{text}; --offset {quote(side.name)}={format_option(move)}~{format_uncertainty(within)} would agree"


def doubted(inputs: Inputs, placed: Placed, policy: Policy) -> Placed:
    """Return the clocks with warnings for those of the user that events contradict, and bounds that contain the events.

    Args:
        placed: the clocks on trace time, with the earlier estimates; these pairs are not compared again.
    """
    maps, pairs = placed.maps, placed.pairs
    bounds: dict[Key, int | None] = {}
    placed_clocks = [clock for clock in inputs.clocks if is_timed(clock, maps)]
    many = len({clock.index for clock in placed_clocks}) > ALL_PAIRS
    warnings: dict[Key, str] = {}
    new: list[PairEstimate] = []
    for a, b in combinations(placed_clocks, 2):
        if a.index == b.index or not (maps[a.key].by_user or maps[b.key].by_user) or of_one_tool(a, b):
            continue
        if of_other_pids(a, b, inputs.clocks) or (many and of_other_events(a, b, pairs)):
            continue
        stated = maps[a.key].then(maps[b.key].inverse())
        doubt = _doubt(a, b, stated, policy.names, [*pairs, *new], inputs.stated.instants)
        if doubt is not None:
            clock = b if maps[b.key].by_user else a
            bounds[clock.key] = _wider(bounds.get(clock.key, 0), doubt.apart_ns)
            if not doubt.agrees:
                new += [] if doubt.pair in pairs else [doubt.pair]
                warnings.setdefault(clock.key, doubt.warning(clock))
    for host, device in _launching(inputs, placed_clocks):
        sides = maps[host.key], maps[device.key]
        by_user = [clock.key for clock in (host, device) if maps[clock.key].by_user]
        allowed = allowed_ns(sides[0].then(sides[1].inverse()), host, device)
        early = early_work(host.trace, host.clock, device.trace, device.clock, sides, allowed) if by_user else None
        if early is not None:
            text = f"the clocks of {host.name} and {device.name} contradict their events: {early[0]}"
            warnings.setdefault(by_user[-1], text)
            bounds[by_user[-1]] = _wider(bounds.get(by_user[-1], 0), early[1])
    for clock, apart in _unconfirmed_drifts(inputs, placed_clocks):
        if clock.key not in bounds:
            bounds[clock.key] = apart
            if apart > (maps[clock.key].bound_ns or 0) + clock.domain.resolution_ns:
                text = f"its file places it up to {format_short(apart)} elsewhere, and no events confirm --drift"
                warnings.setdefault(clock.key, text)
    wider = {key: replace(maps[key], bound_ns=_wider(maps[key].bound_ns, apart)) for key, apart in bounds.items()}
    said = [*placed.warnings, *warnings.items()]
    return replace(placed, maps={**maps, **wider}, pairs=[*pairs, *new], warnings=said)


def _unconfirmed_drifts(inputs: Inputs, placed: Sequence[ClockInput]) -> Iterator[tuple[ClockInput, int]]:
    """Yield the clocks whose --drift the files contradict, and by how much it moves their times at most, ns.

    Files contradict any drift of a clock that they call the same as that of another file, and else one that is greater
    than that of two hosts.
    """
    by_files = inputs.of_files.maps_to(inputs.target)
    for clock in placed:
        others = [other for other in placed if other.index != clock.index and other.correction != clock.correction]
        others = [other for other in others if other.domain in by_files]
        if not (clock.correction.steps and others and clock.domain in by_files):
            continue
        is_same = any(clock.domain.same_timebase(other.domain) for other in others)
        if abs(clock.correction.drift_ppm) > (0 if is_same else HOSTS_DRIFT * 1e6):
            yield clock, max(abs(clock.correction.at(ts) - ts) for ts in clock.span)


def _wider(bound_ns: int | None, apart_ns: int | None) -> int | None:
    """Return the greater of two bounds, ns; None if one is not known."""
    return None if bound_ns is None or apart_ns is None else max(bound_ns, apart_ns)


def _doubt(
    a: ClockInput,
    b: ClockInput,
    stated: ClockMap,
    names: NameMap,
    earlier: Sequence[PairEstimate],
    instants: Sequence[Instant],
) -> Doubt | None:
    """Return the estimate for two clocks that contradicts the user; None if events agree or tell nothing."""
    if _has_too_many_slices(a, b):
        return None
    keys = a.key, b.key
    # An estimate near a wrong offset says nothing about other offsets.
    known = [pair for pair in earlier if pair.keys == keys and (pair.known is None or is_accepted(pair.estimate))]
    estimate = known[0] if known else estimate_pair(a, b, None, names)
    if estimate is None:
        return None
    instants = [instant for instant in instants if (instant.clock, instant.other) == keys]
    within = max((instant.within_ns for instant in instants), default=stated.bound_ns or 0)
    allowed = within + resolutions_ns(a, b)
    if estimate.estimate.verdict is not Verdict.OK:
        bounds = (replace(stated, bound_ns=max(stated.bound_ns or 0, within)) for within in _NEAR_NS)
        near = [pair for clock_map in bounds if (pair := estimate_pair(a, b, clock_map, names)) is not None]
        certain = [pair for pair in near if pair.estimate.verdict is Verdict.OK]
        if not certain:
            return _weak_doubt(estimate, near, stated, allowed)
        estimate = certain[0]
    if estimate.clock_map.bound_ns is None:
        return None
    allowed += estimate.clock_map.bound_ns
    times = [instant.ts for instant in instants]
    knots = [bend.at_ns for bend in estimate.clock_map.bends if a.span[0] < bend.at_ns < a.span[1]]
    sides = [ts for knot in knots for ts in (knot - 1, knot)]
    compared = (min(times), max(times)) if times else (*a.span, *sides)
    apart = [estimate.clock_map.at(ts) - stated.at(ts) for ts in compared]
    farthest = max(apart, key=abs)
    if abs(farthest) > allowed:
        return Doubt(estimate, apart[0], apart[1], allowed)
    # What says which clock it is, or what is read at an instant, may be more exact than events are.
    by_number = any(side.offset is not None or side.correction.steps for side in (a, b))
    return Doubt(estimate, farthest, farthest, allowed, agrees=True) if by_number else None


def _weak_doubt(pair: PairEstimate, near: Sequence[PairEstimate], stated: ClockMap, allowed: int) -> Doubt | None:
    """Return the doubt by events that are certain nowhere; None if they fit what the user states, or fit too little."""
    if _names_fit_at_several(pair):
        return None if any(_fits(found, stated, allowed) for found in near) else Doubt(pair, 0, 0, 0)
    is_weak = pair.estimate.verdict in (Verdict.AMBIGUOUS, Verdict.UNVERIFIED) and pair.estimate.matches > 0
    if not is_weak or _fits(pair, stated, allowed):
        return None
    at_start, at_end = (pair.clock_map.at(ts) - stated.at(ts) for ts in pair.a.span)
    allowed += pair.clock_map.bound_ns or _LEAST_CONTRADICTION_NS
    return Doubt(pair, at_start, at_end, allowed, is_weak=True)


def contradicts_anchor(pair: PairEstimate, instants: Sequence[Instant]) -> bool:
    """Return whether an estimate contradicts an anchor between its two clocks, beyond the bounds of both."""
    within = pair.bound_ns + resolutions_ns(pair.a, pair.b)
    anchors = (instant for instant in instants if (instant.clock, instant.other) == pair.keys)
    return any(abs(pair.clock_map.at(anchor.ts) - anchor.other_ts) > within + anchor.within_ns for anchor in anchors)


def of_one_tool(clock: ClockInput, other: ClockInput) -> bool:
    """Return whether two recordings are of one tool, and so of different events, such as those of two ranks of a job.

    A tool records each event once. So equal work in both is work at different times and relates no clocks.
    """
    sources = [side.trace.sources[0] for side in (clock, other)]
    one_tool = sources[0].format == sources[1].format and not sources[0].marks.any_tool
    return one_tool and not same_recording(clock.trace, other.trace)


def of_other_events(
    first: ClockInput,
    second: ClockInput,
    pairs: Iterable[PairEstimate],
    are_of_one_tool: Callable[[ClockInput, ClockInput], bool] = of_one_tool,
) -> bool:
    """Return whether the certain estimates of other pairs show that two recordings are of different events.

    They do if one of the two has the events of a third recording, which is of the tool of the other one. So with many
    recordings of similar work most pairs need not be compared.

    Args:
        are_of_one_tool: `of_one_tool`, or the same with a memory: with many inputs it is asked many times for each two.
    """
    for pair in pairs:
        if pair.estimate.verdict is Verdict.OK:
            for clock, other in ((first, second), (second, first)):
                if clock.key in pair.keys:
                    third = pair.b if clock.key == pair.a.key else pair.a
                    if third.index != other.index and are_of_one_tool(third, other):
                        return True
    return False


class Contradicted(Struct, frozen=True):
    """The relation of two clocks by the files, which an estimate contradicts.

    Attributes:
        known: the map from a to b of the estimate.
        maps: the maps of both clocks to trace time.
    """

    known: ClockMap
    maps: tuple[ClockMap, ClockMap]


class Finding(Struct, frozen=True):
    """The estimate for two clocks.

    Attributes:
        pair: the estimate, with whether it is used.
        contradicted: what it contradicts; None if it contradicts no file.
    """

    pair: PairEstimate
    contradicted: Contradicted | None = None


class Findings(Struct, frozen=True):
    """The clocks that were compared, their estimates, and warnings, each with its clock."""

    clocks: Sequence[ClockInput] = ()
    estimates: Sequence[Finding] = ()
    warnings: Warnings = ()


def estimates(inputs: Inputs, policy: Policy) -> Findings:
    """Return estimates for pairs of clocks, and those that contradict the files: stated relations are searched, too.

    With a few inputs all pairs are compared. Fewer would connect them, but pairs that form a loop check each other.
    With many inputs, a clock is compared with those that are related already, until no more of them become related.
    A copy of an input is compared with that input only, unless the events of that one contradict the files.

    Raises:
        InconsistentClocks: with the clocks that files state, work starts before the calls that launched it.
    """
    clocks = [clock for clock in inputs.clocks if not clock.domain.synthetic and clock.offset is None]
    with_drift = {clock.index for clock in inputs.clocks if clock.correction.steps}  # as the user states
    clocks = [side for side in clocks if side.index not in with_drift or not _is_related(side, clocks, inputs.graph)]
    graph = inputs.graph.copy()
    stated = _Relations(graph, inputs.target)
    for host, device in _launching(inputs, clocks):
        clock_map = stated.between(host, device)
        if clock_map is not None:
            refuse_early_work(host, device, clock_map)
    all_pairs = len({clock.index for clock in clocks}) <= ALL_PAIRS
    findings: list[Finding] = []
    warnings: list[tuple[Key, str]] = []
    compared: set[tuple[ClockInput, ClockInput]] = set()
    certain: list[PairEstimate] = []
    known_tools, firsts = cache(of_one_tool), _first_copies(clocks, inputs.repeats, stated)
    contradicted: set[frozenset[ClockInput]] = set()
    progress = True
    while progress:
        progress = False
        related = _Relations(graph, inputs.target)
        for a, b in combinations(clocks, 2):
            neither = a.domain not in related.maps and b.domain not in related.maps
            if a.index == b.index or (a, b) in compared or (neither and not all_pairs):
                continue
            first_a, first_b = firsts.get(a, a), firsts.get(b, b)
            if first_a is first_b and first_a not in (a, b):
                continue
            if first_a is not first_b and {first_a, first_b} != {a, b} and {first_a, first_b} not in contradicted:
                continue
            if not all_pairs and of_other_events(a, b, certain, known_tools):
                continue
            compared.add((a, b))
            # If all pairs are compared, estimates of other pairs do not count as known: loops are to check them.
            finding, more = _compared(a, b, stated if all_pairs else related, clocks, inputs, policy)
            warnings += more
            if finding is not None:
                findings.append(finding)
                if finding.contradicted is not None:
                    contradicted.add(frozenset({a, b}))
                elif finding.pair.taken:
                    pair = without_drifts(finding.pair)
                    graph.relate(a.domain, b.domain, pair.clock_map, pair.back)
                    certain.append(pair)
                    progress = True
    return Findings(clocks, findings, warnings)


def _first_copies(
    clocks: Sequence[ClockInput], repeats: Mapping[int, int], stated: _Relations
) -> dict[ClockInput, ClockInput]:
    """Return for the clocks of inputs with the content of an earlier one the same clock there.

    What the events of the first one say holds for its copies, which are compared with it alone: with many copies of a
    few files nearly all pairs would be compared again.
    """
    by_key = {clock.key: clock for clock in clocks}
    firsts: dict[ClockInput, ClockInput] = {}
    for clock in clocks:
        first = by_key.get((repeats.get(clock.index, clock.index), clock.clock))
        if first is None or first is clock or clock.correction.steps or first.correction.steps:
            continue
        digest = clock.trace.sources[0].digest
        if not digest or digest != first.trace.sources[0].digest:
            continue
        between = stated.between(clock, first)
        if between is None:
            is_same = same_recording(clock.trace, first.trace)
        else:
            is_same = not between.by_user and all(between.at(ts) == ts for ts in clock.span)
        if is_same:
            firsts[clock] = first
    return firsts


def _compared(
    a: ClockInput, b: ClockInput, known: _Relations, clocks: Sequence[ClockInput], inputs: Inputs, policy: Policy
) -> tuple[Finding | None, Warnings]:
    """Return the estimate for two clocks, None if there is nothing to compare; and warnings."""
    if len({clock.trace.sources[0].rank for clock in (a, b)} - {None}) > 1:
        return None, ()  # ranks of a job do similar work, but not the same
    rough = known.between(a, b)
    if rough is not None:
        rough = a.correction.then(rough).then(b.correction.inverse())
    # Hosts of a job do equal work at one time, so that it would seem to relate their clocks.
    of_hosts = a.wall != b.wall and rough is not None and not rough.by_user
    if (rough is not None and (of_hosts or rough.two_hosts or of_one_tool(a, b))) or _of_other_processes(a, b, clocks):
        return None, ()
    exact = rough is not None and rough.uncertainty <= WELL_KNOWN_NS  # then events may contradict it, but not refine it
    found = None if exact else estimate_pair(a, b, rough, policy.names)
    pair = None if found is None else _of_steady_clocks(found, rough)
    accepted = pair is not None and is_accepted(pair.estimate, same_run=policy.same_run)
    if accepted and pair is not None and pair.clock_map.verdict is Verdict.UNVERIFIED:
        # the user states that it is one run
        pair = replace(pair, clock_map=replace(pair.clock_map, verdict=Verdict.ASSUMED))
    warnings: Warnings = ()
    if rough is not None and (not accepted or rough.bound_ns is None):
        against, warnings = contradiction(a, b, rough, policy, found)
        if against is not None:
            maps = known.maps[a.domain], known.maps[b.domain]
            return Finding(replace(against, taken=True), Contradicted(rough, maps)), warnings
    if pair is None:
        return None, warnings
    taken = accepted and not contradicts_anchor(pair, inputs.stated.instants)
    return Finding(replace(pair, taken=taken)), warnings


def _of_steady_clocks(pair: PairEstimate, known: ClockMap | None) -> PairEstimate:
    """Return the estimate with no more drift than two clocks of one host have; unverified if no such line is possible.

    Its bound still contains all lines that the evidence allows. A drift that is known is taken off, one that the user
    states is the user's. Several lines have evidence of their own that a clock was slewed.
    """
    region = pair.estimate.region
    stated = pair.a.correction.steps or pair.b.correction.steps or (known is not None and known.bends)
    if pair.estimate.verdict is not Verdict.OK or region is None or stated:
        return pair
    sign = -1 if pair.swapped else 1
    before = sign * (known.drift * DRIFT_UNIT if known is not None else 0.0)
    line, least, most = pair.estimate.line, before - ONE_HOST_DRIFT, before + ONE_HOST_DRIFT
    if least <= line.drift <= most:
        return pair
    steady = min(max(line.drift, least), most)
    offsets = region.offsets_at(steady)
    if offsets is None:
        drift = sign * (line.drift - before)
        reason = (
            f"{pair.estimate.reason}; but the clocks would drift by {drift * 1e6:+.0f} ppm, "
            f"expected {ONE_HOST_DRIFT * 1e6:.0f} ppm at most within one host"
        )
        estimate = replace(pair.estimate, verdict=Verdict.UNVERIFIED, reason=reason)
        return replace(pair, estimate=estimate, clock_map=replace(pair.clock_map, verdict=Verdict.UNVERIFIED))
    line = replace(line, offset=sum(offsets) / 2, drift=steady, x0=region.x0)
    return relined(pair, line)


class _Relations:
    """Maps between the clocks of a graph, as it is when this is made.

    Two clocks of one host, which is not that of trace time, are related through the wall clock of their host: how well
    the hosts are synchronised does not matter to them. All others are related through trace time.
    """

    def __init__(self, graph: ClockGraph, target: ClockDomain) -> None:
        self._graph, self.maps = graph.copy(), graph.maps_to(target)

    def between(self, clock: ClockInput, other: ClockInput) -> ClockMap | None:
        """Return the map from one clock to another; None unless both are related to trace time."""
        clock_map, other_map = self.maps.get(clock.domain), self.maps.get(other.domain)
        if clock_map is None or other_map is None:
            return None
        if clock_map.two_hosts and other_map.two_hosts and clock.wall == other.wall:
            on_host = self._graph.maps_to(clock.wall)
            clock_map, other_map = on_host.get(clock.domain, clock_map), on_host.get(other.domain, other_map)
        return clock_map.then(other_map.inverse())


def without_drifts(pair: PairEstimate) -> PairEstimate:
    """Return the estimate for the clocks without the drifts that the user states; as it is if none is stated.

    Then no drift is left between the two, and the smaller bound of both directions holds for all of their events.
    """
    if not (pair.a.correction.steps or pair.b.correction.steps):
        return pair
    middle, bound = sum(pair.a.span) // 2, pair.clock_map.bound_ns
    if pair.back_bound_ns is not None and (bound is None or pair.back_bound_ns < bound):
        middle, bound = pair.back.at(sum(pair.b.span) // 2), pair.back_bound_ns
    at, at_other = pair.a.correction.at(middle), pair.b.correction.at(pair.clock_map.at(middle))
    clock_map = ClockMap(
        at_other - at, bound, pair.clock_map.steps, pair.clock_map.verdict, rests_on=pair.clock_map.rests_on
    )
    return replace(pair, clock_map=clock_map, back_bound_ns=clock_map.bound_ns)


def _is_related(clock: ClockInput, clocks: Sequence[ClockInput], graph: ClockGraph) -> bool:
    """Return whether a clock is related to that of any other input."""
    known = graph.maps_to(clock.domain)
    return any(other.domain in known for other in clocks if other.index != clock.index)


def _of_other_processes(first: ClockInput, second: ClockInput, clocks: Sequence[ClockInput]) -> bool:
    """Return whether two recordings are of different processes, and so share no events.

    They are if their pids differ. They are, too, if their host names differ and a third recording has one of these.
    Else the two names may mean one machine: a tool in a container has a host name of its own.
    """
    if of_other_pids(first, second, clocks):
        return True
    if first.wall.owner == second.wall.owner:
        return False
    hosts = list({clock.index: clock.wall.owner for clock in clocks}.values())
    return any(hosts.count(clock.wall.owner) > 1 for clock in (first, second))
