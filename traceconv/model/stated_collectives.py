"""The declarations about collectives: operations of a group of processes in which some wait for others.

No process leaves an all_reduce, all_gather, reduce_scatter, all_to_all or barrier before all have entered it. Other
operations bound one side only: no process leaves a broadcast or a scatter before its root has entered; the root leaves
a reduce or a gather after all have entered; a receiver leaves after its sender has entered. These are used where the
root is known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from traceconv.model.args import ABSENT, arg_values
from traceconv.model.columns import chunks
from traceconv.model.numbers import is_digits, whole_of

if TYPE_CHECKING:
    from traceconv.model.columns import I64
    from traceconv.model.trace import Trace


# -- declarations -----------------------------------------------------------------------------------------------------

Group = tuple[int, ...]

#: The operations in which all wait for the root; in which the root waits for all; and messages between two ranks.
FROM_ROOT, TO_ROOT, MESSAGES = ("broadcast", "scatter"), ("reduce", "gather"), ("send", "recv")
ONE_SIDED = (*FROM_ROOT, *TO_ROOT, *MESSAGES)

#: More processes than any job has.
_MOST_RANKS = 10_000_000


class CollectiveArgs(Struct, frozen=True):
    """The keys of the args that describe a collective; "" for a key that the format lacks.

    Attributes:
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


class Collectives(Struct, frozen=True):
    """The slices of a trace that are collectives, and the keys of their args.

    Attributes:
        kinds: the operation, such as "all_reduce", by interned name and category; "" where the args state it.
        kind_of_text: the operation by its text in the args; other texts are of unknown operations.
        kind_of_equal_parts: the same for operations in which all wait for all only if all parts are equal.
        groups: the ranks of the groups by name, since the args may be cut short. In the order in which the process
            created them, which is the same in all processes for groups of equal ranks.
        only_group: the ranks of the only group of the job, for collectives that state none; None if it has several.
        world: all ranks of the job; None if their number is not stated.
        calls: the interned names and categories of the calls that launch them.
    """

    kinds: Mapping[tuple[int, int], str]
    args: CollectiveArgs = CollectiveArgs()
    kind_of_text: Mapping[str, str] = {}
    kind_of_equal_parts: Mapping[str, str] = {}
    groups: Mapping[str, Group] = {}
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
        ranks = sorted({int(rank) for rank in value})
    except (ValueError, TypeError, OverflowError):
        return None
    return tuple(ranks) if ranks and ranks[0] >= 0 and ranks[-1] < _MOST_RANKS else None


# -- what an input states ---------------------------------------------------------------------------------------------

#: Larger numbers are not sequence numbers.
_MOST = 2**62
#: The operation of slices that do not state it.
_UNKNOWN = "an unknown operation"


class GroupStated(Struct, frozen=True):
    """A group as a process states it: its ranks or None, its purpose, its name in this process."""

    ranks: Group | None
    about: str
    name: str


class Side(IntEnum):
    """The ends of a slice that bound other ranks.

    Both, if every rank leaves only after all others have entered. The start alone, if others wait for this rank. The
    end alone, if this rank waits for others.
    """

    BOTH = 0
    START = 1
    END = 2


class StatedCollective(Struct, frozen=True):
    """A collective, as the name and args of a slice state it.

    Attributes:
        group: the members, an index into `StatedCollectives.groups`.
        sizes: the name of the slice, and the amount and type of the exchanged data.
        seq: its sequence number in the group; of a message the number among those with the same sender and receiver. -1
            for none, or if the process states it more than once: replays of a CUDA graph repeat that of the capture.
        side: the ends that bound other ranks.
        ends: the rank of the root; of a message the ranks of sender and receiver.
    """

    row: int
    kind: str
    group: int
    sizes: tuple[str, ...]
    seq: int
    side: Side = Side.BOTH
    ends: Group = ()


class StatedCollectives(Struct, frozen=True):
    """The collectives of an input with a known operation, in order of their slices.

    Attributes:
        groups: the distinct groups of all declared collectives.
        without_group: the number of those that state nothing beside others that do.
        not_for_all: how often each operation occurs in which not every rank is known to wait for all others.
    """

    each: list[StatedCollective]
    groups: list[GroupStated]
    without_group: int = 0
    not_for_all: Counter[str] = field(default_factory=Counter)


