"""Records ranks that communicate by NCCL on one GPU, a Kineto trace each, so that the truth about their clocks is 0.

    python tests/record_gpu/ranks.py RANKS FOLDER

writes `nccl_rank0.json` and so on; needs PyTorch with NCCL. NCCL refuses two ranks on one device of a host, so each
rank states a host of its own (NCCL_HOSTID), and they communicate by sockets. The processes take turns on the GPU, about
2 ms each, so that most collectives last as long as a turn or two.

In each step a rank does these: all_reduce of 1 MB while the program sleeps up to 4 ms, then all_gather, all_reduce in a
group of two ranks, reduce_scatter, all_to_all, broadcast, a message from each even rank to the next one, barrier. The
sleeps are drawn from `random.Random(rank)`: 3 steps come before the profiler starts, and of 10 others it records 8.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

_PORT = "29688"
_BEFORE, _STEPS = 3, 10
_SLEEP_S = 0.004


def main(ranks: str, folder: str) -> None:
    """Run the ranks."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    running = []
    for rank in range(int(ranks)):
        nccl = {"NCCL_HOSTID": f"host{rank}", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo"}
        command = [sys.executable, __file__, "--run", ranks, folder, str(rank)]
        running.append(subprocess.Popen(command, env={**os.environ, **nccl}))
    codes = [process.wait() for process in running]
    assert not any(codes)


def run(ranks: int, folder: str, rank: int) -> None:
    """Do the work of one rank under the profiler."""
    import torch
    import torch.distributed as dist
    from torch.profiler import profile, record_function, schedule

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _PORT}
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    pairs = [dist.new_group([first, first + 1]) for first in range(0, ranks, 2)]
    pair, uneven = pairs[rank // 2], random.Random(rank)
    large, matrix = torch.ones(1 << 18, device="cuda"), torch.randn(512, 512, device="cuda")
    part, whole = torch.ones(4096, device="cuda"), torch.ones(4096 * ranks, device="cuda")

    def step() -> None:
        with record_function("## compute ##"):
            for _ in range(10):
                torch.tanh(matrix @ matrix)
        work = dist.all_reduce(large, async_op=True)
        with record_function("## overlap ##"):
            for _ in range(10):
                matrix @ matrix
        time.sleep(uneven.random() * _SLEEP_S)
        work.wait()
        dist.all_gather(list(whole.chunk(ranks)), part)
        dist.all_reduce(part, group=pair)
        dist.reduce_scatter_tensor(part, whole)
        dist.all_to_all_single(whole, whole.clone())
        dist.broadcast(part, 0)
        if rank % 2 == 0:
            dist.send(part, rank + 1)
        else:
            dist.recv(part, rank - 1)
        dist.barrier()
        large.mul_(1 / ranks)

    for _ in range(_BEFORE):
        step()
    with profile(schedule=schedule(wait=1, warmup=1, active=_STEPS - 2)) as profiled:
        for _ in range(_STEPS):
            step()
            profiled.step()
    profiled.export_chrome_trace(f"{folder}/nccl_rank{rank}.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        run(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        main(*sys.argv[1:])
