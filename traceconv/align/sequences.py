"""Two logs of the same work, both with timestamps of clocks that are not related.

The outer log (a: a framework) has an event around each event of the inner one (b: the library below); some are missing
on either side, and an outer event may hold several inner ones. All places where the two fit are candidates, since
iterations repeat:

1. Impulses of each kind are correlated by FFT, over a chunk that is short enough for a drift not to smear it. The
   chunk is the begin of b, or the begin of a: if the two overlap, one of the two begins inside the other.
2. The best peaks are refined: each inner event is given to the outer one that holds it, within ever smaller distances.
3. Each candidate is scored event by event: how near an inner event is to the usual place of its class in the outer one,
   at its begin and at its end. The best candidate must beat every other one by a margin, block by block (a paired test
   after Vuong): repetition makes wrong places fit nearly as well as the right one.
4. The window grows by doubling, so that the drift is known from the whole trace and never smears.
5. What contains what (an inner event begins after and ends before its outer one) bounds the relation; the middle of the
   bounds is the estimate, since latencies are one-sided and bias a fit.

A margin says nothing about two runs of one programme: so a good share of b must match, closely, within feasible bounds.
Nor does that tell much where both runs were given their work at the same times, as by a load generator: unless
durations match closely, too, they must vary alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from traceconv.align.estimate import (
    OTHER_RUN,
    Array,
    Estimate,
    Events,
    Method,
    Prior,
    Residuals,
    Rival,
    insufficient,
    some_of,
)
from traceconv.align.geometry import F64, Chain, Constraints, Line, Region, everything, feasible
from traceconv.align.iterations import correlation_of_deviations, correlation_within_iterations, period_of
from traceconv.align.matching import Matcher, Pairs
from traceconv.align.messages import Message, Text
from traceconv.align.nesting import ThreadStretches, best_near, fits_on, possible
from traceconv.align.piecewise_linear import (
    CONTINUOUS_NS,
    LEAST_PAIRS,
    followed,
    last_time,
    lines_of,
    next_block,
    step_between,
)
from traceconv.align.robust import margin_of, null_margin, robust_line, since_last, spread_of, vary_alike
from traceconv.model.clocks import SLEWED_DRIFT, Verdict

# Each with its unit and what it was chosen on. "Simulated": seeds below 1000 of tests/benchmarks/alignment, "tuned":
# recordings that `TUNED` names there, as docs/alignment.md says of all thresholds; "few iterations" are recordings
# of five to ten of them, other ones than those whose figures are reported.

_US = 1e3

#: The least resolution of the search, ns. Not tuned: about the latency of a call, below the length of most operators.
_BIN_NS = 100 * _US
#: The most bins of the search. Not tuned: limits memory, to 128 MiB for each spectrum.
_MOST_BINS = 1 << 23
#: What is searched first of a log lasts so long, ns (simulated: drifts of 50 ppm do not smear it beyond a bin).
_CHUNK_NS = 1.5e9
#: With fewer events it may last longer (simulated: enough to tell iterations apart).
_LEAST_CHUNK_EVENTS = 400
#: With more events it is cut. Not tuned: limits time.
_MOST_CHUNK_EVENTS = 4000
#: So many peaks of the search are refined (simulated).
_CANDIDATES = 60
#: Beyond these, all that are lower than the highest by at most so many standard deviations of a count (simulated: equal
#: layers without jitter).
_AS_HIGH_SIGMA = 2.0
#: But no more than this. Not tuned: limits time.
_MOST_CANDIDATES = 300
#: So many of the best places are tried from earlier, too (simulated, tuned).
_TRIED_SOONER = 4
#: From so much earlier, ns: peaks lie too late by the latency of work (tuned).
_SOONER_NS = (100 * _US, 200 * _US, 400 * _US)
#: So many inner events are enough for a first look. Not tuned: it halves the time of the whole.
_FIRST_LOOK_EVENTS = 400
#: So many of the best places get a closer look, and all that are as good. Not tuned: limits time.
_CLOSELY_SEEN = 10
#: Within so many bins pairs are looked for in turn, at a first look (simulated).
_FIRST_LOOK_BINS = (4.0, 2.0, 1.0)
#: Within this they are looked for then, before `_NEAR_NS`, ns (simulated).
_NEARER_NS = 50 * _US
#: And this where the window grows, ns (simulated).
_GROWN_NS = 30 * _US
#: An inner event belongs to an outer one that it sticks out of by no more than this, ns (simulated, tuned).
_NEAR_NS = 20 * _US
#: So many events are needed on either side (simulated).
_LEAST_EVENTS = 8
#: So many pairs are needed for a line. Not tuned: a line has two numbers, and some pairs are wrong.
_LEAST_PAIRS = 5
#: The least spread of begins about their usual places to believe in, ns (simulated: times in whole microseconds).
_LEAST_SPREAD_NS = 2 * _US
#: The same of ends, ns.
_LEAST_SPREAD_OF_ENDS_NS = 3 * _US
#: The share of events that lie at no usual place, in the model that scores them. Not tuned: some tenths are missing.
_BY_CHANCE = 0.3
#: Over so long those may end, in that model, ns. Not tuned: about the length of an operator.
_CHANCE_END_NS = 1e6
#: The standard deviation of a drift before any data, as a ratio. Not tuned: clocks of one machine run within 100 ppm.
_PRIOR_DRIFT = 100e-6
#: How far beyond the prior a fit may go, as a multiple, before the region cuts it back. Not tuned: any slack does.
_DRIFT_SLACK = 1.5
#: At most about so many pairs go into a fit. Not tuned: limits time.
_FIT_PAIRS = 5000
#: By so many standard deviations of the sum over blocks the best place must beat all others (simulated: none wrong).
LEAST_MARGIN = 5.0
#: By so many it must beat one that is impossible, since too many calls lie in no operator there (few iterations).
_LEAST_MARGIN_OF_IMPOSSIBLE = 2.0
#: An impossible place holds at most this share of what the best place holds (few iterations).
_SHARE_OF_IMPOSSIBLE = 0.7
#: And the best place this share of the calls that could match (few iterations).
_NEARLY_ALL = 0.95
#: So many calls match at the best place then (few iterations).
_CALLS_OF_BEST = 16
#: And so many do not at an impossible one (few iterations).
_CALLS_OUTSIDE = 4
#: By so many sigma the only place in a window must beat random ones (simulated).
_LEAST_NULL_MARGIN = 6.0
#: Random places are drawn up to so far from the best one, ns. Not tuned: far beyond an iteration.
_RANDOM_WITHIN_NS = 5e8
#: So many are drawn. Not tuned: more than are used, since some are the best place itself.
_RANDOM_DRAWN = 60
#: At most so many are used. Not tuned: their spread is known to a tenth then.
_RANDOM_PLACES = 40
#: Fewer tell nothing about chance. Not tuned: their spread is known to a quarter then.
_LEAST_PLACES = 10
#: Events of one block: neighbours are alike (simulated).
_BLOCK_EVENTS = 40
#: There are so many blocks at least. Not tuned: with fewer their spread is hardly known.
_LEAST_BLOCKS = 8
#: What one event can say at most for a place and against another, nats (tuned): one event alone proves nothing.
_MOST_OF_AN_EVENT = 8.0
#: What one event says varies by no less than this, nats (simulated: equal layers): times are cut, and models not right.
_SPREAD_OF_AN_EVENT = 1.0
#: What a call that fits says for a place, nats. Not tuned: the logarithm of 20, since about one of twenty may not fit.
_SURE_CALL = 3.0
#: At most this share of the tightest bounds, and its standard deviation, is left out: some pairs are wrong (simulated).
TRIM = 0.03
#: So many are left out in any case (simulated, tuned).
_LEFT_OUT_ANYWAY = 2
#: A pair further than so many spreads from the usual place of its class bounds nothing (simulated).
_UNUSUAL = 6
#: The least share of b to match, of what could (simulated).
_LEAST_SHARE = 0.5
#: The greatest median distance of matches from their usual places, ns (simulated, tuned).
_GREATEST_RESIDUAL_NS = 5 * _US
#: With this share of b inside of events of a, within feasible bounds, it may be greater: latencies vary (tuned).
_SURE_SHARE = 0.9
#: A whole is divided into so many stretches at most (simulated: a clock that is set on the way).
_STRETCHES = 20
#: In none of them may the share of matches fall below this part of the whole (simulated, likewise).
_LEAST_OF_SHARE = 0.6
#: A drift from a fit is taken if its standard error is so many times smaller than what the bounds leave (tuned).
_DRIFT_OF_FIT_SURER = 4.0
#: With so many comparable durations, little correlation is that of two runs (simulated: replayed schedules).
_LEAST_CHANGES = 20
#: Rank correlation below this is little: the least of the recordings is 0.43, simulated runs of one schedule reach 0.1.
_CHANCE_ALIKE = 0.3
#: What is believed is so many sigma above none: chance hardly gives that (simulated, likewise).
_LEAST_SIGMA = 4.0
#: A call that follows the one before within this is not one that some schedule lets wait, ns (few iterations).
_AT_ONCE_NS = 300 * _US
#: With so many matches, all of them close, two runs would have drifted apart (few iterations).
_MANY_MATCHES = 24
#: So many outer events are compared to see whether what matched them lies inside. Not tuned: limits time.
_COMPARED_EVENTS = 2000
#: A profiler that knows nothing for so long may have paused, ns (simulated: pauses between captures).
_LEAST_PAUSE_NS = 10e6
#: Or for so many times the pause that one of a hundred exceeds (simulated, likewise).
_TIMES_USUAL_PAUSE = 10
#: Places no further apart than this are one, ns. Not tuned: two bins.
_SAME_PLACE_NS = 200 * _US


@dataclass(slots=True)
class _Candidate:
    """A place where the two may fit.

    Attributes:
        line: the relation there.
        scale: the spread of the events about their usual places, ns.
        score: the log-likelihood of each event of the chunk.
        matches: how many inner events lie in an outer one.
    """

    line: Line
    scale: float
    score: F64
    matches: int


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What the candidates are compared on: all of one side and the first events of the other one.

    Attributes:
        a, b: one of them is cut.
        of_b: whether it is b.
        bin: the resolution of the search, ns: a drift does not smear more than that over the chunk.
        matcher: of a and b.
        span: that of a.
    """

    a: Events
    b: Events
    of_b: bool
    bin: float
    matcher: Matcher
    span: tuple[float, float]

    @classmethod
    def first(cls, a: Events, b: Events, prior: Prior, *, of_b: bool) -> _Chunk:
        """The begin of one side: enough events to tell iterations apart, few enough for the drift not to smear them."""
        whole = b if of_b else a
        few, many = (min(len(whole), count) - 1 for count in (_LEAST_CHUNK_EVENTS, _MOST_CHUNK_EVENTS))
        until = min(max(float(whole.start[0]) + _CHUNK_NS, float(whole.start[few])), float(whole.start[many]))
        part = whole.take(slice(0, int(np.searchsorted(whole.start, until, "right"))))
        a, b = (a, part) if of_b else (part, b)
        width = max(_BIN_NS, prior.max_drift * (until - float(whole.start[0])) / 3)
        return cls(a, b, of_b, width, Matcher(a, b), a.span)

    def thinned(self) -> _Chunk:
        """With some of the inner events only: enough to see which places are worth a closer look."""
        return replace(self, b=self.b.take(some_of(np.arange(len(self.b)), _FIRST_LOOK_EVENTS)))

    def pairs(self, line: Line, tolerance: float) -> Pairs:
        """What matches on a line; rows of b count from its first event."""
        begin, b, match = self.match(line, tolerance)
        found = Pairs.of(self.a, b, match, line)
        return replace(found, b=found.b + begin)

    def match(self, line: Line, tolerance: float) -> tuple[int, Events, Array]:
        """The first row of b that can match, all that can, and the row in a for each."""
        first, last = line.map(np.array(self.span))
        begin, end = np.searchsorted(self.b.start, (first - tolerance, last + tolerance)).tolist()
        b = self.b.take(slice(begin, end))
        return begin, b, self.matcher.part(b).holding(line, tolerance)

    def score(self, line: Line, scale: float) -> F64:
        """The log-likelihood of each event of the chunk: near the usual place of its class, or matched by chance."""
        tolerance = 2 * self.bin
        pairs = self.pairs(line, tolerance)
        chance = np.log(_BY_CHANCE) - np.log(2 * tolerance) - np.log(_CHANCE_END_NS)
        width, spread = max(scale, _LEAST_SPREAD_NS), max(spread_of(pairs.end), _LEAST_SPREAD_OF_ENDS_NS)
        fit = np.log(1 - _BY_CHANCE) - np.abs(pairs.begin) / width - np.log(2 * width)
        fit += -np.abs(pairs.end) / spread - np.log(2 * spread)
        fit = np.logaddexp(chance, fit)
        score = np.full(len(self.b) if self.of_b else len(self.a), chance)
        if self.of_b:
            score[pairs.b] = fit
        else:
            np.maximum.at(score, pairs.a, fit)
        return score


