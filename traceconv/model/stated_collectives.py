"""The collectives of an input in columns: which slices they are, what is done, by whom, its number, and with how much.

Importers declare where their format states it (`traceconv.model.collectives`); here it is read, so that nobody else
needs to know a format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from traceconv.model.collectives import CollectiveArgs, Collectives, Group, parse_ranks

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


@dataclass(frozen=True, slots=True)
class StatedCollective:
    """What name and args of a slice tell of a collective.

    Attributes:
        row: of the slice.
        kind: what is done, such as "all_reduce".
        group: who takes part, an index into `StatedCollectives.groups`.
        sizes: the name of the slice, and how much of what is exchanged.
        seq: its number in the group, -1 for none, or for one that the process states more than once: kernels that
            replay a CUDA graph repeat that of the capture.
    """

    row: int
    kind: str
    group: int
    sizes: tuple[str, ...]
    seq: int


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
    return StatedCollectives(each, list(groups))


def _rows(trace: Trace, declared: Collectives) -> I64:
    """Return which slices are declared, looked for a part at a time: there may be many slices."""
    slices, count = trace.slices, len(trace.strings)
    wanted = [name * count + category for name, category in declared.kinds]
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
    rows = _rows(trace, declared)
    decode = _decoder(declared.args)
    slices = trace.slices
    places = zip(slices.args_at[rows].tolist(), slices.args_len[rows].tolist(), strict=True)
    args = [decode(trace.args.get(at, size)) if size else {} for at, size in places]
    categories = slices.category[rows].tolist()
    telling = {category for category, one in zip(categories, args, strict=True) if _tells(one)}
    names = slices.name[rows].tolist()
    number_of: dict[str, int] = {}
    for row, name, category, one in zip(rows.tolist(), names, categories, args, strict=True):
        silent = category in telling and not _tells(one)
        kind = declared.kinds[name, category] or declared.said.get(str(one.get("kind", "")), "")
        key = " ".join(str(one.get(part, "")) for part in ("ranks", "group", "about", "group_size"))
        if key not in number_of:
            number_of[key] = groups.setdefault(_group(one, declared), len(groups))
        sizes = (trace.strings[name], *(str(one.get(part)) for part in one if part.startswith("size")))
        seq = one.get("seq")
        number = seq if isinstance(seq, int) and not isinstance(seq, bool) and 0 <= seq < _MOST else -1
        yield StatedCollective(row, "" if silent else kind, number_of[key], sizes, number)


def _tells(args: Mapping[str, Any]) -> bool:
    return any(part in args for part in ("ranks", "group", "group_size", "kind"))


def _decoder(args: CollectiveArgs) -> Callable[[bytes], dict[str, Any]]:
    """Return what decodes args to the members that matter, by what they are called here."""
    names = {"kind": args.kind, "ranks": args.ranks, "group": args.group, "about": args.about, "seq": args.seq}
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
