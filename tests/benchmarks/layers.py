"""What it costs to say which layer each sample belongs to: `python -m tests.benchmarks.layers [SAMPLES]`.

A Kineto profile with half as many slices as samples, on eight threads, and text of `perf script` with samples of these
and of eight workers are generated, read, merged and attributed. CPU seconds of each are printed; the exit code is 1 if
the section on layers, or what `merge --attribute` does and writes more than `merge`, costs more than reading.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import traceconv
from traceconv import Constraints, Questions

_THREADS, _WORKERS, _PID = 8, 8, 100
_EPOCH_S = 1_790_000_000
_STEP_NS = 11_000  # from one outer slice of a thread to the next one


def generate(folder: Path, samples: int) -> list[Path]:
    """Write a profile and samples of the same time."""
    outer = samples // 2 // _THREADS // 5
    profile, script = folder / "kineto.json", folder / "perf.script.txt"
    names = [f"aten::op_{number}" for number in range(200)]
    with profile.open("w", encoding="utf-8") as sink:
        sink.write(f'{{"schemaVersion": 1, "baseTimeNanoseconds": {_EPOCH_S}000000000, "traceEvents": [\n')
        for thread in range(_THREADS):
            for number in range(outer):
                start = number * _STEP_NS
                inner = [(start + at * 2_000 + 100, 1_500) for at in range(4)]
                for at, (ts, dur) in enumerate([(start, 10_000), *inner]):
                    event = {"ph": "X", "cat": "cpu_op", "name": names[(number + at * 7) % len(names)], "pid": _PID}
                    event |= {"tid": _PID + thread, "ts": ts / 1000, "dur": dur / 1000}
                    sink.write(json.dumps(event) + ",\n")
        sink.write("{}]}\n")
    span = outer * _STEP_NS
    with script.open("w", encoding="utf-8") as sink:
        for number in range(samples):
            tid = _PID + number * 7 % (_THREADS + _WORKERS)
            ns = span * number // samples
            event = ("cycles", "instructions")[number % 2]
            sink.write(
                f"python {_PID}/{tid} [001] {_EPOCH_S + ns // 10**9}.{ns % 10**9:09}: {1000 + number % 7} {event}: \n"
            )
            sink.write(f"\t    7f00{number % 997:08x} function_{number % 997}+0x10 (/usr/lib/libwork.so)\n\n")
    return [profile, script]


def main(samples: int = 1_000_000) -> int:
    """Measure, print, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Constraints(same_machine=True)
        traceconv.report(generate(Path(folder), 1_000), constraints=constraints)  # loads the modules
        paths = generate(Path(folder), samples)
        begin = time.process_time()
        for path in paths:
            traceconv.read(path)
        reading = time.process_time() - begin
        begin = time.process_time()
        traceconv.report(paths, Questions(["overview"]), constraints=constraints)
        merged = time.process_time() - begin
        begin = time.process_time()
        (section,) = traceconv.report(paths, Questions(["layers"]), constraints=constraints)
        layers = time.process_time() - begin - merged
        writing = []
        for attribute in (False, True):
            begin = time.process_time()
            output = traceconv.Output(Path(folder) / f"{attribute}.pftrace", attribute=attribute)
            traceconv.merge(paths, output, constraints=constraints)
            writing.append(time.process_time() - begin)
        attributing = writing[1] - writing[0]
    counts = [row["samples"] for row in section.records()]
    print(f"{sum(counts)} samples, {sum(row['calls'] or 0 for row in section.records())} slices, {len(counts)} rows")
    print(f"CPU: reading {reading:.2f} s, reading and merging {merged:.2f} s, layers {layers:.2f} s")
    print(f"CPU: merge {writing[0]:.2f} s, --attribute {attributing:.2f} s more")
    print("\n".join(section.notes))
    return int(max(layers, attributing) > reading)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
