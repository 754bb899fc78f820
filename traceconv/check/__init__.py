"""Checks a finished trace for everything that viewers would drop, misplace or refuse, mostly without a word.

The check reads the file with means of its own (schema, protobuf messages) and shares nothing with the writers, so
that it can judge their output as well as files of other tools.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import BinaryIO, cast

from traceconv.check._report import CheckReport, Problem
from traceconv.errors import InputError

__all__ = ["CheckReport", "Problem", "check_file"]

_GZIP_MAGIC = b"\x1f\x8b"
_PACKET_TAG = b"\x0a"


def check_file(path: Path) -> CheckReport:
    """Check a Chrome JSON or Perfetto trace; gzip and the format are seen by content.

    Args:
        path: the file; it is only read.

    Raises:
        InputError: the file cannot be read or its compression is broken.
    """
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            if not zipped:
                return _check_stream(raw)
            with gzip.open(raw) as plain:
                return _check_stream(cast(BinaryIO, plain))
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _check_stream(file: BinaryIO) -> CheckReport:
    # Either check pulls in its own heavy library: the other one is not paid for.
    first = file.read(1)
    file.seek(0)
    if first == _PACKET_TAG:
        from traceconv.check.pftrace import check_pftrace

        return check_pftrace(file)
    from traceconv.check.chrome_json import check_chrome_json

    return check_chrome_json(file.read())
