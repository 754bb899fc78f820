"""Records a run that both a framework's profiler and oneDNN watch, with the truth about their clocks.

    python tests/benchmarks/alignment/record.py KIND NAME

runs a model on the CPU and writes `recordings/NAME/`: the profiler's trace, and the log of oneDNN with its time stamps
and the output of the programme between them, both packed; and what is known of their clocks into
`recordings/truth.json`. It needs the framework alone, whose oneDNN must print time stamps; Python 3.8 will do.

KIND is the model. With PyTorch: `convnet` (trained, images of varied sizes), `resnet` (a residual network, trained,
images of one size), `transformer` (bfloat16, sequences of varied lengths), `encoder` (the same, sequences of one
length), `lstm`, `steady` (a small convolutional network that always does the same), `chain` (60 equal convolutions, one
right after the other). With MXNet: `mxnet` (a convolutional network, images of varied sizes).

oneDNN prints gettimeofday, which is CLOCK_REALTIME, and so does MXNet. The profiler of PyTorch takes the counter of the
CPU and converts it to wall time, which may be off. So the programme often does next to nothing in an annotated range,
and reads CLOCK_REALTIME just before it, within it and after it: the start of the range lies between the first two
readings, its end between the last two. All these bounds together leave a tenth of a microsecond.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, List, Tuple  # noqa: UP035

FOLDER = Path(__file__).parent / "recordings"
TRACE, LOG, READINGS = "kineto_trace.json", "onednn_verbose_with_program_output.log", "readings.json"
MXNET, DNNL = "mxnet_profile.json", "dnnl_verbose.log"
ITERATIONS = {
    "convnet": 60, "resnet": 20, "transformer": 40, "encoder": 40, "lstm": 100, "steady": 100, "chain": 5, "mxnet": 100,
}  # fmt: skip
_MARK = "clock reading"
_MARKS_PER_ITERATION = 8
_GETTIMEOFDAY = "unix milliseconds from gettimeofday, each cut to 1 us and printed from a double, which rounds it"
_ROUNDING_NS = 123

Readings = List[Tuple[int, int, int, int]]  # noqa: UP006 (MXNet runs on Python 3.8 at most)


def main() -> None:
    """Run the programme under its tools, then pack what they wrote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=tuple(ITERATIONS))
    parser.add_argument("name", help="of the recording: a folder in recordings/")
    parser.add_argument("--seed", type=int, default=0, help="of the sizes and the pauses")
    parser.add_argument("--iterations", type=int, help="how often the model runs; a number for each kind if not given")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="instead of recordings/")
    parser.add_argument("--run-in", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    iterations = args.iterations or ITERATIONS[args.kind]
    if args.run_in:
        profiled = mxnet_profiled if args.kind == "mxnet" else torch_profiled
        profiled(args.kind, iterations, random.Random(args.seed), args.run_in)
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        library, log, keep = ("DNNL", DNNL, keep_mxnet) if args.kind == "mxnet" else ("ONEDNN", LOG, keep_torch)
        verbose = {"DNNL": "1", "ONEDNN": "profile_exec"}[library]
        settings = {f"{library}_VERBOSE": verbose, f"{library}_VERBOSE_TIMESTAMP": "1"}
        again = ["--seed", str(args.seed), "--iterations", str(iterations), "--run-in", made]
        command = [sys.executable, __file__, args.kind, args.name, *again]
        with (folder / log).open("wb") as printed:
            subprocess.run(command, env={**os.environ, **settings}, stdout=printed, check=True)
        keep(folder, args.name, args.kind, args.folder)


def mxnet_profiled(_kind: str, iterations: int, rng: random.Random, folder: Path) -> None:
    """The recorded programme with MXNet."""
    import mxnet
    from mxnet import gluon, nd, profiler

    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(20, 5, activation="relu"), gluon.nn.MaxPool2D(2, 2), gluon.nn.Conv2D(50, 3),
        gluon.nn.BatchNorm(), gluon.nn.Conv2D(32, 3), gluon.nn.GlobalAvgPool2D(), gluon.nn.Dense(10),
    )  # fmt: skip
    net.initialize()
    profiler.set_config(profile_imperative=True, profile_symbolic=True, filename=str(folder / MXNET))
    for number in range(3 + iterations):
        if number == 3:
            profiler.set_state("run")
        size, batch = rng.choice((24, 32, 40, 48)), rng.choice((2, 4, 8))
        net(nd.random.uniform(shape=(batch, 3, size, size))).wait_to_read()
        time.sleep(0.002 + rng.expovariate(200.0))
    nd.waitall()
    profiler.set_state("stop")
    profiler.dump()
    (folder / READINGS).write_text(json.dumps({"mxnet": mxnet.__version__}), encoding="utf-8")


