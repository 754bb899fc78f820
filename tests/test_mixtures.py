"""Chrome traces of all phases in random order: with and without the kernel, the same is read, said and written."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests import kernels
from tests.commands import run
from traceconv import kernel

needs_kernel = pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled")

#: What makes a trace one of Chrome, of TensorFlow, of PyTorch.
_HEADS = {"chrome": {}, "tensorflow": {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}}}
_HEADS["pytorch"] = {"schemaVersion": 1}
_ARGS: list[Any] = [
    {"value": 1},
    {"s": 2, "b": 1},
    {"n": "12"},
    {"step_num": "3"},
    {"flow": "9"},
    {"_p": "1", "_pt": "2"},
]
_ARGS += [{"x": {"y": [1]}}, {"t": 'a"b'}, [], None]
#: More than the scanner reads at once.
_SEVERAL_BATCHES = 17_000


def _event(source: random.Random, number: int) -> dict[str, Any]:
    """An event whose texts, thread and id are known ones, or new ones."""
    phase = source.choice("XXXXXBEiIRCstfbenSFMPvZ(")
    event: dict[str, Any] = {"ph": phase, "pid": source.choice([1, 2, "1", "p", 701]), "tid": source.randrange(4)}
    event["name"] = source.choice([f"n{source.randrange(8)}", f"alone {number}", 'q"x', "é\\n", ""])
    event["cat"] = source.choice(["c", f"c{source.randrange(4)}", f"alone {number}", "operator", "kernel", "cpu_op"])
    event["ts"] = source.choice([10 * number, 10 * number + 0.5, source.randrange(1000)])
    if phase == "X" and source.random() < 0.95:
        event["dur"] = source.choice([0, 5, 8.25, 30])
    if phase in "stfbenSF(":
        event["id"] = source.choice([source.randrange(5), hex(number)])
    if phase == "f" and source.random() < 0.5:
        event["bp"] = "e"
    if source.random() < 0.5:
        event["args"] = source.choice([*_ARGS, {"a": number}, {"correlation": number}, {f"key {number}": number}])
    if source.random() < 0.03:
        event["extra"] = 1
    return event


@needs_kernel
@pytest.mark.parametrize("head", _HEADS)
@pytest.mark.parametrize(("seed", "events"), [*((seed, 20 << seed) for seed in range(5)), (6, _SEVERAL_BATCHES)])
def test_mixtures_of_phases(head: str, seed: int, events: int, tmp_path: Path) -> None:
    source = random.Random(f"{head} {seed}")
    made = {"ph": "X", "name": "made", "cat": "c", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    document = {**_HEADS[head], "traceEvents": [made, *(_event(source, number) for number in range(events))]}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    results = []
    for folder in ("with", "without"):
        output = tmp_path / folder / "trace.pftrace"
        output.parent.mkdir()
        if folder == "with":
            result = run("convert", path, "-o", output)
        else:
            with kernels.without():
                result = run("convert", path, "-o", output)
        said = result.stdout.replace(str(output), "OUTPUT"), result.stderr.replace(str(output), "OUTPUT")
        results.append((result.returncode, said, output.read_bytes()))
    assert results[0] == results[1]
    assert results[0][0] == 0
