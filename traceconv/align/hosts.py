"""The wall clocks of several hosts: what a file says of the wall clock is said of that of its own host.

How well the clocks of two hosts are synchronised is in no file. Where the inputs state several hosts, each host has a
wall clock of its own; the clock graph takes them for one, with a bound that is not known. An input that states no host
may then be of any.
"""

from __future__ import annotations

from collections.abc import Sequence

from traceconv.align.constraint_parser import Facts
from traceconv.align.domains import with_domains
from traceconv.clocks import REALTIME, ClockDomain
from traceconv.ir.trace import Trace


def with_wall_clocks_of_hosts(
    traces: Sequence[Trace], facts: Facts, *, same_machine: bool
) -> tuple[list[Trace], list[ClockDomain]]:
    """The traces, with a wall clock for each host where they state several.

    Args:
        traces: the inputs, as read.
        facts: what the user says about the clocks, also of which hosts they are.
        same_machine: the word of the user that it is one machine for all, whatever their hosts are called.

    Returns:
        The traces, and for each the wall clock of its host.
    """
    said = [facts.clocks[index].machine if index in facts.clocks else "" for index in range(len(traces))]
    hosts = [trace.host or machine for trace, machine in zip(traces, said, strict=True)]
    if same_machine or len({host for host in hosts if host}) < 2:
        return list(traces), [REALTIME] * len(traces)
    walls = [
        REALTIME.owned_by(host or f"{index}:{trace.sources[0].name}")
        for index, (trace, host) in enumerate(zip(traces, hosts, strict=True))
    ]
    return [_with_wall_clock(trace, wall) for trace, wall in zip(traces, walls, strict=True)], walls


def _with_wall_clock(trace: Trace, wall: ClockDomain) -> Trace:
    """The trace; what it says of the wall clock is said of the given one."""
    return with_domains(trace, lambda domain: domain.owned_by(wall.owner) if domain.is_wall_clock else domain)
