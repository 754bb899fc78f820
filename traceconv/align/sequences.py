"""Estimate the relation of two logs of the same work, whose clocks are not related, by their sequences of events.

The outer log (a: a framework) has an event around each event of the inner one (b: the library below). Some events are
missing on either side, and an outer event may hold several inner ones. Iterations repeat, so all offsets at which the
two fit are candidates:

1. Impulses of each kind are correlated by FFT, over a chunk that is short enough for a drift not to smear it. The chunk
   is the start of b, or the start of a: if the two overlap, one of them starts inside the other.
2. The best peaks are refined: each inner event is matched to the outer one that holds it, within ever smaller
   distances.
3. Each candidate is scored event by event, by the distance of the inner event from the usual position of its class in
   the outer one, at its start and at its end. The best candidate must beat every other one by a margin, block by block
   (a paired test after Vuong): with repetition, wrong offsets fit nearly as well as the right one.
4. The window grows by doubling, so that the drift is known from the whole trace and never smears.
5. Containment (an inner event lies inside its outer one) bounds the relation. The middle of the bounds is the estimate,
   since latencies are one-sided and bias a fit.

A margin does not tell one run from two runs of one programme. So a good share of b must match, closely, within feasible
bounds. That is not enough if both runs got their work at the same times, as from a load generator: unless durations
match closely, too, they must vary together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.candidates import (
    BLOCK_EVENTS,
    CONTINUOUS_NS,
    DRIFT_SLACK,
    LEAST_MARGIN,
    LEAST_PAIRS,
    PRIOR_DRIFT,
    Candidate,
    Chunk,
    candidates,
    centred,
    correlation,
    fitted,
    followed,
    last_time,
    lines_of,
    margin_over,
    margin_over_random,
    next_block,
    overlap,
    step_between,
)
from traceconv.align.estimate import OTHER_RUN, Estimate, Events, Method, Prior, Residuals, Rival, insufficient, some_of
from traceconv.align.geometry import (
    F64,
    Chain,
    Line,
    Region,
    everything,
    feasible,
    hidden_step,
    robust_line,
    since_last,
    vary_together,
)
from traceconv.align.iterations import correlation_of_deviations, correlation_within_iterations, period_of
from traceconv.align.matching import (
    BIN_NS,
    FEWEST_PAIRS,
    NEAR_NS,
    NONE,
    TRIM,
    Matcher,
    Pairs,
    ThreadStretches,
    best_near,
    bounds_of,
    could_match,
    fits_on,
    possible,
    sure_region,
)
from traceconv.io.shown import counted, listed
from traceconv.model.clocks import Verdict
from traceconv.model.numbers import format_short

# Each with its unit and what it was chosen on. "Simulated": seeds below 1000 of tests/benchmarks/alignment, "tuned":
# recordings that `TUNED` names there, as docs/alignment.md says of all thresholds; "few iterations" are recordings
# of five to ten of them, other ones than those whose figures are reported.

_US = 1e3

_GROWN_NS = 30 * _US  # Where the window grows, pairs are searched last within this distance, ns (simulated).
_LEAST_EVENTS = 8  # The fewest events on either side (simulated).
#: The least margin over an impossible offset, at which too many calls lie in no operator (few iterations).
_LEAST_MARGIN_OF_IMPOSSIBLE = 2.0
#: At an impossible offset, at most this share of the calls that match at the best one lie in operators (few
#: iterations).
_SHARE_OF_IMPOSSIBLE = 0.7
#: At the best offset, at least this share of the calls that could match lie in operators (few iterations).
_NEARLY_ALL = 0.95
_CALLS_OF_BEST = 16  # The fewest calls that match at the best offset for that (few iterations).
_CALLS_OUTSIDE = 4  # The fewest calls that do not match at an impossible one (few iterations).
_LEAST_NULL_MARGIN = 6.0  # The least margin of the only offset in a window over random ones, in sigma (simulated).
#: The log-likelihood of a call that fits, nats. Not tuned: the logarithm of 20, since about one of twenty may not fit.
_SURE_CALL = 3.0
_LEFT_OUT_ANYWAY = 2  # The number of tightest bounds that are always left out (simulated, tuned).
_LEAST_SHARE = 0.5  # The least matched share of the events of b that could match (simulated).
_GREATEST_RESIDUAL_NS = 5 * _US  # The greatest median residual of matches, ns (simulated, tuned).
#: With this share of b inside events of a, and feasible bounds, the residual may be greater: latencies vary (tuned).
_SURE_SHARE = 0.9
_STRETCHES = 20  # The most parts that the recording is divided into (simulated: a clock that is set in between).
_LEAST_OF_SHARE = 0.6  # The least share of matches in each part, relative to the whole (simulated).
#: A fitted drift is used if its standard error is this many times smaller than the range that the bounds allow (tuned).
_DRIFT_OF_FIT_SURER = 4.0
#: With this many comparable durations, a low correlation means two runs (simulated: replayed schedules).
_LEAST_CHANGES = 20
#: Rank correlations below this are low: the least of the recordings is 0.43, simulated runs of one schedule reach 0.1.
_CHANCE_TOGETHER = 0.3
_LEAST_SIGMA = 4.0  # An accepted correlation is this many sigma above zero (simulated).
#: A call that follows another one within this time did not wait for a schedule, ns (few iterations).
_AT_ONCE_NS = 300 * _US
_MANY_MATCHES = 24  # With this many matches, all of them close, two runs would have drifted apart (few iterations).
#: The most outer events that are compared to see whether their matches lie inside. Not tuned: limits time.
_COMPARED_EVENTS = 2000
#: The distance between offsets at which lines match by chance, ns. Not tuned: longer than most operators.
_CHANCE_MOVE_NS = 777 * _US


def align_sequences(
    a: Events, b: Events, prior: Prior, nest: ThreadStretches | None = None, *, inside: bool = True
) -> Estimate:
    """Return the relation of the clock of a to that of b.

    Args:
        a: the outer events.
        b: the inner events.
        prior: the known limits of offset and drift, which narrow the search.
        nest: the nested work of the threads of a, with all events of b, if that holds more than a and b.
        inside: whether it is known that the matched work of b lies inside that of a. Otherwise durations must show it:
            work that a queue runs later may fit into calls as well, and bounds that rest on that are wrong.
    """
    estimate = _by_places(a, b, prior, nest, inside=inside)
    if estimate.verdict is Verdict.OK:
        estimate = _of_one_run(a, b, estimate)
    return estimate if inside or estimate.verdict is not Verdict.OK else _seen_inside(a, b, estimate)


def align_at(a: Events, b: Events, prior: Prior, nest: ThreadStretches | None) -> Estimate:
    """Return the relation by the pairs in the middle of the known offsets, as `align_sequences`, without a search."""
    line = Line((prior.low + prior.high) / 2, 0.0, 0.0)
    line = replace(line, x0=float(np.mean(overlap(a, b, line))))
    return _judged(a, b, _grown(a, b, line, float(b.start[-1]), prior), prior, _Rivalry(), nest)


def _by_places(a: Events, b: Events, prior: Prior, nest: ThreadStretches | None, *, inside: bool) -> Estimate:
    """Return the best relation of the two, without a test for one run."""
    if len(a) < _LEAST_EVENTS or len(b) < _LEAST_EVENTS:
        few = (
            f"both files show the same kinds of work in {counted(min(len(a), len(b)), 'event')} only, "
            f"expected at least {_LEAST_EVENTS}"
        )
        return insufficient(Method.SEQUENCE, few)
    tried = []
    for chunk in Chunk.starts(a, b, prior):
        estimate = _from_chunk(a, b, chunk, prior, nest, inside=inside)
        if estimate.verdict is Verdict.OK and estimate.margin >= LEAST_MARGIN:
            return estimate
        tried.append(estimate)
    order = (Verdict.AMBIGUOUS, Verdict.OK)
    return max(tried, key=lambda found: (order.index(found.verdict) if found.verdict in order else -1, found.matches))


def _from_chunk(
    a: Events, b: Events, chunk: Chunk, prior: Prior, nest: ThreadStretches | None, *, inside: bool
) -> Estimate:
    x0 = float(np.mean(chunk.a.span))  # a time of clock a near the evidence
    if prior.known and chunk.of_b:
        x0 = float(np.mean(chunk.b.span)) - (prior.low + prior.high) / 2
    offsets, heights = correlation(chunk, prior)
    if not len(offsets):
        return insufficient(
            Method.SEQUENCE, "the events of both files do not overlap at any offset that their clocks allow"
        )
    places = candidates(chunk, x0, prior, offsets, heights)
    if not places:
        return insufficient(Method.SEQUENCE, "the events of both files fit at no offset")
    best, *rivals = places
    margins = [margin_over(best.score, rival.score) for rival in rivals]
    if nest is not None and min(margins, default=np.inf) < LEAST_MARGIN:
        margins = _margins_by_nesting(chunk, places, margins, nest, prior)
    margin = min(margins, default=np.inf)
    null = np.inf if rivals else margin_over_random(chunk, best, offsets)
    until = float(chunk.b.start[-1]) if chunk.of_b else float(best.line.map(chunk.a.start[-1]))
    unbeaten = [rival for rival, by in zip(rivals, margins, strict=True) if by < LEAST_MARGIN]
    if inside and margin >= _LEAST_MARGIN_OF_IMPOSSIBLE:
        unbeaten = _possible(chunk, best, unbeaten)
    spacing = min((abs(rival.line.offset - best.line.offset) for rival in unbeaten), default=np.inf)
    rivalry = _Rivalry(rivals, len(unbeaten), spacing, margin, null, (offsets, heights))
    estimate = _judged(a, b, _grown(a, b, best.line, until, prior), prior, rivalry, nest)
    if estimate.verdict not in (Verdict.OK, Verdict.INSUFFICIENT):
        return estimate
    ended = _with_ends(a, b, estimate)
    if Verdict.OK in (estimate.verdict, ended.verdict):
        return ended
    begin = _judged(chunk.a, chunk.b, best.line, prior, rivalry, nest)
    if begin.verdict is not Verdict.OK:
        return estimate
    # The start fits and the rest does not: the clocks are not related by one line.
    span = chunk.b.span if chunk.of_b else chunk.span
    reason = (
        f"the first {format_short(span[1] - span[0])} fit ({begin.matches} events), but the whole "
        f"does not ({estimate.matches} events): a clock was set in between, or its rate changed"
    )
    return _along_lines(a, b, estimate, best.line, reason)


def _with_ends(a: Events, b: Events, estimate: Estimate) -> Estimate:
    """Return the answer along one line, unless a clock was set: then unmatched events at one end fit together."""
    for at_begin in (True, False):
        over_a, over_b = _left_over(a, b, estimate, at_begin=at_begin)
        if min(len(over_a), len(over_b)) < _LEAST_EVENTS or 2 * len(over_b) > len(b):
            continue
        rest = _by_places(over_a, over_b, Prior(), None, inside=False)
        if rest.verdict is Verdict.OK:
            reason = (
                f"{estimate.matches} events match, {rest.matches} more at the {'start' if at_begin else 'end'} match "
                "at another offset: a clock was set"
            )
            return _along_lines(a, b, estimate, (rest if at_begin else estimate).line, reason)
    return estimate


def _left_over(a: Events, b: Events, estimate: Estimate, *, at_begin: bool) -> tuple[Events, Events]:
    """Return the events of both before most of b matches, or after it; a single match by chance does not end them."""
    line = estimate.line
    matched = np.full(len(b), -_LEAST_OF_SHARE)
    if estimate.pairs is not None:
        matched[np.asarray(estimate.pairs[1])] += 1
    if at_begin:
        until = int(np.argmin(np.concatenate(([0.0], np.cumsum(matched)))))
        part_b = slice(0, until)
        part_a = slice(0, int(np.searchsorted(a.start, line.back(b.start[min(until, len(b) - 1)]))))
    else:
        since = len(b) - int(np.argmin(np.concatenate(([0.0], np.cumsum(matched[::-1])))))
        part_b = slice(since, len(b))
        part_a = slice(int(np.searchsorted(a.start, line.back(b.end[max(since - 1, 0)]), "right")), len(a))
    return a.take(part_a), b.take(part_b)


def _along_lines(a: Events, b: Events, whole: Estimate, line: Line, reason: str) -> Estimate:
    """Return the answer along several lines, the first near one at the start of b; without them, refused."""
    lines, why = _lines(a, b, line)
    refused = replace(whole, verdict=Verdict.INCONSISTENT, reason=f"{reason}; {why}" if why else reason)
    if len(lines) < 2:
        return refused
    pairs, share, least = _matched(a, b, Chain(lines))
    residuals = Residuals.of_differences(pairs.begin)
    if share < _LEAST_SHARE or least < _LEAST_OF_SHARE * share or residuals.median > _GREATEST_RESIDUAL_NS:
        return refused
    changes = [_change(earlier, later) for earlier, later in pairwise(lines)]
    matched = f"{len(pairs)} events match, {share:.0%} of those that could"
    return replace(
        whole,
        verdict=Verdict.OK,
        reason=f"{matched}, in {len(lines)} segments of time: {listed(changes)}",
        chain=Chain(lines),
        matches=len(pairs),
        residuals=residuals,
        pairs=(pairs.a, pairs.b),
        residual_times=a.start[pairs.a],
        residual_values=pairs.begin,
    )


def _lines(a: Events, b: Events, line: Line) -> tuple[tuple[Line, ...], str | None]:
    """Return the lines that relate two clocks one after the other, from one at the start of b."""
    rough, end = followed(a, b, line)
    lines = lines_of(a, b.take(slice(0, end)), rough)
    if not lines:
        return (), "it is not clear how"
    size = len(next_block(b, end)) if end < len(b) else 0
    if not size:
        return lines, None
    rest = b.take(slice(end + size, len(b)))
    last = lines[-1]
    estimate = _by_places(a, rest, Prior(), None, inside=False) if len(rest) >= LEAST_PAIRS else None
    if estimate is None or estimate.verdict.unusable:
        if float(b.start[end]) > last_time(a, last):
            return lines, None
        return (), (
            f"from {format_short(float(b.start[end] - b.start[0]))} after the start on, the events fit at "
            "no offset with certainty"
        )
    after = estimate.chain.lines
    doubt, step = step_between(a, b, slice(max(end - size, 0), end + size), last, after[0])
    if step < -CONTINUOUS_NS:
        return (), f"a clock was set back by {format_short(-step)}, so that some of its times occurred twice"
    return (*lines, replace(after[0], begin=sum(doubt) / 2, doubt=doubt), *after[1:]), None


def _change(earlier: Line, later: Line) -> str:
    """Return in words what the clock did between two lines."""
    knot = np.array(later.begin)
    step = float(later.map(knot) - earlier.map(knot))
    if abs(step) > CONTINUOUS_NS:
        change = f"a clock was set {'ahead' if step > 0 else 'back'} by {format_short(abs(step))}"
    else:
        change = f"the drift changed from {earlier.drift * 1e6:+.2f} to {later.drift * 1e6:+.2f} ppm"
    return f"{change} {format_short(later.begin)} after the start"


# -- candidates -----------------------------------------------------------------------------------------------------


class _Rivalry(Struct, frozen=True):
    """The rivals of the best candidate; `spacing` is the least distance of one that it does not beat, ns."""

    rivals: Sequence[Candidate] = ()
    unbeaten: int = 0
    spacing: float = np.inf
    margin: float = np.inf
    null: float = np.inf
    landscape: tuple[F64, F64] | None = None


def _possible(chunk: Chunk, best: Candidate, rivals: list[Candidate]) -> list[Candidate]:
    """Return the rivals that can be right; all of them unless the best candidate holds nearly all calls."""
    # If nearly all calls lie inside operators at one offset, others at which many lie in none are impossible. That
    # needs no blocks, of which a short recording has too few.
    pairs, share, _ = _matched(chunk.a, chunk.b, best.line)
    if share < _NEARLY_ALL or len(pairs) < _CALLS_OF_BEST:
        return rivals
    possible = []
    for rival in rivals:
        held, held_share, _ = _matched(chunk.a, chunk.b, rival.line)
        outside = len(held) / max(held_share, 1e-9) - len(held)
        if held_share > _SHARE_OF_IMPOSSIBLE * share or outside < _CALLS_OUTSIDE:
            possible.append(rival)
    return possible


def _margins_by_nesting(
    chunk: Chunk, places: list[Candidate], margins: list[float], nest: ThreadStretches, prior: Prior
) -> list[float]:
    """Return the margins of the best candidate over the others by the slices around calls, where these are greater."""
    first, last = chunk.b.span if chunk.of_b else (-np.inf, np.inf)
    rows = np.flatnonzero((nest.calls.start >= first) & (nest.calls.end <= last))
    fits = []
    for place in places:
        line = place.line  # the candidate is first moved to where most calls fit
        low, high = line.map(np.array(chunk.span)) if not chunk.of_b else (first, last)
        seen = rows[(nest.calls.start[rows] >= low) & (nest.calls.end[rows] <= high)]
        fitting = np.zeros(len(nest.calls))
        if len(seen) >= _LEAST_EVENTS:
            turns = (line.drift - prior.max_drift / 4, line.drift + prior.max_drift / 4)
            fitting[seen] = fits_on(nest, seen, best_near(nest, seen, line, 2 * chunk.bin, turns))
        fits.append(_SURE_CALL * fitting[rows])
    return [max(margin, margin_over(fits[0], other)) for margin, other in zip(margins, fits[1:], strict=True)]


# -- the whole trace ------------------------------------------------------------------------------------------------


def _grown(a: Events, b: Events, line: Line, until: float, prior: Prior) -> Line:
    """Return the line through all of b, by doubling the part that a line through its start fits."""
    matcher = Matcher(a, b)
    first = float(line.map(a.start[0]))
    last = min(float(b.start[-1]), float(line.map(np.array(a.span[1]))) + BIN_NS)
    begin = int(np.searchsorted(b.start, first - BIN_NS))
    while True:
        part = b.take(slice(begin, int(np.searchsorted(b.start, until, "right"))))
        for tolerance in (BIN_NS, _GROWN_NS):
            pairs = matcher.part(part).pairs(line, tolerance)
            if len(pairs) < FEWEST_PAIRS:
                break
            line, _ = fitted(a, part, pairs, line, prior)
            line = centred(a, part, pairs, line, prior)
        if until >= last:
            return line
        until = min(max(first + 2 * (until - first), until + 1e6), last)


def _matched(a: Events, b: Events, line: Line | Chain) -> tuple[Pairs, float, float]:
    """Return the pairs, the share of the events of b that could match and do, and the least share along the way."""
    pairs = Matcher(a, b).pairs(line, NEAR_NS)
    hit = np.zeros(len(b), bool)
    hit[pairs.b] = True
    hit = hit[could_match(a, b, line) | hit]
    if not len(hit):
        return pairs, 0.0, 0.0
    share = float(hit.mean())
    blocks = np.array_split(hit, min(_STRETCHES, max(1, len(hit) // BLOCK_EVENTS)))
    chance = [2 * np.sqrt(share * (1 - share) / len(block)) for block in blocks]
    return pairs, share, min(float(block.mean()) + more for block, more in zip(blocks, chance, strict=True))


def _by_chance(a: Events, b: Events, line: Line, pairs: Pairs, share: float) -> float:
    """Return the share of the pairs that are of lines of another process, and near an operator by chance."""
    # Lines of another process lie in no operator. How many more lie near one by chance is seen at other offsets.
    outside = len(pairs) / max(share, 1e-9) - len(pairs)
    if share >= _SURE_SHARE or not len(pairs):
        return 0.0
    some = b.take(some_of(np.flatnonzero(could_match(a, b, line)), _COMPARED_EVENTS))
    matcher = Matcher(a, some)
    moves = [at * sign * _CHANCE_MOVE_NS for at in (1, 2, 3) for sign in (-1, 1)]
    found = [matcher.holding(line.shifted(move), NEAR_NS) != NONE for move in moves]
    near = min(float(np.mean(found)), share)
    return outside * near / (1 - near) / len(pairs)


def _region(a: Events, b: Events, pairs: Pairs, line: Line, prior: Prior) -> tuple[Region | None, int]:
    """Return the region that the pairs allow, and the number of bounds that were left out."""
    bounds = bounds_of(a, b, pairs)
    if bounds is None:
        return None, 0
    sure, kept = sure_region(bounds, line, DRIFT_SLACK * prior.max_drift)
    if sure is None:
        return None, len(bounds) - len(kept)
    span = overlap(a, b, line)
    offset, drift = sure.middle(span)
    half = sure.width(sum(span) / 2) / 2
    # Bounds that contradict the middle are left out, and as many that nearly do: a wrong pair may miss it either way.
    share = [
        (np.count_nonzero(slack < 0) + np.count_nonzero((slack < 0) & (slack > -half)) + _LEFT_OUT_ANYWAY) / len(slack)
        for slack in bounds.slack(offset, drift, line.x0)
    ]
    more = bounds.trimmed(drift, line.x0, share[0], share[1])
    region = feasible(more, everything(line.x0, DRIFT_SLACK * prior.max_drift)) if len(more) >= len(kept) else None
    return (sure, len(bounds) - len(kept)) if region is None else (region, len(bounds) - len(more))


def _judged(
    a: Events, b: Events, line: Line, prior: Prior, rivalry: _Rivalry, nest: ThreadStretches | None
) -> Estimate:
    """Return the estimate for the best candidate, with its verdict."""
    pairs, share, least = _matched(a, b, line)
    region, dropped = _region(a, b, pairs, line, prior)
    if region is not None:
        span = overlap(a, b, line)
        region = (nest and possible(nest, line, span, region)) or region
        line = _central(a, pairs, line, region, span, prior)
        region = region.widened(hidden_step(a.start[pairs.a], pairs.begin, -pairs.end))
    residuals = Residuals.of_differences(pairs.begin)
    if least < _LEAST_OF_SHARE * share:
        region = None
    verdict, reason = _verdict(region, len(pairs), share, residuals, prior, rivalry)
    return Estimate(
        Method.SEQUENCE,
        verdict,
        reason,
        Chain((replace(line, region=region, matches=len(pairs)),)),
        len(pairs),
        dropped,
        residuals,
        rivalry.margin,
        Rival.listed((rival.line.offset, float(rival.score.sum())) for rival in rivalry.rivals),
        rivalry.landscape,
        (pairs.a, pairs.b),
        a.start[pairs.a],
        pairs.begin,
        wrong=TRIM + _by_chance(a, b, line, pairs, share),
    )


def _central(a: Events, pairs: Pairs, line: Line, region: Region, span: tuple[float, float], prior: Prior) -> Line:
    """Return the line in the middle of a region, with the drift of the delays of the pairs if that is better known."""
    middle, drift = region.middle(span)
    x = a.start[pairs.a]
    _, more, scale = robust_line(x, pairs.begin, 1.0, DRIFT_SLACK * prior.max_drift, PRIOR_DRIFT)
    error = scale / (np.sqrt(len(pairs)) * float(np.std(x)) + 1e-9)
    offsets = region.offsets_at(line.drift + more)
    if offsets is None or _DRIFT_OF_FIT_SURER * error > np.ptp(region.drifts) / 2:
        return Line(middle, drift, line.x0)
    return Line(sum(offsets) / 2, line.drift + more, line.x0)


def _verdict(
    region: Region | None, matches: int, share: float, residuals: Residuals, prior: Prior, rivalry: _Rivalry
) -> tuple[Verdict, str]:
    apart = format_short(residuals.median)
    if share < _LEAST_SHARE or (share < _SURE_SHARE and residuals.median > _GREATEST_RESIDUAL_NS):
        return Verdict.INSUFFICIENT, f"only {share:.0%} of the events match, {apart} apart: {OTHER_RUN}"
    if region is None:
        return Verdict.INSUFFICIENT, (
            f"{share:.0%} of the events match in order, but no constant drift puts them inside each other ({apart} "
            f"apart): {OTHER_RUN}"
        )
    rivals = rivalry.rivals
    if rivalry.unbeaten:
        return Verdict.AMBIGUOUS, (
            f"the traces fit nearly as well at {counted(rivalry.unbeaten, 'offset')} "
            f"{format_short(rivalry.spacing)} away or more"
        )
    if not rivals and rivalry.null < _LEAST_NULL_MARGIN:
        return Verdict.AMBIGUOUS, "the best offset hardly fits better than random ones"
    if not rivals and not prior.known and matches < 2 * _LEAST_EVENTS:
        return Verdict.INSUFFICIENT, f"only {matches} events match"
    return Verdict.OK, f"{matches} events match, {share:.0%} of those that could"


def _of_one_run(a: Events, b: Events, estimate: Estimate) -> Estimate:
    """Return the estimate, at most unverified if it may be of two runs that had work at the same times."""
    # Close matches alone do not tell one run from two that hardly vary, if few events match, or if rivals are excluded
    # only as impossible: then durations must vary together.
    if estimate.pairs is None:
        return estimate
    rows_a, rows_b = estimate.pairs
    kinds = a.labels[rows_a], b.labels[rows_b]
    outside, inside = since_last(kinds, a.dur[rows_a], b.dur[rows_b])
    apart = float(np.median(np.abs(outside - inside))) if len(outside) else 0.0
    same, count = vary_together(outside, inside)
    many = estimate.margin >= LEAST_MARGIN and estimate.matches >= _MANY_MATCHES
    if many and max(estimate.residuals.median, apart) <= _GREATEST_RESIDUAL_NS:
        return estimate
    shown = [*correlation_within_iterations(a, b, estimate.pairs, _AT_ONCE_NS), *([(same, count)] if many else [])]
    if any(_surely(*pair) for pair in shown):
        return estimate
    two = count >= _LEAST_CHANGES and same < _CHANCE_TOGETHER
    doubt = (
        ", but durations are not correlated: these look like two runs "
        f"({count} durations of both files are correlated to {max(same, 0):.0%})"
        if two
        else "; but two runs with the same work at the same times could match as well; "
        f"durations do not tell ({count} compared)"
    )
    return replace(estimate, verdict=Verdict.UNVERIFIED, reason=estimate.reason + doubt)


def _surely(same: float, count: int) -> bool:
    """Return whether the durations correlate more than those of two different runs would."""
    return same >= _CHANCE_TOGETHER and same * float(np.sqrt(max(count - 1, 0))) >= _LEAST_SIGMA


def _seen_inside(a: Events, b: Events, estimate: Estimate) -> Estimate:
    """Return the estimate, unverified and without a bound unless calls take longer where their matched work does."""
    same, count = 0.0, 0
    if estimate.pairs is not None:
        # An operator with more to do takes longer on both sides, in whatever call it is done: where iterations repeat,
        # each is compared with itself.
        rows_a, rows_b = (np.asarray(rows) for rows in estimate.pairs)
        order = np.argsort(rows_a, kind="stable")
        order = order[rows_a[order] < rows_a[order[0]] + _COMPARED_EVENTS]
        period = period_of(a)
        if period is not None:
            same, count = correlation_of_deviations(a, b, (rows_a[order], rows_b[order]), period) or (0.0, 0)
    if _surely(same, count):
        return estimate
    compared = f" ({count} durations are correlated to {max(same, 0):.0%}, which does not exclude it)" if count else ""
    reason = f"{estimate.reason}; but a queue may run the work later than its calls{compared}"
    chain = Chain(tuple(replace(line, region=None) for line in estimate.chain.lines))
    return replace(estimate, verdict=Verdict.UNVERIFIED, reason=reason, chain=chain)
