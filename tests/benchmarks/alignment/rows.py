"""The rows of the table: for each regime what is to reach and what is reached."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from tests.benchmarks.alignment import host_trials, one_host_trials, trials
from tests.benchmarks.alignment.recordings import (
    ACTIVITY,
    PERF,
    SEQUENCES,
    TUNED,
    Attempt,
    least_bound,
    short_attempts,
    stated_attempts,
)
from tests.benchmarks.alignment.trials import BIN_NS, FIRST_SEED, Outcome
from traceconv.align import align
from traceconv.align.activity import align_bins, align_samples
from traceconv.align.durations import align_durations
from traceconv.api import read
from traceconv.model.clocks import Verdict

NOT_MEASURED = "not measured"
_SEQUENCES = "median <= 1 µs, p99 <= 2 µs, stated width <= 4 µs, drift within 1 ppm"
_LONG_ENOUGH_NS = 5e8
#: The rows that look at recordings.
RECORDED = {
    "file-names",
    "sequences-recorded",
    "samples-recorded-narrowed",
    "samples-recorded",
    "bins-recorded",
    "activity-coverage",
    "recordings",
}
#: The regimes in which the clocks of hosts are not even, with their trials.
_NEVER_OUTSIDE = {
    "set-clocks": ("the clock of a host set in mid-run, simulated", "set clock"),
    "set-back-clocks": ("the clock of a host set and set back, simulated", "set back"),
    "set-back-busy": ("a host's clock set and set back, ends scattered, simulated", "set back, busy"),
    "set-beside-an-end": ("a host's clock set beside the first or last collectives, simulated", "beside an end"),
    "small-set-clocks": ("a host's clock set by 0.2 to 1.5 of its bound, ends scattered, simulated", "small step"),
    "steep": ("hosts that drift by 110 to 600 ppm, simulated", "steep"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One regime.

    Attributes:
        regime: what is aligned.
        goal: what is to reach.
        reached: what is.
        good: whether it is reached; None if it was not measured.
        refused: nothing was placed, which is neither a fault nor a success here.
    """

    regime: str
    goal: str
    reached: str
    good: bool | None
    refused: bool = False

    @property
    def mark(self) -> str:
        """For the last column."""
        if self.good and self.refused:
            return "refused"
        return {True: "reached", False: "missed", None: NOT_MEASURED}[self.good]


