"""Complete the maps to trace time: offsets of the user, tracks without times, totals; refuse what nothing relates."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

from traceconv.align.constraint_parser import ClockConstraint, ClockKind
from traceconv.align.domains import Key, against_clock, zone_option
from traceconv.align.inputs import ClockInput, Inputs, Maps, Policy
from traceconv.align.machines import UNNAMED
from traceconv.align.placed import Placed, is_related
from traceconv.align.wording import listed, quoted
from traceconv.errors import InconsistentClocks, UnrelatedClocks, UsageError
from traceconv.model.clocks import (
    DRIFT_UNIT,
    MONOTONIC,
    MOST_DRIFT,
    SINCE_BOOT,
    ClockMap,
    Provenance,
    Run,
    Step,
    Verdict,
    Zero,
)
from traceconv.model.numbers import LIMIT_NS, format_drift


def place(inputs: Inputs, decided: Placed, policy: Policy) -> Placed:
    """Return all clocks on trace time.

    Args:
        inputs: the clocks.
        decided: those with times that are related to trace time.
        policy: whether durations are compared, and what to do with a log that they do not place for certain.

    Raises:
        UnrelatedClocks: nothing relates the clocks of two inputs.
        InconsistentClocks: the statements about a clock make it drift more than any clock does.
        UsageError: a time is farther from zero than can be written.
    """
    maps = _with_synthetic(inputs, decided.maps)
    for one in inputs.clocks:
        if one.offset is not None:
            maps[one.key] = maps.get(one.key, one.correction).then(one.offset)
    placed = replace(decided, maps=maps)
    if policy.estimate and any(not is_related(inputs, maps, index) for index in range(len(inputs.traces))):
        from traceconv.align.duration_placement import with_durations  # few merges need it

        placed = with_durations(inputs, placed, policy)
    placed = replace(placed, maps=_with_totals(inputs, placed.maps))
    _refuse_unrelated(inputs, placed, policy)
    _refuse_far(inputs, placed.maps)
    return placed


def _with_synthetic(inputs: Inputs, maps: Maps) -> dict[Key, ClockMap]:
    """Return the maps, also of tracks without times: they start with the tracks of their file that have times."""
    with_synthetic = dict(maps)
    for one in inputs.clocks:
        if one.key not in maps and one.domain.synthetic:
            starts = [maps[clock.key].at(clock.span[0]) for clock in inputs.of(one.index) if clock.key in maps]
            if starts:
                with_synthetic[one.key] = ClockMap(
                    min(starts), 0, (Step("no times in the file: placed at its first timed event", Provenance.ASSUMED),)
                )
    return with_synthetic


def _with_totals(inputs: Inputs, maps: Maps) -> Maps:
    """Return the maps, also of tables of totals: they start where everything with times does."""
    totals = [one for one in inputs.clocks if one.domain.run is Run.TOTALS]
    starts = [maps[one.key].at(one.span[0]) for one in inputs.clocks if one.key in maps and one not in totals]
    if not starts or not totals:
        return maps
    clock_map = ClockMap(
        min(starts), 0, (Step("totals have no times: placed at the start of the trace", Provenance.ASSUMED),)
    )
    return {**maps, **{one.key: clock_map for one in totals}}


# -- refusals ---------------------------------------------------------------------------------------------------------


def _refuse_unrelated(inputs: Inputs, placed: Placed, policy: Policy) -> None:
    """Refuse the first input with a clock that has no map, with advice on what would relate it."""
    lost = next((one for one in inputs.clocks if one.key not in placed.maps), None)
    if lost is None:
        return
    clock = lost.describe()
    other = next(one for one in inputs.clocks if one.key in placed.maps)
    target = other.describe() if other.domain == inputs.target else inputs.target.describe()
    if other.index == lost.index:
        raise UnrelatedClocks(
            f"{lost.name} holds times of two unrelated clocks: {target}, and {clock}",
            hint="split it where the second recording starts, and merge the parts with --offset",
        )
    form = lost.trace.sources[0].form
    same = [one for one in inputs.clocks if one.index != lost.index and inputs.are_one_recording(one.index, lost.index)]
    if same and form is not None and not form.timed:
        events = ": both are forms of one recording, in which the times differ"
        raise UnrelatedClocks(
            f"{same[0].name} and {lost.name} have no common clock{events} ({same[0].name}: "
            f"{same[0].describe()}; {lost.name}: {clock})",
            hint="leave one of the two out",
            pairs=placed.pairs,
        )
    pairs = (pair for pair in placed.pairs if lost.index in (pair.a.index, pair.b.index))
    tried = [
        pair.estimate for pair in pairs if pair.estimate.verdict is not Verdict.OK
    ]  # the others are of lost inputs
    one_run = not policy.same_run and any(estimate.verdict is Verdict.UNVERIFIED for estimate in tried)
    advice = (
        one_machine_advice(other, lost),
        "if both are of one run: --same-run" if one_run else "",
        zone_option(lost.trace, lost.domain),
        f"`traceconv clocks {quoted(inputs.paths)}` lists what would help",
        f"if you know the offset, --offset {quote(lost.name)}=TIME adds it to all times of that file",
        "--on-ambiguous separate draws it from the start of the others on, and marks it",
    )
    events = f", and their events do not determine the offset: {tried[0].reason}" if tried else ""
    raise UnrelatedClocks(
        f"{other.name} and {lost.name} have no common clock{events} ({other.name}: {target}; {lost.name}: {clock})",
        hint=listed(tuple(filter(None, advice)), "; "),
        pairs=placed.pairs,
        verdict=Verdict.UNVERIFIED.value if one_run else "",
    )


def _refuse_far(inputs: Inputs, maps: Maps) -> None:
    """Refuse a clock with a greater drift than any clock has, and times that cannot be written."""
    for one in inputs.clocks:
        if one.key not in maps:
            continue
        drift = max(abs(line.drift) for line in maps[one.key].lines)
        if drift > MOST_DRIFT:
            ppm = drift * DRIFT_UNIT * 1e6
            raise InconsistentClocks(
                f"{one.name}: the known relations of its clock contradict each other: its drift would be "
                f"{format_drift(ppm)}",
                hint="leave a file out, or place this one with --offset",
            )
        if any(abs(maps[one.key].at(end)) > LIMIT_NS for end in one.span):
            raise UsageError(
                f"{one.name}: after the move, its times are more than 146 years from zero",
                hint="check --offset and the unit of the times (-O ts_unit=...)",
            )


def one_machine_advice(one: ClockInput, other: ClockInput) -> str | None:
    """Return what the user can state if two inputs are of one machine; None if that would not relate them."""
    sides, domain, its = (one, other), one.domain, other.domain
    begin, end = (pick(side.span[at] for side in sides) for at, pick in ((0, max), (1, min)))
    named = {side.counted.host for side in sides if side.counted.name == MONOTONIC.name} - {"", UNNAMED}
    if begin <= end and len(named) < len(sides):
        machine = next(iter(named), UNNAMED)
        missing = [side for side in sides if (side.counted.name, side.counted.host) != (MONOTONIC.name, machine)]
        if missing and all(_may_be_monotonic(side, machine) for side in missing):
            options = tuple(_monotonic_option(side, machine) for side in missing)
            return f"if both count the monotonic clock of one machine: {listed(options, ' ')}"
    hosts = {side.counted.host for side in sides} - {""}
    same_boot = domain.zero in SINCE_BOOT and domain.zero is its.zero and len(hosts) < len(sides)
    return "if both are of one machine, and it was not restarted in between: --same-machine" if same_boot else None


def _monotonic_option(side: ClockInput, machine: str) -> str:
    """Return the --clock that states that a clock is CLOCK_MONOTONIC of a machine."""
    if machine == UNNAMED:
        return f"--clock {quote(side.name)}=monotonic"
    return f"--clock {quote(side.name)}=monotonic@{quote(machine)}"


def _may_be_monotonic(side: ClockInput, machine: str) -> bool:
    """Return whether a clock can be CLOCK_MONOTONIC of a machine, by what its file and the user state."""
    may_be = side.domain.zero in (Zero.BOOT, Zero.UNKNOWN) and side.domain.run is not Run.WALL
    if not may_be or (side.by_user is not None and side.counted.name != MONOTONIC.name):
        return False
    stated = ClockConstraint(ClockKind.MONOTONIC, "" if machine == UNNAMED else machine)
    return against_clock(side.trace, side.domain, side.span, stated) is None
