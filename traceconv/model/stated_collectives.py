"""The collectives of an input in columns: which slices they are, what is done, by whom, its number, and with how much.

Importers declare where their format states it (`traceconv.model.collectives`); here it is read, so that nobody else
needs to know a format.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from traceconv.model.collectives import (
    FROM_ROOT,
    MESSAGES,
    ONE_SIDED,
    CollectiveArgs,
    Collectives,
    Group,
    parse_ranks,
)

if TYPE_CHECKING:
    from traceconv.model.trace import I64, Trace

#: For the memory that it takes: so many slices are looked through at once.
_AT_ONCE = 1 << 18
#: Numbers that are larger are not counted by anybody.
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class GroupStated:
    """A group as a process states it: its ranks, None if it does not; what it is for; its name in this process."""

    ranks: Group | None
    about: str
    name: str


class Side(IntEnum):
    """Which end of a slice counts.

    Both, where a rank leaves only after all others have entered, and they likewise; or its start alone, since others
    wait for it; or its end alone, since it waits for others.
    """

    BOTH = 0
    START = 1
    END = 2


@dataclass(frozen=True, slots=True)
class StatedCollective:
    """What name and args of a slice tell of a collective.

    Attributes:
        row: of the slice.
        kind: what is done, such as "all_reduce".
        group: who takes part, an index into `StatedCollectives.groups`.
        sizes: the name of the slice, and how much of what is exchanged.
        seq: its number in the group, -1 for none, or for one that the process states more than once: kernels that
            replay a CUDA graph repeat that of the capture. Of a message that among all that went the same way.
        side: what counts of it.
        ends: the rank of the root; of a message those that it comes from and goes to.
    """

    row: int
    kind: str
    group: int
    sizes: tuple[str, ...]
    seq: int
    side: Side = Side.BOTH
    ends: Group = ()


@dataclass(frozen=True, slots=True)
class StatedCollectives:
    """The collectives of an input, in order of their slices.

    Attributes:
        each: those of which it is known what is done.
        groups: the groups of all that are declared, each once.
    """

    each: list[StatedCollective]
    groups: list[GroupStated]


def stated_collectives(trace: Trace) -> StatedCollectives:
    """Return the collectives of an input; none of an input that declares none, or of a trace of several inputs."""
    declared = trace.collectives
    if declared is None:
        return StatedCollectives([], [])
    groups: dict[GroupStated, int] = {}
    found = [one for one in _stated(trace, declared, groups) if one.kind]
    often = Counter((one.group, one.kind, one.seq) for one in found)
    each = [replace(one, seq=-1) if often[one.group, one.kind, one.seq] > 1 else one for one in found]
    return StatedCollectives(_with_messages_numbered(each), list(groups))


def _with_messages_numbered(each: Sequence[StatedCollective]) -> list[StatedCollective]:
    """Return the collectives; messages have numbers among those that went the same way.

    A process counts the messages of a group to and from all others together, so that the number of a message tells
    which one it is only where all are recorded, from the first on: they arrive in the order in which they were sent.
    """
    seqs: defaultdict[int, list[int]] = defaultdict(list)
    for one in each:
        if one.kind in MESSAGES:
            seqs[one.group].append(one.seq)
    whole = {group for group, its in seqs.items() if sorted(its) == list(range(1, len(its) + 1))}
    number: dict[int, int] = {}
    counts: Counter[tuple[int, Group]] = Counter()
    for one in sorted((one for one in each if one.kind in MESSAGES), key=lambda one: one.seq):
        counts[one.group, one.ends] += 1
        number[one.row] = counts[one.group, one.ends] if one.group in whole else -1
    return [replace(one, seq=number[one.row]) if one.kind in MESSAGES else one for one in each]


def _rows(trace: Trace, declared: Iterable[tuple[int, int]]) -> I64:
    """Return which slices have one of these names and categories, looked for a part at a time: there may be many."""
    slices, count = trace.slices, len(trace.strings)
    wanted = [name * count + category for name, category in declared]
    found = [np.zeros(0, np.int64)]
    for begin in range(0, len(slices.ts), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        codes = slices.name[part].astype(np.int64) * count + slices.category[part]
        found.append(begin + np.flatnonzero(np.isin(codes, wanted)))
    return np.concatenate(found)


def _stated(trace: Trace, declared: Collectives, groups: dict[GroupStated, int]) -> Iterator[StatedCollective]:
    """Yield what is known of each slice that is declared, and number the groups.

    Of a category of which some slices tell their group, those that do not may be of any.
    """
    rows = _rows(trace, declared.kinds)
    decode = _decoder(declared.args)
    slices = trace.slices
    places = zip(slices.args_at[rows].tolist(), slices.args_len[rows].tolist(), strict=True)
    args = [decode(trace.args.get(at, size)) if size else {} for at, size in places]
    categories = slices.category[rows].tolist()
    telling = {category for category, one in zip(categories, args, strict=True) if _tells(one)}
    names = slices.name[rows].tolist()
    kinds = [_kind(declared, code, one) for code, one in zip(zip(names, categories, strict=True), args, strict=True)]
    roots = _roots(trace, declared) if declared.calls and any(kind in ONE_SIDED for kind in kinds) else {}
    number_of: dict[str, int] = {}
    for row, name, category, kind, one in zip(rows.tolist(), names, categories, kinds, args, strict=True):
        silent = category in telling and not _tells(one)
        key = " ".join(str(one.get(part, "")) for part in ("ranks", "group", "about", "group_size"))
        if key not in number_of:
            number_of[key] = groups.setdefault(_group(one, declared), len(groups))
        sizes = (trace.strings[name], *(str(one.get(part)) for part in one if part.startswith("size")))
        number = _number(one.get("seq"))
        silent |= kind in ONE_SIDED and _group(one, declared).ranks is None
        side, ends = _ends(kind, one, roots, trace.sources[0].rank)
        silent |= kind in ONE_SIDED and not ends
        yield StatedCollective(row, "" if silent else kind, number_of[key], sizes, number, side, ends)


def _kind(declared: Collectives, code: tuple[int, int], args: Mapping[str, Any]) -> str:
    """Return what a slice does, "" if it is not known: also if name and args differ, and it may not wait for all."""
    named, said = declared.kinds[code], declared.said.get(str(args.get("kind", "")), "")
    return "" if named in ONE_SIDED and said != named else named or said


def _roots(trace: Trace, declared: Collectives) -> dict[int, int]:
    """Return for the number of each call, as far as it is known, the rank of its root.

    That is the one of so many in its group: the ranks have to be listed, in the order of their numbers there.
    """
    args, slices = declared.args, trace.slices
    decode = _decoder(CollectiveArgs(ranks=args.ranks, call=args.call, root=args.root))
    rows = _rows(trace, declared.calls)
    found: dict[int, int] = {}
    for at, size in zip(slices.args_at[rows].tolist(), slices.args_len[rows].tolist(), strict=True):
        one = decode(trace.args.get(at, size)) if size else {}
        ranks, call, root = parse_ranks(one.get("ranks")), _number(one.get("call")), _number(one.get("root"))
        if ranks is not None and str(list(ranks)) == str(one["ranks"]) and call >= 0 and 0 <= root < len(ranks):
            found[call] = ranks[root]
    return found


def _ends(kind: str, args: Mapping[str, Any], roots: Mapping[int, int], rank: int | None) -> tuple[Side, Group]:
    """Return what counts of an operation that bounds one side, and its ends; no ends where these are not known."""
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
    """Return a number of an arg, -1 if it is none that anybody counts."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else -1


