"""The grammar of oneDNN verbose lines, chosen per line.

A line is a marker, the fields that say what ran, and the duration in milliseconds as its last field:

    mkldnn_verbose,exec,eltwise,jit:avx512_common,forward_inference,fdata:nchw,alg:eltwise_relu,mb8ic20ih24iw24,0.01
    dnnl_verbose,exec,cpu,eltwise,jit:avx2,forward_inference,data_f32::blocked:abcd:f0,,alg:eltwise_relu,8x20x24x24,0.01
    onednn_verbose,v1,1795245228507.134033,primitive,exec,cpu,matmul,brg:avx2,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.1

Releases differ in the order of fields (the engine came with 1.0, the attributes with 1.1, the timestamp with 2.1, the
component with 3.3, the version with 3.6), and lines of two libraries can be mixed in one file, so each line is read by
what it shows itself. Builds between 1.0 and 1.1 print dnnl_verbose without attributes (the manual of 1.1 shows such a
log, of DNNL v0.95); manuals of 3.2 to 3.13 show v0, which has the fields of v1. Source: the verbose printers and
manuals of oneDNN v0.13 to v3.13 and recordings of released builds.

Operations and bytes of a primitive follow from its problem:

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

import enum
import re
from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import msgspec

from traceconv.families.common.ansi import plain
from traceconv.model.diagnostics import Code, lost
from traceconv.model.numbers import MS, parse_ns, whole, whole_of

CUT_LINE = lost(
    "onednn.cut_line",
    "a line breaks off before its last field (a killed process, or text of another thread inside it): left out",
)
BAD_DURATION = lost(
    "onednn.bad_duration",
    "the last field of an exec, create or compile line is not a finite number of milliseconds: the line was left out",
)
UNKNOWN_LINE = lost(
    "onednn.unknown_line",
    "a line has a oneDNN marker, but no known operation and no duration at its end: left out",
)

_HEAD = re.compile(
    rb"(?P<marker>mkldnn|dnnl|onednn_graph|onednn)_verbose,"
    rb"(?:v(?P<version>\d{1,9}),)?"
    # 1795245228507.134033 or, in a foreign locale, 1795245228507,134033; gemm lines of 2.7 to 3.1 have 1.79525e+12
    rb"(?:(?P<ts>\d{1,30}(?:[.,]\d{1,30})?(?:e[+-]?\d{1,4})?),)?"
)
MARK = b"_verbose,"
# As printed by %g: 0, 0.0100098, 1e-05, -0.000976562
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:e[+-]\d{2,4})?")
_WHOLE_THEN_FRACTION = re.compile(rb"(-?\d{1,15}),(\d{1,30}(?:e[+-]\d{2,4})?)")
_ENGINE = re.compile(rb"(?:cpu|gpu|undef|any)\b|[cg]pu2[cg]pu")
_GROUPED_DIGITS = re.compile(rb"(?<=\d),(?=\d{3}(?!\d))")
# src/cpu/x64/jit_brgemm_conv_utils.cpp:1902
_SOURCE_POSITION = re.compile(rb"[^\s,]+\.[chi](?:pp|xx|c)?:\d+")

# alg:convolution_direct, num:1, flags:3; attributes of 1.1 begin with oscale:, post_ops:, later ones with attr-
_AUX = re.compile(rb"(?!attr|oscale:|post_ops:|scratchpad_mode:|scales:|zero_points:|rnn_)[a-z_]+:")

# _gen_index(_gen_index),18446744073709551615,attrs:{axis:2},inputs:{f32:102:strided:undef:2x3:3x1},outputs:{...}
_GRAPH_KERNEL = re.compile(
    rb"(?P<name>\w+)\((?P<op_names>[^)]*)\),(?P<id>\d+),attrs:\{(?P<attrs>[^}]*)\},"
    rb"inputs:\{(?P<inputs>[^}]*)\},outputs:\{(?P<outputs>[^}]*)\}"
)

_COMPONENTS = frozenset((b"primitive", b"graph", b"common", b"ukernel"))
_TIMED = frozenset((b"exec", b"create", b"create_nested", b"compile"))
_KNOWN = _TIMED | {b"info", b"error", b"warning"}
#: `start` is printed on entry with ONEDNN_VERBOSE=debuginfo=1 (3.13).
_NO_DURATION_SUFFIXES = frozenset((b"check", b"dispatch", b"start"))

_FIELDS_0 = ("primitive", "impl", "prop_kind", "memory", "aux", "problem")
_FIELDS_1_0 = ("engine", *_FIELDS_0)
_FIELDS_1_1 = ("engine", "primitive", "impl", "prop_kind", "memory", "attrs", "aux", "problem")

_encode = msgspec.json.Encoder().encode

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


# -- work --------------------------------------------------------------------------------------------------------------


class Work(NamedTuple):
    """The work of a primitive; 0 where it is not well defined."""

    operations: int = 0  # additions and multiplications
    size: int = 0  # bytes of source, weights and destination

    def args(self) -> dict[str, float | int]:
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


def _convolution(problem: bytes, transposed: bool = False) -> _Problem | None:
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
    batches = [max(size, wide) for size, wide in zip(source[:-2], weights[:-2], strict=True)]
    result = rest[0] if rest else [*batches, source[-2], weights[-1]]
    return _Problem(prod(result) * source[-1], {b"src": prod(source), b"wei": prod(weights), b"dst": prod(result)})


def _reorder(problem: bytes) -> _Problem | None:
    dims = _dims(problem)
    return None if dims is None else _Problem(0, {b"src": prod(dims), b"dst": prod(dims)})


_READERS: dict[bytes, Callable[[bytes], _Problem | None]] = {
    b"convolution": _convolution,
    b"deconvolution": partial(_convolution, transposed=True),
    b"inner_product": _inner_product,
    b"matmul": _matmul,
    b"reorder": _reorder,
}


# -- lines -------------------------------------------------------------------------------------------------------------


class Malformed(Exception):
    """A record that cannot be used; it holds the code to count."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Record(NamedTuple):
    """A marker with the text of its record."""

    marker: bytes  # "mkldnn", "dnnl", "onednn" or "onednn_graph"
    version: bytes  # the digits of `v1`, or nothing
    ts: bytes  # the timestamp as printed, in ms, with a decimal point; empty when there is none
    body: bytes  # the text behind these, from the component or operation on
    ended: bool  # whether a line end follows, so that the last field is complete
    comma: bool  # whether the timestamp was printed with a decimal comma


