"""Check a finished trace for data that viewers would drop, misplace or refuse, mostly silently.

The check reads the file independently of the writers (with a schema and a decoder of its own), so that it can judge
their output as well as files of other tools.
"""

from __future__ import annotations

import codecs
import os
import re
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast

from traceconv.check.findings import CheckReport, Problem, data_loss, extend_report, refusal
from traceconv.errors import InputError
from traceconv.families.importer import FIELD_1
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.source import Source
from traceconv.model.diagnostics import Diagnostics

if TYPE_CHECKING:
    from traceconv.model.drawable import AtZero

__all__ = ["CheckReport", "Problem", "check_file"]

DAMAGED = data_loss(
    "check.damaged", "the compressed file is cut off or damaged; what could be unpacked before that was checked"
)
UTF16 = refusal("check.utf16", "the file is UTF-16 or UTF-32; viewers read UTF-8 only and refuse it")

_READ_BYTES = 4 << 20
#: Characters that no text has; escapes begin colours.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def check_file(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> CheckReport:
    """Check a Chrome JSON or Perfetto trace; compression and format are recognised by content.

    Args:
        path: the file, which is only read, or "-" for standard input.
        limits: the limits of the input.

    Raises:
        InputError: the file cannot be read or its compression is broken.
    """
    source = Source(path, limits=limits)
    head = source.head().data
    is_protobuf = bool(re.match(FIELD_1, head)) and not _is_text(head)
    report = _check_pftrace(source) if is_protobuf else _check_chrome_json(source)
    diagnostics = Diagnostics()
    if source.damage:
        diagnostics.add(DAMAGED, f"{source.display}: {source.damage}")
    if source.recoded:
        diagnostics.add(UTF16, source.display)
    return extend_report(report, diagnostics)


def _is_text(head: bytes) -> bool:
    """Return whether the first bytes of a file are text, such as a report that begins with a line feed, not packets."""
    if _CONTROL.search(head):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


# The checks are imported where they are made, since each has large imports of its own.


def _check_pftrace(source: Source) -> CheckReport:
    from traceconv.check.pftrace import check_pftrace, count_unpacked

    with source.open() as plain:
        count_unpacked(cast(BinaryIO, plain), source.unpacked)
    with source.open() as plain:
        return check_pftrace(cast(BinaryIO, plain), source.unpacked)


def _check_chrome_json(source: Source) -> CheckReport:
    from traceconv.check.chrome_json import check_chrome_json

    data = bytearray()  # file.read() would hold the data twice for a moment
    with source.open() as plain:
        while chunk := plain.read(_READ_BYTES):
            data += chunk
        return check_chrome_json(data, partial(_tell_writer, source))


def _tell_writer(source: Source, at_zero: AtZero) -> None:
    """Set what the format states about the times of its writer; nothing if no importer reads the file."""
    from traceconv.families.registry import identify

    try:
        importer, _ = identify(source)
    except InputError:
        return
    at_zero.marks, at_zero.zero = importer.marks, importer.clock.zero
