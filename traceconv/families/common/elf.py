"""Read the names of functions of an ELF file (.symtab, else .dynsym), if its build is the expected one.

The program headers (PT_LOAD) map parts of the file to addresses, and a note of type NT_GNU_BUILD_ID identifies the
build. Source: the ELF specification (TIS 1.2, and its 64-bit form), /usr/include/elf.h.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

from traceconv.demangle import demangle

_PT_LOAD, _PT_NOTE, _SHT_SYMTAB, _SHT_DYNSYM = 1, 4, 2, 11
_NT_GNU_BUILD_ID, _STT_FUNC, _STT_GNU_IFUNC = 3, 2, 10


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


class _Functions(NamedTuple):
    """The functions of a file: start, end and name, in order of addresses."""

    segments: list[_Segment]
    functions: list[tuple[int, int, str]]

    def at(self, offset: int) -> str | None:
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                address = offset - segment.offset + segment.address
                near = bisect_right(self.functions, address, key=lambda function: function[0]) - 1
                if near >= 0 and address < self.functions[near][1]:
                    return self.functions[near][2]
        return None


def functions_of(path: Path, build_id: bytes) -> _Functions | None:
    """Return the functions of an ELF file; None if there is no such file, or one of another build."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
            return _functions_in(data, build_id)
    except (OSError, ValueError, struct.error):
        return None


def _functions_in(data: mmap, build_id: bytes) -> _Functions | None:
    layout = _LAYOUTS.get(data[4]) if data[:4] == b"\x7fELF" and len(data) > 4 else None
    if layout is None:
        return None
    order = ">" if data[5:6] == b"\2" else "<"
    _, ph_at, sh_at, _, _, ph_size, ph_count, sh_size, sh_count, _ = struct.unpack_from(order + layout.header, data, 24)
    segments = []
    for place in range(ph_count):
        fields = struct.unpack_from(order + layout.segment, data, ph_at + place * ph_size)
        segments.append(_Segment(*(fields[i] for i in layout.segment_fields)))
    if not any(_has_build_id(data, order, segment, build_id) for segment in segments if segment.kind == _PT_NOTE):
        return None
    sections = [struct.unpack_from(order + layout.section, data, sh_at + i * sh_size) for i in range(sh_count)]
    loaded = [segment for segment in segments if segment.kind == _PT_LOAD]
    for kind in (_SHT_SYMTAB, _SHT_DYNSYM):  # the latter is left if the file was stripped
        for _, _, _, _, at, size, link, *_ in [section for section in sections if section[1] == kind][:1]:
            names_at = sections[link][4] if link < len(sections) else 0
            return _Functions(loaded, _symbol_table(data, order, layout, at, size, names_at))
    return _Functions(loaded, [])


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


def _symbol_table(
    data: mmap, order: str, layout: _Layout, at: int, size: int, names_at: int
) -> list[tuple[int, int, str]]:
    name_field, info_field, value_field, size_field = layout.symbol_fields
    entry = struct.Struct(order + layout.symbol)
    functions = []
    for symbol in entry.iter_unpack(data[at : at + size // entry.size * entry.size]):
        if symbol[info_field] & 15 in (_STT_FUNC, _STT_GNU_IFUNC) and symbol[value_field] and symbol[size_field]:
            start = names_at + symbol[name_field]
            name = data[start : max(start, data.find(b"\0", start))].decode("utf-8", "replace")
            functions.append((symbol[value_field], symbol[value_field] + symbol[size_field], name))
    return sorted(functions)


class Symbols:
    """Names of functions in the files of a recording, by path; files without a build id in it are not used."""

    def __init__(self, build_ids: dict[str, bytes]) -> None:
        self.used: set[str] = set()
        self.refused: set[str] = set()  # missing, or of another build
        self._build_ids = build_ids
        self._files: dict[str, _Functions | None] = {}

    def name(self, path: str, offset: int) -> str | None:
        """Return the function at an offset of a file, demangled without parameters; None if not known."""
        if path not in self._files:
            build_id = self._build_ids.get(path)
            functions = functions_of(Path(path), build_id) if build_id and path.startswith("/") else None
            (self.refused if functions is None else self.used).add(path)
            self._files[path] = functions
        known = self._files[path]
        function = None if known is None else known.at(offset)
        return None if function is None else demangle(function, parameters=False)
