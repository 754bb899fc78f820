"""Records a small training run on a GPU with the PyTorch profiler; needs PyTorch alone.

    python tests/record_gpu/train.py KIND FOLDER

writes `KIND.json`, its sums (`KIND.key_averages.json`), and the tables that PyTorch prints, by several columns
(`KIND.table.COLUMN.txt`). Four steps are recorded, after two others. KIND is one of

    plain      host and device
    full       besides shapes, memory, Python calls, operations and modules
    cuda_only  the device alone
    late       as plain, but the program sleeps 2 ms in each step
    graph      the forward pass is replayed as a CUDA graph

Without a GPU it records the host alone, and cannot do `graph`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 32
LATE_S = 0.002
_COLUMNS = ("cpu_time_total", "device_time_total", "self_cuda_time_total")
_SUMS = ("count", "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")


class Net(nn.Module):
    """Two convolutions, a layer of a transformer and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        convolve = nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()
        self.conv = nn.Sequential(*convolve, nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU())
        self.encoder = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.head = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores of the classes."""
        tokens = self.conv(images).flatten(2).transpose(1, 2)
        scores: torch.Tensor = self.head(self.encoder(tokens).mean(1))
        return scores


def main(kind: str, folder: str) -> None:
    """Record one kind."""
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    everything = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}
    options: dict[str, Any] = {**everything, "with_modules": True} if kind == "full" else {}
    options["activities"] = activities[1:] if kind == "cuda_only" else activities
    step = replaying() if kind == "graph" else training(LATE_S if kind == "late" else 0)
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    with profile(schedule=schedule(wait=1, warmup=1, active=4), **options) as profiled:
        for _ in range(6):
            step()
            profiled.step()
    profiled.export_chrome_trace(str(to / f"{kind}.json"))
    sums = profiled.key_averages()
    rows = [
        {"key": row.key, "device_type": str(row.device_type)} | {at: getattr(row, at) for at in _SUMS} for row in sums
    ]
    (to / f"{kind}.key_averages.json").write_text(json.dumps(rows))
    for column in _COLUMNS:
        text = sums.table(sort_by=column, row_limit=-1, max_name_column_width=200)
        (to / f"{kind}.table.{column}.txt").write_text(text)


def training(late_s: float) -> Any:
    """Return a step of training; a batch is made on a stream of its own."""
    net, classes = Net().to(DEVICE), torch.randint(10, (BATCH,), device=DEVICE)
    optimizer = torch.optim.AdamW(net.parameters())
    images = torch.randn(BATCH, 3, 32, 32)
    images = images.pin_memory() if DEVICE == "cuda" else images
    loading = torch.cuda.Stream() if DEVICE == "cuda" else None

    def step() -> None:
        with record_function("## load batch ##"), torch.cuda.stream(loading):  # type: ignore[arg-type]
            batch = images.to(DEVICE, non_blocking=True)
            batch = (batch - batch.mean()) / batch.std()
        if loading is not None:
            torch.cuda.current_stream().wait_stream(loading)
        optimizer.zero_grad()
        with record_function("## forward ##"):
            loss = nn.functional.cross_entropy(net(batch), classes)
        with record_function("## backward ##"):
            loss.backward()
        with record_function("## optimizer ##"):
            optimizer.step()
        time.sleep(late_s)

    return step


def replaying() -> Any:
    """Return a step that replays a forward pass."""
    net = Net().to(DEVICE).eval()
    images, fixed = torch.randn(BATCH, 3, 32, 32).pin_memory(), torch.zeros(BATCH, 3, 32, 32, device=DEVICE)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        net(fixed)
        with torch.cuda.graph(graph):
            scores = net(fixed)

    def step() -> None:
        with record_function("## replay ##"):
            fixed.copy_(images, non_blocking=True)
            graph.replay()
        scores.sum().item()

    return step


if __name__ == "__main__":
    main(*sys.argv[1:])
