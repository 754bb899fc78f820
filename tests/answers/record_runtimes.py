"""Record a network whose layers have known numbers of operations, in three runtimes under `perf record`.

    python -m tests.answers.record_runtimes PYTHON RUNTIME FOLDER

runs the program of a runtime (onnxruntime, with onnx; torch; mxnet 1.9.1) with that interpreter, as `traceconv how`
says, and writes `profile.json.gz`, `perf.data.gz`, and `start_ns.txt` if the runtime tells when its profile starts.
`compare_runtimes` compares what was recorded.

Each program runs the layers of `GFLOP` in turn, 100 times. onnxruntime uses two threads, which sleep when they wait for
each other: if they spin, CPU time is that of waiting, most of all on a machine with other work. The others compute in
one thread: torch in that of the profile, mxnet in one that the profile does not name.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

#: 10^9 operations of a call; a multiplication with its addition counts as 2, padding as if it were computed.
#: A convolution has 3 x 3 weights for each pair of 64 input and 64 (or 32) output channels, on 96 x 96 places; a
#: product is of 600 x 600 and 600 x 600 (or 600 x 300) numbers.
GFLOP = {
    "conv": 2 * 3 * 3 * 64 * 64 * 96 * 96 / 1e9,
    "conv_half": 2 * 3 * 3 * 64 * 32 * 96 * 96 / 1e9,
    "product": 2 * 600 * 600 * 600 / 1e9,
    "product_half": 2 * 600 * 600 * 300 / 1e9,
}
ONNXRUNTIME = """
import os, numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
weights, nodes, outputs = [], [], []
for name, channels in (("conv", 64), ("conv_half", 32)):
    weights.append(numpy_helper.from_array(np.full((channels, 64, 3, 3), 0.01, np.float32), name + "_w"))
    nodes.append(helper.make_node("Conv", ["x", name + "_w"], [name], name=name, kernel_shape=[3, 3], pads=[1] * 4))
    outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 96, 96]))
for name, columns in (("product", 600), ("product_half", 300)):
    weights.append(numpy_helper.from_array(np.full((600, columns), 0.01, np.float32), name + "_w"))
    nodes.append(helper.make_node("MatMul", ["a", name + "_w"], [name], name=name))
    outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [600, columns]))
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 96, 96]),
          helper.make_tensor_value_info("a", TensorProto.FLOAT, [600, 600])]
model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, weights),
                          opset_imports=[helper.make_opsetid("", 13)])
model.ir_version = 8
options = ort.SessionOptions()
options.enable_profiling = True
options.intra_op_num_threads = 2
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
fed = {"x": np.ones((1, 64, 96, 96), np.float32), "a": np.ones((600, 600), np.float32)}
for _ in range(100):
    session.run(None, fed)
open("start_ns.txt", "w").write(str(session.get_profiling_start_time_ns()))
os.rename(session.end_profiling(), "profile.json")
"""
TORCH = """
import torch
torch.set_num_threads(1)
x, a = torch.ones(1, 64, 96, 96), torch.ones(600, 600)
weights = {"conv": torch.ones(64, 64, 3, 3), "conv_half": torch.ones(32, 64, 3, 3)}
others = {"product": torch.ones(600, 600), "product_half": torch.ones(600, 300)}
def step():
    for name, w in weights.items():
        with torch.profiler.record_function(name):
            torch.nn.functional.conv2d(x, w, padding=1)
    for name, b in others.items():
        with torch.profiler.record_function(name):
            a @ b
with torch.no_grad():
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        for _ in range(100):
            step()
prof.export_chrome_trace("profile.json")
"""
MXNET = """
import mxnet as mx
mx.profiler.set_config(profile_all=True, filename="profile.json")
x, a = mx.nd.ones((1, 64, 96, 96)), mx.nd.ones((600, 600))
weights = {"conv": mx.nd.ones((64, 64, 3, 3)), "conv_half": mx.nd.ones((32, 64, 3, 3))}
others = {"product": mx.nd.ones((600, 600)), "product_half": mx.nd.ones((600, 300))}
domain = mx.profiler.Domain("network")
tasks = {name: domain.new_task(name) for name in (*weights, *others)}
def run(name):
    if name in weights:
        w = weights[name]
        y = mx.nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=w.shape[0], no_bias=True)
    else:
        y = mx.nd.dot(a, others[name])
    y.wait_to_read()
for name in tasks:
    run(name)
mx.profiler.set_state("run")
for _ in range(100):
    for name, task in tasks.items():
        task.start()
        run(name)
        task.stop()
mx.profiler.set_state("stop")
mx.profiler.dump()
"""
PROGRAMS = {"onnxruntime": ONNXRUNTIME, "torch": TORCH, "mxnet": MXNET}
RECORD = ["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-F", "1999", "-e", "cpu-clock", "-o", "perf.data"]


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