def torch_profiled(kind: str, iterations: int, rng: random.Random, folder: Path) -> None:
    """The recorded programme with PyTorch."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(0)
    torch.set_num_threads(1)
    step = _step(kind, torch, rng)
    for _ in range(3):
        step()
    readings: Readings = []
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for number in range(iterations):
            print(f"[{time.monotonic():12.6f}] step {number}", flush=True)
            step()
            readings += _readings(torch)
            time.sleep(0.002 + rng.expovariate(200.0))
    profiler.export_chrome_trace(str(folder / TRACE))
    told = {"torch": torch.__version__, "readings": readings}
    (folder / READINGS).write_text(json.dumps(told), encoding="utf-8")


def _step(kind: str, torch: Any, rng: random.Random) -> Callable[[], None]:
    """One iteration of a model."""
    nn = torch.nn
    if kind == "convnet":
        model = nn.Sequential(
            nn.Conv2d(3, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, 3), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10),
        )  # fmt: skip
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train() -> None:
            size, batch = rng.choice((24, 32, 40, 48, 64)), rng.choice((2, 4, 8))
            optimizer.zero_grad()
            out = model(torch.rand(batch, 3, size, size))
            nn.functional.cross_entropy(out, torch.randint(0, 10, (batch,))).backward()
            optimizer.step()

        return train
    if kind == "resnet":
        return _residual_training(torch)
    if kind in ("transformer", "encoder"):
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).bfloat16().train()

        def encode() -> None:
            with torch.no_grad():
                encoder(torch.rand(2, rng.randrange(8, 200) if kind == "transformer" else 96, 128).bfloat16())

        return encode
    if kind == "lstm":
        lstm = nn.LSTM(64, 64, num_layers=2, bidirectional=True).eval()

        def recur() -> None:
            with torch.no_grad():
                lstm(torch.rand(rng.randrange(4, 24), 4, 64))

        return recur
    if kind == "chain":
        chain, images = nn.Sequential(*(nn.Conv2d(16, 16, 3, padding=1) for _ in range(60))), torch.rand(4, 16, 32, 32)

        def follow() -> None:
            with torch.no_grad():
                chain(images)

        return follow
    steady = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Conv2d(64, 32, 3)).eval()
    image = torch.rand(4, 3, 40, 40)

    def infer() -> None:
        with torch.no_grad():
            steady(image)

    return infer


def _residual_training(torch: Any) -> Callable[[], None]:
    """One step of training a residual network on images of one size."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return torch.relu(x + self.body(x))

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), Block(16), nn.Conv2d(16, 32, 3, stride=2), Block(32), Block(32),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images, classes = torch.rand(4, 3, 32, 32), torch.randint(0, 10, (4,))

    def train() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), classes).backward()
        optimizer.step()

    return train