def all_rows(
    seeds: int, quick: bool, recorded: Sequence[Attempt], exact: Sequence[Attempt]
) -> dict[str, Callable[[], Row]]:
    """Every row by a short name, as something to call: some take minutes."""
    few = max(seeds // 10, 2)
    pool = _Pool(trials.sequence_trial, range(FIRST_SEED, FIRST_SEED + seeds))
    some = range(FIRST_SEED, FIRST_SEED + few)
    watched = {known: _Pool(partial(trials.watched_trial, narrowed=known), some) for known in (True, False)}
    return {
        "exact": partial(exact_metadata, exact),
        "file-names": partial(file_names, few, recorded),
        "sequences": lambda: sequences(pool.outcomes()),
        "sequences-recorded": partial(sequences_recorded, recorded),
        "durations": partial(durations, few),
        "samples-recorded-narrowed": partial(samples_recorded, recorded, True),
        "samples-recorded": partial(samples_recorded, recorded, False),
        "samples-narrowed": lambda: samples(watched[True].outcomes(), True),
        "samples": lambda: samples(watched[False].outcomes(), False),
        "labels": partial(labels, few),
        "bins-recorded": partial(bins_recorded, recorded),
        "bins": partial(bins, few),
        "wrong": lambda: wrong_accepted(pool.outcomes()),
        "bends": partial(bends, few),
        "beside-a-step": partial(beside_a_step, few),
        **({} if quick else {"stated-wrong": stated_wrong}),
        "short-recorded": short_recorded,
        "short": partial(short, few, trials.short_trial, "named events with timestamps"),
        "short-samples": partial(short, few, trials.short_watched_trial, "slices and samples"),
        "periodic": partial(periodic, few),
        "equal-layers": partial(equal_layers, few),
        "constant-latency": partial(late, few, False),
        "queue": partial(late, few, True),
        "unrelated": partial(unrelated, few),
        "replayed": partial(replayed, few),
        "unrelated-samples": partial(unrelated_samples, few),
        "two-jobs": partial(two_jobs, few),
        **{name: partial(_never_outside, name, few) for name in _NEVER_OUTSIDE},
        "skewed": partial(skewed, few),
        "ahead": partial(ahead, few),
        "offsets": partial(offsets, few),
        **{name: partial(one_host, name, few) for name in one_host_trials.TRIALS},
        "coverage": lambda: coverage(pool.outcomes()),
        "activity-coverage": lambda: activity_coverage(
            [*watched[True].outcomes(), *watched[False].outcomes()], recorded
        ),
        "speed-5": partial(speed, "10^5 events", 2500, 2.0),
        **({} if quick else {"speed-6": partial(speed, "10^6 events", 25_000, 20.0)}),
        "long": partial(long_trace, 2500 if quick else 9000),
        "recordings": partial(recordings, recorded),
    }


class _Pool:
    """The simulated pairs that several rows share, tried once."""

    def __init__(self, trial: Callable[[int], Outcome], seeds: range) -> None:
        self._trial, self._seeds = trial, seeds
        self._found: list[Outcome] = []

    def outcomes(self) -> list[Outcome]:
        """Of all seeds."""
        self._found = self._found or trials.tried(self._trial, self._seeds)
        return self._found


def exact_metadata(exact: Sequence[Attempt]) -> Row:
    """Recordings whose files say what their clocks are.

    An error is not known better than the truth: a recording whose truth leaves more than the limit is shown, not
    judged. Those are the older ones, and those with perf, whose header reads its two clocks one after the other, up to
    10 us apart: what that is worth is the business of the row on perf's header.
    """
    limit = 1000
    judged = [one for one in exact if one.uncertainty_ns <= limit]
    others = [one for one in exact if one.uncertainty_ns > limit]
    errors = [one.error_ns for one in judged if one.error_ns is not None]
    near = sum(error <= limit for error in errors)
    unsure = max((one.error_ns or 0 for one in others), default=0)
    known = max((one.uncertainty_ns for one in judged), default=0)
    text = (
        f"{near} of {len(judged)} recordings, worst {max(errors, default=0) / 1e3:.2f} µs (the truth is known to "
        f"±{known / 1e3:.2f} µs); {len(others)} more whose truth is not "
        f"known to 1 µs: worst {unsure / 1e3:.1f} µs"
    )
    return Row("exact metadata or anchors", "error <= 1 µs", text, bool(judged) and near == len(judged))


def file_names(count: int, recorded: Sequence[Attempt]) -> Row:
    """The start time in the name of an ONNX Runtime profile, simulated, and with perf's header, recorded."""
    rng = np.random.default_rng(FIRST_SEED)
    inside, widest = 0, 0
    for _ in range(count):
        start_ns = 1_700_000_000 * 10**9 + int(rng.integers(0, 10**16))
        line = _named_profile(start_ns)
        # what a name says ends at its millisecond, and the resolution of the file is part of the bound
        inside += abs(line[0] - start_ns) <= line[1]
        widest = max(widest, line[1])
    real = [one for one in recorded if one.recording == "ort_perf_monotonic" and one.variant == "as recorded"]
    good = [one.error_ns is not None and one.error_ns <= (one.bound_ns or 0) for one in real]
    text = (
        f"inside in {inside} of {count} simulated (±{widest / 1e6:.3f} ms), {sum(good)} of {len(good)} recorded "
        f"(±{max(one.bound_ns or 0 for one in real) / 1e6:.3f} ms with perf's own)"
    )
    return Row(
        "file name plus perf header only",
        "truth inside the stated ±0.52 ms, always",
        text,
        inside == count and all(good) and widest <= 521_000,
    )


def _named_profile(start_ns: int) -> tuple[int, int]:
    """Where a profile of that start is put, and how sure."""
    when = datetime.fromtimestamp(start_ns // 10**9, UTC)
    name = f"onnxruntime_profile__{when:%Y-%m-%d_%H-%M-%S}_{start_ns // 10**6 % 1000:03d}.json"
    event = {"cat": "Session", "pid": 1, "tid": 1, "dur": 5, "ts": 10, "ph": "X", "name": "model_run", "args": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(json.dumps([event]), encoding="utf-8")
        (line,) = align([read(path, format="onnxruntime", options={"utc_offset": "+00:00"})]).receipt
    return line.offset_ns, line.bound_ns or 0


def sequences(outcomes: Sequence[Outcome]) -> Row:
    """How exact the accepted ones are."""
    accepted = [one for one in outcomes if one.accepted]
    if not accepted:
        return Row("timestamped sequences, simulated", _SEQUENCES, "none accepted", False)
    errors = np.concatenate([one.errors for one in accepted])
    widths = np.array([one.width for one in accepted])
    median, p99 = float(np.median(errors)), float(np.percentile(errors, 99))
    drifts = np.array([one.drift_error for one in accepted if one.seen_ns >= _LONG_ENOUGH_NS]) * 1e6
    drift = float(np.percentile(drifts, 99)) if len(drifts) else np.inf
    drifting = f"{drift:.2f} ppm" if len(drifts) else "not measured"
    text = (
        f"median {median / 1e3:.2f} µs, p99 {p99 / 1e3:.2f} µs, width {np.median(widths) / 1e3:.1f} µs (p99 "
        f"{np.percentile(widths, 99) / 1e3:.1f}), drift p99 {drifting} where 0.5 s or more are shared"
    )
    good = median <= 1000 and p99 <= 2000 and float(np.median(widths)) <= 4000 and drift <= 1
    return Row("timestamped sequences, simulated", _SEQUENCES, text, good)


def sequences_recorded(recorded: Sequence[Attempt]) -> Row:
    """Real recordings whose metadata is taken away, but for those that estimators were made with."""
    real = [one for one in recorded if one.recording in SEQUENCES - set(TUNED) and one.variant == "metadata taken away"]
    found = [(one.error_ns, one.bound_ns) for one in real if one.error_ns is not None and one.bound_ns is not None]
    regime = "timestamped sequences, recorded"
    if not found:
        return Row(regime, _SEQUENCES, f"all {len(real)} refused", False)
    errors, bounds = (np.array(column) for column in zip(*found, strict=True))
    least = [least_bound(one.recording) for one in real]
    text = (
        f"{len(found)} of {len(real)} placed: median {np.median(errors) / 1e3:.1f} µs, worst {errors.max() / 1e3:.1f}, "
        f"stated ±{bounds.min() / 1e3:.0f} to ±{bounds.max() / 1e3:.0f} µs; what happens around a primitive allows no "
        f"less than ±{min(least) / 1e3:.1f} to ±{max(least) / 1e3:.1f} µs"
    )
    good = bool(np.median(errors) <= 1000 and errors.max() <= 2000 and 2 * bounds.max() <= 4000)
    return Row(regime, _SEQUENCES, text, good)


def durations(count: int) -> Row:
    """Logs without times."""
    regime = "durations only"
    goal = ">= 97 % of matches right, no accepted alignment in a wrong iteration, other runs never ok"
    found = [trials.durations_trial(seed, align_durations) for seed in range(FIRST_SEED, FIRST_SEED + count)]
    placed = [one for one in found if one.placed]
    others = [trials.durations_of_two_runs(seed, align_durations) for seed in range(FIRST_SEED, FIRST_SEED + count)]
    believed = sum(one.verdict is Verdict.OK for one in others)
    right = float(np.mean([one.right for one in placed])) if placed else 0.0
    astray = sum(one.wrong_iteration > 0.5 for one in placed)
    text = (
        f"{right:.1%} of matches right, {astray} of {len(placed)} placed in a wrong iteration, "
        f"{1 - len(placed) / count:.0%} refused; {believed} of {count} other runs ok"
    )
    return Row(regime, goal, text, bool(placed) and right >= 0.97 and not astray and not believed)


def samples_recorded(recorded: Sequence[Attempt], narrowed: bool) -> Row:
    """perf against ONNX Runtime slices, with the metadata as recorded, or with nothing else at all."""
    words = "narrowed by metadata" if narrowed else "activity alone"
    real = [one for one in _recorded_activity(recorded) if PERF in one.names[1]]
    real = [one for one in real if (one.variant == "as recorded") is narrowed]
    return _placed_row(f"perf samples against ONNX Runtime slices, {words}, recorded", "error <= 20 µs", real, 20_000)


def bins_recorded(recorded: Sequence[Attempt]) -> Row:
    """perf stat against ONNX Runtime slices: nothing else relates the two."""
    real = [one for one in _recorded_activity(recorded) if PERF not in one.names[1]]
    goal = "error <= 5 % of the interval, or refused"
    return _placed_row("perf stat every 10 ms, idle gaps in view, recorded", goal, real, 0.05 * BIN_NS, may_refuse=True)


def _recorded_activity(recorded: Sequence[Attempt]) -> list[Attempt]:
    return [one for one in recorded if one.recording in ACTIVITY]


def _placed_row(regime: str, goal: str, real: Sequence[Attempt], limit: float, *, may_refuse: bool = False) -> Row:
    placed = [one for one in real if one.related and one.error_ns is not None]
    errors = sorted(one.error_ns or 0 for one in placed)
    missed = ", ".join(sorted({one.recording for one in real if one not in placed}))
    text = f"{len(placed)} of {len(real)} placed by their activity"
    if errors:
        bound = max(one.bound_ns or 0 for one in placed)
        text += f", median {np.median(errors) / 1e3:.1f} µs, worst {errors[-1] / 1e3:.1f} µs, stated within ±"
        text += f"{bound / 1e3:.0f} µs or less"
    text += f"; not {missed}" if missed else ""
    good = max(errors, default=0) <= limit and (bool(errors) or may_refuse)
    return Row(regime, goal, text, good, refused=not errors)


def samples(found: Sequence[Outcome], narrowed: bool) -> Row:
    """Samples at 1 kHz, simulated with the interrupts that take them."""
    regime = f"samples at 1 kHz, {'narrowed by metadata' if narrowed else 'activity alone, idle gaps'}, simulated"
    return _activity(regime, "error <= 20 µs", found, 20_000)


def labels(count: int) -> Row:
    """Samples at 1 kHz that interrupt nothing: all that tells is whether they find the runtime at work."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    found = [trials.samples_trial(seed, align_samples, narrowed=False) for seed in seeds]
    return _activity(
        "the same with labels only, simulated", "error <= 50 µs, as far as they are believed", found, 50_000
    )


def bins(count: int) -> Row:
    """Counter deltas every 10 ms."""
    regime, goal = "perf stat every 10 ms, idle gaps in view, simulated", "error <= 5 % of the interval"
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    found = [trials.bins_trial(seed, align_bins, narrowed=False) for seed in seeds]
    return _activity(regime, goal, found, 0.05 * BIN_NS)


def _activity(regime: str, goal: str, found: Sequence[Outcome], limit: float) -> Row:
    worst = [float(one.errors.max()) for one in found if one.accepted]
    if not worst:
        return Row(regime, goal, f"all {len(found)} refused", False)
    text = (
        f"median {np.median(worst) / 1e3:.1f} µs, worst {max(worst) / 1e3:.1f} µs of {len(worst)} accepted; "
        f"{1 - len(worst) / len(found):.0%} refused"
    )
    return Row(regime, goal, text, max(worst) <= limit)


def wrong_accepted(outcomes: Sequence[Outcome]) -> Row:
    """The share of accepted ones in a wrong place, with the share refused."""
    accepted = [one for one in outcomes if one.accepted]
    wrong = sum(one.wrong for one in accepted)
    refused = len(outcomes) - len(accepted)
    refused_right = sum(not one.accepted and not one.wrong for one in outcomes)
    count = max(len(accepted), 1)
    below = "" if wrong else f"; below {min(3 / count, 1):.2%} at 95 %"
    text = (
        f"{wrong} of {len(accepted)} accepted wrong ({wrong / count:.2%}{below}); {refused} of {len(outcomes)} refused "
        f"({refused / len(outcomes):.1%}), of which {refused_right} would have been right"
    )
    good = bool(accepted) and wrong / len(accepted) <= 0.005
    return Row("wrong alignment among accepted, simulated sequences", "<= 0.5 %", text, good)


def bends(count: int) -> Row:
    """Clocks that one line does not relate."""
    found = trials.tried(trials.bent_trial, range(FIRST_SEED, FIRST_SEED + count))
    accepted = [one for one in found if one.accepted]
    wrong = sum(one.wrong for one in accepted)
    errors = np.concatenate([one.errors for one in accepted]) if accepted else np.empty(0)
    inside = float(np.mean(np.concatenate([one.inside for one in accepted]))) if accepted else 0.0
    far = float(np.percentile(errors, 99)) / 1e3 if len(errors) else 0.0
    text = (
        f"{len(accepted)} of {count} accepted, {wrong} of them wrong; error p99 {far:.2f} µs, inside the bounds at "
        f"{inside:.1%} of the times"
    )
    good = bool(accepted) and not wrong and inside >= 0.95
    goal = "never wrong; bounds hold in >= 95 %"
    return Row("a clock slewed or set ahead while both record, simulated", goal, text, good)


def beside_a_step(count: int) -> Row:
    """What is stated of the times next to where a clock was set."""
    found = trials.tried(trials.set_trial, range(FIRST_SEED, FIRST_SEED + count))
    accepted = [one for one in found if one.accepted]
    wrong = sum(not one.inside.all() for one in accepted)
    text = f"{wrong} wrong among {len(accepted)} accepted, {len(found) - len(accepted)} of {len(found)} refused"
    regime = "within 20 ms of where a clock was set ahead, simulated"
    return Row(regime, "the truth within the bounds, always", text, bool(accepted) and not wrong)


def short_recorded() -> Row:
    """Recordings of five to ten iterations whose metadata is taken away."""
    found = short_attempts()
    texts, wrong = [], sum(one.wrong for one in found)
    for what, pairs in (
        ("named events", [one for one in found if not one.names[1].startswith(PERF)]),
        ("slices and samples", [one for one in found if one.names[1].startswith(PERF)]),
    ):
        placed = [one for one in pairs if one.related]
        worst = max((one.error_ns or 0 for one in placed), default=0)
        bound = max((one.bound_ns or 0 for one in placed), default=0)
        texts.append(
            f"{what}: {len(placed)} of {len(pairs)} placed, worst {worst / 1e3:.1f} µs off, "
            f"stated within ±{bound / 1e3:.0f} µs or less"
        )
    good = not wrong and 2 * sum(one.related for one in found) >= len(found)
    text = f"{wrong} wrong; {'; '.join(texts)}"
    return Row("five to ten iterations, no metadata, recorded", "half of them placed, none wrong", text, good)


def stated_wrong() -> Row:
    """Recordings whose files state their clocks, those of the logs wrong by half a millisecond to 20 ms."""
    found = stated_attempts()
    wrong = [verdict for name, verdict in found if not name.endswith("as it is")]
    right = [verdict for name, verdict in found if name.endswith("as it is")]
    believed, doubted = wrong.count("ok"), len(right) - right.count("ok")
    assumed = wrong.count("assumed")
    text = (
        f"{believed} of {len(wrong)} wrong ones ok, {len(wrong) - believed - assumed} refused, {assumed} assumed "
        f"with a warning; {doubted} of {len(right)} right ones not ok"
    )
    regime = "logs of a library whose stated clock is 0.5 to 20 ms wrong, recorded"
    return Row(regime, "none of them ok, all right ones ok", text, not believed and not doubted)


def short(count: int, trial: Callable[..., Outcome], what: str) -> Row:
    """Five to ten iterations, of one run and of two runs of one programme."""
    seeds = range(FIRST_SEED, FIRST_SEED + 3 * count)
    right = [one for one in trials.tried(trial, seeds) if one.accepted]
    others = sum(one.accepted for one in trials.tried(partial(trial, same=False), seeds))
    wrong = sum(one.wrong and not one.held for one in right)
    outside = sum(not one.held for one in right)
    text = (
        f"{wrong} of {len(right)} accepted wrong, {outside} outside of their bounds; {len(seeds) - len(right)} of "
        f"{len(seeds)} refused; of two runs {others} accepted"
    )
    goal = "none wrong among accepted, two runs never accepted"
    return Row(f"five to ten iterations, {what}, simulated", goal, text, bool(right) and not wrong + outside + others)


def periodic(count: int) -> Row:
    """Runs whose iterations are equal."""
    accepted = sum(one.accepted for one in trials.tried(trials.periodic_trial, range(FIRST_SEED, FIRST_SEED + count)))
    return Row("exactly periodic input", "refused, all", f"{count - accepted} of {count} refused", not accepted)


def equal_layers(count: int) -> Row:
    """Equal layers without jitter: what little tells places apart is missing calls, and the rounding of times."""
    regime = "24 equal layers an iteration, no jitter, calls missing"
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    varied = trials.tried(partial(trials.equal_layers_trial, jitter=0.02), seeds)
    return _never_wrong(regime, trials.tried(trials.equal_layers_trial, seeds), "with 2 % of jitter", varied)


def late(count: int, queue: bool) -> Row:
    """Calls in one file, the work that they ask for later in the other one."""
    regime = "calls that run ahead of a queue" if queue else "work a constant 10 to 200 µs after its calls"
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    held = trials.tried(trials.held_trial, seeds)
    return _never_wrong(regime, trials.tried(partial(trials.late_trial, queue=queue), seeds), "work in its calls", held)


def _never_wrong(regime: str, found: Sequence[Outcome], other: str, easy: Sequence[Outcome]) -> Row:
    """Input that may be refused, but not be put into a wrong place, or within bounds that leave the truth out.

    Args:
        regime: what it is.
        found: what became of it.
        other: the same input without what makes it hard, of which at least half must be accepted.
        easy: what became of that.
    """
    accepted, right = ([one for one in some if one.accepted] for some in (found, easy))
    wrong = sum(one.wrong or not one.held for one in (*accepted, *right))
    text = (
        f"{len(accepted)} accepted, {len(found) - len(accepted)} of {len(found)} refused; {other}: {len(right)} of "
        f"{len(easy)} accepted; {wrong} wrong"
    )
    return Row(regime, "none wrong among accepted", text, not wrong and 2 * len(right) >= len(easy), not accepted)


def unrelated(count: int) -> Row:
    """Two runs of one programme."""
    accepted = sum(one.accepted for one in trials.tried(trials.unrelated_trial, range(FIRST_SEED, FIRST_SEED + count)))
    return Row("unrelated runs", "refused, all", f"{count - accepted} of {count} refused", not accepted)


def replayed(count: int) -> Row:
    """Two runs that were given the same work at the same times; beside them pairs of one such run."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    accepted, right = (sum(trials.replayed_trial(seed, same=same).accepted for seed in seeds) for same in (False, True))
    text = f"{accepted} of {count} ok; of one run {right} of {count} ok"
    return Row("two runs of one replayed schedule, timestamped sequences", "never ok", text, not accepted)


def unrelated_samples(count: int) -> Row:
    """Slices of one run and samples of another one, also of work whose iterations are all equal."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    ways = [{"narrowed": narrowed, "regular": regular} for narrowed in (False, True) for regular in (False, True)]
    found = [trials.watched_trial(seed, same=False, **way) for way in ways for seed in seeds]
    accepted = sum(one.accepted for one in found)
    text = f"{len(found) - accepted} of {len(found)} refused"
    return Row("unrelated runs, samples and slices", "refused, all", text, not accepted)


def _hosts(trial: str, count: int) -> tuple[list[host_trials.PlacedRank], int, int]:
    """Return what becomes of pairs of ranks, and how many are placed within a known bound, and outside of it."""
    found = [host_trials.TRIALS[trial](seed) for seed in range(FIRST_SEED, FIRST_SEED + count)]
    wrong = sum(one.wrong for one in found)
    return found, sum(one.bound_ns is not None for one in found) - wrong, wrong


def one_host(name: str, count: int) -> Row:
    """A regime of two files of one host, none of which may be placed outside of its bound."""
    regime, trial = one_host_trials.TRIALS[name]
    found = trials.tried(trial, range(FIRST_SEED, FIRST_SEED + count))
    wrong, refused = sum(one.wrong for one in found), sum(one.refused for one in found)
    text = f"{wrong} of {count - refused} placed outside of their bounds; {refused} refused"
    return Row(regime, "refused, or the truth within the bounds", text, not wrong)


def two_jobs(count: int) -> Row:
    """A rank each of two jobs; beside them pairs of one job."""
    refused, with_input = (sum(one.refused for one in _hosts(name, count)[0]) for name in ("two jobs", "same input"))
    _, right, wrong = _hosts("one job", count)
    text = (
        f"{refused} of {count} refused, with the same input {with_input}; of one job {right} of {count} placed, "
        f"{wrong} outside of its bound"
    )
    good = min(refused, with_input) == count and right + wrong >= 0.95 * count and not wrong
    return Row("ranks of two jobs of one script, simulated", "refused, all", text, good)


def _never_outside(name: str, count: int) -> Row:
    """A regime in which a host is refused, or its bound contains the truth."""
    regime, trial = _NEVER_OUTSIDE[name]
    found, right, wrong = _hosts(trial, count)
    text = f"{wrong} of {right + wrong} placed outside of their bounds; {sum(one.refused for one in found)} refused"
    return Row(regime, "refused, or the truth within the bounds", text, not wrong)


def skewed(count: int) -> Row:
    """The clocks of devices are ahead of their hosts or behind, by up to 500 µs."""
    return _skewed("devices up to 500 µs ahead of their hosts or behind, simulated", "skewed", count)


def ahead(count: int) -> Row:
    """The clock of a device is 1 or 3 ms ahead of its host, and drifts."""
    return _skewed("devices 1 and 3 ms ahead of their hosts that drift, simulated", "ahead", count)


def _skewed(regime: str, trial: str, count: int) -> Row:
    """A regime in which hosts are placed by devices whose clocks are off."""
    found, right, wrong = _hosts(trial, count)
    half, worst = (float(pick([one.error_ns for one in found])) / 1e3 for pick in (np.median, np.max))
    bound = np.median([one.bound_ns for one in found if one.bound_ns is not None]) / 1e3
    text = (
        f"{right + wrong} of {count} placed, {wrong} outside of their bounds; median {half:.0f} µs off, worst "
        f"{worst:.0f} µs, median bound ±{bound:.0f} µs"
    )
    good = right + wrong >= 0.95 * count and not wrong
    return Row(regime, "the truth within the bounds", text, good)


def offsets(count: int) -> Row:
    """The user leaves a host that cannot be placed where it is, or moves one roughly."""
    _, right, wrong = _hosts("cut", count)
    refined, inside, outside = _hosts("rough", count)
    worst = max((one.bound_ns for one in refined if one.bound_ns is not None), default=0.0) / 1e3
    text = (
        f"--offset 0ns: {right + wrong} of {count} with a bound; --offset of whole seconds: {inside + outside} of "
        f"{count} refined to ±{worst:.0f} µs or less, {outside} outside"
    )
    regime = "options that move hosts, simulated"
    return Row(regime, "no bound that does not contain the truth", text, not wrong + outside)


def activity_coverage(outcomes: Sequence[Outcome], recorded: Sequence[Attempt]) -> Row:
    """How often the truth is within the bounds of an alignment by activity, simulated and recorded."""
    times = [one.inside for one in outcomes if one.accepted]
    real = [one for one in _recorded_activity(recorded) if one.related]
    inside = sum(not one.wrong for one in real)
    share = float(np.mean(np.concatenate(times))) if times else 0.0
    text = f"{share:.1%} of the times of {len(times)} simulated pairs; {inside} of {len(real)} recorded ones"
    return Row(
        "95 % bounds, activity", "contain the truth in >= 95 %", text, share >= 0.95 and inside >= 0.95 * len(real)
    )


def coverage(outcomes: Sequence[Outcome]) -> Row:
    """How often the truth is within the bounds."""
    times = [one.inside for one in outcomes if one.accepted]
    share = float(np.mean(np.concatenate(times))) if times else 0.0
    whole = float(np.mean([inside.all() for inside in times])) if times else 0.0
    text = f"{share:.1%} of the times; {whole:.1%} of {len(times)} pairs at all times"
    return Row("95 % bounds", "contain the truth in >= 95 %", text, share >= 0.95)


def speed(name: str, iterations: int, limit_s: float) -> Row:
    """How long a pair takes."""
    found = trials.long_trial(FIRST_SEED, iterations)
    text = f"{found.seconds:.2f} s of a core ({found.estimate.matches} matches, {found.estimate.verdict})"
    return Row(name, f"<= {limit_s:.0f} s", text, found.seconds <= limit_s and found.accepted)


def long_trace(iterations: int) -> Row:
    """A long trace with 50 ppm beside short ones."""
    long = trials.long_trial(FIRST_SEED + 1, iterations)
    short = [trials.long_trial(seed, 150) for seed in range(FIRST_SEED, FIRST_SEED + 5)]
    worst = max(float(one.errors.max()) for one in short)
    text = (
        f"{long.seen_ns / 1e9:.0f} s shared: worst {long.errors.max() / 1e3:.2f} µs; "
        f"{short[0].seen_ns / 1e9:.1f} s: worst {worst / 1e3:.2f} µs"
    )
    good = long.accepted and float(long.errors.max()) <= max(worst, 1000.0)
    return Row("80 s trace with 50 ppm", "no worse than a short one", text, good)


def recordings(recorded: Sequence[Attempt]) -> Row:
    """Whether any recording is put into a wrong place."""
    accepted = [one for one in recorded if one.error_ns is not None]
    wrong = sum(one.wrong for one in recorded)
    text = f"{wrong} of {len(accepted)} accepted outside of their bounds, {len(recorded) - len(accepted)} refused"
    return Row("recordings, with and without metadata", "never wrong", text, not wrong)
