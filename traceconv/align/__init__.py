"""Align the clocks of all inputs: one time axis, a map to it from each clock, with its bound and verdict.

The steps of `align`, in order. Each returns the inputs, or the clocks on trace time, with more known of them:

    gathered            the clocks of all inputs, with what files and user say of them    (inputs, statements)
    skews_of            how far devices may be off the clocks of their hosts, by launches (devices)
    with_hosts_related  how the clocks of hosts differ, by collectives of their ranks     (collective_hosts)
    estimates           what the events say about each two clocks                         (comparison, evidence)
    decide              where each clock lies, or a refusal, by all that is known         (decision)
    place               what the user moves, what has no times, totals                    (placement)
    doubted             warnings and bounds where events contradict the user              (comparison)
    allowed_for         bounds that contain the skews of devices                          (devices)
    with_others_apart   the calls in a log that are of other processes                    (containment)
    receipt_line        how each was placed and how sure that is, for people              (receipt)

A single input, or `Policy.estimate` off, needs only `gathered`, `place`, and `skews_of` with `allowed_for` if it has
launches. `checked_alignment` goes on:

    causality           the checks that effects come after their causes                   (causality, checks)
    believed            lower verdicts, or a refusal, where checks contradict clocks      (causality)
    with_device_bounds  bounds between the devices of several hosts, by collectives       (devices)

Evidence, from the surest: the same clock; what the files themselves say (snapshots); what the user says; what the
events say. Each is an edge of the clock graph or a correction of the times. Without evidence there is no output: a
plausible wrong timeline is the worst that this tool can make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

from msgspec.structs import replace

from traceconv.align.causality import believed, causality
from traceconv.align.checks import Causality
from traceconv.align.constraints import NO_CONSTRAINTS, Constraints
from traceconv.align.domains import Key
from traceconv.align.duplicates import warnings_of_duplicates
from traceconv.align.identity import identified, viewed
from traceconv.align.inputs import Inputs, Placed, Policy, gathered, related_maps
from traceconv.align.placement import (
    NoOverlap,
    place,
    warnings_of_jobs,
    warnings_of_no_overlap,
    warnings_of_unnamed_hosts,
)
from traceconv.align.receipt import Alignment, ReceiptLine, moved_ns, receipt_line
from traceconv.model.clocks import ClockMap, Verdict
from traceconv.model.trace import Trace

__all__ = ["Alignment", "Policy", "ReceiptLine", "align", "checked_alignment"]


def align(
    traces: Sequence[Trace], *, policy: Policy | None = None, constraints: Constraints = NO_CONSTRAINTS
) -> Alignment:
    """Relate the clocks of all inputs; only what events say about two clocks is checked, not the order in the result.

    Args:
        traces: the inputs, as read.
        policy: how uncertain an alignment may be.
        constraints: the statements of the user about the inputs and their clocks.

    Raises:
        UnrelatedClocks: two inputs have clocks that nothing relates.
        AmbiguousAlignment: their events fit at several offsets.
        InconsistentClocks: statements of files and user about the clocks contradict each other, or the events.
        UsageError: a constraint does not fit its input, or a name map no name.
    """
    policy = policy or Policy()
    if policy.names.extra:
        from traceconv.align.features import names_of

        policy.names.check_extra([names_of(trace) for trace in traces])
    inputs = gathered(traces, constraints)
    if policy.estimate and len(traces) > 1:
        from traceconv.align.collective_hosts import with_hosts_related
        from traceconv.align.comparison import doubted, estimates
        from traceconv.align.containment import with_others_apart
        from traceconv.align.decision import decide
        from traceconv.align.devices import allowed_for, skews_of

        inputs = replace(inputs, skews=skews_of(inputs))
        inputs = with_hosts_related(inputs, leave_contradictions=policy.on_ambiguous == "best")
        placed = place(inputs, decide(inputs, estimates(inputs, policy), policy), policy)
        placed = allowed_for(inputs, doubted(inputs, placed, policy))
        placed = with_others_apart(inputs, placed, policy.names)
    else:
        placed = place(inputs, Placed(related_maps(inputs, inputs.graph)), policy)
        if policy.estimate and any(trace.sources[0].marks.launches for trace in traces):
            from traceconv.align.devices import allowed_for, skews_of

            inputs = replace(inputs, skews=skews_of(inputs))
            placed = allowed_for(inputs, placed)
    return _alignment(traces, inputs, placed, constraints, policy)


def checked_alignment(
    traces: Sequence[Trace], *, policy: Policy | None = None, constraints: Constraints = NO_CONSTRAINTS
) -> tuple[Alignment, Causality]:
    """Relate the clocks of all inputs, and check that effects come after their causes; a single input needs no check.

    Raises:
        AlignmentError: as for `align`; it holds the checks if they are the reason.
        UsageError: as for `align`.
    """
    policy = policy or Policy()
    alignment = align(traces, policy=policy, constraints=constraints)
    if len(traces) < 2:
        return alignment, Causality(())
    checks = causality(traces, alignment, policy.names)
    alignment = believed(alignment, checks, policy.on_ambiguous)
    if checks.matched is not None:
        from traceconv.align.devices import with_device_bounds  # few merges need it

        alignment = with_device_bounds(alignment, checks.matched.occurrences)
    return replace(alignment, again=None, collectives=None), checks  # which keep the inputs in memory


def _checked(traces: Sequence[Trace], policy: Policy, constraints: Constraints) -> Causality:
    return causality(traces, align(traces, policy=policy, constraints=constraints), policy.names)


def _alignment(
    traces: Sequence[Trace], inputs: Inputs, placed: Placed, constraints: Constraints, policy: Policy
) -> Alignment:
    """Return the alignment, with a line of the receipt for each clock."""
    maps = [{clock.clock: placed.maps[clock.key] for clock in inputs.clocks_of(index)} for index in range(len(traces))]
    warnings = _warnings(traces, inputs, placed, maps, constraints)
    by_files = inputs.of_files.maps_to(inputs.target)
    receipt = [
        receipt_line(
            clock,
            placed.maps[clock.key],
            moved_ns(clock, placed.maps[clock.key], by_files.get(clock.domain), inputs.target),
            placed.pairs,
            warnings[clock.key],
            placed.placements.get(clock.index),
            traces[clock.index].host,
        )
        for clock in inputs.clocks
    ]
    alignment = Alignment(
        inputs.target,
        maps,
        receipt,
        list(placed.pairs),
        dict(placed.placements),
        [trace.sources[0].name for trace in traces],
        inputs.stated.machines,
        inputs.stated.notes,
        [inputs.beside.get(wall, wall).owner for wall in inputs.stated.walls],
        hosts_apart=inputs.hosts_apart,
        repeats=inputs.repeats,
        skews=inputs.skews,
        collectives=inputs.collectives,
        others=placed.others,
        constraints=constraints,
        again=partial(_checked, traces, policy),
        zones_told=frozenset().union(
            *(said.told for said in chain.from_iterable(warnings.values()) if isinstance(said, NoOverlap))
        ),
    )
    return alignment if len(traces) == 1 else replace(alignment, together=identified(viewed(inputs.traces, alignment)))


def _warnings(
    traces: Sequence[Trace], inputs: Inputs, placed: Placed, maps: list[dict[int, ClockMap]], constraints: Constraints
) -> Mapping[Key, list[object]]:
    """Return the warnings for each clock; those about whole inputs are given to their first clock."""
    by_clock = defaultdict[Key, list[object]](list)
    apart = {
        index
        for index, of_input in enumerate(maps)
        if any(way.verdict is Verdict.SEPARATE for way in of_input.values())
    }
    alone = warnings_of_no_overlap(inputs.traces, maps, constraints, {*placed.placements, *apart})
    for key, warning in (*inputs.stated.warnings, *placed.warnings, *alone):
        by_clock[key].append(warning)
    named = [trace.host for trace in traces]
    of_inputs = chain(
        warnings_of_duplicates(inputs.traces, named, inputs.repeats),
        warnings_of_jobs(inputs.traces),
        warnings_of_unnamed_hosts(traces, inputs.stated.walls),
    )
    for index, text in of_inputs:
        if maps[index]:
            by_clock[index, min(maps[index])].append(text)
    return by_clock