class Kind(enum.Enum):
    """The kind of a record."""

    TIMED = "a slice"
    UNTIMED = "something that ran, printed without a duration"
    MESSAGE = "dispatch, check, start, error, warning"
    INFO = "a fact about the run"


class Shape(msgspec.Struct, frozen=True):
    """The content of a record apart from its times."""

    kind: Kind
    group: str = ""  # "exec", "create", "graph" or "compile": the kind of track, and the category
    engine: str = ""
    name: str = ""
    args: bytes = b""  # the members of a JSON object with a comma before each
    work: Work = NO_WORK


class Message(msgspec.Struct, frozen=True):
    """A diagnostic line of the library; `args` is a JSON object."""

    name: str
    category: str
    args: bytes


def records(line: bytes) -> list[Record]:
    """Return the records of a line (with its line end): one for each marker, at any position."""
    line = plain(line)
    match = _HEAD.match(line)
    if match is not None and line.find(MARK, match.end()) < 0:
        return [_record(match, line[match.end() :])]
    matches = list(_HEAD.finditer(line))
    starts = [match.start() for match in matches] + [len(line)]
    return [_record(match, line[match.end() : end]) for match, end in zip(matches, starts[1:], strict=True)]


def _record(match: re.Match[bytes], rest: bytes) -> Record:
    ended = rest[-1:] in (b"\n", b"\r")
    body = rest.rstrip()
    if b"\r" in body:  # a progress bar behind it
        body, ended = body.partition(b"\r")[0].rstrip(), True
    marker, version, ts = match.groups(b"")
    if b"," in ts:
        return Record(marker, version, ts.replace(b",", b"."), body, ended, True)
    return Record(marker, version, ts, body, ended, False)


def read_body(marker: bytes, body: bytes) -> tuple[Shape, bytes, bool]:
    """Return the content of a record, the text of its duration, and whether that had a decimal comma.

    Raises:
        Malformed: the record is cut off or of an unknown kind.
    """
    rest, _, last = body.rpartition(b",")
    if not rest:
        known = last in _COMPONENTS or last.partition(b":")[0] in _KNOWN
        raise Malformed(CUT_LINE if known else UNKNOWN_LINE, f"{_text(last[:40])!r} behind the marker and nothing else")
    if marker == b"onednn_graph":
        rest, last = _without_counts(rest, last)
    if b"." not in last:
        joined = _decimal_comma(marker, rest, last)
        if joined is not None:
            return shape_of(marker, joined[0]), joined[1], True
    if marker == b"dnnl" and _lacks_attributes(rest, last):
        marker = b"mkldnn"  # the grammar of 1.0
    shape = shape_of(marker, rest)
    if shape.kind is Kind.UNTIMED:
        return msgspec.structs.replace(shape, args=shape.args + _members({"problem": last})), b"", False
    return shape, last, False