def align_sequences(
    a: Events, b: Events, prior: Prior, nest: ThreadStretches | None = None, *, inside: bool = True
) -> Estimate:
    """How the clock of a relates to that of b.

    Args:
        a: the outer events.
        b: the inner events.
        prior: what is known beforehand; it narrows the search.
        nest: what the threads of a did at each time, with all events of b, if that says more than a and b do.
        inside: whether it is known that what both know lies inside of each other. Else it has to be seen: what a queue
            runs a while after its call may fit into calls as well, and bounds that rest on that are wrong.
    """
    found = _by_places(a, b, prior, nest, inside=inside)
    if found.verdict is Verdict.OK:
        found = _of_one_run(a, b, found)
    return found if inside or found.verdict is not Verdict.OK else _seen_inside(a, b, found)


def _by_places(
    a: Events, b: Events, prior: Prior, nest: ThreadStretches | None = None, *, inside: bool = False
) -> Estimate:
    """Where the two fit, be they of one run or not."""
    if len(a) < _LEAST_EVENTS or len(b) < _LEAST_EVENTS:
        few = Text.FEW_COMMON_EVENTS(events=min(len(a), len(b)), least=_LEAST_EVENTS)
        return insufficient(Method.SEQUENCE, few)
    tried = []
    for of_b in (True, False):
        found = _from_chunk(a, b, _Chunk.first(a, b, prior, of_b=of_b), prior, nest, inside=inside)
        if found.verdict is Verdict.OK and found.margin >= LEAST_MARGIN:
            return found
        tried.append(found)
    order = (Verdict.AMBIGUOUS, Verdict.OK)
    return max(tried, key=lambda one: (order.index(one.verdict) if one.verdict in order else -1, one.matches))


