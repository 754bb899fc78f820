"""oneDNN verbose logs of any length, and what their conversion is compared with.

The lines are those of oneDNN 3.12 with ONEDNN_VERBOSE=1 and ONEDNN_VERBOSE_TIMESTAMP=1: the network of the real log
in golden/onednn-verbose, with more layers, run again and again. Times are held in a double that counts milliseconds
since 1970, as in oneDNN, so that durations are off by as much as real ones.
"""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

from tests.benchmarks.frame import Contestant, Race, Work, Wrong, at_most, traceconv
from tests.benchmarks.judge import judge
from tests.benchmarks.to_pftrace import OURS

AWK = "mawk"

_START_US = 1795244023916781
_CHANNELS = (16, 32, 64, 128, 256, 512)
_SIZES = (56, 28, 14, 7)
_HEAD = """\
onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71049cd69a3df32adcccb623b12cd7baa22)
onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2
onednn_verbose,v1,info,cpu,isa:Intel AVX10.1 and Intel AMX with bfloat16, float16 and 8-bit integer support
onednn_verbose,v1,info,gpu,runtime:none
onednn_verbose,v1,primitive,info,template:timestamp,operation,engine,primitive,implementation,prop_kind,\
memory_descriptors,attributes,auxiliary,problem_desc,exec_time
"""


def generate(path: Path, count: int, *, seed: int = 1) -> None:
    """Write a log with `count` exec lines, the same for the same seed."""
    rng = random.Random(seed)
    layers = list(_layers())
    typical_us = [rng.choice((3, 12, 45, 180, 700, 2500, 7300)) * rng.uniform(0.7, 1.4) for _ in layers]
    now = _START_US
    with path.open("w") as file:
        file.write(_HEAD)
        for number in range(count):
            layer = number % len(layers)
            took = max(1, round(rng.lognormvariate(0, 0.06) * typical_us[layer]))
            start, end = now / 1000, (now + took) / 1000
            file.write(f"onednn_verbose,v1,{start:.6f},primitive,exec,cpu,{layers[layer]},{end - start:g}\n")
            now += took + rng.randrange(2, 60)


def _layers() -> list[str]:
    layers = []
    for channels in _CHANNELS:
        for size in _SIZES:
            inner = f"mb4_ic{channels}oc{channels}_ih{size}oh{size}kh3sh1dh0ph1_iw{size}ow{size}kw3sw1dw0pw1"
            layers += [
                "reorder,jit:uni,undef,src:f32::blocked:abcd::f0 dst:f32::blocked:ABcd16b16a::f0,attr-scratchpad:user,,"
                f"{channels}x{channels}x3x3",
                "convolution,jit:avx512_core,forward_training,src:f32:a:blocked:aBcd16b::f0 "
                "wei:f32:a:blocked:ABcd16b16a::f0 bia:f32:a:blocked:a::f0 dst:f32:a:blocked:aBcd16b::f0,"
                f"attr-scratchpad:user,alg:convolution_direct,{inner}",
                "reorder,jit:blk,undef,src:f32::blocked:aBcd16b::f0 dst:f32::blocked:abcd::f0,attr-scratchpad:user,,"
                f"4x{channels}x{size}x{size}",
                "eltwise,jit:avx512_core,forward_training,data:f32::blocked:abcd::f0,,"
                f"alg:eltwise_relu alpha:0 beta:0,4x{channels}x{size}x{size}",
            ]
        layers.append(
            "matmul,brg:avx512_core,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ba::f0 dst:f32::blocked:ab::f0,"
            f"attr-scratchpad:user,,64x{channels}:{channels}x1000"
        )
    return layers


def _prepare(folder: Path, count: int) -> Race:
    source, output = folder / "onednn.log", folder / "onednn.pftrace"
    generate(source, count)
    contestants = {OURS: Contestant(traceconv("convert", source, "-o", output), output)}
    absent = {}
    awk = shutil.which("mawk")
    if awk:
        contestants[AWK] = Contestant([awk, "-F,", "/exec/ {s+=$NF} END {print s}", str(source)])
    else:
        absent[AWK] = "there is no mawk"
    inputs = f"{count:,} exec lines, {source.stat().st_size / 1e6:.1f} MB"
    return Race(contestants, inputs, absent=absent, verify=partial(_verify, output, count))


def _verify(output: Path, count: int) -> list[str]:
    seen = judge(output)
    if seen.slices != count:
        raise Wrong(f"{output.name} shows {seen.slices} slices, the input has {count} lines")
    return [f"{output.name}: {output.stat().st_size / 1e6:.1f} MB, {seen}"]


ONEDNN = Work(
    name="onednn",
    title="oneDNN verbose to pftrace",
    goals=(at_most(6, OURS, AWK, "≤ 6 × mawk that sums one column"),),
    events=1_000_000,
    small=500_000,  # of which starting is a small part, as of the whole size
    prepare=_prepare,
)