def stated_collectives(trace: Trace) -> StatedCollectives:
    """Return the collectives of an input; none if it declares none, or for a trace of several inputs."""
    declared = trace.collectives
    if declared is None:
        return StatedCollectives([], [])
    groups: dict[GroupStated, int] = {}
    calls = list(_stated(trace, declared, groups))
    used = [call for call, counts in calls if counts]
    without_group = sum(not call.kind for call, _ in calls)
    not_for_all = Counter(call.kind for call, counts in calls if call.kind and (not counts or call.side != Side.BOTH))
    often = Counter((call.group, call.kind, call.seq) for call in used)
    each = [replace(call, seq=-1) if often[call.group, call.kind, call.seq] > 1 else call for call in used]
    return StatedCollectives(_with_messages_numbered(each), list(groups), without_group, not_for_all)


def _with_messages_numbered(each: Sequence[StatedCollective]) -> list[StatedCollective]:
    """Give each message its number among those with the same sender and receiver.

    A process counts its messages to and from all others of a group together, so the stated numbers differ between
    sender and receiver. The number here identifies a message if all messages are recorded from the first one on, since
    they arrive in the order in which they were sent.
    """
    seqs: defaultdict[int, list[int]] = defaultdict(list)
    for call in each:
        if call.kind in MESSAGES:
            seqs[call.group].append(call.seq)
    whole = {group for group, numbers in seqs.items() if sorted(numbers) == list(range(1, len(numbers) + 1))}
    number: dict[int, int] = {}
    counts: Counter[tuple[int, Group]] = Counter()
    for call in sorted((call for call in each if call.kind in MESSAGES), key=lambda call: call.seq):
        counts[call.group, call.ends] += 1
        number[call.row] = counts[call.group, call.ends] if call.group in whole else -1
    return [replace(call, seq=number[call.row]) if call.kind in MESSAGES else call for call in each]


def _rows(trace: Trace, declared: Iterable[tuple[int, int]]) -> I64:
    """Return the rows of the slices with one of these names and categories, searched in chunks."""
    slices, count = trace.slices, len(trace.strings)
    wanted = [name * count + category for name, category in declared]
    parts = [np.zeros(0, np.int64)]
    for part in chunks(len(slices.ts)):
        codes = slices.name[part].astype(np.int64) * count + slices.category[part]
        parts.append(part.start + np.flatnonzero(np.isin(codes, wanted)))
    return np.concatenate(parts)


def _stated(
    trace: Trace, declared: Collectives, groups: dict[GroupStated, int]
) -> Iterator[tuple[StatedCollective, bool]]:
    """Yield the collective of each declared slice, with whether it is known who waits for whom; number the groups.

    If some slices of a category state their group, the group of those that do not is unknown: they get no operation.
    """
    rows = _rows(trace, declared.kinds)
    slices, args = trace.slices, _members(trace, rows, declared.args)
    categories = slices.category[rows].tolist()
    telling = {category for category, stated in zip(categories, args, strict=True) if _tells(stated)}
    names = slices.name[rows].tolist()
    kinds = [
        _kind(declared, code, stated) for code, stated in zip(zip(names, categories, strict=True), args, strict=True)
    ]
    roots = _roots(trace, declared) if declared.calls and any(kind in ONE_SIDED for kind in kinds) else {}
    number_of: dict[str, int] = {}
    for row, name, category, kind, stated in zip(rows.tolist(), names, categories, kinds, args, strict=True):
        silent = untold = category in telling and not _tells(stated)
        key = " ".join(str(stated.get(part, "")) for part in ("ranks", "group", "about", "group_size"))
        if key not in number_of:
            number_of[key] = groups.setdefault(_group(stated, declared), len(groups))
        sizes = (trace.strings[name], *(str(stated.get(part)) for part in stated if part.startswith("size")))
        number = _number(stated.get("seq"))
        silent |= kind in ONE_SIDED and _group(stated, declared).ranks is None
        side, ends = _ends(kind, stated, roots, trace.sources[0].rank)
        silent |= kind in ONE_SIDED and not ends
        shown = "" if untold else kind or str(stated.get("kind") or _UNKNOWN)
        yield StatedCollective(row, shown, number_of[key], sizes, number, side, ends), bool(kind) and not silent