def _from_chunk(
    a: Events, b: Events, chunk: _Chunk, prior: Prior, nest: ThreadStretches | None, *, inside: bool
) -> Estimate:
    x0 = _middle(chunk, prior)
    offsets, heights = _correlation(chunk, prior)
    if not len(offsets):
        return insufficient(Method.SEQUENCE, Text.TRACES_DO_NOT_MEET())
    candidates = _candidates(chunk, x0, prior, _peaks(offsets, heights))
    if not candidates:
        return insufficient(Method.SEQUENCE, Text.NO_PLACE_FITS())
    best, *rivals = candidates
    margins = [_margin(best.score, rival.score) for rival in rivals]
    if nest is not None and min(margins, default=np.inf) < LEAST_MARGIN:
        margins = _margins_by_nesting(chunk, candidates, margins, nest, prior)
    margin = min(margins, default=np.inf)
    null = np.inf if rivals else _null_margin(chunk, best, offsets)
    until = float(chunk.b.start[-1]) if chunk.of_b else float(best.line.map(chunk.a.start[-1]))
    unbeaten = [rival for rival, by in zip(rivals, margins, strict=True) if by < LEAST_MARGIN]
    if inside and margin >= _LEAST_MARGIN_OF_IMPOSSIBLE:
        unbeaten = _possible(chunk, best, unbeaten)
    rivalry = _Rivalry(best, rivals, unbeaten, margin, null)
    found = _judged(a, b, _grown(a, b, best, until, prior), prior, rivalry, (offsets, heights), nest)
    if found.verdict not in (Verdict.OK, Verdict.INSUFFICIENT):
        return found
    ended = _with_ends(a, b, found)
    if Verdict.OK in (found.verdict, ended.verdict):
        return ended
    begin = _judged(chunk.a, chunk.b, best.line, prior, rivalry, (offsets, heights), nest)
    return _broken(a, b, found, begin, best.line, chunk) if begin.verdict is Verdict.OK else found


def _broken(a: Events, b: Events, whole: Estimate, begin: Estimate, line: Line, chunk: _Chunk) -> Estimate:
    """The answer where the begin fits and the rest does not: the clocks are not related by one line."""
    found, why = _along_lines(a, b, whole, line)
    if found is not None:
        return found
    span = chunk.b.span if chunk.of_b else chunk.span
    return _inconsistent(whole, Text.BEGIN_FITS(span=span[1] - span[0], begin=begin.matches, whole=whole.matches), why)


