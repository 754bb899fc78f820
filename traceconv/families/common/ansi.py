"""Control sequences of terminals in a log: colours, cursor movements, links.

    ESC[31m  ESC[38:5:196m  ESC[?25l  ESC[2K      CSI sequences
    ESC]8;;https://example.org ESC\\  ... BEL      OSC sequences: links, titles

Source: ECMA-48, sections 5.4 (control sequences) and 5.6 (control strings).
"""

from __future__ import annotations

import re

_ESCAPE = b"\x1b"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def plain(line: bytes) -> bytes:
    """Return the bytes without control sequences.

    >>> plain(b"\\x1b[38:5:196mred\\x1b[0m")
    b'red'
    """
    return _SEQUENCE.sub(b"", line) if _ESCAPE in line else line


def plain_text(line: str) -> str:
    """Return a line, which is text already, without control sequences and lone surrogates."""
    return plain(line.encode()).decode() if "\x1b" in line else line
