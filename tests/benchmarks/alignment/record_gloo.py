"""Records ranks of a gloo job on this machine, a Kineto trace each, so that the truth about their clocks is 0.

    python tests/benchmarks/alignment/record_gloo.py KIND RANKS [FOLDER]

writes `recordings/gloo_KIND_RANKS/rank0.json.gz` and so on. It needs PyTorch alone. KIND is what the ranks do in each
of 40 steps, between uneven work: `mixed` (all_reduce, also asynchronous, at times a barrier, an all_gather, a message),
`async` (only asynchronous all_reduce, two at a time), `broadcast`, `reduce` (only these). Of the events those of
torch.distributed are kept.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "recordings"
_STEPS = 40
_KEPT = ("gloo:", "c10d::")
_PORT = "29677"


def main(kind: str, ranks: str, folder: str = str(FOLDER)) -> None:
    """Run the ranks and pack what they wrote."""
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, __file__, "--run", kind, ranks, made]
        running = [subprocess.Popen([*command, str(rank)]) for rank in range(int(ranks))]
        assert not any(process.wait() for process in running)
        to = Path(folder) / f"gloo_{kind}_{ranks}"
        to.mkdir(parents=True, exist_ok=True)
        for rank in range(int(ranks)):
            trace = json.loads((Path(made) / f"rank{rank}.json").read_text())
            events = trace["traceEvents"]
            trace["traceEvents"] = [one for one in events if one["ph"] == "M" or one["name"].startswith(_KEPT)]
            trace["traceName"] = f"rank{rank}.json"
            packed = gzip.compress(json.dumps(trace).encode(), mtime=0)
            (to / f"rank{rank}.json.gz").write_bytes(packed)


def run(kind: str, ranks: int, folder: str, rank: int) -> None:
    """Do the work of one rank under the profiler."""
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _PORT, "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    uneven = random.Random(rank)
    data, matrix = torch.randn(1 << 16), torch.randn(200, 200)
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        for step in range(_STEPS):
            for _ in range(uneven.randrange(1, 20)):
                matrix @ matrix
            if kind == "broadcast":
                dist.broadcast(data, 0)
            elif kind == "reduce":
                dist.reduce(data, 0)
            elif kind == "async":
                works = [dist.all_reduce(part, async_op=True) for part in (data, data[:1000].clone())]
                matrix @ matrix
                for work in works:
                    work.wait()
            else:
                _mixed(step, rank, ranks, data)
    profiled.export_chrome_trace(f"{folder}/rank{rank}.json")
    dist.destroy_process_group()


def _mixed(step: int, rank: int, ranks: int, data: object) -> None:
    """Do what a training step may do."""
    import torch
    import torch.distributed as dist

    assert isinstance(data, torch.Tensor)
    dist.all_reduce(data)
    if step % 4 == 0:
        dist.barrier()
    if step % 5 == 0:
        dist.all_gather([torch.zeros(1000) for _ in range(ranks)], torch.ones(1000) * rank)
    if step % 3 == 0 and rank < 2:
        (dist.send if rank == 0 else dist.recv)(data[:1000], 1 - rank)
    dist.all_reduce(data, async_op=True).wait()


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        run(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        main(*sys.argv[1:])
