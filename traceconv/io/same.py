"""Find inputs with the same content, packed or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceconv.io.source import CHUNK_BYTES, Source


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
