"""The inputs that an output of traceconv states, as inputs of their own: it answers like its inputs."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace

from traceconv.answers.tables import SliceTable, Uncut
from traceconv.model import stated
from traceconv.model.trace import Frame, Trace


def by_stated_inputs(table: SliceTable) -> SliceTable:
    """Return the table with the tracks of outputs of traceconv assigned to the inputs that these state."""
    if not any(source.stated for source in table.trace.sources):
        return table
    uncut = table.uncut
    if uncut is not None:
        uncut = Uncut(by_stated_inputs(uncut.table), uncut.rows, uncut.window)
    return replace(table, trace=_by_stated_inputs(table.trace), uncut=uncut)


def _by_stated_inputs(trace: Trace) -> Trace:
    frames = [replace(frame, named=frame.named and not _is_place(frame)) for frame in trace.frames]
    return stated.by_stated_inputs(trace).with_tables(frames=frames)


def _is_place(frame: Frame) -> bool:
    """Return whether the name of a frame is that of unknown code: an address, or an offset in its file."""
    name = frame.name.removeprefix(posixpath.basename(frame.category))
    return frame.name == "[unknown]" or re.fullmatch(r"\+?0x[0-9a-f]+", name) is not None
