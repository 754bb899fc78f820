"""The section `flops`: how fast matrix products, convolutions and attention ran, from the shapes of their inputs."""

from __future__ import annotations

import math
import operator
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
from traceconv.model.args import ABSENT, arg_values, having_any
from traceconv.model.columns import I64
from traceconv.model.diagnostics import CALLS
from traceconv.model.marks import NOT_COMPUTED, FlopMarks
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


#: The most operations that a note names.
_MOST_NAMES = 5


class _Problem(Struct, frozen=True):
    """The work of a call: floating-point operations, and the elements that it reads and writes once each."""

    flop: int
    elements: int


class _Call(Struct, frozen=True):
    """The operation of a call, its shapes and type, and its work, if it is known; else why not."""

    name: str
    shape: str = ""
    type: str = ""
    flop: int = 0
    bytes: int = 0
    why_not: str = ""


Dims = Sequence[Sequence[int]]
Texts = Sequence[str]


def _product(dims: Dims, concrete: Texts, first: int, is_summed: int = 0) -> _Problem | None:
    """Return the work of a product of matrices or vectors, or of batches of matrices, which may be summed up.

    The first operand is input `first`; what is added to the product comes before it.
    """
    a, b = dims[first], dims[first + 1]
    if (len(a), len(b)) not in ((1, 1), (2, 1), (2, 2), (3, 3)) or (len(a) == 3 and a[0] != b[0]):
        return None
    batch, rows, inner = (1, 1, 1, *a)[-3:]
    columns = b[-1] if len(b) > 1 else 1
    if inner != b[-2 if len(b) > 1 else 0]:
        return None
    out = rows * columns if is_summed else batch * rows * columns
    added = math.prod(dims[0]) if first else 0
    return _Problem(2 * batch * rows * inner * columns, math.prod(a) + math.prod(b) + out + added)


def _output_product(dims: Dims, concrete: Texts) -> _Problem | None:
    """Return the work of a product of matrices by its output and its first input, either of which may be transposed.

    The second input may be missing: a matrix, as far as the output does not tell its other dimensions.
    """
    out, a, *others = dims
    if not 2 <= len(a) <= len(out) or out[-2] not in a[-2:]:
        return None
    inner = a[-1] * a[-2] // out[-2]
    b = next((size for size in others[:1] if len(size) > 2), (inner, out[-1]))
    if sorted(b[-2:]) != sorted((inner, out[-1])):
        return None
    return _Problem(2 * math.prod(out) * inner, math.prod(a) + math.prod(b) + math.prod(out))


def _output_convolution(dims: Dims, concrete: Texts) -> _Problem | None:
    """Return the work of a convolution by its output, unless the second input may be what is added to that."""
    out, data, weight = dims[:3]
    if len(out) < 3 or not len(out) == len(data) == len(weight) or weight[0] != out[1] or list(weight) == list(out):
        return None
    return _Problem(2 * math.prod(out) * math.prod(weight[1:]), math.prod(data) + math.prod(weight) + math.prod(out))


def _not_computed(dims: Dims, concrete: Texts) -> None:
    """Return nothing: shapes do not tell the work, or no rule is known."""


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
    out = q[0] * heads * queries * v[3]
    return _Problem(flop, (1 + first) * (math.prod(q) + math.prod(k) + math.prod(v) + out))


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
    NOT_COMPUTED[0]: _not_computed,
    "product": _product,
    "output_product": _output_product,
    "output_convolution": _output_convolution,
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
    sources = table.trace.sources
    elements = {
        name: element for info in sources for marks in info.marks.flops for name, element in marks.elements.items()
    }
    if not elements:
        read = sorted({info.format for info in sources})
        section.notes.append(f"operations of calls are not read from {', '.join(read)}")
        return section
    rows, which, calls = _calls(table)
    if not len(rows):
        section.notes.append("no products, convolutions or attention of a known name")
        return section
    time, of_device = _time(table, rows)
    has_time = time > 0
    counts = np.bincount(which[has_time], minlength=len(calls)).tolist()
    times = np.zeros(len(calls), np.int64)
    np.add.at(times, which, time)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, call in enumerate(calls):
        if counts[number] and call.flop:
            groups.setdefault((call.name, call.shape, call.type), []).append(number)
    for (name, shape, kind), members in groups.items():
        same = [(calls[at], counts[at]) for at in members]
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
    unknown: dict[str, list[int]] = {}
    for number in np.argsort(-times, kind="stable").tolist():
        if counts[number] and not calls[number].flop:
            unknown.setdefault(calls[number].why_not, []).append(number)
    for why, members in unknown.items():
        some, length = sum(counts[at] for at in members), format_short(int(np.sum(times[members])))
        names = [*dict.fromkeys(calls[at].name for at in members)]
        named = (
            f"{', '.join(names[:_MOST_NAMES])}{f' and {more} more' if (more := len(names) - _MOST_NAMES) > 0 else ''}"
        )
        section.notes.append(f"left out: {quantity(some, CALLS)} {why}, {length} in all: {named}")
    of_rows = int(sum(np.sum(times[members]) for members in groups.values()))
    if 0 < of_rows < of_device:
        known = shown_cell(of_rows / of_device, Unit.SHARE)
        section.notes.append(f"{known} of the time of launched device work is that of these calls")
    section.legend.append(
        "time: of the device work that the calls launched; without a device, of the calls; "
        "FLOP/byte: inputs and output once each, without the bias of attention; "
        "of limit: the least time by --peak, of the time"
    )
    return section


