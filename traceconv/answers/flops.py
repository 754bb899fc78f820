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
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Rows, SliceTable
from traceconv.io.shown import quantity
from traceconv.model.args import ABSENT, arg_values
from traceconv.model.columns import I64, distinct_values
from traceconv.model.diagnostics import CALLS
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


def _attention(dims: Dims, concrete: Texts, causal: int, heads_at: int) -> _Problem | None:
    """Return the work of attention forward; `causal` is the input that states it, `heads_at` where heads are in shapes.

    Causal attention computes half of the products.
    """
    q, k, v = dims[:3]
    if not len(q) == len(k) == len(v) == 4 or len(concrete) <= causal:
        return None
    length_at = 3 - heads_at
    heads, depth, queries, keys = q[heads_at], q[3], q[length_at], k[length_at]
    flop = 2 * q[0] * heads * queries * keys * (depth + v[3])
    if concrete[causal] == "True":
        flop //= 2
    return _Problem(flop, 2 * math.prod(q) + math.prod(k) + math.prod(v))


def _convolution(dims: Dims, concrete: Texts, padding: int) -> _Problem | None:
    """Return the work of a convolution; its padding is input `padding`, then come stride and dilation."""
    data, weight = dims[:2]
    if len(data) < 3 or len(data) != len(weight) or len(concrete) <= padding + 2:
        return None
    spatial = len(data) - 2
    pads, strides, dilations = (_integers(concrete[padding + at], spatial) for at in range(3))
    if not (pads and strides and dilations and all(strides)):
        return None
    sizes = [
        (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, pad, stride, dilation in zip(data[2:], weight[2:], pads, strides, dilations, strict=True)
    ]
    out = data[0] * weight[0] * math.prod(sizes)
    return _Problem(2 * out * math.prod(weight[1:]), math.prod(data) + math.prod(weight) + out)


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
    "convolution": _convolution,
}


def flops(table: SliceTable, peak: Peak | None = None) -> Section:
    """Return a row for each operation, shape and type with known work, the most time first.

    The time is that of the device work which the calls launched; of inputs without device work it is that of the calls,
    which may else end before their work does. With a peak, the share of the limit is the time that the work needs at
    least, by operations or bytes, of the time it took.
    """
    section = Section("flops", _COLUMNS)
    calls, problems, unknown = _calls(table)
    if not len(calls):
        section.notes.append(
            f"of {quantity(unknown, CALLS)} the shapes do not tell the work" if unknown else "no shapes of such calls"
        )
        return section
    time = _time(table, calls)
    elements = {
        name: element
        for info in table.trace.sources
        if info.marks.flops
        for name, element in info.marks.flops.elements.items()
    }
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, (name, shape, kind, _, _) in enumerate(problems):
        if time[number]:
            groups.setdefault((name, shape, kind), []).append(number)
    for (name, shape, kind), members in groups.items():
        flop, size = sum(problems[at][3] for at in members), sum(problems[at][4] for at in members)
        total = int(np.sum(time[members]))
        share = peak.share(flop, size, total, elements[kind][0]) if peak is not None and kind in elements else None
        cells: tuple[Cell, ...] = (flop / 1e9, flop / total / 1e3, flop / size if size else None, share)
        section.rows.append((name, shape, kind, len(members), total, *cells))
    section.rows.sort(key=lambda row: (-int(row[section.place("time_ns")] or 0), str(row[0]), str(row[1])))
    if any(float(row[section.place("limit_share")] or 0) > 1 for row in section.rows):
        section.notes.append("a share above 100 %: the device can do more than --peak says")
    stated = peak.types if peak is not None else ()
    others = sorted({kind for _, _, kind in groups if elements.get(kind, ("",))[0] not in stated}) if stated else []
    if others:
        named = ", ".join(kind or "calls without a stated type" for kind in others)
        section.notes.append(f"no share of the limit for {named}: --peak is about {', '.join(stated)}")
    idle = int(np.count_nonzero(time == 0))
    if idle:
        section.notes.append(f"left out: {quantity(idle, CALLS)} without recorded work on the device beside them")
    if unknown:
        section.notes.append(f"left out: {quantity(unknown, CALLS)} whose shapes do not tell the work")
    section.legend.append(
        "time: of the device work that the calls launched; without a device, of the calls; "
        "FLOP/byte: inputs and output once each; of limit: the least time by --peak, of the time"
    )
    return section


_Problems = list[tuple[str, str, str, int, int]]


def _calls(table: SliceTable) -> tuple[Rows, _Problems, int]:
    """Return the calls with known work; name, shapes, type, operations and bytes of each; and the number of others."""
    trace, slices = table.trace, table.trace.slices
    found: list[int] = []
    problems: _Problems = []
    unknown = 0
    is_counted = np.zeros(len(slices.ts), bool)
    is_counted[table.counted] = True
    for number, info in enumerate(trace.sources):
        marks = info.marks.flops
        if marks is None:
            continue
        rows = table.rows_of(number)
        rows = rows[is_counted[rows] & table.timed[rows]]
        distinct = distinct_values(slices.name[rows]).tolist()
        names = {at: kind for at in distinct if (kind := marks.kinds.get(trace.strings[at]))}
        rows = rows[np.isin(slices.name[rows], list(names))]
        keys = (marks.shapes, marks.types, marks.inputs)
        numbers, values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], keys)
        known = {
            (name, at): _problem(names[name], marks.elements, *values[at])
            for name, at in set(zip(slices.name[rows].tolist(), numbers.tolist(), strict=True))
        }
        for row, name, at in zip(rows.tolist(), slices.name[rows].tolist(), numbers.tolist(), strict=True):
            problem = known[name, at]
            if problem is None:
                unknown += 1
                continue
            found.append(row)
            problems.append((trace.strings[name], *problem))
    return np.array(found, np.intp), problems, unknown


def _problem(
    kind: tuple[str, tuple[int, ...]],
    elements: Mapping[str, tuple[str, int]],
    dims: Any,
    types: Any,
    concrete: Any,
) -> tuple[str, str, int, int] | None:
    """Return the shapes, the type, the operations and the bytes of a call; None if its args do not tell them."""
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
    of_operand = next((name for name, size in zip(types, dims, strict=False) if len(size) > 1), "")
    shape = " ".join("x".join(map(str, size)) for size in shown)
    return shape, str(of_operand), problem.flop, problem.elements * elements.get(of_operand, ("", 0))[1]


def _time(table: SliceTable, calls: Rows) -> I64:
    """Return the time of the device work that each call launched, ns; of inputs without device work the durations."""
    slices, found = table.trace.slices, work(table)
    accepted = np.zeros(len(slices.ts), bool)
    accepted[calls] = True
    owner = first_above(table, operators(table), accepted)
    of_row = np.zeros(len(slices.ts), np.int64)
    some = owner != NONE
    np.add.at(of_row, owner[some], slices.dur[found.rows[some]])
    inputs = inputs_of(by_stated_inputs(table.trace), "slices")
    with_device = [inputs[work_of(table, number)] for number in range(len(table.trace.sources))]
    on_host = ~np.isin(inputs[calls], np.concatenate(with_device))
    times: I64 = np.where(on_host, slices.dur[calls], of_row[calls])
    return times
