"""Address spaces of processes, which give the file and the name of a frame of a call chain."""

from __future__ import annotations

import posixpath
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from traceconv.families.perf._elf_symbols import Symbols
from traceconv.families.perf._tracks import PerfTracks, Place
from traceconv.model.trace import StackId

# The mode of the CPU, in the `misc` of a record.
KERNEL, USER, HYPERVISOR, GUEST_KERNEL, GUEST_USER = 1, 2, 3, 4, 5
#: In a call chain, numbers from here on are marks of the mode of the frames that follow.
_CONTEXT_FROM = (1 << 64) - 4095
_CONTEXTS = {
    (1 << 64) - 32: HYPERVISOR,
    (1 << 64) - 128: KERNEL,
    (1 << 64) - 512: USER,
    (1 << 64) - 2048: GUEST_USER,
    (1 << 64) - 2176: GUEST_KERNEL,
    (1 << 64) - 2560: GUEST_USER,
}
_OTHER_MODES = {HYPERVISOR: "[hypervisor]", GUEST_KERNEL: "[guest kernel]", GUEST_USER: "[guest]"}
_KERNEL_NAME, _UNKNOWN_NAME = "[kernel.kallsyms]", "[unknown]"


class Mapping(NamedTuple):
    """A part of a file in memory: addresses from `start` to before `end`, `offset` is that of `start` in the file."""

    start: int
    end: int
    offset: int
    name: str


class AddressSpace(msgspec.Struct):
    """The mappings of a process, by address, and the stacks that were resolved with them."""

    mappings: list[Mapping] = msgspec.field(default_factory=list)
    stacks: dict[object, StackId] = msgspec.field(default_factory=dict)

    def map(self, new: Mapping) -> None:
        """Map a file; it replaces the mappings that it covers."""
        at = stop = bisect_left(self.mappings, new.start, key=lambda old: old.end - 1)
        kept = [new]
        while stop < len(self.mappings) and self.mappings[stop].start < new.end:
            old = self.mappings[stop]
            if old.start < new.start:
                kept.append(old._replace(end=new.start))
            if old.end > new.end:
                kept.append(Mapping(new.end, old.end, old.offset + new.end - old.start, old.name))
            stop += 1
        self.mappings[at:stop] = sorted(kept)
        self.stacks = {}

    def find(self, address: int) -> Mapping | None:
        """Return the mapping at an address; None without one."""
        at = bisect_right(self.mappings, address, key=lambda one: one.start) - 1
        mapping = self.mappings[at] if at >= 0 else None
        return mapping if mapping is not None and address < mapping.end else None


def frames_of(
    chain: Sequence[int], ip: int, mode: int, space: AddressSpace, kernel: AddressSpace, symbols: Symbols | None
) -> list[Place]:
    """Return the frames of a call chain, innermost first.

    Args:
        chain: addresses, with marks of the mode of the following ones.
        ip: the address of the sample, used without a chain; -1 if not recorded.
        mode: the mode of the CPU at the sample.
        space: the mappings of the process.
        kernel: the mappings of the kernel.
        symbols: function names, if the user asks for them; else None.
    """
    frames = []
    for address in chain:
        if address >= _CONTEXT_FROM:
            mode = _CONTEXTS.get(address, mode)
        else:
            frames.append(_frame(address, mode, space, kernel, symbols))
    if not frames and ip >= 0:
        frames.append(_frame(ip, mode, space, kernel, symbols))
    return frames


def _frame(address: int, mode: int, space: AddressSpace, kernel: AddressSpace, symbols: Symbols | None) -> Place:
    if mode in _OTHER_MODES:
        return Place(f"0x{address:x}", _OTHER_MODES[mode], named=False)
    in_kernel = mode == KERNEL
    mapping = (kernel if in_kernel else space).find(address)
    if mapping is None or (in_kernel and mapping.name.startswith("[kernel")):
        return Place(f"0x{address:x}", _KERNEL_NAME if in_kernel else _UNKNOWN_NAME, named=False)
    offset = address - mapping.start + mapping.offset
    function = symbols.name(mapping.name, offset) if symbols is not None and not in_kernel else None
    if function:
        return Place(function, mapping.name)
    return Place(f"{posixpath.basename(mapping.name) or mapping.name}+0x{offset:x}", mapping.name, named=False)


class Spaces:
    """The address spaces of all processes and of the kernel, and the stacks in them.

    Args:
        order: of bytes, as `struct` writes it.
        tracks: the tracks, which intern stacks.
        symbols: function names; None for none.
    """

    def __init__(self, order: str, tracks: PerfTracks, symbols: Symbols | None) -> None:
        self._order = order
        self._tracks = tracks
        self._symbols = symbols
        self._of: dict[int, AddressSpace] = {}
        self._kernel = AddressSpace()

    def stack(self, pid: int, mode: int, ip: int, chain: bytes) -> StackId:
        """Return the stack of a sample: its call chain, given as bytes, or its address if it has none."""
        space = self._of.get(pid)
        if space is None:
            space = self._of[pid] = AddressSpace()
        key: object = chain or (ip, mode)
        known = space.stacks.get(key)
        if known is None:
            addresses = struct.unpack(f"{self._order}{len(chain) // 8}Q", chain)
            frames = frames_of(addresses, ip, mode, space, self._kernel, self._symbols)
            known = space.stacks[key] = self._tracks.stack(frames)
        return known

    def map(self, pid: int | None, new: Mapping) -> None:
        """Map a file in a process, or in the kernel (None), which is part of all processes."""
        if pid is not None:
            self._of.setdefault(pid, AddressSpace()).map(new)
            return
        self._kernel.map(new)
        for space in self._of.values():
            space.stacks = {}

    def copy(self, parent: int, pid: int) -> None:
        """Copy the mappings of a process to a forked one; does nothing for a new thread."""
        if pid != parent and parent in self._of:
            self._of[pid] = AddressSpace(list(self._of[parent].mappings))

    def forget(self, pid: int) -> None:
        """Remove the mappings of a process that runs another program now."""
        self._of.pop(pid, None)