def _calls(table: SliceTable) -> tuple[Rows, Rows, list[_Call]]:
    """Return the rows of calls of listed operations that hold no other one, the number of each, and calls by number."""
    trace, slices = table.trace, table.trace.slices
    is_call = np.zeros(len(slices.ts), bool)
    parts: list[tuple[Rows, I64, Sequence[str], FlopMarks]] = []
    for number, info in enumerate(trace.sources):
        rows = table.rows_of(number)
        rows = rows[table.is_counted[rows] & table.timed[rows]]
        for marks in info.marks.flops:
            numbers, operations = _operations(table, rows, marks)
            listed = np.isin(numbers, [at for at, operation in enumerate(operations) if operation in marks.kinds])
            is_call[rows[listed]] = True
            parts.append((rows[listed], numbers[listed], operations, marks))
    parent = table.nesting.parent[is_call]
    holds = np.append(np.zeros(len(slices.ts), bool), False)  # NONE is the last one
    holds[first_above(table, np.where(parent == NO_PARENT, NONE, parent), is_call)] = True
    found: list[Rows] = [np.empty(0, np.intp)]
    which, calls = [np.empty(0, np.intp)], list[_Call]()
    for rows, operation_of, operations, marks in parts:
        innermost = ~holds[rows]
        rows, operation_of = rows[innermost], operation_of[innermost]
        keys = [key for key in (marks.shapes, marks.types, marks.inputs, marks.outputs) if key]
        numbers, values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], keys)
        pairs, places = np.unique(operation_of * len(values) + numbers, return_inverse=True)
        found.append(rows)
        which.append(len(calls) + places.reshape(-1))
        for operation, at in zip(*(part.tolist() for part in np.divmod(pairs, max(len(values), 1))), strict=True):
            calls.append(_call(operations[operation], marks, dict(zip(keys, values[at], strict=True))))
    return np.concatenate(found), np.concatenate(which), calls


def _operations(table: SliceTable, rows: Rows, marks: FlopMarks) -> tuple[I64, Sequence[str]]:
    """Return the number of the operation of each of some slices, and the operations; it is "" if they are no calls."""
    trace, slices = table.trace, table.trace.slices
    if not marks.calls:
        return slices.name[rows].astype(np.int64), trace.strings
    at, length = slices.args_at[rows], slices.args_len[rows]
    numbers, values = arg_values(
        trace.args, at, np.where(having_any(at, length, trace.args, marks.calls[:1]), length, 0), marks.calls
    )
    return numbers.astype(np.int64), [
        "" if ABSENT in of_slice or not isinstance(of_slice[0], str) else of_slice[0] for of_slice in values
    ]


def _call(name: str, marks: FlopMarks, args: Mapping[str, Any]) -> _Call:
    """Return a call by its operation and its args."""
    dims, types = _operands(args[marks.shapes], args.get(marks.types))
    outputs, _ = _operands(args[marks.outputs], None) if marks.outputs else ((), ())
    kind, parameters = marks.kinds[name]
    if kind != NOT_COMPUTED[0] and (not dims or (marks.outputs and not outputs)):
        return _Call(name, why_not=f"without recorded shapes{f' ({marks.how})' if marks.how else ''}")
    concrete = args.get(marks.inputs)
    texts = [text if isinstance(text, str) else "" for text in concrete] if isinstance(concrete, list) else []
    try:
        problem = _KINDS[kind]([*map(_lengths, (*outputs, *dims))], texts, *parameters)
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        problem = None
    if problem is None or problem.flop <= 0:
        return _Call(name, why_not="whose work is not computed")
    of_operand = next((str(text) for text, size in zip(types, dims, strict=False) if len(size) > 1), "")
    of_operand = of_operand or next((str(text) for text, size in zip(types, dims, strict=False) if size), "")
    shape = " ".join("x".join(map(str, size)) for size in dims if size)
    return _Call(name, shape, of_operand, problem.flop, problem.elements * marks.elements.get(of_operand, ("", 0))[1])


def _lengths(shape: Any) -> list[int]:
    """Return the lengths of a shape; none if they are no integers, as those of a list of tensors."""
    try:
        return [operator.index(length) for length in shape]
    except TypeError:
        return []


def _operands(shapes: Any, types: Any) -> tuple[list[Any], list[Any]]:
    """Return the shapes and the types of what a call reads or writes; of objects, each has its type and its shape."""
    if not isinstance(shapes, list):
        return [], []
    if shapes and all(isinstance(shape, dict) and len(shape) == 1 for shape in shapes):
        pairs = [pair for shape in shapes for pair in shape.items()]
        return [shape for _, shape in pairs], [kind for kind, _ in pairs]
    return shapes, types if isinstance(types, list) else []


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
