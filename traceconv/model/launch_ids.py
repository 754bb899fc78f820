"""Read the marks of launches: the ids that calls and their work share, and which flows lead from calls to work."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.model.arg_bytes import Args
from traceconv.model.arg_values import arg_values
from traceconv.model.marks import LaunchMarks
from traceconv.model.ordering import chunks
from traceconv.model.trace import I32, I64


def ids_of(args: Args, at: I64, length: I32, marks: LaunchMarks) -> I64:
    """Return the correlation id of each slice; 0 for one without, such as a failed call, which launched nothing.

    Args:
        args: of the trace.
        at: where the args of each slice start.
        length: how many bytes they have; 0 for a slice without args.
        marks: of the format.
    """
    keys = (*marks.ids, marks.failed) if marks.failed else marks.ids
    ids = np.zeros(len(at), np.int64)
    for part in chunks(len(at)):
        left = _read_fast(args, at[part], length[part], marks, ids[part])
        # The values are Python objects.
        numbers, values = arg_values(args, at[part][left], length[part][left], keys)
        launched = (() if marks.failed and _is_id(one[-1]) else one[: len(marks.ids)] for one in values)
        ids[part][left] = np.array([next(filter(_is_id, one), 0) for one in launched], np.int64)[numbers]
    return ids


def _read_fast(args: Args, at: I64, length: I32, marks: LaunchMarks, ids: I64) -> npt.NDArray[np.intp]:
    """Put the ids that the kernel can read into `ids`; return which slices it leaves, all without a kernel.

    The arguments are those of `ids_of`.
    """
    module = kernel.module("strings")
    if module is None:
        return np.arange(len(at))
    left = [np.empty(0, np.intp)]
    for rows, starts, data in args.by_part(at, length):
        found, failed = np.zeros((2, len(rows)), np.int64)
        sizes = length[rows]
        module.first_integers(data, starts, sizes, tuple(key.encode() for key in marks.ids), found)
        if marks.failed:
            module.first_integers(data, starts, sizes, (marks.failed.encode(),), failed)
        ids[rows] = np.where(failed == 0, found, 0)
        left.append(rows[(found < 0) | (failed < 0)])
    return np.concatenate(left)


def _is_id(value: object) -> bool:
    """Return whether the value of an arg is a number that counts something."""
    return type(value) is int and 0 < value < 10**18


def of_launches(pattern: str, texts: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return which names or categories are those of launch flows; none if the pattern is ""."""
    says = re.compile(pattern)
    return np.array([bool(pattern) and says.search(text) is not None for text in texts], bool)
