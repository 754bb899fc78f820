"""What devices can do at most, as a user states it: two numbers, or the name of a device with a data sheet."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from traceconv.errors import UsageError

_HALF, _BFLOAT = "float16", "bfloat16"


class Peak(Struct, frozen=True):
    """What a device can do at most: operations and bytes per second, in 10^12 and 10^9.

    Attributes:
        types: the types of elements that `tflops` is about; () for whatever the user means.
    """

    tflops: float
    gb_per_s: float
    types: tuple[str, ...] = ()

    def share(self, flop: float, size: float, time_ns: int, element: str) -> float | None:
        """Return the time that the work needs at least, as a share of that it took; None for a type without a peak."""
        if self.types and element not in self.types:
            return None
        return max(flop / (self.tflops * 1e3), size / self.gb_per_s) / time_ns


def _halves(tflops: float, gb_per_s: float) -> Peak:
    return Peak(tflops, gb_per_s, (_HALF, _BFLOAT))


#: Dense products of 16-bit floats by matrix units, and memory. Where a data sheet states operations with sparsity only,
#: the dense ones are half of them. Variants of one chip differ, so no name stands for several.
PEAKS: Mapping[str, Peak] = {
    # NVIDIA A100 Tensor Core GPU, data sheet: 312 TFLOPS; 40 GB: 1555 GB/s.
    "A100-40GB": _halves(312, 1555),
    "A100-80GB-PCIe": _halves(312, 1935),
    "A100-80GB-SXM": _halves(312, 2039),
    # NVIDIA DGX B200, data sheet, of eight: 36 PFLOPS with sparsity, 64 TB/s.
    "B200-SXM": _halves(2250, 8000),
    # NVIDIA H100 Tensor Core GPU, data sheet: 1513 and 1979 TFLOPS with sparsity.
    "H100-PCIe": _halves(756.5, 2000),
    "H100-SXM": _halves(989.5, 3350),
    # NVIDIA H200 Tensor Core GPU, data sheet: 1979 TFLOPS with sparsity.
    "H200-SXM": _halves(989.5, 4800),
    # NVIDIA L4 Tensor Core GPU, data sheet: 242 TFLOPS with sparsity.
    "L4": _halves(121, 300),
    # AMD Instinct MI300X accelerator, data sheet.
    "MI300X": _halves(1307.4, 5300),
    # NVIDIA V100 Tensor Core GPU, data sheet; its matrix units have no bfloat16.
    "V100-PCIe": Peak(112, 900, (_HALF,)),
    "V100-SXM": Peak(125, 900, (_HALF,)),
}


def parse_peak(text: str) -> Peak | None:
    """Return the peak that a user states as "TFLOPS,GBPS" or as the name of a device in any case, None for "".

    Raises:
        UsageError: it is anything else.
    """
    if not text:
        return None
    named = {name.casefold(): peak for name, peak in PEAKS.items()}.get(text.strip().casefold())
    if named is not None:
        return named
    try:
        tflops, gb_per_s = (float(part) for part in text.split(","))
    except ValueError:
        tflops = gb_per_s = math.nan
    if not (0 < tflops < math.inf and 0 < gb_per_s < math.inf):
        raise UsageError(
            f"--peak {text}: it is neither two numbers nor a known device",
            hint=f"TFLOPS,GBPS, such as 989,3350; or {', '.join(PEAKS)}",
        )
    return Peak(tflops, gb_per_s)
