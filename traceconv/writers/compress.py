"""Compress an output with gzip."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from typing import BinaryIO, cast


@contextlib.contextmanager
def compressed(sink: BinaryIO, wanted: bool) -> Iterator[BinaryIO]:
    """Yield the sink, or one that compresses into it reproducibly: without name and time in the header."""
    if not wanted:
        yield sink
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=sink, compresslevel=6, mtime=0) as packed:
        yield cast(BinaryIO, packed)
