"""The declarations about collectives: operations of a group of processes in which some wait for others.

No process leaves an all_reduce, all_gather, reduce_scatter, all_to_all or barrier before all have entered it. Other
operations bound one side only: no process leaves a broadcast or a scatter before its root has entered; the root leaves
a reduce or a gather after all have entered; a receiver leaves after its sender has entered. These are used where the
root is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Group = tuple[int, ...]

#: The operations in which all wait for the root; in which the root waits for all; and messages between two ranks.
FROM_ROOT, TO_ROOT, MESSAGES = ("broadcast", "scatter"), ("reduce", "gather"), ("send", "recv")
ONE_SIDED = (*FROM_ROOT, *TO_ROOT, *MESSAGES)

#: More processes than any job has.
_MOST_RANKS = 10_000_000


@dataclass(frozen=True, slots=True)
class CollectiveArgs:
    """The keys of the args that describe a collective; "" for a key that the format lacks.

    Attributes:
        kind: the operation.
        ranks: the ranks of the group: a list, or its text.
        group: the name of the group in this process; another process may use this name for another group.
        about: the purpose of the group; equal in all processes.
        group_size: the number of processes of the group.
        seq: the number of the collective in its group.
        sizes: the amount and type of the exchanged data.
        parts: how much goes to each rank, and comes from each: lists as text, empty where all are equal.
        source, target: the rank that a message comes from, or goes to.
        call: the number that the collective shares with the call that launched it.
        root: in the args of that call: the number of the root in the group.
    """

    kind: str = ""
    ranks: str = ""
    group: str = ""
    about: str = ""
    group_size: str = ""
    seq: str = ""
    sizes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    source: str = ""
    target: str = ""
    call: str = ""
    root: str = ""


@dataclass(frozen=True, slots=True)
class Collectives:
    """The slices of a trace that are collectives, and the keys of their args.

    Attributes:
        kinds: the operation, such as "all_reduce", by interned name and category; "" where the args state it.
        args: the keys of their args.
        kind_of_text: the operation by its text in the args; other texts are of unknown operations.
        kind_of_equal_parts: the same for operations in which all wait for all only if all parts are equal.
        groups: the ranks of the groups by name, since the args may be cut short. In the order in which the process
            created them, which is the same in all processes for groups of equal ranks.
        only_group: the ranks of the only group of the job, for collectives that state none; None if it has several
            groups.
        world: all ranks of the job; None if their number is not stated.
        calls: the interned names and categories of the calls that launch them.
    """

    kinds: Mapping[tuple[int, int], str]
    args: CollectiveArgs = CollectiveArgs()
    kind_of_text: Mapping[str, str] = field(default_factory=dict)
    kind_of_equal_parts: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    only_group: Group | None = None
    world: Group | None = None
    calls: Sequence[tuple[int, int]] = ()


def parse_ranks(value: Any) -> Group | None:
    """Return the ranks of a group in ascending order, from a list or its text such as "[0, 1]".

    Return None if the list was cut short or holds anything but ranks.
    """
    if isinstance(value, str):
        value = value.strip("[] ").split(",") if value.strip("[] ") else []
    if not isinstance(value, list):
        return None
    try:
        ranks = sorted({int(one) for one in value})
    except (ValueError, TypeError, OverflowError):
        return None
    return tuple(ranks) if ranks and ranks[0] >= 0 and ranks[-1] < _MOST_RANKS else None
