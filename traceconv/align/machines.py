"""Which machine the clocks and the processes of each input are of, by what files and user say.

Boot ids win over names: equal ones are one machine whatever it is called (a container has a name of its own), different
ones are not, or not the same run of it. An input that names no machine is on that of the others if these agree.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from traceconv.align.constraint_parser import Facts
from traceconv.align.domains import with_domains
from traceconv.align.messages import Text
from traceconv.errors import InconsistentClocks
from traceconv.model.trace import Trace

#: The machine of inputs of which the user says that they count the same clock since boot, where none has a name.
UNNAMED = "(the same machine)"
_NOBODY = "(nobody names one)"


class Basis(enum.StrEnum):
    """How it is known that two inputs are of one machine, from the surest."""

    BOOT = "boot id"
    HOST = "host name"
    USER = "word of the user"
    OTHERS = "assumed: not named, and all others agree"
    NOBODY = "assumed: no input names its machine"

    @property
    def assumed(self) -> bool:
        """Whether nothing and nobody says it."""
        return self in (Basis.OTHERS, Basis.NOBODY)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of an input.

    Attributes:
        key: equal for inputs that are of one machine; "" where nothing says which.
        host: what the input calls it, "" if it does not.
        boot: of which boot the input is, "" if it does not say.
        by_user: whether the user says that all are of one machine.
    """

    key: str
    host: str = ""
    boot: str = ""
    by_user: bool = False

    def same_as(self, other: Machine) -> Basis | None:
        """How it is known that the other one is the same machine; None if it is not."""
        if not self.key or self.key != other.key:
            return None
        if self.boot and self.boot == other.boot:
            return Basis.BOOT
        if self.host and other.host:
            return Basis.HOST if self.host == other.host else Basis.USER if self.by_user else Basis.BOOT
        if self.by_user:
            return Basis.USER
        return Basis.NOBODY if self.key == _NOBODY else Basis.OTHERS


def machines_of(
    traces: Sequence[Trace], stated: Sequence[Trace], facts: Facts, boots: dict[int, str], *, same_machine: bool
) -> list[Machine]:
    """The machine of each input.

    Args:
        traces: the inputs as read.
        stated: the same with the snapshots that follow from the facts.
        facts: what the user says about the clocks.
        boots: what the boots of inputs are called that were told apart by when they began.
        same_machine: the word of the user that it is one machine for all.

    Raises:
        InconsistentClocks: that is said of inputs of several boots.
    """
    hosts = [next(filter(None, _names(trace, index, facts)), "") for index, trace in enumerate(traces)]
    by_clock = [not host and _counts_unnamed(trace) for host, trace in zip(hosts, stated, strict=True)]
    ids = _boot_of(traces, boots)
    keys = _keys([host or UNNAMED * said for host, said in zip(hosts, by_clock, strict=True)], ids)
    if same_machine:
        _refuse_several_boots(traces, ids)
        keys = [next(filter(None, keys), UNNAMED)] * len(keys)
    known = {key for key in keys if key}
    assumed = _NOBODY if not known else known.pop() if len(known) == 1 else ""
    return [
        Machine(key or assumed, host, boot, same_machine or said)
        for key, host, boot, said in zip(keys, hosts, ids, by_clock, strict=True)
    ]


def with_one_name(traces: Sequence[Trace]) -> list[Trace]:
    """The inputs; a machine that has several names, as equal boot ids tell, has the first one in all of them."""
    pairs = [(host, trace.sources[0].boot_id) for trace in traces for host in _names(trace, -1, Facts())]
    name_of = {boot: host for host, boot in reversed(pairs) if host}
    renamed = {host: name_of[boot] for host, boot in _boot_of_host(pairs).items()}
    if all(host == name for host, name in renamed.items()):
        return list(traces)
    return [
        with_domains(trace, lambda domain: replace(domain, machine=renamed.get(domain.machine, domain.machine)))
        for trace in traces
    ]


def _names(trace: Trace, index: int, facts: Facts) -> Iterator[str]:
    yield from (domain.host for domain in trace.clocks)
    if index in facts.clocks:
        yield facts.clocks[index].machine
    yield from (end.host for snap in trace.snapshots for end in (snap.clock, snap.other))


def _counts_unnamed(trace: Trace) -> bool:
    """Whether the user says that an input counts the clock of a machine that no input names."""
    return any(end.machine == UNNAMED for snap in trace.snapshots for end in (snap.clock, snap.other))


def _boot_of(traces: Sequence[Trace], boots: dict[int, str]) -> list[str]:
    """What the boot of each input is called, "" if nothing says it."""
    ids = [trace.sources[0].boot_id for trace in traces]
    named = {ids[index]: name for index, name in boots.items() if ids[index]}
    return [boots.get(index) or named.get(id, id) for index, id in enumerate(ids)]


def _keys(hosts: Sequence[str], boots: Sequence[str]) -> list[str]:
    """For each input the same text as for all that are known to be of its machine, "" where it says nothing.

    Boot ids count first. A name counts for the inputs without one, unless machines of several boots have it: then
    nobody knows which is meant.
    """
    alone = _boot_of_host(zip(hosts, boots, strict=True))
    known = [boot or alone.get(host, "") for host, boot in zip(hosts, boots, strict=True)]
    return [f"boot {boot}" if boot else host for host, boot in zip(hosts, known, strict=True)]


def _boot_of_host(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each name that machines of one boot alone have, that boot; what has no name or no boot is left out."""
    boots_of: dict[str, set[str]] = {}
    for host, boot in pairs:
        if host and boot:
            boots_of.setdefault(host, set()).add(boot)
    return {host: next(iter(boots)) for host, boots in boots_of.items() if len(boots) == 1}


def _refuse_several_boots(traces: Sequence[Trace], boots: Sequence[str]) -> None:
    first = next((index for index, boot in enumerate(boots) if boot), 0)
    for trace, boot in zip(traces, boots, strict=True):
        if boot not in ("", boots[first]):
            raise InconsistentClocks(
                Text.TWO_BOOTS(file=traces[first].sources[0].name, other=trace.sources[0].name),
                hint=Text.LEAVE_SAME_MACHINE_OUT(),
            )
