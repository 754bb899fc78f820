"""`output_tensors.params` of the TVM debugger: names, shapes and dtypes of the outputs of all nodes.

    b7 9c 04 05 4f 8d e5 f7  00 00 00 00 00 00 00 00   magic of a list of tensors, reserved
    10 00 00 00 00 00 00 00  45 00 00 00 00 00 00 00   16 names, the first has 69 bytes
    "fused_nn_dense____topo-index:14____output-num:0"  since 0.9; in 0.8 `name____output`, before `name_output__seconds`

Files of parameters (`tvm.runtime.save_param_dict`, `mod.params`) have the same layout. The importers of the debugger's
table and of its execution trace join the file that lies beside them. Little endian: u64 magic of the list, u64
reserved, u64 count and per name u64 length + bytes, u64 count and per tensor u64 magic, u64 reserved, i32 device type,
i32 device, i32 ndim, u8 type code, u8 bits, u16 lanes, ndim x i64, i64 size, data. The data is skipped, as files reach
gigabytes.

Described at https://tvm.apache.org/docs/v0.16.0/arch/debugger.html. Source: include/tvm/runtime/ndarray.h,
src/runtime/file_utils.cc.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import IO, Any

import msgspec

from traceconv.errors import MalformedInput
from traceconv.families.identification import Signature
from traceconv.families.importer import Importer, Match
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME
from traceconv.model.diagnostics import lost
from traceconv.model.numbers import whole_or_text

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
    """Return the tensors of a file, as far as it goes.

    Args:
        display: the name of the file, for messages.

    Raises:
        MalformedInput: it makes no sense.
    """
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
    signature = Signature(pattern=rb"\A\xb7\x9c\x04\x05o\x8d\xe5\xf7")
    clock = NO_TIME
    record = "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"

    line_up = (
        "Leave it in the folder of the debugger's table or execution trace: these read it themselves, if the "
        "graph is there."
    )
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
