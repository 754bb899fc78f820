"""Checks a finished trace for everything that viewers would drop, misplace or refuse, mostly without a word.

The check reads the file with means of its own (a schema, a decoder) and shares nothing with the writers, so
that it can judge their output as well as files of other tools.
"""

from __future__ import annotations

import os
from typing import BinaryIO, cast

from traceconv.check._report import CheckReport, Problem, declare, extend_report
from traceconv.io.limits import DEFAULT_LIMITS, Limits, Unpacked
from traceconv.io.source import Source
from traceconv.model.diagnostics import Diagnostics, Severity

__all__ = ["CheckReport", "Problem", "check_file"]

DAMAGED = declare(
    "check.damaged",
    Severity.DATA_LOSS,
    "the compressed file is cut off or damaged; what could be unpacked before that was checked",
)
UTF16 = declare("check.utf16", Severity.ERROR, "the file is UTF-16; viewers read UTF-8 only and refuse it")

_PACKET_TAG = b"\x0a"
_READ_BYTES = 4 << 20


def check_file(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> CheckReport:
    """Check a Chrome JSON or Perfetto trace; compression and the format are seen by content.

    Args:
        path: the file, which is only read, or "-" for standard input.
        limits: what it may take.

    Raises:
        InputError: the file cannot be read or its compression is broken.
    """
    source = Source(path, limits=limits)
    first = source.head().data[:1]
    with source.open() as plain:
        report = _check_stream(cast(BinaryIO, plain), first, source.unpacked)
    found = Diagnostics()
    if source.damage:
        found.add(DAMAGED, f"{source.display}: {source.damage}")
    if source.recoded:
        found.add(UTF16, source.display)
    return extend_report(report, found)


def _check_stream(file: BinaryIO, first: bytes, unpacked: Unpacked) -> CheckReport:
    # Either check has its own large imports: the other ones are not paid for.
    if first == _PACKET_TAG:
        from traceconv.check.pftrace import check_pftrace

        return check_pftrace(file, unpacked)
    from traceconv.check.chrome_json import check_chrome_json

    data = bytearray()  # file.read() would have all of it twice for a moment
    while chunk := file.read(_READ_BYTES):
        data += chunk
    return check_chrome_json(data)
