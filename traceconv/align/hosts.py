"""The wall clocks of several hosts: what a file says of the wall clock is said of that of its own host.

How well the clocks of two hosts are synchronised is in no file. Where the inputs state several hosts, or are ranks of
a job that do not all state theirs, each host has a wall clock of its own; the clock graph takes them for one, with a
bound that is not known. An input that states no host may then be of any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceconv.align.constraint_parser import Facts
from traceconv.align.domains import with_domains
from traceconv.align.messages import Message, Text
from traceconv.model.clocks import REALTIME, ClockDomain
from traceconv.model.trace import Trace


def with_wall_clocks_of_hosts(
    traces: Sequence[Trace], facts: Facts, *, same_machine: bool
) -> tuple[list[Trace], list[ClockDomain]]:
    """The traces, with a wall clock for each host where they are of several, or may be.

    Args:
        traces: the inputs, as read.
        facts: what the user says about the clocks, also of which hosts they are.
        same_machine: the word of the user that it is one machine for all, whatever their hosts are called.

    Returns:
        The traces, and for each the wall clock of its host.
    """
    said = [facts.clocks[index].machine if index in facts.clocks else "" for index in range(len(traces))]
    hosts = [trace.host or machine for trace, machine in zip(traces, said, strict=True)]
    ranks = [trace.sources[0].rank for trace in traces]
    unnamed = any(rank is not None and not host for rank, host in zip(ranks, hosts, strict=True))
    several = len({host for host in hosts if host}) > 1 or (unnamed and len({*ranks} - {None}) > 1)
    if same_machine or not several:
        return list(traces), [REALTIME] * len(traces)
    walls = [
        REALTIME.owned_by(host or f"{index}:{trace.sources[0].name}")
        for index, (trace, host) in enumerate(zip(traces, hosts, strict=True))
    ]
    return [_with_wall_clock(trace, wall) for trace, wall in zip(traces, walls, strict=True)], walls


def _with_wall_clock(trace: Trace, wall: ClockDomain) -> Trace:
    """The trace; what it says of the wall clock is said of the given one."""
    return with_domains(trace, lambda domain: domain.owned_by(wall.owner) if domain.is_wall_clock else domain)


def warnings_of_unnamed_hosts(traces: Sequence[Trace], walls: Sequence[ClockDomain]) -> Iterator[tuple[int, Message]]:
    """What is to be said of ranks that do not state their host, with the number of the input."""
    for index, (trace, wall) in enumerate(zip(traces, walls, strict=True)):
        if wall.owner and not trace.host and trace.sources[0].rank is not None:
            yield index, Text.HOST_NOT_NAMED()
