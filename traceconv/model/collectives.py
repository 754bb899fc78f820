"""What a trace says of collectives: operations of a group of processes that some leave only after others have entered.

None leaves an all_reduce, all_gather, reduce_scatter, all_to_all or barrier before all have entered. Others bound one
side only: none leaves a broadcast or a scatter before its root has entered, the root leaves a reduce or a gather after
all have, and who receives a message after its sender has entered. They count where the root is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Group = tuple[int, ...]

#: Who enters alone, of which the others wait, is the root; or they enter, and the root waits; or it is a message.
FROM_ROOT, TO_ROOT, MESSAGES = ("broadcast", "scatter"), ("reduce", "gather"), ("send", "recv")
ONE_SIDED = (*FROM_ROOT, *TO_ROOT, *MESSAGES)

#: No job has more processes.
_MOST_RANKS = 10_000_000


@dataclass(frozen=True, slots=True)
class CollectiveArgs:
    """What the members of the args are called that tell one collective from another; "" for what the format lacks.

    Attributes:
        kind: what is done.
        ranks: of the group: a list, or its text.
        group: the name of the group in this process; another process may call another one so.
        about: what the group is for; equal in all processes.
        group_size: how many processes the group has.
        seq: the number of the collective in its group.
        sizes: how much of what is exchanged.
        source, target: the rank that a message comes from, or goes to.
        call: the number of the call that launched it, which the call has, too.
        root: in the args of the call the number of the root in the group.
    """

    kind: str = ""
    ranks: str = ""
    group: str = ""
    about: str = ""
    group_size: str = ""
    seq: str = ""
    sizes: tuple[str, ...] = ()
    source: str = ""
    target: str = ""
    call: str = ""
    root: str = ""


@dataclass(frozen=True, slots=True)
class Collectives:
    """Which slices of a trace are collectives, and where their args tell of what.

    Attributes:
        kinds: for interned pairs of name and category what is done, such as "all_reduce"; "" where the args tell it.
        args: what their members are called.
        said: what the args may say is done, and what that is; of all else nothing is known.
        groups: the ranks of the groups by name, where the args may be cut short; in the order in which the process made
            them, which is the same in all processes for groups of equal ranks.
        only_group: the ranks of the only group that the job has, for collectives without one; None if it has several.
        world: all ranks of the job; None if nobody says how many there are.
        calls: pairs of name and category of the calls that launch them.
    """

    kinds: Mapping[tuple[int, int], str]
    args: CollectiveArgs = CollectiveArgs()
    said: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    only_group: Group | None = None
    world: Group | None = None
    calls: Sequence[tuple[int, int]] = ()


def parse_ranks(value: Any) -> Group | None:
    """Return the ranks of a group, in order, from a list or from its text, "[0, 1]".

    None if they were cut or are none.
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
