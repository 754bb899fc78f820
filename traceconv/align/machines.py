"""Which machine the clocks and the processes of each input are of, by what files and user say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceconv.align.facts import Facts
from traceconv.errors import InconsistentClocks
from traceconv.ir.trace import Trace

_UNNAMED = "(the same machine)"


def machines_of(traces: Sequence[Trace], facts: Facts, *, same_machine: bool) -> list[str]:
    """For each input its machine, "" where nothing says it.

    Args:
        traces: the inputs, with the snapshots that follow from the facts.
        facts: what the user says about the clocks.
        same_machine: the word of the user that it is one machine for all.

    Raises:
        InconsistentClocks: that is said of inputs that name different machines.
    """
    named = [next(filter(None, _names(trace, index, facts)), "") for index, trace in enumerate(traces)]
    if not same_machine:
        return named
    first = next((index for index, machine in enumerate(named) if machine), 0)
    for index, machine in enumerate(named):
        if machine not in ("", named[first]):
            raise InconsistentClocks(
                f"--same-machine: {traces[first].sources[0].name} is of {named[first]}, "
                f"{traces[index].sources[0].name} of {machine}",
                hint="leave it out: files that name one machine are put together without it, "
                "and --clock FILE=monotonic@HOST says which machine a file is of",
            )
    return [named[first] or _UNNAMED] * len(traces)


def _names(trace: Trace, index: int, facts: Facts) -> Iterator[str]:
    yield from (domain.machine for domain in trace.clocks)
    if index in facts.clocks:
        yield facts.clocks[index].machine
    yield from (end.machine for snap in trace.snapshots for end in (snap.clock, snap.other))
