"""Cuts a Kineto trace to some of its events, each of which stays as it was recorded.

    python -m tests.record_gpu.cut full.json small.json --around "## load batch ##" 2
    python -m tests.record_gpu.cut rank0.json rank0.json.gz --communication [STEPS]

`--around NAME NUMBER` keeps the host events that share time with the NUMBERth range of this name, and the device work
that they start. `--communication` keeps collectives and messages, their launches and work, and the first STEPS steps.
Flows stay if they begin or end with a slice that stays, except where the slice at the other end does not. Metadata
stays; of `traceName` the file name.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_CALLS = ("cuda_runtime", "cuda_driver")
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_ABOUT = ("Trace", None)
_COMMUNICATION = ("nccl", "record_param_comms", "c10d::")
_STEP = "ProfilerStep#"


def main(source: str, target: str, how: str, *rest: str) -> None:
    """Write the cut trace, packed if the name says so."""
    document = json.loads(Path(source).read_text())
    events = document["traceEvents"]
    host = [one for one in events if one["ph"] in "Xi" and one.get("cat") not in (*_DEVICE, "gpu_user_annotation")]
    kept = _around(host, rest[0], int(rest[1])) if how == "--around" else _communicating(host, *map(int, rest))
    document["traceEvents"] = _with_what_follows(events, kept)
    document["traceName"] = Path(source).name
    text = json.dumps(document, separators=(",", ":")).replace('{"ph":', '\n{"ph":') + "\n"
    Path(target).write_bytes(gzip.compress(text.encode(), mtime=0) if target.endswith(".gz") else text.encode())


def _around(host: Sequence[Event], name: str, number: int) -> list[Event]:
    """Return the events that share time with a range of the program."""
    ranges = sorted((one["ts"], one["dur"]) for one in host if one["name"] == name)
    begin, dur = ranges[number - 1]
    return [one for one in host if one["ts"] <= begin + dur and one["ts"] + one.get("dur", 0) >= begin]


def _communicating(host: Sequence[Event], steps: int | None = None) -> list[Event]:
    """Return the communication in the first steps, and the calls directly in it."""
    all_steps = sorted((one for one in host if one["name"].startswith(_STEP)), key=lambda one: one["ts"])[:steps]
    end = all_steps[-1]["ts"] + all_steps[-1]["dur"]
    kept = [one for one in host if one["ts"] < end and one["name"].startswith(_COMMUNICATION)]
    ids = {one["args"]["External id"] for one in kept}
    calls = [one for one in host if one.get("cat") in _CALLS and one["args"].get("External id") in ids]
    launches = [one for one in calls if "Launch" in one["name"] and one["ts"] < end]
    return [*all_steps, *kept, *launches, *(one for one in host if one.get("cat") in _ABOUT)]


def _with_what_follows(events: Sequence[Event], kept: Iterable[Event]) -> list[Event]:
    """Return the kept events with the work that they start, the copies of ranges on devices, flows and metadata."""
    chosen = {id(one) for one in kept}
    args = [one.get("args", {}) for one in events if id(one) in chosen]
    calls = {one["correlation"] for one in args if "correlation" in one}
    ranges = {one["External id"] for one in args if "External id" in one}
    for one in events:
        followed = one.get("cat") in _DEVICE and one["args"].get("correlation") in calls
        if followed or (one.get("cat") == "gpu_user_annotation" and one["args"]["External id"] in ranges):
            chosen.add(id(one))
    starts = {(one["pid"], one["tid"], one["ts"]) for one in events if id(one) in chosen}
    ends: defaultdict[tuple[str, int], list[Event]] = defaultdict(list)
    for one in events:
        if one["ph"] in "sf":
            ends[one["cat"], one["id"]].append(one)
    for flow in ends.values():
        staying = [one for one in flow if (one["pid"], one["tid"], one["ts"]) in starts]
        if {one["ph"] for one in staying} == {one["ph"] for one in flow}:
            chosen |= {id(one) for one in staying}
    return [one for one in events if one["ph"] == "M" or id(one) in chosen]


if __name__ == "__main__":
    main(*sys.argv[1:])