def _lacks_attributes(rest: bytes, last: bytes) -> bool:
    """Return whether a line has one field less than lines with attributes, but ends in a duration.

    A line that is cut has one field less, too, but ends in a problem such as 2x16x7x7, or 16 for one dimension.
    """
    if rest.count(b",") != len(_FIELDS_1_0) or not _NUMBER.fullmatch(last):
        return False
    return b"." in last or b"e" in last or _AUX.match(rest.rsplit(b",", 2)[1]) is not None


def _without_counts(rest: bytes, last: bytes) -> tuple[bytes, bytes]:
    """Move the duration to the end again: debug builds of the graph library print counts behind it."""
    before, backend, after = rest.rpartition(b"_backend,")
    duration, comma, counts = after.partition(b",")
    if not backend or (not comma and duration.isdigit()):  # one number behind: a decimal comma
        return rest, last
    counts = counts + comma + last
    return before + backend + counts, duration


def _decimal_comma(marker: bytes, rest: bytes, last: bytes) -> tuple[bytes, bytes] | None:
    """Return the fields and the duration of a line printed in a locale with a decimal comma; None if it was not.

    %g prints no trailing zeros, so a fraction never ends in 0; and the line has one field more than it should.
    """
    before, _, whole = rest.rpartition(b",")
    if (last.endswith(b"0") and b"e" not in last) or not _WHOLE_THEN_FRACTION.fullmatch(whole + b"," + last):
        return None
    component, op, fields = _split_op(marker, before.split(b","))
    if op.partition(b":")[0] not in _TIMED:
        return None
    expected = None if component == b"graph" else len(_layout(marker, fields))
    if expected is not None and len(fields) < expected:
        return None
    return before, whole + b"." + last


@lru_cache(maxsize=4096)
def shape_of(marker: bytes, text: bytes) -> Shape:
    """Return the content of the fields of a record but the last. Cached, since programs repeat few records many times.

    Raises:
        Malformed: too few fields, or an unknown operation.
    """
    component, op, fields = _split_op(marker, text.split(b","))
    base, _, suffix = op.partition(b":")
    if base == b"info":
        return Shape(Kind.INFO)
    if base.endswith((b"error", b"warning")) or suffix in _NO_DURATION_SUFFIXES:
        return Shape(Kind.MESSAGE)
    if base not in _TIMED or component not in (b"", b"primitive", b"graph"):
        return _generic(component, op, fields)
    args: dict[str, Any] = {"component": component} if component and marker != b"onednn_graph" else {}
    if base == b"create_nested":
        args["op"] = base
    if suffix:
        args["variant" if base == b"exec" else "cache"] = suffix
    if component == b"graph" or base == b"compile":
        return _graph(b"graph" if base == b"exec" else base, fields, args)
    return _primitive(marker, "exec" if base == b"exec" else "create", fields, args)


def _split_op(marker: bytes, fields: list[bytes]) -> tuple[bytes, bytes, list[bytes]]:
    """Return the component (b"" when it is not printed), operation, and the fields behind them."""
    bases = [field.partition(b":")[0] for field in fields[:2]]
    if bases[0] in _KNOWN or len(bases) == 1:
        return b"graph" if marker == b"onednn_graph" else b"", fields[0], fields[1:]
    if fields[0] in _COMPONENTS or bases[1] in _KNOWN or bases[1].endswith(b"error"):
        return fields[0], fields[1], fields[2:]
    return b"", fields[0], fields[1:]


def _layout(marker: bytes, fields: list[bytes]) -> tuple[str, ...]:
    """Return the names of the fields of a primitive, without operation and duration."""
    if marker != b"mkldnn":
        return _FIELDS_1_1
    return _FIELDS_1_0 if fields and _ENGINE.match(fields[0]) else _FIELDS_0


def _primitive(marker: bytes, group: str, fields: list[bytes], args: dict[str, Any]) -> Shape:
    names = _layout(marker, fields)
    kind = Kind.TIMED
    if len(fields) == len(names) - 1:
        if marker == b"dnnl" and fields[0].startswith(b"gpu") and group == "exec":
            kind = Kind.UNTIMED  # 1.1 prints no duration on GPUs: what was taken for one is the problem
            names = names[:-1]
        elif fields[1] == b"gemm_api":
            fields = [*fields[:-1], b"", fields[-1]]
    if len(fields) < len(names):
        raise Malformed(CUT_LINE, f"{len(fields)} fields of {len(names)} between operation and duration")
    values = dict(zip(names, _folded(fields, len(names)), strict=True))
    engine = values.get("engine", b"cpu")  # 0.x ran on CPUs only
    name = values.pop("primitive")
    work = NO_WORK
    if group == "exec":
        work = work_of(name, values["memory"], values.get("problem", b""))
    return Shape(kind, group, _text(engine), _title(group, name), _members(args | values | work.args()), work)


