"""Compute the operations and bytes of a oneDNN primitive from the problem in its line.

    convolution    g32mb4_ic32oc32_ih15oh15kh3sh1dh0ph1_iw15ow15kw3sw1dw0pw1
    deconvolution  the same fields
    inner_product  mb8ic3200oc10, mb2ic512ih7iw7oc10
    matmul         64x128:128x96:64x96, or without the last part before 2.3; other dimensions are batches
    reorder        16x3x3x3

Channels are those of all groups together. Operations are two for each multiplication with its addition, as if padding
were computed, too; a backward pass counts like the forward one. Bytes are those of source, weights and destination,
each read or written once, without padding of the layout; their data types stand in the memory descriptors
(`src_f32::...`, `src:f32::...`, `in:f32_nchw`). Nothing is computed if a size is unknown before the run (`*`), for
sparse data, or for text of an unknown form. Bias, scratchpad and caches are not counted.
"""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from traceconv.model.numbers import whole

_FIELD = re.compile(rb"(?<![a-z])([a-z]++)(-?\d{1,18})")
_FIELDS = re.compile(rb"(?:[a-z]+-?\d{1,18}_?)+")
_DIMS = re.compile(rb"\d{1,18}(?:x\d{1,18}){0,11}")
#: src_f32::blocked:ab:f0, diff_dst:bf16::blocked:ab::f0, in:f32_nchw
_TENSOR = re.compile(rb"(?:^|\s)(?:diff_)?(src|wei|dst|in|out)[:_]([a-z]+\d+(?:_e\d+m\d+)?|boolean)(?=[:_])")
_BITS = {
    b"f64": 64,
    b"f32": 32,
    b"s32": 32,
    b"s64": 64,
    b"f16": 16,
    b"bf16": 16,
    b"s8": 8,
    b"u8": 8,
    b"f8_e5m2": 8,
    b"f8_e4m3": 8,
    b"e8m0": 8,
    b"s4": 4,
    b"u4": 4,
    b"f4_e2m1": 4,
    b"f4_e3m0": 4,
    b"boolean": 8,
}
_ROLES = {b"in": b"src", b"out": b"dst"}
_SPARSE = re.compile(rb":(?:sparse|csr|coo|packed)\b")


class Work(NamedTuple):
    """The work of a primitive; 0 where it is not well defined.

    Attributes:
        operations: additions and multiplications.
        size: bytes of source, weights and destination.
    """

    operations: int = 0
    size: int = 0

    def args(self) -> dict[str, float | int]:
        """Return the members for the args of the slice."""
        args: dict[str, float | int] = {}
        if self.operations:
            args["derived_gflop"] = self.operations / 1e9
        if self.size:
            args["derived_bytes"] = self.size
        return args

    def rates(self, dur: int) -> bytes:
        """Return the work per second of a call of `dur` ns, as members of a JSON object with a comma before each."""
        if dur <= 0:
            return b""
        rates = b""
        if self.operations:
            rates = b',"derived_gflops_per_s":%.6g' % (self.operations / dur)
        if self.size:
            rates += b',"derived_gb_per_s":%.6g' % (self.size / dur)
        return rates


class _Problem(NamedTuple):
    """The number of multiply-adds, and of the elements of each tensor."""

    macs: int
    elements: dict[bytes, int]


NO_WORK = Work()
_MOST = 1 << 63  # larger numbers come from damaged lines


def work_of(primitive: bytes, memory: bytes, problem: bytes) -> Work:
    """Return the work of one call, from three fields of its line."""
    if _SPARSE.search(memory):
        return NO_WORK
    read = _READERS.get(primitive)
    shapes = read(problem) if read else None
    if shapes is None:
        return NO_WORK
    work = Work(2 * shapes.macs, _size(shapes.elements, memory))
    return work if max(work) < _MOST else NO_WORK


def _size(elements: dict[bytes, int], memory: bytes) -> int:
    types = {_ROLES.get(role, role): name for role, name in _TENSOR.findall(memory)}
    if any(_BITS.get(types.get(role, b"")) is None for role in elements):
        return 0
    return sum((count * _BITS[types[role]] + 7) // 8 for role, count in elements.items())


def _fields(problem: bytes) -> dict[bytes, int] | None:
    """Return the sizes by name; None for text of another form."""
    if not _FIELDS.fullmatch(problem):
        return None
    return {name: whole(value) for name, value in _FIELD.findall(problem)}


def _over(sizes: dict[bytes, int], kind: bytes) -> int:
    """Return the product of a size over the existing spatial dimensions."""
    return prod(sizes.get(kind + axis, 1) for axis in (b"d", b"h", b"w"))


def _convolution(problem: bytes) -> _Problem | None:
    return _convolved(problem, transposed=False)


def _deconvolution(problem: bytes) -> _Problem | None:
    return _convolved(problem, transposed=True)


def _convolved(problem: bytes, transposed: bool) -> _Problem | None:
    sizes = _fields(problem)
    if sizes is None or not {b"mb", b"ic", b"oc", b"iw", b"ow", b"kw"} <= sizes.keys():
        return None
    batch, inputs, outputs, groups = sizes[b"mb"], sizes[b"ic"], sizes[b"oc"], sizes.get(b"g", 1)
    if min(batch, inputs, outputs) < 0 or groups < 1 or inputs * outputs % groups:
        return None
    weights = inputs * outputs // groups * _over(sizes, b"k")
    source, result = _over(sizes, b"i"), _over(sizes, b"o")
    return _Problem(
        batch * weights * (source if transposed else result),
        {b"src": batch * inputs * source, b"wei": weights, b"dst": batch * outputs * result},
    )


def _inner_product(problem: bytes) -> _Problem | None:
    sizes = _fields(problem)
    if sizes is None or not {b"mb", b"ic", b"oc"} <= sizes.keys() or min(sizes.values()) < 0:
        return None
    batch, outputs, inputs = sizes[b"mb"], sizes[b"oc"], sizes[b"ic"] * _over(sizes, b"i")
    return _Problem(
        batch * inputs * outputs, {b"src": batch * inputs, b"wei": inputs * outputs, b"dst": batch * outputs}
    )


def _dims(text: bytes) -> list[int] | None:
    return [whole(size) for size in text.split(b"x")] if _DIMS.fullmatch(text) else None


def _matmul(problem: bytes) -> _Problem | None:
    tensors = [_dims(part) for part in problem.split(b":")]
    if len(tensors) not in (2, 3) or any(dims is None or len(dims) < 2 for dims in tensors):
        return None
    source, weights, *rest = (dims for dims in tensors if dims is not None)
    if len(source) != len(weights) or source[-1] != weights[-2]:
        return None
    batches = [max(one, other) for one, other in zip(source[:-2], weights[:-2], strict=True)]
    result = rest[0] if rest else [*batches, source[-2], weights[-1]]
    return _Problem(prod(result) * source[-1], {b"src": prod(source), b"wei": prod(weights), b"dst": prod(result)})


def _reorder(problem: bytes) -> _Problem | None:
    dims = _dims(problem)
    return None if dims is None else _Problem(0, {b"src": prod(dims), b"dst": prod(dims)})


_READERS = {
    b"convolution": _convolution,
    b"deconvolution": _deconvolution,
    b"inner_product": _inner_product,
    b"matmul": _matmul,
    b"reorder": _reorder,
}