def _inconsistent(found: Estimate, reason: Message, why: Message | None) -> Estimate:
    return replace(
        found, verdict=Verdict.INCONSISTENT, reason=Text.REASON_AND_WHY(reason=reason, why=why) if why else reason
    )


def _with_ends(a: Events, b: Events, found: Estimate) -> Estimate:
    """The answer along one line, unless what it leaves over of both at one end fits together: a clock was set there."""
    line = found.line
    for at_begin in (True, False):
        over_a, over_b = _left_over(a, b, found, line, at_begin=at_begin)
        if min(len(over_a), len(over_b)) < _LEAST_EVENTS or 2 * len(over_b) > len(b):
            continue
        other = _by_places(over_a, over_b, Prior())
        if other.verdict is Verdict.OK:
            bent_there, why = _along_lines(a, b, found, other.line if at_begin else line)
            text = Text.BEGIN_FITS_ELSEWHERE if at_begin else Text.END_FITS_ELSEWHERE
            reason = text(matches=found.matches, more=other.matches)
            return bent_there or _inconsistent(found, reason, why)
    return found


def _left_over(a: Events, b: Events, found: Estimate, line: Line, *, at_begin: bool) -> tuple[Events, Events]:
    """The events of both before most of b matches, or after that: one match by chance ends no such stretch."""
    matched = np.full(len(b), -_LEAST_OF_SHARE)
    if found.pairs is not None:
        matched[np.asarray(found.pairs[1])] += 1
    if at_begin:
        until = int(np.argmin(np.concatenate(([0.0], np.cumsum(matched)))))
        part_b = slice(0, until)
        part_a = slice(0, int(np.searchsorted(a.start, line.back(b.start[min(until, len(b) - 1)]))))
    else:
        since = len(b) - int(np.argmin(np.concatenate(([0.0], np.cumsum(matched[::-1])))))
        part_b = slice(since, len(b))
        part_a = slice(int(np.searchsorted(a.start, line.back(b.end[max(since - 1, 0)]), "right")), len(a))
    return a.take(part_a), b.take(part_b)


def _along_lines(a: Events, b: Events, whole: Estimate, line: Line) -> tuple[Estimate | None, Message | None]:
    """The answer along several lines, the first of which is near one at the begin of b; None with the reason."""
    lines, why = _lines(a, b, line)
    if len(lines) < 2:
        return None, why
    pairs, share, least = _matched(a, b, Chain(lines))
    residuals = Residuals.of(pairs.begin)
    if share < _LEAST_SHARE or least < _LEAST_OF_SHARE * share or residuals.median > _GREATEST_RESIDUAL_NS:
        return None, why
    changes = [_change(*both) for both in pairwise(lines)]
    estimate = replace(
        whole,
        verdict=Verdict.OK,
        reason=Text.EVENTS_MATCH_ALONG_LINES(matches=len(pairs), share=share, lines=len(lines), changes=changes),
        chain=Chain(lines),
        matches=len(pairs),
        residuals=residuals,
        pairs=(pairs.a, pairs.b),
        residual_times=a.start[pairs.a],
        residual_values=pairs.begin,
    )
    return estimate, None


def _lines(a: Events, b: Events, line: Line) -> tuple[tuple[Line, ...], Message | None]:
    """The lines that relate two clocks one after the other, from one at the begin of b; none, with why, if unclear."""
    rough, end = followed(a, b, line)
    lines = lines_of(a, b.take(slice(0, end)), rough, _allowed)
    if not lines:
        return (), Text.LINES_ARE_UNCLEAR()
    size = len(next_block(b, end)) if end < len(b) else 0
    if not size:
        return lines, None
    rest = b.take(slice(end + size, len(b)))
    last = lines[-1]
    found = _by_places(a, rest, Prior()) if len(rest) >= LEAST_PAIRS else None
    if found is None or found.verdict.refused:
        if float(b.start[end]) > last_time(a, last):
            return lines, None
        return (), Text.REST_FITS_NOWHERE(after=float(b.start[end] - b.start[0]))
    after = found.chain.lines
    doubt, step = step_between(a, b, slice(max(end - size, 0), end + size), last, after[0])
    if step < -CONTINUOUS_NS:
        return (), Text.TIMES_OCCURRED_TWICE(by=-step)
    return (*lines, replace(after[0], begin=sum(doubt) / 2, doubt=doubt), *after[1:]), None


def _change(one: Line, other: Line) -> Message:
    """What happened between two lines."""
    knot = np.array(other.begin)
    step = float(other.map(knot) - one.map(knot))
    if abs(step) > CONTINUOUS_NS:
        text = Text.SET_AHEAD_THERE if step > 0 else Text.SET_BACK_THERE
        return text(by=abs(step), at=other.begin)
    return Text.DRIFT_CHANGED(before=one.drift * 1e6, after=other.drift * 1e6, at=other.begin)


def _allowed(a: Events, b: Events, pairs: Pairs, line: Line) -> Region | None:
    """What the pairs along one of several lines allow."""
    return _sure(containment(a, b, pairs), line, 2 * SLEWED_DRIFT)[0]


# -- candidates -----------------------------------------------------------------------------------------------------


def _middle(chunk: _Chunk, prior: Prior) -> float:
    """A time of clock a near the evidence."""
    if prior.known and chunk.of_b:
        return float(np.mean(chunk.b.span)) - (prior.low + prior.high) / 2
    return float(np.mean(chunk.a.span))