def _title(group: str, name: bytes) -> str:
    """Return the name of a slice: work that is only made ready does not bear the name of the work."""
    return f"{group} {_text(name)}" if group in ("create", "compile") else _text(name)


def _folded(fields: list[bytes], count: int) -> list[bytes]:
    """Return exactly `count` fields: join those that were split at commas inside of a field (grouped digits, aux)."""
    if len(fields) == count:
        return fields
    joined = _GROUPED_DIGITS.sub(b"\0", b",".join(fields))
    fields = [field.replace(b"\0", b",") for field in joined.split(b",")]
    if len(fields) < count:
        fields = joined.replace(b"\0", b",").split(b",")
    surplus = len(fields) - count
    at = count - 2  # aux
    return [*fields[:at], b",".join(fields[at : at + surplus + 1]), *fields[at + surplus + 1 :]]


def _graph(group: bytes, fields: list[bytes], args: dict[str, Any]) -> Shape:
    """Read a record of the graph: engine, partition id, kind, op names, ..., backend.

    Since 3.12, a kernel of a partition that is no primitive has a line of its own: engine, name with op names, ...
    """
    kernel = _GRAPH_KERNEL.fullmatch(b",".join(fields[1:]))
    if kernel is not None:
        values = kernel.groupdict()
        name = values.pop("name")
        args |= {"engine": fields[0], "partition_id": _number(values.pop("id"))} | values
        return Shape(Kind.TIMED, _text(group), _text(fields[0]), _title(_text(group), name), _members(args))
    tail = next((i for i in range(len(fields) - 1, 2, -1) if fields[i].endswith(b"backend")), None)
    if tail is None:
        raise Malformed(CUT_LINE, "a graph line without a backend")
    args |= {"engine": fields[0], "partition_id": _number(fields[1]), "partition_kind": fields[2]}
    math = next((i for i in range(5, tail) if fields[i].startswith(b"fpm:")), None)
    if math is None:
        args["details"] = b",".join(fields[3:tail])
    else:
        # Op names are the user's own and may hold commas; formats and tensors do not.
        args["op_names"] = b",".join(fields[3 : math - 2])
        args |= {"data_formats": fields[math - 2], "tensors": fields[math - 1], "fpmath_mode": fields[math][4:]}
        _graph_extras(fields[math + 1 : tail], args)
    args["backend"] = fields[tail]
    if fields[tail + 1 :]:
        args["counts"] = b",".join(fields[tail + 1 :])
    name = args["partition_kind"] or args.get("op_names") or b"partition"
    return Shape(Kind.TIMED, _text(group), _text(fields[0]), _title(_text(group), name), _members(args))


def _graph_extras(fields: list[bytes], args: dict[str, Any]) -> None:
    rest = []
    for field in fields:
        if field.startswith(b"scratchpad:"):
            args["scratchpad"] = _number(field[11:])
        else:
            rest.append(field)
    args["impl"] = b",".join(rest)


def _generic(component: bytes, op: bytes, fields: list[bytes]) -> Shape:
    """Return the content of a line of an unknown operation or component that ends in a duration."""
    if not op or len(fields) < 2 or not re.fullmatch(rb"[a-z_]{1,40}(?::[a-z_]{1,40})*", op):
        code = CUT_LINE if component or op in _COMPONENTS else UNKNOWN_LINE
        raise Malformed(code, f"{_text(op[:40])!r}, expected an operation, its fields and a duration")
    engine = next((field for field in fields[:1] if _ENGINE.match(field)), b"")
    rest = fields[1:] if engine else fields
    args = {"component": component, "op": op, "engine": engine, "details": b",".join(rest[1:])}
    return Shape(Kind.TIMED, "exec", _text(engine or component or b"other"), _text(rest[0] or op), _members(args))


def args_of(shape: Shape, duration: bytes, dur: int) -> bytes:
    """Return the args of a slice: a JSON object. `duration` is as printed, in ms, `dur` in ns."""
    return b'{"dur_ms":' + duration + shape.args + shape.work.rates(dur) + b"}"


