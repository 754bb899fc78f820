"""`output_tensors.params` of the TVM debugger, and any file of `tvm.runtime.save_param_dict`: names, shapes, dtypes.

Little endian: u64 magic of the list, u64 reserved, u64 count and per name u64 length + bytes, u64 count and per tensor
u64 magic, u64 reserved, i32 device type, i32 device, i32 ndim, u8 type code, u8 bits, u16 lanes, ndim x i64, i64 size,
data.
Source: include/tvm/runtime/ndarray.h, src/runtime/file_utils.cc. The data is skipped: files reach gigabytes.
"""

from __future__ import annotations

import struct
from typing import IO

import msgspec

from traceconv.errors import MalformedInput

LIST_MAGIC = struct.pack("<Q", 0xF7E58D4F05049CB7)
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
    """What a file holds.

    Attributes:
        names: how many names it has.
        cut: where the file ends too early, in words; empty if it does not.
    """

    names: int = 0
    tensors: list[Tensor] = msgspec.field(default_factory=list)
    cut: str = ""


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
        if reader.take(len(LIST_MAGIC)) != LIST_MAGIC:
            raise reader.wrong(f"other first bytes than {LIST_MAGIC.hex()}, which such a file begins with")
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
