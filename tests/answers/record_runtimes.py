"""Record networks whose layers are known to cost equally much, or with a known ratio, under `perf record`.

    python -m tests.answers.record_runtimes PYTHON RUNTIME FOLDER

runs the program of a runtime (onnxruntime, with onnx; torch; mxnet 1.9.1) with that interpreter, as `traceconv how`
says, and writes `profile.json.gz`, `perf.data.gz`, and `start_ns.txt` if the runtime tells when its profile starts.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

#: Three equal convolutions, one with a quarter of their channels, and a softmax, on two threads.
ONNXRUNTIME = """
import os, numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
weights, nodes, x = [], [], "x"
for name, channels in (("conv_a", 64), ("conv_b", 64), ("conv_c", 64), ("conv_quarter", 16)):
    weights.append(numpy_helper.from_array(np.full((channels, 64, 3, 3), 0.01, np.float32), name + "_w"))
    nodes.append(helper.make_node("Conv", [x, name + "_w"], [name], name=name, kernel_shape=[3, 3], pads=[1] * 4))
    x = name
nodes.append(helper.make_node("Softmax", [x], ["y"], name="softmax", axis=1))
shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 96, 96]) for n, c in (("x", 64), ("y", 16))]
model = helper.make_model(helper.make_graph(nodes, "g", shapes[:1], shapes[1:], weights),
                          opset_imports=[helper.make_opsetid("", 13)])
model.ir_version = 8
options = ort.SessionOptions()
options.enable_profiling = True
options.intra_op_num_threads = 2
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
for _ in range(60):
    session.run(None, {"x": np.ones((1, 64, 96, 96), np.float32)})
open("start_ns.txt", "w").write(str(session.get_profiling_start_time_ns()))
os.rename(session.end_profiling(), "profile.json")
"""
#: Three convolutions with 0.68 GFLOP each and two products of matrices with 0.43 GFLOP each.
TORCH = """
import torch
torch.set_num_threads(2)
x, w, a = torch.ones(1, 64, 96, 96), torch.ones(64, 64, 3, 3), torch.ones(600, 600)
def step():
    for _ in range(3):
        torch.nn.functional.conv2d(x, w, padding=1)
    for _ in range(2):
        a @ a
with torch.no_grad():
    step()
    with torch.profiler.profile() as prof:
        for _ in range(40):
            step()
prof.export_chrome_trace("profile.json")
"""
MXNET = """
import mxnet as mx
mx.profiler.set_config(profile_all=True, filename="profile.json")
x, w, a = mx.nd.ones((1, 64, 96, 96)), mx.nd.ones((64, 64, 3, 3)), mx.nd.ones((600, 600))
def step():
    for _ in range(3):
        mx.nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True).wait_to_read()
    for _ in range(2):
        mx.nd.dot(a, a).wait_to_read()
step()
mx.profiler.set_state("run")
for _ in range(40):
    step()
mx.profiler.set_state("stop")
mx.profiler.dump()
"""
PROGRAMS = {"onnxruntime": ONNXRUNTIME, "torch": TORCH, "mxnet": MXNET}
RECORD = ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-F", "499", "-e", "cpu-clock", "-o", "perf.data"]


def main(python: str, runtime: str, folder: Path) -> None:
    """Record into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "run.py").write_text(PROGRAMS[runtime], encoding="utf-8")
        subprocess.run([*RECORD, "--", python, "run.py"], cwd=work, check=True)
        for name in ("profile.json", "perf.data"):
            with gzip.GzipFile(folder / f"{name}.gz", "wb", mtime=0) as packed:
                packed.write((Path(work) / name).read_bytes())
        if (Path(work) / "start_ns.txt").exists():
            (folder / "start_ns.txt").write_bytes((Path(work) / "start_ns.txt").read_bytes())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
