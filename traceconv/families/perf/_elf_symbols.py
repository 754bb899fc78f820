"""Read function names from ELF files on this machine (.symtab, else .dynsym), if the build id is the expected one.

The program headers of an ELF file (PT_LOAD) map its parts to addresses, and a note of type NT_GNU_BUILD_ID identifies
the build. C++ names are demangled without parameters, as perf prints them. Source: the ELF specification (TIS 1.2, and
its 64-bit form), /usr/include/elf.h.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

import msgspec

from traceconv.demangle import demangle

_MAGIC = b"\x7fELF"
_PT_LOAD, _PT_NOTE, _SHT_SYMTAB, _SHT_DYNSYM = 1, 4, 2, 11
_NT_GNU_BUILD_ID = 3
_STT_FUNC, _STT_GNU_IFUNC = 2, 10


class _Layout(NamedTuple):
    """The layout of the tables of a class of ELF files, as in `struct`, and the positions of the used fields."""

    header: str  # from offset 24 on: entry, phoff, shoff, flags, ehsize, phentsize, phnum, shentsize, shnum, shstrndx
    segment: str
    segment_fields: tuple[int, int, int, int]  # type, offset, vaddr, filesz
    section: str
    symbol: str
    symbol_fields: tuple[int, int, int, int]  # name, info, value, size


_LAYOUTS = {
    1: _Layout("IIIIHHHHHH", "8I", (0, 1, 2, 4), "10I", "IIIBBH", (0, 3, 1, 2)),
    2: _Layout("QQQIHHHHHH", "IIQQQQQQ", (0, 2, 3, 5), "IIQQQQIIQQ", "IBBHQQ", (0, 1, 4, 5)),
}


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


class _Function(NamedTuple):
    start: int
    end: int
    name: str


class _Functions(msgspec.Struct):
    """The functions of one file, in order of addresses."""

    segments: list[_Segment]
    functions: list[_Function]

    def at(self, offset: int) -> str | None:
        """Return the function at an offset in the file."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                address = offset - segment.offset + segment.address
                near = bisect_right(self.functions, address, key=lambda one: one.start) - 1
                if near >= 0 and address < self.functions[near].end:
                    return demangle(self.functions[near].name, parameters=False)
        return None


class Symbols(msgspec.Struct):
    """Names of functions in the files of a recording.

    Attributes:
        build_ids: the build id of each file in the recording; files without one are not used.
        used, refused: the files whose names were used, and those that are missing or of another build.
    """

    build_ids: dict[str, bytes]
    used: set[str] = msgspec.field(default_factory=set)
    refused: set[str] = msgspec.field(default_factory=set)
    _files: dict[str, _Functions | None] = msgspec.field(default_factory=dict)

    def name(self, path: str, offset: int) -> str | None:
        """Return the function at an offset of a file; None if not known."""
        if path not in self._files:
            self._files[path] = self._load(path)
        functions = self._files[path]
        return None if functions is None else functions.at(offset)

    def _load(self, path: str) -> _Functions | None:
        wanted = self.build_ids.get(path)
        functions = functions_of(Path(path), wanted) if wanted and path.startswith("/") else None
        (self.refused if functions is None else self.used).add(path)
        return functions


def functions_of(path: Path, build_id: bytes) -> _Functions | None:
    """Return the functions of an ELF file; None if there is no such file, or one of another build."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
            return _read(data, build_id)
    except (OSError, ValueError, struct.error):
        return None


def _read(data: mmap, build_id: bytes) -> _Functions | None:
    magic, kind, endianness = data[:4], data[4:5], data[5:6]
    layout = _LAYOUTS.get(kind[0]) if magic == _MAGIC and kind else None
    if layout is None:
        return None
    order = ">" if endianness == b"\2" else "<"
    _, ph_at, sh_at, _, _, ph_size, ph_count, sh_size, sh_count, _ = struct.unpack_from(order + layout.header, data, 24)
    segments = []
    for place in range(ph_count):
        fields = struct.unpack_from(order + layout.segment, data, ph_at + place * ph_size)
        segments.append(_Segment(*(fields[i] for i in layout.segment_fields)))
    if not any(_has_build_id(data, order, one, build_id) for one in segments if one.kind == _PT_NOTE):
        return None
    sections = [struct.unpack_from(order + layout.section, data, sh_at + i * sh_size) for i in range(sh_count)]
    loaded = [one for one in segments if one.kind == _PT_LOAD]
    return _Functions(loaded, _functions(data, order, layout, sections))


def _has_build_id(data: mmap, order: str, note: _Segment, build_id: bytes) -> bool:
    at = note.offset
    while at + 12 <= note.offset + note.size:
        name_size, size, kind = struct.unpack_from(f"{order}III", data, at)
        name_at = at + 12
        body_at = name_at + (name_size + 3) // 4 * 4
        if kind == _NT_GNU_BUILD_ID and data[name_at : name_at + 4] == b"GNU\0":
            return data[body_at : body_at + size] == build_id
        at = body_at + (size + 3) // 4 * 4
    return False


def _functions(data: mmap, order: str, layout: _Layout, sections: list[tuple[int, ...]]) -> list[_Function]:
    """Return the symbols of the full table, or of the one for the dynamic linker if the file was stripped."""
    for wanted in (_SHT_SYMTAB, _SHT_DYNSYM):
        tables = [section for section in sections if section[1] == wanted]
        if tables:
            _, _, _, _, at, size, link = tables[0][:7]
            return _table(data, order, layout, at, size, sections[link][4] if link < len(sections) else 0)
    return []


def _table(data: mmap, order: str, layout: _Layout, at: int, size: int, names_at: int) -> list[_Function]:
    name_field, info_field, value_field, size_field = layout.symbol_fields
    entry = struct.Struct(order + layout.symbol)
    functions = []
    for symbol in entry.iter_unpack(data[at : at + size // entry.size * entry.size]):
        if symbol[info_field] & 15 in (_STT_FUNC, _STT_GNU_IFUNC) and symbol[value_field] and symbol[size_field]:
            start = names_at + symbol[name_field]
            name = data[start : max(start, data.find(b"\0", start))].decode("utf-8", "replace")
            functions.append(_Function(symbol[value_field], symbol[value_field] + symbol[size_field], name))
    return sorted(functions)