@lru_cache(maxsize=4096)
def message_of(marker: bytes, body: bytes) -> Message:
    """Return a dispatch, check, start, error or warning record; its text is kept whole: it may contain commas."""
    component, op, fields = _split_op(marker, body.split(b","))
    position = fields.pop() if fields and _SOURCE_POSITION.fullmatch(fields[-1]) else b""
    subject = fields.pop(0) if len(fields) > 1 else b""
    base, _, suffix = op.partition(b":")
    what = suffix if suffix in _NO_DURATION_SUFFIXES else base
    category = b"error" if what.endswith(b"error") else what  # ocl_error, ze_error
    args = {"op": op, "component": component, "message": b",".join(fields), "source": position}
    members = _members({"subject": subject, **args})
    name = (op, fields[0]) if what == b"start" and fields else (what, subject)  # engine and primitive follow a start
    return Message(_text(b" ".join(filter(None, name))), _text(category), b"{" + members[1:] + b"}")


@lru_cache(maxsize=1024)
def info_of(marker: bytes, body: bytes) -> tuple[str, str]:
    """Return the component (empty for most) and the text of an info record."""
    component, _, fields = _split_op(marker, body.split(b","))
    return "" if marker == b"onednn_graph" else _text(component), _text(b",".join(fields))


def looks_certain(record: Record) -> bool:
    """Return whether a word of oneDNN follows the marker."""
    word = record.body.partition(b",")[0]
    return word in _COMPONENTS or word.partition(b":")[0] in _KNOWN


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _number(field: bytes) -> int | bytes:
    """Return an unsigned 64-bit number, or the text."""
    number = whole_of(field) if field.isdigit() else None
    return field if number is None else number


def _members(args: dict[str, Any]) -> bytes:
    texts = {key: _text(value) if isinstance(value, bytes) else value for key, value in args.items()}
    inner = _encode({key: value.strip() if isinstance(value, str) else value for key, value in texts.items() if value})
    return b"," + inner[1:-1] if len(inner) > 2 else b""


# -- times ----------------------------------------------------------------------------------------------------


def timestamp_ns(text: bytes) -> int | None:
    """Return a timestamp in ns; None if it has an exponent or no fraction, since only six digits are left then."""
    if b"." not in text or b"e" in text:
        return None
    try:
        return parse_ns(text, MS)
    except ValueError:
        return None


def nearest_us(ns: int) -> int:
    """Return a time in ns, rounded to whole microseconds."""
    return (ns + 500) // 1000 * 1000


@lru_cache(maxsize=1 << 16)
def duration_ns(text: bytes, from_gettimeofday: bool) -> int:
    """Return a duration in ns.

    On Linux and macOS it is the difference of two gettimeofday values (whole microseconds) held as a double that counts
    milliseconds since 1970, which steps by 2**-12 ms. Printed with six digits it is off by less than half a
    microsecond up to 1 s, so the nearest microsecond is the true value. Beyond 1 s the text holds no more.

    Args:
        text: the number as printed, in ms.
        from_gettimeofday: whether it may be such a difference; it is rounded if the digits fit as well.

    Raises:
        Malformed: no finite number.
    """
    if not _NUMBER.fullmatch(text):
        raise Malformed(BAD_DURATION, f"{_text(text[:40])!r}, expected a number of milliseconds")
    try:
        ns = parse_ns(text, MS)
    except ValueError as error:
        raise Malformed(BAD_DURATION, str(error)) from None
    return nearest_us(ns) if from_gettimeofday and _on_grid(ns) else ns


def _on_grid(ns: int) -> bool:
    """Return whether a printed value can be a multiple of 2**-12 ms, given its six digits."""
    size = abs(ns)
    if size >= 10**9:
        return False
    nearest = ((size * 4096 + 500_000) // 1_000_000 * 1_000_000 + 2048) // 4096
    printed_to = 1 if size < 10**6 else 6 if size < 10**7 else 51 if size < 10**8 else 501
    return abs(nearest - size) <= printed_to


def looks_complete(text: bytes) -> bool:
    """Return whether a number without a line end behind it cannot be the start of a longer one.

    Six significant digits are all that is ever printed; fewer are complete if they are a multiple of 2**-12 ms.
    """
    mantissa, exponent, _ = text.lstrip(b"-").partition(b"e")
    before, point, fraction = mantissa.partition(b".")
    digits = (before + fraction).lstrip(b"0")
    if not point:
        return False
    return bool(exponent) or len(digits) >= 6 or whole(digits or b"0") * 4096 % 10 ** len(fraction) == 0