def _correlation(chunk: _Chunk, prior: Prior) -> tuple[F64, F64]:
    """How many events of a kind fall together for each offset, in steps of a bin, within what the prior allows."""
    a, b = _within(chunk, prior)
    if not len(a) or not len(b):
        return np.empty(0), np.empty(0)
    first_a, last_a, first_b, last_b = (float(side.start[at]) for side in (a, b) for at in (0, -1))
    width = max(chunk.bin, (last_a - first_a + last_b - first_b) / _MOST_BINS)
    bins_a, bins_b = ((a.start - first_a) / width).astype(np.int64), ((b.start - first_b) / width).astype(np.int64)
    size_a, size_b = int(bins_a[-1]) + 1, int(bins_b[-1]) + 1
    size = 1 << (size_a + size_b).bit_length()
    total = np.zeros(size // 2 + 1, np.complex128)
    for kind in np.unique(b.kind).tolist():
        of_a, of_b = bins_a[a.kind == kind], bins_b[b.kind == kind]
        if len(of_a) and len(of_b):
            spectrum_a = np.fft.rfft(np.bincount(of_a, minlength=size))
            total += np.fft.rfft(np.bincount(of_b, minlength=size)) * np.conj(spectrum_a)
    heights = np.fft.irfft(total, size)
    lags = np.arange(-size_a + 1, size_b)
    heights = heights[lags]
    offsets: F64 = np.asarray(lags * width + (first_b - first_a), np.float64)
    if prior.known:
        allowed = (offsets >= prior.low - 2 * width) & (offsets <= prior.high + 2 * width)
        offsets, heights = offsets[allowed], heights[allowed]
    return offsets, heights


def _within(chunk: _Chunk, prior: Prior) -> tuple[Events, Events]:
    """The events that can meet others at all, where the prior says something."""
    a, b = chunk.a, chunk.b
    if not prior.known:
        return a, b
    slack = 2 * chunk.bin + prior.max_drift * (a.start[-1] - a.start[0] + b.start[-1] - b.start[0])
    a = a.take(slice(*np.searchsorted(a.start, (b.start[0] - prior.high - slack, b.start[-1] - prior.low + slack))))
    if len(a):
        b = b.take(slice(*np.searchsorted(b.start, (a.start[0] + prior.low - slack, a.start[-1] + prior.high + slack))))
    return a, b


def _peaks(offsets: F64, heights: F64) -> F64:
    """The offsets of the highest peaks, each higher than what is within three bins of it."""
    around = np.pad(heights, 3, constant_values=-np.inf)
    within = heights
    for shift in range(7):
        within = np.maximum(within, around[shift : shift + len(heights)])
    tops = np.flatnonzero((heights >= within) & (heights > 0.5))
    tops = tops[np.argsort(-heights[tops], kind="stable")]
    if len(tops) > _CANDIDATES:
        highest = float(heights[tops[0]])
        as_high = int(np.count_nonzero(heights[tops] >= highest - _AS_HIGH_SIGMA * np.sqrt(highest)))
        tops = tops[: min(max(_CANDIDATES, as_high), _MOST_CANDIDATES)]
    return offsets[tops]


def _candidates(chunk: _Chunk, x0: float, prior: Prior, peaks: F64) -> list[_Candidate]:
    """The refined places, the best first, each once.

    Work begins later than its operator, so that a peak lies too late; where operators follow closely, refining may then
    end with each event in the next one. So the best places are tried from before, too.
    """
    thin = chunk.thinned()
    found = _distinct([_candidate(thin, Line(peak, 0.0, x0), prior, _FIRST_LOOK_BINS) for peak in peaks.tolist()])
    again = [
        other
        for place in found[:_TRIED_SOONER]
        for sooner in _SOONER_NS
        if (line := replace(place.line, offset=place.line.offset - sooner))
        and (other := _candidate(thin, line, prior, _FIRST_LOOK_BINS)) is not None
        and other.matches >= place.matches
    ]
    places = _distinct([*found, *again])
    kept = [
        place
        for number, place in enumerate(places)
        if number < _CLOSELY_SEEN or _margin(places[0].score, place.score) < LEAST_MARGIN
    ]
    return _distinct([_candidate(chunk, place.line, prior, ()) for place in kept])


def _distinct(places: list[_Candidate | None]) -> list[_Candidate]:
    """The best first, without those near to a better one."""
    found: list[_Candidate] = []
    for place in sorted((place for place in places if place is not None), key=lambda one: -float(one.score.sum())):
        if all(abs(place.line.offset - other.line.offset) > _SAME_PLACE_NS for other in found):
            found.append(place)
    return found


def _candidate(chunk: _Chunk, line: Line, prior: Prior, bins: tuple[float, ...]) -> _Candidate | None:
    """The place near a line, from pairs within ever fewer bins; None if too few events match on the way."""
    scale = _LEAST_SPREAD_NS
    for tolerance in (*(count * chunk.bin for count in bins), _NEARER_NS, _NEAR_NS):
        pairs = chunk.pairs(line, tolerance)
        if len(pairs) < _LEAST_PAIRS:
            return None
        line, scale = _fit(chunk.a, chunk.b, pairs, line, prior)
    line = _centred(chunk.a, chunk.b, pairs, line, prior)
    matches = int(np.count_nonzero(chunk.match(line, _NEAR_NS)[2] >= 0))
    return _Candidate(line, scale, chunk.score(line, scale), matches)


def _fit(a: Events, b: Events, pairs: Pairs, line: Line, prior: Prior) -> tuple[Line, float]:
    """The drift that lets events of a class lie alike, the offset in the middle of what containment allows."""
    step = len(pairs) // _FIT_PAIRS + 1
    x = a.start[pairs.a[::step]]
    spread = min(_PRIOR_DRIFT, max(prior.max_drift, 1e-9))
    wanted = pairs.begin[::step] + line.drift * (x - line.x0)
    _, drift, scale = robust_line(x, wanted, _LEAST_SPREAD_NS, _DRIFT_SLACK * prior.max_drift, spread)
    bounds = containment(a, b, pairs)
    highest = np.quantile(bounds.upper - drift * (bounds.upper_x - line.x0), 2 * TRIM)
    lowest = np.quantile(bounds.lower - drift * (bounds.lower_x - line.x0), 1 - 2 * TRIM)
    return Line(float(highest + lowest) / 2, drift, line.x0), scale


def _centred(a: Events, b: Events, pairs: Pairs, line: Line, prior: Prior) -> Line:
    """The middle of what the pairs allow; where they allow nothing, the line as it is."""
    bounds = _bounds(a, b, pairs)
    region = _sure(bounds, line, _DRIFT_SLACK * prior.max_drift)[0] if bounds is not None else None
    return line if region is None else Line(*region.middle(_overlap(a, b, line)), line.x0)


@dataclass(frozen=True, slots=True)
class _Rivalry:
    """The best place against the others.

    Attributes:
        best: the best place.
        rivals: all others, the best first.
        unbeaten: those of them that may be the right one, for all that is known.
        margin: by how many standard deviations the best place beats every other one.
        null: by how many it beats random ones, if there are no others.
    """

    best: _Candidate
    rivals: list[_Candidate]
    unbeaten: list[_Candidate]
    margin: float
    null: float


def _possible(chunk: _Chunk, best: _Candidate, rivals: list[_Candidate]) -> list[_Candidate]:
    """The rivals that can be the right place; all of them where the best place does not hold nearly all calls.

    Calls lie inside of operators. Where nearly all do so in one place, another one where many calls lie in none is not
    possible, however few they are: a short recording has too few blocks for their spread to be known.
    """
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


def _margin(best: F64, rival: F64) -> float:
    """By how many standard deviations the best place beats another one, over blocks of events.

    With few blocks their spread is not well known: the margin counts less, about as in Student's distribution.
    """
    count = max(_LEAST_BLOCKS, len(best) // _BLOCK_EVENTS)
    better = np.clip(best - rival, -_MOST_OF_AN_EVENT, _MOST_OF_AN_EVENT)
    return margin_of(better, count, _SPREAD_OF_AN_EVENT) / (1 + 3 / (count - 1))


def _margins_by_nesting(
    chunk: _Chunk, places: list[_Candidate], margins: list[float], nest: ThreadStretches, prior: Prior
) -> list[float]:
    """The margins of the best place over the others, by what holds the calls there, where that tells more.

    Each place may move to where the most calls fit. A rival that is beaten by far in this way is beaten, unless it fits
    better by its names and durations.
    """
    first, last = chunk.b.span if chunk.of_b else (-np.inf, np.inf)
    rows = np.flatnonzero((nest.calls.start >= first) & (nest.calls.end <= last))
    fits = []
    for place in places:
        line = place.line
        low, high = line.map(np.array(chunk.span)) if not chunk.of_b else (first, last)
        seen = rows[(nest.calls.start[rows] >= low) & (nest.calls.end[rows] <= high)]
        fitting = np.zeros(len(nest.calls))
        if len(seen) >= _LEAST_EVENTS:
            turns = (line.drift - prior.max_drift / 4, line.drift + prior.max_drift / 4)
            fitting[seen] = fits_on(nest, seen, best_near(nest, seen, line, 2 * chunk.bin, turns))
        fits.append(_SURE_CALL * fitting[rows])
    return [max(margin, _margin(fits[0], other)) for margin, other in zip(margins, fits[1:], strict=True)]


def _null_margin(chunk: _Chunk, best: _Candidate, offsets: F64) -> float:
    """By how many standard deviations the best place beats random ones; 0 if there are too few others.

    Only places count at which the two overlap: where nothing can match, all scores are the same.
    """
    rng = np.random.default_rng(0)
    (first_a, last_a), (first_b, last_b) = chunk.span, chunk.b.span
    low = max(min(float(offsets[0]), best.line.offset - _RANDOM_WITHIN_NS), first_b - last_a)
    high = min(max(float(offsets[-1]), best.line.offset + _RANDOM_WITHIN_NS), last_b - first_a)
    if low >= high:
        return 0.0
    places = rng.uniform(low, high, _RANDOM_DRAWN)
    places = places[np.abs(places - best.line.offset) > _SAME_PLACE_NS][:_RANDOM_PLACES]
    if len(places) < _LEAST_PLACES:
        return 0.0
    scores = [float(chunk.score(replace(best.line, offset=place), best.scale).sum()) for place in places.tolist()]
    return null_margin(float(best.score.sum()), scores, len(best.score), _SPREAD_OF_AN_EVENT)


# -- the whole trace ------------------------------------------------------------------------------------------------


def _grown(a: Events, b: Events, seed: _Candidate, until: float, prior: Prior) -> Line:
    """The line through all of b, from that through its first part, by doubling."""
    line = seed.line
    matcher = Matcher(a, b)
    first = float(line.map(a.start[0]))
    last = min(float(b.start[-1]), float(line.map(np.array(a.span[1]))) + _BIN_NS)
    begin = int(np.searchsorted(b.start, first - _BIN_NS))
    while True:
        part = b.take(slice(begin, int(np.searchsorted(b.start, until, "right"))))
        within = matcher.part(part)
        for tolerance in (_BIN_NS, _GROWN_NS):
            pairs = Pairs.of(a, part, within.holding(line, tolerance), line)
            if len(pairs) < _LEAST_PAIRS:
                break
            line, _ = _fit(a, part, pairs, line, prior)
            line = _centred(a, part, pairs, line, prior)
        if until >= last:
            return line
        until = min(max(first + 2 * (until - first), until + 1e6), last)


def _matched(a: Events, b: Events, line: Line | Chain) -> tuple[Pairs, float, float]:
    """The pairs, the share of the events of b that could match and do, and the least share along the way."""
    pairs = Pairs.of(a, b, Matcher(a, b).holding(line, _NEAR_NS), line)
    possible = could_match(a, b, line)
    hit = np.zeros(len(b), bool)
    hit[pairs.b] = True
    hit = hit[possible | hit]
    if not len(hit):
        return pairs, 0.0, 0.0
    share = float(hit.mean())
    blocks = np.array_split(hit, min(_STRETCHES, max(1, len(hit) // _BLOCK_EVENTS)))
    chance = [2 * np.sqrt(share * (1 - share) / len(block)) for block in blocks]
    return pairs, share, min(float(block.mean()) + more for block, more in zip(blocks, chance, strict=True))


def could_match(a: Events, b: Events, line: Line | Chain) -> Array:
    """For each event of b whether it could match: unless a is at rest where it is, since a profiler may pause."""
    at = line.back(b.start)
    latest = np.maximum.accumulate(a.end)
    before = np.searchsorted(a.start, at, "right") - 1
    possible = (at >= a.start[0] - _BIN_NS) & (at <= latest[-1] + _BIN_NS)
    pauses = a.start[1:] - latest[:-1]
    usual = float(np.quantile(pauses, 0.99)) if len(pauses) else 0.0
    long = max(_LEAST_PAUSE_NS, _TIMES_USUAL_PAUSE * usual)
    paused = np.append(pauses, 0.0)[before] > long
    within = (at > latest[before] + _BIN_NS) & (at < a.start[np.minimum(before + 1, len(a) - 1)] - _BIN_NS)
    return np.asarray(possible & ~(paused & within))


def containment(a: Events, b: Events, pairs: Pairs) -> Constraints:
    """What it means that events of b lie inside events of a: the mapped start is not after, the mapped end not before.

    Printed times are cut to their resolution, so each may be later by that: one for a start, two for an end.
    """
    quantum_a, quantum_b = max(a.quantum_ns, 1.0), max(b.quantum_ns, 1.0)
    start, begins = a.start[pairs.a], b.start[pairs.b]
    end = start + a.dur[pairs.a] + 2 * quantum_a
    return Constraints(end, begins + b.dur[pairs.b] - end, start, begins + quantum_b - start)


def _bounds(a: Events, b: Events, pairs: Pairs) -> Constraints | None:
    """What the pairs say, without those that may be wrong; None if too few are left.

    A pair may be wrong if it lies far from the usual place of its class.
    """
    usual = pairs.where(
        (np.abs(pairs.begin) <= max(_UNUSUAL * spread_of(pairs.begin), _NEAR_NS))
        & (np.abs(pairs.end) <= max(_UNUSUAL * spread_of(pairs.end), _NEAR_NS))
    )
    usual = usual.where(_alone(b, usual))
    return containment(a, b, usual) if len(usual) >= _LEAST_PAIRS else None


def _sure(bounds: Constraints, line: Line, max_drift: float) -> tuple[Region | None, Constraints]:
    """The relations that all but the tightest bounds allow, and these bounds."""
    kept = bounds.trimmed(line.drift, line.x0, TRIM + np.sqrt(TRIM / len(bounds.lower)))
    return feasible(kept, everything(line.x0, max_drift)), kept


def _region(a: Events, b: Events, pairs: Pairs, line: Line, prior: Prior) -> tuple[Region | None, int]:
    """The relations that the pairs allow, and how many of their bounds were left out.

    Those bounds are left out that contradict the middle of what is surely possible, and as many more as contradict it
    by less than half of its width: a wrong pair is as likely to miss the middle by a little on this side as on that.
    """
    bounds = _bounds(a, b, pairs)
    if bounds is None:
        return None, 0
    sure, kept = _sure(bounds, line, _DRIFT_SLACK * prior.max_drift)
    if sure is None:
        return None, len(bounds) - len(kept)
    span = _overlap(a, b, line)
    offset, drift = sure.middle(span)
    half = sure.width(sum(span) / 2) / 2
    share = [
        (np.count_nonzero(slack < 0) + np.count_nonzero((slack < 0) & (slack > -half)) + _LEFT_OUT_ANYWAY) / len(slack)
        for slack in bounds.slack(offset, drift, line.x0)
    ]
    more = bounds.trimmed(drift, line.x0, share[0], share[1])
    region = feasible(more, everything(line.x0, _DRIFT_SLACK * prior.max_drift)) if len(more) >= len(kept) else None
    return (sure, len(bounds) - len(kept)) if region is None else (region, len(bounds) - len(more))


def _alone(b: Events, pairs: Pairs) -> Array:
    """For each pair whether no other inner event overlaps it in the same outer one.

    A thread works on one thing at a time: of two that overlap, one is written twice, or belongs elsewhere.
    """
    order = np.lexsort((b.start[pairs.b], pairs.a))
    rows, holders = pairs.b[order], pairs.a[order]
    meet = (holders[1:] == holders[:-1]) & (b.start[rows[1:]] < b.end[rows[:-1]])
    alone = np.ones(len(order), bool)
    alone[order[1:][meet]] = False
    alone[order[:-1][meet]] = False
    return alone


def _judged(
    a: Events,
    b: Events,
    line: Line,
    prior: Prior,
    rivalry: _Rivalry,
    landscape: tuple[F64, F64],
    nest: ThreadStretches | None,
) -> Estimate:
    """The verdict over the best place."""
    pairs, share, least = _matched(a, b, line)
    region, dropped = _region(a, b, pairs, line, prior)
    if region is not None:
        overlap = _overlap(a, b, line)
        narrower = possible(nest, line, overlap, region) if nest is not None else None
        region = narrower or region
        line = _central(a, pairs, line, region, overlap, prior)
    residuals = Residuals.of(pairs.begin)
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
        tuple(Rival(rival.line.offset, float(rival.score.sum())) for rival in rivalry.rivals[:10]),
        landscape,
        (pairs.a, pairs.b),
        a.start[pairs.a],
        pairs.begin,
        wrong=TRIM,
    )


def _central(a: Events, pairs: Pairs, line: Line, region: Region, overlap: tuple[float, float], prior: Prior) -> Line:
    """The line in the middle of a region.

    How the usual places move along the trace tells the drift, better than the bounds do if there are many pairs that
    lie alike. The offset is never taken from there: latencies are one-sided.
    """
    middle, drift = region.middle(overlap)
    x = a.start[pairs.a]
    _, more, scale = robust_line(x, pairs.begin, 1.0, _DRIFT_SLACK * prior.max_drift, _PRIOR_DRIFT)
    error = scale / (np.sqrt(len(pairs)) * float(np.std(x)) + 1e-9)
    offsets = region.offsets_at(line.drift + more)
    if offsets is None or _DRIFT_OF_FIT_SURER * error > np.ptp(region.drifts) / 2:
        return Line(middle, drift, line.x0)
    return Line(sum(offsets) / 2, line.drift + more, line.x0)


def _overlap(a: Events, b: Events, line: Line) -> tuple[float, float]:
    """The times of clock a at which both have events."""
    first_b, last_b = line.back(np.array(b.span))
    first_a, last_a = a.span
    return max(first_a, first_b), max(min(last_a, last_b), max(first_a, first_b) + 1)


def _verdict(
    region: Region | None, matches: int, share: float, residuals: Residuals, prior: Prior, rivalry: _Rivalry
) -> tuple[Verdict, Message]:
    loose = share < _SURE_SHARE and residuals.median > _GREATEST_RESIDUAL_NS
    if region is None or share < _LEAST_SHARE or loose:
        text = Text.NO_STEADY_CLOCK if share >= _LEAST_SHARE and not loose else Text.FEW_EVENTS_MATCH
        return Verdict.INSUFFICIENT, text(share=share, apart=residuals.median, other_run=OTHER_RUN)
    rivals, unbeaten = rivalry.rivals, rivalry.unbeaten
    if unbeaten:
        spacing = min(abs(rival.line.offset - rivalry.best.line.offset) for rival in unbeaten)
        if len(unbeaten) == 1:
            return Verdict.AMBIGUOUS, Text.EVENTS_FIT_IN_ANOTHER_PLACE(away=spacing)
        return Verdict.AMBIGUOUS, Text.EVENTS_FIT_IN_OTHER_PLACES(others=len(unbeaten), away=spacing)
    if not rivals and rivalry.null < _LEAST_NULL_MARGIN:
        return Verdict.AMBIGUOUS, Text.EVENTS_HARDLY_FIT()
    if not rivals and not prior.known and matches < 2 * _LEAST_EVENTS:
        return Verdict.INSUFFICIENT, Text.ONLY_SOME_MATCH(matches=matches)
    return Verdict.OK, Text.EVENTS_MATCH(matches=matches, share=share)


def _of_one_run(a: Events, b: Events, found: Estimate) -> Estimate:
    """The answer, if it does not look like that of two runs that were given their work at the same times.

    Where few events match, or the best place beats others only since they are impossible, closeness alone does not tell
    two runs apart that hardly vary: that they are one has to be shown.
    """
    if found.pairs is None:
        return found
    rows_a, rows_b = found.pairs
    kinds = a.labels[rows_a], b.labels[rows_b]
    outside, inside = since_last(kinds, a.dur[rows_a], b.dur[rows_b])
    apart = float(np.median(np.abs(outside - inside))) if len(outside) else 0.0
    same, count = vary_alike(outside, inside)
    many = found.margin >= LEAST_MARGIN and found.matches >= _MANY_MATCHES
    if many and max(found.residuals.median, apart) <= _GREATEST_RESIDUAL_NS:
        return found
    shown = [*correlation_within_iterations(a, b, found.pairs, _AT_ONCE_NS), *([(same, count)] if many else [])]
    if any(_surely(*alike) for alike in shown):
        return found
    two = count >= _LEAST_CHANGES and same < _CHANCE_ALIKE
    text = Text.LOOKS_LIKE_TWO_RUNS if two else Text.MAY_BE_OF_TWO_RUNS
    compared = Text.DURATIONS_VARY_ALIKE(count=count, same=max(same, 0))
    verdict = Verdict.INSUFFICIENT if two else Verdict.UNVERIFIED
    return replace(found, verdict=verdict, reason=text(reason=found.reason, compared=compared))


def _surely(same: float, count: int) -> bool:
    """Whether so many values vary alike as those of two runs do not."""
    return same >= _CHANCE_ALIKE and same * float(np.sqrt(max(count - 1, 0))) >= _LEAST_SIGMA


def _seen_inside(a: Events, b: Events, found: Estimate) -> Estimate:
    """The answer, if calls take longer where the work that matched them does; else it may run in no call at all.

    The place is about right then, but nothing bounds how far off it is.
    """
    same, count = _together(a, b, found)
    if _surely(same, count):
        return found
    reason = Text.MAY_RUN_LATER(reason=found.reason, count=count, same=max(same, 0))
    chain = Chain(tuple(replace(line, region=None) for line in found.chain.lines))
    return replace(found, verdict=Verdict.UNVERIFIED, reason=reason, chain=chain)


def _together(a: Events, b: Events, found: Estimate) -> tuple[float, int]:
    """How much matched durations vary alike from one iteration to the next, and how many tell.

    An operator with more to do takes longer on both sides, in whatever call it is done: where iterations repeat, each
    is compared with itself.
    """
    if found.pairs is None:
        return 0.0, 0
    rows_a, rows_b = (np.asarray(rows) for rows in found.pairs)
    order = np.argsort(rows_a, kind="stable")
    order = order[rows_a[order] < rows_a[order[0]] + _COMPARED_EVENTS]
    rows_a, rows_b = rows_a[order], rows_b[order]
    period = period_of(a)
    return (period is not None and correlation_of_deviations(a, b, (rows_a, rows_b), period)) or (0.0, 0)
