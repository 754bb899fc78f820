"""What the debugger of TVM leaves in its folder: `_tvmdbg_graph_dump.json` and `output_tensors.params`.

    dump/_tvmdbg_device_CPU_0/_tvmdbg_graph_dump.json        (up to 0.7 _tvmdbg_ctx_CPU_0)
    dump/_tvmdbg_device_CPU_0/_tvmdbg_execution_trace.json
    dump/_tvmdbg_device_CPU_0/output_tensors.params

The importers of the debugger's table and of its execution trace join these files if they lie beside them.

The graph, which `lib.get_graph_json()` returns, too, has no times: by itself it becomes a table of its nodes.

    {"nodes": [{"op": "param", "name": "data", "inputs": [], "attrs": {"T": "type: float32"}, "shape": [1, 3, 32, 32]},
               {"op": "fused_nn_dense", "name": "fused_nn_dense", "inputs": ["data", "p0"],
                "attrs": {"func_name": "fused_nn_dense", "num_outputs": "1", ...}}],
     "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]],
     "attrs": {"storage_id": ["list_int", [0, 1]], "dltype": ["list_str", ["float32", "float32"]],
               "shape": ["list_shape", [[1, 3, 32, 32], [1, 10]]]}}

Up to 0.6 it is a JSON string that holds JSON, with inputs as [node, output, version]; later an object, with
inputs as names and `param` or the name of the function as op. Shapes, dtypes and storage ids are lists over outputs,
which `node_row_ptr` relates to nodes; the `shape` of a node itself is another node's before 0.12 if a node before it
has several outputs, and is not used when the lists are there.

The tensors are the outputs of all nodes; files of parameters (`tvm.runtime.save_param_dict`) have the same layout:

    b7 9c 04 05 4f 8d e5 f7  00 00 00 00 00 00 00 00   magic of a list of tensors, reserved
    10 00 00 00 00 00 00 00  45 00 00 00 00 00 00 00   16 names, the first has 69 bytes
    "fused_nn_dense____topo-index:14____output-num:0"  since 0.9; in 0.8 `name____output`, before `name_output__seconds`

Little endian: u64 magic of the list, u64 reserved, u64 count and per name u64 length + bytes, u64 count and per tensor
u64 magic, u64 reserved, i32 device type, i32 device, i32 ndim, u8 type code, u8 bits, u16 lanes, ndim x i64, i64 size,
data. The data is skipped, as files reach gigabytes.

Described at https://tvm.apache.org/docs/v0.16.0/arch/debugger.html. Source: python/tvm/contrib/debugger,
src/runtime/graph_executor/debug, include/tvm/runtime/ndarray.h and src/runtime/file_utils.cc of tags v0.5 to v0.19, and
recordings.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from traceconv.errors import InputError, MalformedInput, UsageError
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME
from traceconv.model.diagnostics import absent, lost
from traceconv.model.numbers import MAX_DEPTH, flatten, whole_or_text
from traceconv.model.trace import SliceId

TENSORS = Counted("tensor", "tensors")

CUT_TENSORS = lost("tvm.cut_tensors", "the file ends before all of its tensors: the complete ones were listed")

_LIST_MAGIC = struct.pack("<Q", 0xF7E58D4F05049CB7)
_TENSOR_MAGIC = 0xDD5E40F096B4A13F
_U64 = struct.Struct("<Q")
_HEADER = struct.Struct("<QQiiiBBH")
#: DLDataTypeCode of DLPack.
_CODES = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "bool"}
#: DLDeviceType of DLPack.
_DEVICES = {1: "cpu", 2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 14: "webgpu", 16: "hexagon"}
_MAX_NAME = 1 << 20
_MAX_DIMENSIONS = 64
_SKIP_BYTES = 1 << 20
_LISTED_TENSORS = 256
_OUTPUT_NAME = re.compile(
    r"(?P<name>.*?)____topo-index:(?P<node>\d{1,18})____output-num:(?P<output>\d{1,18})", re.DOTALL
)


class Tensor(msgspec.Struct, frozen=True):
    """One tensor: its shape as TVM prints it, "(1, 10)", and the size of its data in bytes."""

    name: str
    shape: str
    dtype: str
    device: str
    size: int

    def describe(self) -> str:
        """Return the text that the reports of TVM print: "float32[1, 10]"."""
        return f"{self.dtype}[{self.shape.strip('(),')}]"


class Listing(msgspec.Struct):
    names: int = 0  # how many names it has
    tensors: list[Tensor] = msgspec.field(default_factory=list)
    cut: str = ""  # where the file ends too early, in words; empty if it does not


class _Ends(Exception):
    """The file ends inside of what is read."""


class _Reader:
    def __init__(self, stream: IO[bytes], display: str) -> None:
        self._stream = stream
        self._display = display
        self.at = 0

    def take(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) < count:
            raise _Ends
        self.at += count
        return data

    def number(self) -> int:
        value: int = _U64.unpack(self.take(_U64.size))[0]
        return value

    def skip(self, count: int) -> None:
        while count > 0:
            count -= len(self.take(min(count, _SKIP_BYTES)))

    def wrong(self, problem: str) -> MalformedInput:
        return MalformedInput(
            self._display,
            f"byte {self.at}",
            problem,
            hint="the file is damaged, or is not an output_tensors.params of TVM",
        )

    def name(self) -> str:
        length = self.number()
        if length > _MAX_NAME:
            raise self.wrong(f"a name of {length} bytes, expected at most {_MAX_NAME}")
        return self.take(length).decode("utf-8", "replace")

    def tensor(self, name: str) -> Tensor:
        magic, _, device, device_id, ndim, code, bits, lanes = _HEADER.unpack(self.take(_HEADER.size))
        if magic != _TENSOR_MAGIC:
            raise self.wrong(f"0x{magic:x} where a tensor begins, expected 0x{_TENSOR_MAGIC:x}")
        if not 0 <= ndim <= _MAX_DIMENSIONS:
            raise self.wrong(f"a tensor with {ndim} dimensions, expected at most {_MAX_DIMENSIONS}")
        sizes = struct.unpack(f"<{ndim}q", self.take(8 * ndim))
        (size,) = struct.unpack("<q", self.take(8))
        if size < 0:
            raise self.wrong(f"a tensor of {size} bytes")
        self.skip(size)
        inner = ", ".join(map(str, sizes))
        return Tensor(
            name,
            f"({inner},)" if ndim == 1 else f"({inner})",
            _dtype(code, bits, lanes),
            f"{_DEVICES.get(device, f'device type {device}, ')}{device_id}",
            size,
        )


def _dtype(code: int, bits: int, lanes: int) -> str:
    if (code, bits, lanes) == (1, 1, 1):
        return "bool"
    return f"{_CODES.get(code, f'type{code}_')}{bits}{f'x{lanes}' if lanes > 1 else ''}"


def read_listing(stream: IO[bytes], display: str) -> Listing:
    """Return the tensors of a file, as far as it goes. Raises MalformedInput if it makes no sense."""
    reader = _Reader(stream, display)
    listing = Listing()
    names: list[str] = []
    begin = -1
    try:
        if reader.take(len(_LIST_MAGIC)) != _LIST_MAGIC:
            raise reader.wrong(f"other first bytes than {_LIST_MAGIC.hex()}, which such a file begins with")
        reader.number()
        listing.names = reader.number()
        while len(names) < listing.names:
            names.append(reader.name())
        count = reader.number()
        if count != listing.names:
            raise reader.wrong(f"{count} tensors for {listing.names} names, expected as many")
        for name in names:
            begin = reader.at
            listing.tensors.append(reader.tensor(name))
    except _Ends:
        if begin < 0:
            what = f"the file ends after {len(names)} of {listing.names} names, expected their tensors as well"
            raise reader.wrong(what) from None
        whole = f"{len(listing.tensors)} of {listing.names} tensors are whole"
        listing.cut = f"the file ends inside the tensor at byte {begin}, {whole}"
    return listing


def summary(listed: list[Tensor]) -> dict[str, Any]:
    """Return how many tensors, how large, and which; the last is limited."""
    info: dict[str, Any] = {"count": len(listed), "bytes": sum(tensor.size for tensor in listed)}
    info["tensors"] = [f"{tensor.name} {tensor.describe()}" for tensor in listed[:_LISTED_TENSORS]]
    if len(listed) > _LISTED_TENSORS:
        info["not_listed"] = len(listed) - _LISTED_TENSORS
    return info


def node_of(name: str) -> tuple[int | str, str]:
    """Return the node that an output tensor is of, by index (0.9 and later) or by name, and the name of the node."""
    match = _OUTPUT_NAME.fullmatch(name)
    if match is not None:
        return whole_or_text(match["node"]), match["name"]
    plain = re.sub(r"(?:____\d+|_\d+__[-+.\deE]+)$", "", name)
    return plain, plain


@dataclass(frozen=True)
class TvmOutputTensors(Importer):
    name = "tvm-output-tensors"
    title = "TVM debugger output tensors (output_tensors.params)"
    url = "https://tvm.apache.org/docs/v0.16.0/arch/debugger.html"
    versions = "0.5 to 0.19; any file of tvm.runtime.save_param_dict"
    signature = Signature(patterns=(rb"\A\xb7\x9c\x04\x05o\x8d\xe5\xf7",))
    clock = NO_TIME
    record = "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"

    line_up = "Leave it beside the debugger's table or execution trace: these read it, if the graph is there."
    becomes = (("tensor", "row of a table without a timeline: node, output, shape, dtype, device, bytes"),)
    lost = ("The data of the tensors is never read.",)

    def sniff(self, head: Head) -> Match:
        """Return YES for the magic number."""
        if head.data.startswith(_LIST_MAGIC):
            return Match.yes("magic number of a list of TVM tensors")
        return Match.no("no magic number of TVM tensors")

    def read(self, source: Source, out: Builder) -> None:
        """List the tensors. Raises MalformedInput when the file makes no sense."""
        out.counts(TENSORS)
        with source.open() as stream:
            listing = read_listing(stream, source.display)
        out.belongs_to(("tvm-debugger", "tvm-execution-trace"))
        track = out.tracks.totals("TVM output tensors", description="Outputs of nodes, parameters among them.")
        for number, tensor in enumerate(listing.tensors, 1):
            node, name = node_of(tensor.name)
            args: dict[str, Any] = {"tensor": tensor.name} if name != tensor.name else {}
            if isinstance(node, int):
                args["node"] = node
            args |= {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device, "bytes": tensor.size}
            out.totals(track, name, "tensor", args, number)
        out.balance.read = listing.names
        out.balance.written = len(listing.tensors)
        if listing.cut:
            missing = listing.names - len(listing.tensors)
            out.skip(CUT_TENSORS, f"{out.info.name}: {listing.cut}", count=missing)
        info = summary(listing.tensors)
        out.metadata["tvm_output_tensors"] = {"count": info["count"], "bytes": info["bytes"]}


NODES = Counted("node", "nodes")

GRAPH_FILE = "_tvmdbg_graph_dump.json"
TENSORS_FILE = "output_tensors.params"
FOLDER_PREFIX = "_tvmdbg_"

BAD_DUMP = lost("tvm.bad_dump", "a file of the dump folder cannot be read: the trace was made without it")

UNKNOWN_INPUT = absent(
    "tvm.unknown_input",
    "an input of a node is not an earlier node of the graph: neither in the args nor drawn as a flow",
)

_FOLDER = re.compile(rf"{FOLDER_PREFIX}(?:ctx|device)_(?P<kind>\w+?)_(?P<number>\d+)")
_GRAPH_START = re.compile(rb'"?\{(?:\\n|\s)*"(?:arg_)?nodes"\s*:\s*\[')
_PLAIN_ATTRS = frozenset(("num_outputs", "num_inputs", "flatten_data", "func_name", "T"))


class _NodeFile(msgspec.Struct):
    op: str = ""
    name: str = ""
    inputs: list[Any] = []
    attrs: dict[str, Any] = {}
    shape: list[Any] | None = None


class _GraphFile(msgspec.Struct):
    nodes: list[_NodeFile]
    node_row_ptr: list[int] = []
    attrs: dict[str, Any] = {}


class Output(msgspec.Struct, frozen=True):
    """One output of a node: its shape as TVM prints it, "(1, 64, 56, 56)"; texts are empty for what is not known."""

    shape: str = ""
    dtype: str = ""
    storage_id: int | None = None

    def describe(self) -> str:
        """Return the text of the column Argument Shapes: "float32[1, 10]"."""
        return f"{self.dtype}[{self.shape.strip('(),')}]" if self.shape else self.dtype

    def info(self) -> dict[str, Any]:
        """Return the members for args, without what is not known."""
        known = {"shape": self.shape, "dtype": self.dtype, "storage_id": self.storage_id}
        return {key: value for key, value in known.items() if value not in ("", None)}


class Wanted(NamedTuple):
    """The known properties of a node to search; an empty function or shape fits all."""

    name: str
    op: str = ""
    shape: str = ""


class Node(msgspec.Struct, frozen=True, eq=False):
    index: int  # its place in the graph
    name: str
    op: str  # the name of the function that it calls; empty for a parameter or input
    inputs: tuple[tuple[int, int], ...]  # the producers: their index, and the number of their output
    outputs: tuple[Output, ...]
    attrs: dict[str, Any]

    @property
    def is_parameter(self) -> bool:
        """Whether it is a parameter or an input of the graph, which is not executed."""
        return not self.op


class Graph(msgspec.Struct):
    """The nodes in order of execution."""

    nodes: list[Node]
    unknown_inputs: int = 0  # the number of inputs that refer to no earlier node

    def args_of(self, node: Node) -> dict[str, Any]:
        info: dict[str, Any] = {}
        if not node.is_parameter:
            info = {"op": node.op, "inputs": [self._input(index, output) for index, output in node.inputs]}
        if len(node.outputs) == 1:
            info |= node.outputs[0].info()
        else:
            info["outputs"] = [output.info() for output in node.outputs]
        return info | {key: value for key, value in node.attrs.items() if key not in (*_PLAIN_ATTRS, *info)}

    def _input(self, index: int, output: int) -> str:
        producer = self.nodes[index]
        tensor = producer.outputs[output].describe() if output < len(producer.outputs) else ""
        return f"{producer.name} {tensor}".rstrip()

    def assign(self, wanted: Sequence[Wanted], *, parameters: bool = False) -> list[Node] | str:
        """Return the wanted nodes (with parameters if asked), each once, in graph order; or the first missing name."""
        free: dict[str, list[Node]] = {}
        for node in self.nodes:
            if parameters or not node.is_parameter:
                free.setdefault(node.name, []).append(node)
        tensors = []
        for name, op, shape in wanted:
            candidates = [node for node in free.get(name, ()) if op in ("", node.op)]
            if not candidates:
                return f"{name} ({op})" if op else name
            node = next((node for node in candidates if node.outputs and node.outputs[0].shape == shape), candidates[0])
            free[name].remove(node)
            tensors.append(node)
        return tensors


def parse_graph(data: bytes) -> Graph:
    """Return the graph of a dump. Raises ValueError saying what is wrong with it."""
    data = flatten(data.strip(), MAX_DEPTH // 2)
    try:
        if data[:1] == b'"':  # up to 0.6: JSON in a JSON string
            data = flatten(msgspec.json.decode(data, type=str).encode(), MAX_DEPTH // 2)
        file = msgspec.json.decode(data, type=_GraphFile)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    starts = file.node_row_ptr
    lists = {key: _list_of(file.attrs.get(key)) for key in ("shape", "dltype", "storage_id")}
    graph = Graph([])
    last: dict[str, int] = {}
    for index, node in enumerate(file.nodes):
        function = node.attrs.get("func_name") or ("" if node.op in ("param", "null") else node.op)
        inputs = [_producer(entry, last, index) for entry in node.inputs]
        graph.unknown_inputs += inputs.count(None)
        graph.nodes.append(
            Node(
                index,
                node.name,
                str(function),
                tuple(entry for entry in inputs if entry is not None),
                _outputs(node, index, starts, lists),
                node.attrs,
            )
        )
        last[node.name] = index
    return graph


def _list_of(value: object) -> list[Any]:
    """Return the list in ["list_shape", [...]]."""
    return value[1] if isinstance(value, list) and len(value) == 2 and isinstance(value[1], list) else []


def _producer(entry: object, last: dict[str, int], index: int) -> tuple[int, int] | None:
    """Return index and output of an input, which is [node, output, version] or the name of an earlier node."""
    if isinstance(entry, str):
        return (last[entry], 0) if entry in last else None
    if isinstance(entry, list) and len(entry) >= 2 and isinstance(entry[0], int) and isinstance(entry[1], int):
        return (entry[0], max(entry[1], 0)) if 0 <= entry[0] < index else None
    return None


def _outputs(node: _NodeFile, index: int, starts: list[int], lists: dict[str, list[Any]]) -> tuple[Output, ...]:
    if index + 1 >= len(starts) or not 0 <= starts[index] <= starts[index + 1] <= starts[index] + 1000:
        dtype = str(node.attrs.get("T", "")).removeprefix("type: ")
        return (Output(_shape_text(node.shape), dtype),)
    outputs = []
    for entry in range(starts[index], starts[index + 1]):
        shape, name, storage = (values[entry] if entry < len(values) else None for values in lists.values())
        storage_id = storage if isinstance(storage, int) else None
        outputs.append(Output(_shape_text(shape), name if isinstance(name, str) else "", storage_id))
    return tuple(outputs)


def _shape_text(shape: object) -> str:
    """Return a shape as the debugger prints it: a tuple of Python."""
    if not isinstance(shape, list):
        return ""
    inner = ", ".join(str(size) for size in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


# -- files beside an input --------------------------------------------------------------------------------------


class Dump(msgspec.Struct):
    """The content of a dump folder about the nodes of one input."""

    graph: Graph
    nodes: list[Node]  # the node of each row that was asked for
    device: str  # such as "CPU 0", by the name of the folder; or an empty text
    _tensors: dict[int | str, list[Tensor]] = msgspec.field(default_factory=dict)

    def args_of(self, node: Node) -> dict[str, Any]:
        """Return what graph and output tensors say about a node, for args."""
        info = self.graph.args_of(node)
        written = self._tensors.get(node.index) or self._tensors.get(node.name)
        if written:
            info["output_tensors"] = [
                {"shape": tensor.shape, "dtype": tensor.dtype, "bytes": tensor.size} for tensor in written
            ]
        return info

    def draw_flows(self, out: Builder, slices: dict[int, SliceId]) -> None:
        """Add flows from the slice of each producer to those of its consumers; `slices` are by index of their node."""
        for index in sorted(slices):
            for producer in dict.fromkeys(producer for producer, _ in self.graph.nodes[index].inputs):
                if producer in slices:
                    out.flow(slices[producer], slices[index], "tensor", "tensor")


def find_dump(
    source: Source, out: Builder, option: str, wanted: Sequence[Wanted], *, parameters: bool = False
) -> Dump | None:
    """Return the dump whose graph has the wanted nodes (see Graph.assign), stated in notes and metadata.

    `option` is a folder or a graph file that the user named, else it is looked for beside the input. Raises UsageError.
    """
    misfits = []
    for path in graph_files(source, option):
        graph = _read_graph(path, source, out)
        if graph is None:
            continue
        nodes = graph.assign(wanted, parameters=parameters)
        shown = _shown(path, source)
        if graph.unknown_inputs:
            out.problem(UNKNOWN_INPUT, shown, count=graph.unknown_inputs)
        if isinstance(nodes, str):
            misfits.append(f"{shown} was not joined: it has no node {nodes}, so it is of another model or build")
            continue
        device = _FOLDER.fullmatch(path.parent.name)
        dump = Dump(graph, nodes, f"{device['kind']} {device['number']}" if device else "")
        out.note(f"joined by node name with {shown}")
        operators = sum(not node.is_parameter for node in graph.nodes)
        out.metadata["tvm_graph"] = {"file": shown, "operators": operators, "parameters": len(graph.nodes) - operators}
        _add_tensors(dump, path.parent / TENSORS_FILE, source, out)
        return dump
    for misfit in misfits:
        out.note(misfit)
    return None


def graph_files(source: Source, option: str) -> list[Path]:
    """Return where a graph may be, nearest first."""
    if option:
        path = Path(option)
        files = [path] if path.is_file() else _files_in(path)
        if not files:
            raise UsageError(f"option dump: no {GRAPH_FILE} in {option}", hint="name the folder given as dump_root")
        return files
    if source.path is None:
        return []
    folder = source.path.absolute().parent
    patterns = (f"{FOLDER_PREFIX}*/{GRAPH_FILE}", f"dump/{FOLDER_PREFIX}*/{GRAPH_FILE}")
    above = [path for pattern in patterns for path in sorted(folder.parent.glob(pattern))]
    return list(dict.fromkeys((*_files_in(folder), *above)))


def _files_in(folder: Path) -> list[Path]:
    patterns = (GRAPH_FILE, f"{FOLDER_PREFIX}*/{GRAPH_FILE}", f"*/{FOLDER_PREFIX}*/{GRAPH_FILE}")
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))]


def _shown(path: Path, source: Source) -> str:
    """Return a path as seen from the input, so that it is the same wherever both lie."""
    base = source.path.absolute().parent if source.path else Path()
    for folder, prefix in ((base, ""), (base.parent, "../")):
        if path.is_relative_to(folder):
            return prefix + path.relative_to(folder).as_posix()
    return str(path)


def _read_graph(path: Path, source: Source, out: Builder) -> Graph | None:
    try:
        with Source(path).open() as stream:
            return parse_graph(stream.read())
    except (InputError, ValueError) as error:
        out.problem(BAD_DUMP, _shown(path, source), str(error))
        return None


def _add_tensors(dump: Dump, path: Path, source: Source, out: Builder) -> None:
    """Add names, shapes and dtypes of the tensors that were written; their data is never read."""
    if not path.is_file():
        return
    shown = _shown(path, source)
    try:
        with Source(path).open() as stream:
            listing = read_listing(stream, shown)
    except (InputError, MalformedInput) as error:
        out.problem(BAD_DUMP, shown, error.message)
        return
    if listing.cut:
        out.problem(BAD_DUMP, shown, listing.cut)
    for tensor in listing.tensors:
        node, _ = node_of(tensor.name)
        dump._tensors.setdefault(node, []).append(tensor)
    out.metadata["tvm_output_tensors"] = {"file": shown, **summary(listing.tensors)}
    out.note(f"{len(listing.tensors)} output tensors listed from {shown} (names, shapes and dtypes only)")


def _mark_of_graph(head: Head) -> str:
    """Return the reason why a file is a TVM graph; "" for graphs of other tools, and other files."""
    text = head.text.replace(b'\\"', b'"')
    if not _GRAPH_START.match(text):
        return ""
    if not head.complete:  # with sorted keys the nodes stand at the end
        text += head.tail.replace(b'\\"', b'"')
    return next((mark.decode() for mark in (b"func_name", b"tvm_op", b"type: ") if b'"' + mark in text), "")


@dataclass(frozen=True)
class TvmGraph(Importer):
    name = "tvm-graph"
    title = "TVM graph (_tvmdbg_graph_dump.json)"
    url = "https://tvm.apache.org/docs/v0.16.0/arch/debugger.html"
    versions = "0.5 to 0.19: as an object, and as JSON in a JSON string"
    signature = Signature('nodes & func_name | nodes & tvm_op | nodes & "type:')
    clock = NO_TIME
    record = "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"

    line_up = "Leave it beside the debugger's table or execution trace: these read it, and show flows."
    becomes = (("node", "row of a table without a timeline: function, inputs, shape, dtype, storage_id, attributes"),)

    def sniff(self, head: Head) -> Match:
        """Return YES for nodes with the names of TVM; MXNet writes graphs with the same outline."""
        mark = _mark_of_graph(head)
        return Match.yes(f"a graph with {mark}") if mark else Match.no("no nodes with func_name, tvm_op or TVM's types")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole graph. Raises MalformedInput when it makes no sense."""
        out.counts(NODES)
        with source.open() as stream:
            data = stream.read()
        try:
            graph = parse_graph(data.removeprefix(b"\xef\xbb\xbf"))
        except ValueError as error:
            raise source.malformed(
                f"not a graph of TVM: {error}",
                hint="was the file cut? The debugger writes it when it is created",
            ) from None
        if graph.unknown_inputs:
            out.problem(UNKNOWN_INPUT, out.info.name, count=graph.unknown_inputs)
        out.belongs_to(("tvm-debugger", "tvm-execution-trace"))
        track = out.tracks.totals("TVM graph", description="Nodes in order of execution.")
        for node in graph.nodes:
            out.balance.read += 1
            out.balance.written += 1
            category = "parameter" if node.is_parameter else "operator"
            out.totals(track, node.name, category, {"node": node.index} | graph.args_of(node), node.index + 1)
        parameters = sum(node.is_parameter for node in graph.nodes)
        out.metadata["tvm_graph"] = {"operators": len(graph.nodes) - parameters, "parameters": parameters}