def _readings(torch: Any) -> Readings:
    """CLOCK_REALTIME before, twice within and after an annotated range, several times."""
    found: Readings = []
    clock, which = time.clock_gettime_ns, time.CLOCK_REALTIME
    marked = torch._C._profiler._RecordFunctionFast(_MARK)
    for _ in range(_MARKS_PER_ITERATION):
        before = clock(which)
        with marked:
            first = clock(which)
            last = clock(which)
        found.append((before, first, last, clock(which)))
    return found


def keep_torch(folder: Path, name: str, kind: str, recordings: Path) -> None:
    """Pack the files, and note what the readings say about their clocks."""
    told = json.loads((folder / READINGS).read_text(encoding="utf-8"))
    trace = json.loads((folder / TRACE).read_text(encoding="utf-8"))
    low, high = clock_error(trace, told["readings"])
    how = (
        f"PyTorch {told['torch']}, {kind}, one thread: baseTimeNanoseconds and {(low + high) // 2} ns, "
        f"the middle of what {len(told['readings'])} annotated ranges around readings of CLOCK_REALTIME allow"
    )
    zero = int(trace["baseTimeNanoseconds"]) + (low + high) // 2
    noted = [pack(folder / TRACE, recordings / name, zero, abs(high - low) // 2 + 1, how)]
    noted.append(pack(folder / LOG, recordings / name, 0, _ROUNDING_NS, _GETTIMEOFDAY))
    note(recordings, name, noted)


def keep_mxnet(folder: Path, name: str, kind: str, recordings: Path) -> None:
    """Pack the files; both are in wall time."""
    told = json.loads((folder / READINGS).read_text(encoding="utf-8"))
    how = f"MXNet {told['mxnet']}: unix microseconds of CLOCK_REALTIME"
    noted = [pack(folder / MXNET, recordings / name, 0, 0, how)]
    noted.append(pack(folder / DNNL, recordings / name, 0, _ROUNDING_NS, _GETTIMEOFDAY))
    note(recordings, name, noted)


def pack(file: Path, target: Path, zero_ns: int, uncertainty_ns: int, how: str) -> dict[str, Any]:
    """Pack a file into a folder; its entry in the file of truths."""
    target.mkdir(parents=True, exist_ok=True)
    packed = target / f"{file.name}.gz"
    with file.open("rb") as source, packed.open("wb") as to, gzip.GzipFile("", "wb", 9, to, mtime=0) as writer:
        shutil.copyfileobj(source, writer)
    return {
        "file": packed.name,
        "from": f"{target.name}/{packed.name}",
        "zero_ns": zero_ns,
        "uncertainty_ns": uncertainty_ns,
        "how": how,
    }


def note(recordings: Path, name: str, files: list[dict[str, Any]]) -> None:
    """Put what is known into the file of truths."""
    path = recordings / "truth.json"
    truth = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"recordings": {}}
    truth["recordings"][name] = files
    path.write_text(json.dumps(truth, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{name}: {files[0]['how']}, wrong by no more than {files[0]['uncertainty_ns']} ns")


def clock_error(trace: dict[str, Any], readings: Readings) -> tuple[int, int]:
    """What is to be added to the times of the profiler to get CLOCK_REALTIME, ns: from, to.

    The two cross if the error changed on the way; then they are the least and the greatest that a reading asks for.

    Raises:
        ValueError: the trace has not one range for each group of readings.
    """
    zero = int(trace["baseTimeNanoseconds"])
    marks = sorted(
        (zero + round(event["ts"] * 1e3), zero + round((event["ts"] + event["dur"]) * 1e3))
        for event in trace["traceEvents"]
        if event["name"] == _MARK and event["ph"] == "X"
    )
    if len(marks) != len(readings):
        raise ValueError(f"{len(marks)} ranges for {len(readings)} readings")
    low, high = [], []
    for (begin, end), (before, first, last, after) in zip(marks, readings, strict=True):
        low += [before - begin, last - end]
        high += [first - begin, after - end]
    return min(max(low), min(high)), max(max(low), min(high))


if __name__ == "__main__":
    main()
