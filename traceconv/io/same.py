"""Find inputs with the same content, packed or not, and files that are copies of others."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Sequence

from traceconv.io.source import CHUNK_BYTES, Source, unreadable

#: The bytes of a file that are read at a time for its fingerprint.
_PART_BYTES = 1 << 18


def digests(sources: Sequence[Source]) -> list[bytes]:
    """Return a hash of the unpacked content of each input; b"" for inputs whose start is unique.

    Raises:
        InputError: an input cannot be read.
    """
    heads = [source.head().data for source in sources] if len(sources) > 1 else []
    counts = Counter(heads)
    digests = [_digest(source) if counts[head] > 1 else b"" for head, source in zip(heads, sources, strict=False)]
    return digests or [b""] * len(sources)


def _digest(source: Source) -> bytes:
    import hashlib  # takes some ms to load

    hashed = hashlib.blake2b()
    with source.open() as stream:
        while data := stream.read(CHUNK_BYTES):
            hashed.update(data)
    return hashed.digest()


def fingerprint(source: Source) -> str:
    """Return the size of a file, as it is stored, and a checksum of all its bytes; "" for a stream.

    Copies of a file have the same one, whenever they were made.

    Raises:
        InputError: the file cannot be read.
    """
    if source.path is None:
        return ""
    try:
        with source.path.open("rb", buffering=0) as file:
            size = checksum = 0
            while data := file.read(_PART_BYTES):
                size += len(data)
                checksum = zlib.crc32(data, checksum)
    except OSError as error:
        raise unreadable(source.display, error) from None
    return f"{size}-{checksum:08x}"


def present(fingerprints: Collection[str], sources: Sequence[Source]) -> set[str]:
    """Return the fingerprints whose files are among the inputs. Only files of these sizes are read.

    Raises:
        InputError: a file cannot be read.
    """
    sizes = {one.partition("-")[0] for one in fingerprints}
    return {fingerprint(source) for source in sources if _stored_size(source) in sizes} & set(fingerprints)


def _stored_size(source: Source) -> str:
    """Return the size of a file, as it is stored, in bytes; "" for a stream."""
    try:
        return str(source.path.stat().st_size) if source.path is not None else ""
    except OSError as error:
        raise unreadable(source.display, error) from None