def _kind(declared: Collectives, code: tuple[int, int], args: Mapping[str, Any]) -> str:
    """Return the operation of a slice; "" if it is not known, or if name and args contradict each other.

    If all wait for all by both, the args tell what was asked for: NCCL runs a barrier as an all_reduce.
    """
    named, text = declared.kinds[code], str(args.get("kind", ""))
    stated = declared.kind_of_text.get(text, "")
    if text in declared.kind_of_equal_parts and _has_equal_parts(args):
        stated = declared.kind_of_equal_parts[text]
    if named in ONE_SIDED:
        return named if stated == named else ""
    return named if named and stated in ("", *ONE_SIDED) else stated


def _has_equal_parts(args: Mapping[str, Any]) -> bool:
    """Return whether a rank exchanges equally much with each rank: its parts are "[]", or equal and not 0."""
    parts = [args.get(part) for part in ("part0", "part1")]
    return all(part == "[]" or (isinstance(part, str) and _equal(part.strip("[]").split(","))) for part in parts)


def _equal(counts: Sequence[str]) -> bool:
    """Return whether these are equal whole numbers above 0."""
    distinct = {count.strip() for count in counts}
    return len(distinct) == 1 and all(is_digits(count) and (whole_of(count) or 0) > 0 for count in distinct)


def _roots(trace: Trace, declared: Collectives) -> dict[int, int]:
    """Return the rank of the root by the number of the call, where it is known.

    A call states the number of its root in the group, so the ranks of the group must be listed in order.
    """
    args = CollectiveArgs(ranks=declared.args.ranks, call=declared.args.call, root=declared.args.root)
    roots: dict[int, int] = {}
    for members in _members(trace, _rows(trace, declared.calls), args):
        ranks, call, root = (
            parse_ranks(members.get("ranks")),
            _number(members.get("call")),
            _number(members.get("root")),
        )
        if ranks is not None and str(list(ranks)) == str(members["ranks"]) and call >= 0 and 0 <= root < len(ranks):
            roots[call] = ranks[root]
    return roots


def _ends(kind: str, args: Mapping[str, Any], roots: Mapping[int, int], rank: int | None) -> tuple[Side, Group]:
    """Return the side that an operation with a root bounds, and its ends; no ends where they are not known."""
    if rank is None or kind not in ONE_SIDED:
        return Side.BOTH, ()
    if kind in MESSAGES:
        other = _number(args.get("target" if kind == "send" else "source"))
        ends = (rank, other) if kind == "send" else (other, rank)
        return (Side.START if kind == "send" else Side.END), (ends if other >= 0 and other != rank else ())
    root = roots.get(_number(args.get("call")), -1)
    starts = (rank == root) == (kind in FROM_ROOT)
    return (Side.START if starts else Side.END), ((root,) if root >= 0 else ())


def _number(value: Any) -> int:
    """Return the sequence number in an arg, -1 if it is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else -1


def _tells(args: Mapping[str, Any]) -> bool:
    return any(part in args for part in ("ranks", "group", "group_size", "kind"))


def _members(trace: Trace, rows: I64, args: CollectiveArgs) -> list[dict[str, Any]]:
    """Return the args of some slices that matter, by what they are called here."""
    names = {"kind": args.kind, "ranks": args.ranks, "group": args.group, "about": args.about, "seq": args.seq}
    names |= {"source": args.source, "target": args.target, "call": args.call, "root": args.root}
    names |= {"group_size": args.group_size} | {f"size{number}": size for number, size in enumerate(args.sizes)}
    names |= {f"part{number}": part for number, part in enumerate(args.parts)}
    names = {part: name for part, name in names.items() if name}
    slices = trace.slices
    numbers, values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], tuple(names.values()))
    each = [{part: value for part, value in zip(names, row, strict=True) if value is not ABSENT} for row in values]
    return [each[number] for number in numbers.tolist()]


def _group(args: Mapping[str, Any], declared: Collectives) -> GroupStated:
    """Return the group that args state."""
    name, size = str(args.get("group", "")), args.get("group_size")
    ranks = parse_ranks(args.get("ranks")) or declared.groups.get(name)
    if ranks is None:
        ranks = declared.world if declared.world and size == len(declared.world) else declared.only_group
    if ranks is not None and size is not None and size != len(ranks):
        ranks = None
    return GroupStated(ranks, str(args.get("about", "")), name)
