"""The section `flops`: how fast matrix products, convolutions and attention ran, from the shapes of their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from traceconv.answers.attribution import NONE, work_of
from traceconv.answers.device_work import first_above, operators, work
from traceconv.answers.peaks import Peak
from traceconv.answers.section import Cell, Column, Section, Unit, shown_cell
from traceconv.answers.slice_tables import NO_PARENT, Rows, SliceTable
from traceconv.io.shown import quantity
from traceconv.model.args import ABSENT, arg_values
from traceconv.model.columns import I64, distinct_values
from traceconv.model.diagnostics import CALLS
from traceconv.model.marks import FlopMarks
from traceconv.model.numbers import format_short
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

_COLUMNS = (
    Column("name", "name", Unit.TEXT),
    Column("shape", "shapes", Unit.TEXT),
    Column("type", "type", Unit.TEXT, spare=True),
    Column("count", "count", Unit.COUNT),
    Column("time_ns", "time", Unit.NS),
    Column("gflop", "GFLOP", Unit.RATE),
    Column("tflop_per_s", "TFLOP/s", Unit.RATE),
    Column("flop_per_byte", "FLOP/byte", Unit.RATE),
    Column("limit_share", "of limit", Unit.SHARE),
)


class _Problem(Struct, frozen=True):
    """The work of a call: floating-point operations, and the elements that it reads and writes once each."""

    flop: int
    elements: int


class _Call(Struct, frozen=True):
    """The name of a call, its shapes and type, and its work, if the shapes tell it."""

    name: str
    shape: str
    type: str
    flop: int
    bytes: int


Dims = Sequence[Sequence[int]]
Texts = Sequence[str]


def _product(dims: Dims, concrete: Texts, first: int) -> _Problem | None:
    """Return the work of a product of matrices, or of batches of them, whose first operand is input `first`."""
    a, b = dims[first], dims[first + 1]
    if len(a) not in (2, 3) or len(a) != len(b) or a[-1] != b[-2] or (len(a) == 3 and a[0] != b[0]):
        return None
    batch = a[0] if len(a) == 3 else 1
    rows, inner, columns = a[-2], a[-1], b[-1]
    return _Problem(2 * batch * rows * inner * columns, batch * (rows * inner + inner * columns + rows * columns))


def _attention(dims: Dims, concrete: Texts, causal: int, heads_at: int, first: int = 0) -> _Problem | None:
    """Return the work of attention whose query is input `first`; `causal` is the input that states it.

    Heads are at `heads_at` in shapes.
    """
    return _scores(dims, first, heads_at, {"False": 1, "True": 2}.get(concrete[causal]))


def _efficient_attention(dims: Dims, concrete: Texts, mask: int, first: int = 0) -> _Problem | None:
    """Return the work of attention whose mask is a number: 0 for none, 1 and 2 for causal ones.

    The lengths of sequences in one batch, behind the bias, are in a tensor, and are not known.
    """
    of_mask = {"0": 1, "1": 2, "2": 2}.get(concrete[mask])
    return None if dims[4 + 2 * first] else _scores(dims, first, 2, of_mask)


def _scores(dims: Dims, first: int, heads_at: int, divisor: int | None) -> _Problem | None:
    """Return the work of attention; of its gradients if one comes before the query.

    Causal attention computes half of the products. Backward, scores are computed again, and each product has two
    gradients: as torch/utils/flop_counter.py counts.
    """
    q, k, v = dims[first : first + 3]
    if not len(q) == len(k) == len(v) == 4 or divisor is None:
        return None
    length_at = 3 - heads_at
    heads, depth, queries, keys = q[heads_at], q[3], q[length_at], k[length_at]
    products = 3 * depth + 2 * v[3] if first else depth + v[3]
    flop = 2 * q[0] * heads * queries * keys * products // divisor
    return _Problem(flop, (1 + first) * (2 * math.prod(q) + math.prod(k) + math.prod(v)))


def _convolution(
    dims: Dims, concrete: Texts, padding: int, stride: int, dilation: int, transposed: int = NONE
) -> _Problem | None:
    """Return the work of a convolution, whose parameters are these inputs, if it is not transposed."""
    data, weight = dims[:2]
    if len(data) < 3 or len(data) != len(weight) or (transposed != NONE and concrete[transposed] != "False"):
        return None
    spatial = len(data) - 2
    pads, strides, dilations = (_integers(concrete[at], spatial) for at in (padding, stride, dilation))
    if not (pads and strides and dilations and all(strides)):
        return None
    sizes = [
        (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, pad, stride, dilation in zip(data[2:], weight[2:], pads, strides, dilations, strict=True)
    ]
    out = data[0] * weight[0] * math.prod(sizes)
    return _Problem(2 * out * math.prod(weight[1:]), math.prod(data) + math.prod(weight) + out)


def _convolution_backward(dims: Dims, concrete: Texts, transposed: int, wanted: int) -> _Problem | None:
    """Return the work of the gradients of a convolution: for data and weight, if wanted, that of the convolution."""
    gradient, data, weight = dims[:3]
    gradients = concrete[wanted].strip("[]").split(", ")[:2].count("True")
    source = {"False": gradient, "True": data}.get(concrete[transposed])
    if len(data) < 3 or not len(gradient) == len(data) == len(weight) or source is None:
        return None
    flop = 2 * math.prod(source) * math.prod(weight[1:])
    elements = math.prod(gradient) + gradients * (math.prod(data) + math.prod(weight))
    return _Problem(gradients * flop, elements)


def _integers(text: str, count: int) -> list[int]:
    """Return the numbers of a list as PyTorch prints it, "[1, 1]"; one number counts for all dimensions."""
    parts = text.strip("[]").split(",")
    if not all(part.strip().isdigit() for part in parts):
        return []
    numbers = [int(part) for part in parts]
    return numbers if len(numbers) == count else numbers * count if len(numbers) == 1 else []


_KINDS: Mapping[str, Callable[..., _Problem | None]] = {
    "product": _product,
    "attention": _attention,
    "efficient_attention": _efficient_attention,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}


def flops(table: SliceTable, peak: Peak | None = None) -> Section:
    """Return a row for each operation, shape and type with known work, the most time first.

    The time is that of the device work which the calls launched; of inputs without device work it is that of the calls,
    which may else end before their work does. With a peak, the share of the limit is the time that the work needs at
    least, by operations or bytes, of the time it took.
    """
    section = Section("flops", _COLUMNS)
    rows, which, calls = _calls(table)
    if not len(rows):
        section.notes.append("no shapes of such calls")
        return section
    time, of_device = _time(table, rows)
    elements = {
        name: element
        for info in table.trace.sources
        if info.marks.flops
        for name, element in info.marks.flops.elements.items()
    }
    has_time = time > 0
    counts = np.bincount(which[has_time], minlength=len(calls)).tolist()
    times = np.zeros(len(calls), np.int64)
    np.add.at(times, which, time)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, call in enumerate(calls):
        if counts[number] and call is not None:
            groups.setdefault((call.name, call.shape, call.type), []).append(number)
    for (name, shape, kind), members in groups.items():
        same = [(call, counts[at]) for at in members if (call := calls[at]) is not None]
        flop, size = (sum(count * getattr(call, field) for call, count in same) for field in ("flop", "bytes"))
        total, count = int(np.sum(times[members])), sum(count for _, count in same)
        share = peak.share(flop, size, total, elements[kind][0]) if peak is not None and kind in elements else None
        cells: tuple[Cell, ...] = (flop / 1e9, flop / total / 1e3, flop / size if size else None, share)
        section.rows.append((name, shape, kind, count, total, *cells))
    section.rows.sort(key=lambda row: (-int(row[section.place("time_ns")] or 0), str(row[0]), str(row[1])))
    if any(float(row[section.place("limit_share")] or 0) > 1 for row in section.rows):
        section.notes.append("a share above 100 %: the device can do more than --peak says")
    stated = peak.types if peak is not None else ()
    others = sorted({kind for _, _, kind in groups if elements.get(kind, ("",))[0] not in stated}) if stated else []
    if others:
        named = ", ".join(kind or "calls without a stated type" for kind in others)
        section.notes.append(f"no share of the limit for {named}: --peak is about {', '.join(stated)}")
    idle = int(np.count_nonzero(~has_time))
    if idle:
        section.notes.append(f"left out: {quantity(idle, CALLS)} without recorded work on the device beside them")
    untold = [number for number, call in enumerate(calls) if call is None and counts[number]]
    if untold:
        some, length = sum(counts[number] for number in untold), format_short(int(np.sum(times[untold])))
        section.notes.append(f"left out: {quantity(some, CALLS)} whose shapes do not tell the work, {length} in all")
    of_rows = int(sum(np.sum(times[members]) for members in groups.values()))
    if 0 < of_rows < of_device:
        known = shown_cell(of_rows / of_device, Unit.SHARE)
        section.notes.append(f"{known} of the time of launched device work is that of these calls")
    section.legend.append(
        "time: of the device work that the calls launched; without a device, of the calls; "
        "FLOP/byte: inputs and output once each; of limit: the least time by --peak, of the time"
    )
    return section


def _calls(table: SliceTable) -> tuple[Rows, Rows, list[_Call | None]]:
    """Return the rows of calls of listed names that hold no other such call, the number of each, and calls by number.

    A call whose shapes do not tell its work is None.
    """
    trace, slices = table.trace, table.trace.slices
    is_call = np.zeros(len(slices.ts), bool)
    parts: list[tuple[Rows, FlopMarks, dict[int, tuple[str, tuple[int, ...]]]]] = []
    for number, info in enumerate(trace.sources):
        if (marks := info.marks.flops) is not None:
            rows = table.rows_of(number)
            rows = rows[table.is_counted[rows] & table.timed[rows]]
            distinct = distinct_values(slices.name[rows]).tolist()
            names = {at: kind for at in distinct if (kind := marks.kinds.get(trace.strings[at]))}
            rows = rows[np.isin(slices.name[rows], list(names))]
            is_call[rows] = True
            parts.append((rows, marks, names))
    parent = table.nesting.parent[is_call]
    holds = np.append(np.zeros(len(slices.ts), bool), False)  # NONE is the last one
    holds[first_above(table, np.where(parent == NO_PARENT, NONE, parent), is_call)] = True
    found: list[Rows] = [np.empty(0, np.intp)]
    which, calls = [np.empty(0, np.intp)], list[_Call | None]()
    for rows, marks, names in parts:
        rows = rows[~holds[rows]]
        keys = (marks.shapes, marks.types, marks.inputs)
        numbers, values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], keys, repeated=True)
        pairs, places = np.unique(slices.name[rows].astype(np.int64) * len(values) + numbers, return_inverse=True)
        found.append(rows)
        which.append(len(calls) + places.reshape(-1))
        for name, at in zip(*(part.tolist() for part in np.divmod(pairs, max(len(values), 1))), strict=True):
            calls.append(_call(trace.strings[name], names[name], marks.elements, *values[at]))
    return np.concatenate(found), np.concatenate(which), calls


def _call(
    name: str,
    kind: tuple[str, tuple[int, ...]],
    elements: Mapping[str, tuple[str, int]],
    dims: Any,
    types: Any,
    concrete: Any,
) -> _Call | None:
    """Return a call; None if its args do not tell its work."""
    if dims is ABSENT or types is ABSENT or not isinstance(dims, list) or not isinstance(types, list):
        return None
    texts = [text if isinstance(text, str) else "" for text in concrete] if isinstance(concrete, list) else []
    function, parameters = _KINDS[kind[0]], kind[1]
    try:
        problem = function(dims, texts, *parameters)
    except (IndexError, TypeError, ValueError):
        return None
    if problem is None or problem.flop <= 0:
        return None
    shown = [size for size in dims if size]
    of_operand = next((text for text, size in zip(types, dims, strict=False) if len(size) > 1), "")
    shape = " ".join("x".join(map(str, size)) for size in shown)
    size = problem.elements * elements.get(of_operand, ("", 0))[1]
    return _Call(name, shape, str(of_operand), problem.flop, size)


def _time(table: SliceTable, calls: Rows) -> tuple[I64, int]:
    """Return the time of the device work that each call launched, ns; of inputs without device work the durations.

    Also return the time of all device work that the slices in question launched, ns.
    """
    slices, found = table.trace.slices, work(table)
    accepted = np.zeros(len(slices.ts), bool)
    accepted[calls] = True
    launched_by = operators(table)
    owner, of_row = first_above(table, launched_by, accepted), np.zeros(len(slices.ts), np.int64)
    some, whole = owner != NONE, first_above(table, launched_by, table.is_counted) != NONE
    np.add.at(of_row, owner[some], slices.dur[found.rows[some]])
    inputs = inputs_of(by_stated_inputs(table.trace), "slices")
    with_device = [inputs[work_of(table, number)] for number in range(len(table.trace.sources))]
    on_host = ~np.isin(inputs[calls], np.concatenate(with_device))
    times: I64 = np.where(on_host, slices.dur[calls], of_row[calls])
    return times, int(np.sum(slices.dur[found.rows[whole]]))
