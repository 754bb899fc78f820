"""Record layers whose CPU time and page faults are known: a process with two workers, under `perf record`.

    python -m tests.answers.record_layers FOLDER

writes `perf.data.gz`, `profile.json` (the layers, on the wall clock) and `truth.json`: for each layer the CPU time (ns)
and the minor page faults of all threads, as the kernel counts them for each thread. The workers have no slices.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import mmap
import queue
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_BUFFER = bytes(1 << 20)
_PAGE = mmap.PAGESIZE
RECORD = ["perf", "record", "-k", "CLOCK_MONOTONIC", "-F", "2000", "-e", "cpu-clock", "-e", "page-faults/period=10/"]


def hashing(times: int) -> None:
    """Use the CPU without the lock of the interpreter."""
    for _ in range(times):
        hashlib.sha1(_BUFFER).digest()


def touching(pages: int) -> None:
    """Let the kernel bring in so many pages."""
    with mmap.mmap(-1, pages * _PAGE) as area:
        area.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, pages * _PAGE, _PAGE):
            area[at] = 1


class _Layers:
    """The layers that run, and what they cost."""

    def __init__(self) -> None:
        self.events: list[dict[str, object]] = []
        self.truth: dict[str, list[int]] = {}
        self.open: list[str] = []
        self.tasks: queue.SimpleQueue[tuple[str, Callable[[], None]]] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.start = time.time_ns()
        for _ in range(2):
            threading.Thread(target=self._worker, daemon=True).start()

    def _costs(self, name: str, work: Callable[[], None]) -> None:
        before = time.thread_time_ns(), resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        work()
        known = self.truth.setdefault(name, [0, 0])
        known[0] += time.thread_time_ns() - before[0]
        known[1] += resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before[1]

    def _worker(self) -> None:
        while True:
            self._costs(*self.tasks.get())
            self.done.put(None)

    def layer(self, name: str, own: Callable[[], None], of_workers: Callable[[], None], workers: int = 2) -> None:
        """Run a layer: its own work, while workers do theirs."""
        start = time.time_ns()
        for _ in range(workers):
            self.tasks.put((name, of_workers))
        self._costs(name, own)
        for _ in range(workers):
            self.done.get()
        times = {"ts": (start - self.start) / 1000, "dur": (time.time_ns() - start) / 1000}
        self.events.append({"ph": "X", "name": name, "cat": "layer", "pid": 0, "tid": 0} | times)


def run() -> None:
    """Run the layers, and write what they were and what they cost."""
    layers = _Layers()
    for _ in range(22):
        layers.layer("conv", lambda: hashing(10), lambda: hashing(60))
        layers.layer("pool", lambda: hashing(40), lambda: None, 0)
        layers.layer("concat", lambda: touching(2000), lambda: touching(700))
        layers.layer("dense", lambda: None, lambda: hashing(80), 1)
        layers.layer("wait", lambda: time.sleep(0.01), lambda: None, 0)
        hashing(20)
    pid, tid = threading.get_native_id(), threading.get_native_id()
    events = [event | {"pid": pid, "tid": tid} for event in layers.events]
    profile = {"baseTimeNanoseconds": layers.start, "traceEvents": events}
    Path("profile.json").write_text(json.dumps(profile), encoding="utf-8")
    Path("truth.json").write_text(json.dumps(layers.truth, indent=1) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    """Record into a folder."""
    script = [sys.executable, "-c", "from tests.answers.record_layers import run; run()"]
    root = Path(__file__).resolve().parents[2]
    subprocess.run([*RECORD, "-o", "perf.data", *script], cwd=folder, check=True, env={"PYTHONPATH": str(root)})
    data = folder / "perf.data"
    with gzip.GzipFile(folder / "perf.data.gz", "wb", mtime=0) as packed:
        packed.write(data.read_bytes())
    data.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
