"""A picture of what a command shows on a terminal, as SVG."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from html import escape

from tests import HANG_S
from tests.golden import ROOT

#: The size of a character, and the margin, in pixels.
_ADVANCE, _LEADING, _MARGIN = 7.25, 17, 14


def shown(arguments: Sequence[str], columns: int) -> list[str]:
    """The lines that a terminal of so many columns shows of a command."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 60, columns, 0, 0))
    command = [sys.executable, "-m", "traceconv", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(command, cwd=ROOT.parent, env=environment, stdout=its, stderr=subprocess.DEVNULL) as process:
        os.close(its)
        found = b""
        while part := _read(ours):
            found += part
        assert process.wait(HANG_S) == 0
    os.close(ours)
    return found.decode().splitlines()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # its other side is closed
        return b""


def picture(command: str, lines: Sequence[str], columns: int) -> str:
    """An SVG of a command and its lines, those at the margin bold."""
    rows = [f"$ {command}", "", *lines]
    width, height = round(columns * _ADVANCE + 2 * _MARGIN), len(rows) * _LEADING + 2 * _MARGIN
    texts = "\n".join(
        f'<text x="{_MARGIN}" y="{_MARGIN + _LEADING * number - 4}"{_css(row)}>{escape(row, quote=False)}</text>'
        for number, row in enumerate(rows, 1)
        if row
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        "<style>text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; "
        "fill: #d5dbe5; white-space: pre; } .b { fill: #8ab4ff; font-weight: bold; }</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#1b2028"/>\n{texts}\n</svg>\n'
    )


def _css(row: str) -> str:
    return "" if row.startswith(" ") else ' class="b"'