def _tells(args: Mapping[str, Any]) -> bool:
    return any(part in args for part in ("ranks", "group", "group_size", "kind"))


def _decoder(args: CollectiveArgs) -> Callable[[bytes], dict[str, Any]]:
    """Return what decodes args to the members that matter, by what they are called here."""
    names = {"kind": args.kind, "ranks": args.ranks, "group": args.group, "about": args.about, "seq": args.seq}
    names |= {"source": args.source, "target": args.target, "call": args.call, "root": args.root}
    names |= {"group_size": args.group_size} | {f"size{number}": size for number, size in enumerate(args.sizes)}
    names = {part: name for part, name in names.items() if name}
    members = [(part, Any, msgspec.UNSET) for part in names]
    decode = msgspec.json.Decoder(msgspec.defstruct("Args", members, rename=names)).decode

    def members_of(raw: bytes) -> dict[str, Any]:
        try:
            one = decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            return {}
        found = ((part, getattr(one, part)) for part in names)
        return {part: value for part, value in found if value is not msgspec.UNSET}

    return members_of


def _group(args: Mapping[str, Any], declared: Collectives) -> GroupStated:
    """Return the group that args state."""
    name, size = str(args.get("group", "")), args.get("group_size")
    ranks = parse_ranks(args.get("ranks")) or declared.groups.get(name)
    if ranks is None:
        ranks = declared.world if declared.world and size == len(declared.world) else declared.only_group
    if ranks is not None and size is not None and size != len(ranks):
        ranks = None
    return GroupStated(ranks, str(args.get("about", "")), name)
