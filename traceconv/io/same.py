"""Find inputs with the same content, packed or not, and files that are copies of others."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Sequence

from traceconv.io.source import CHUNK_BYTES, Source, unreadable

#: The parts of a file in its fingerprint: of up to 1 MiB, all of it.
_PARTS, _PART_BYTES = 16, 1 << 16


def digests(sources: Sequence[Source]) -> list[bytes]:
    """Return a hash of the unpacked content of each input; b"" for inputs whose start is unique.

    Raises:
        InputError: an input cannot be read.
    """
    heads = [source.head().data for source in sources] if len(sources) > 1 else []
    counts = Counter(heads)
    found = [_digest(source) if counts[head] > 1 else b"" for head, source in zip(heads, sources, strict=False)]
    return found or [b""] * len(sources)


def _digest(source: Source) -> bytes:
    import hashlib  # takes some ms to load

    hashed = hashlib.blake2b()
    with source.open() as stream:
        while data := stream.read(CHUNK_BYTES):
            hashed.update(data)
    return hashed.digest()


def fingerprint(source: Source) -> str:
    """Return the size of a file, as it is stored, and a checksum of evenly spread parts of it; "" for a stream.

    Copies of a file have the same one, whenever they were made. The cost does not grow with the size.

    Raises:
        InputError: the file cannot be read.
    """
    if source.path is None:
        return ""
    try:
        with source.path.open("rb", buffering=0) as file:
            size, checksum = os.fstat(file.fileno()).st_size, 0
            for part in range(_PARTS):
                file.seek(max(part * _PART_BYTES, part * (size - _PART_BYTES) // (_PARTS - 1)))
                checksum = zlib.crc32(file.read(_PART_BYTES), checksum)
    except OSError as error:
        raise unreadable(source.display, error) from None
    return f"{size}-{checksum:08x}"
