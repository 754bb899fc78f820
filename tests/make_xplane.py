"""XSpaces and trace viewer files that no recording of ours shows: devices, rounding, occurrences, errors.

Synthetic: all fields by tsl/profiler/protobuf/xplane.proto. `python -m tests.make_xplane` writes the inputs of the
golden cases anew.
"""

from __future__ import annotations

import json
from typing import Any

from tests.golden import ROOT
from traceconv.families.common import wire_writer as wire

START = 1_790_000_000_000_000_000


class Plane:
    """A plane in the making; names get their ids when they are used first."""

    def __init__(self, name: str, id: int = 0) -> None:
        self._head = (wire.integer(1, id) if id else b"") + wire.text(2, name)
        self._lines: list[bytes] = []
        self._stats: list[bytes] = []
        self._events: dict[tuple[str, str, bytes], int] = {}
        self._names: dict[str, int] = {}

    def stat(self, name: str, value: Any) -> bytes:
        """An XStat."""
        return wire.integer(1, self._name(name)) + self._value(value)

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names) + 1)

    def _value(self, value: Any) -> bytes:
        if isinstance(value, float):
            return wire.double(2, value)
        if isinstance(value, int):
            return wire.integer(4 if value < 0 else 3, value)
        if isinstance(value, bytes):
            return wire.blob(6, value)
        return wire.integer(7, self._name(value[1:])) if value.startswith("&") else wire.text(5, value)

    def own(self, **stats: Any) -> None:
        """Stats of the plane."""
        self._stats += [self.stat(name, value) for name, value in stats.items()]

    def event(
        self, name: str, offset_ps: int, dur_ps: int = 0, *, shown: str = "", common: Any = None, **stats: Any
    ) -> bytes:
        """An XEvent; `offset_ps` below zero stands for that many occurrences."""
        shared = b"".join([wire.blob(5, self.stat(key, value)) for key, value in (common or {}).items()])
        id = self._events.setdefault((name, shown, shared), len(self._events) + 1)
        when = wire.integer(2, offset_ps) if offset_ps >= 0 else wire.integer(5, -offset_ps)
        event = wire.integer(1, id) + when + wire.integer(3, dur_ps)
        return event + b"".join([wire.blob(4, self.stat(key, value)) for key, value in stats.items()])

    def line(self, name: str, start_ns: int, *events: bytes, id: int = 1, shown: str = "") -> None:
        """An XLine."""
        line = wire.integer(1, id) + wire.text(2, name) + wire.integer(3, start_ns)
        line += b"".join([wire.blob(4, event) for event in events])
        self._lines.append(line + (wire.text(11, shown) if shown else b""))

    def bytes(self) -> bytes:
        """The XPlane as a field of the XSpace."""
        data = self._head + b"".join([wire.blob(3, line) for line in self._lines])
        for (name, shown, shared), id in self._events.items():
            entry = wire.integer(1, id) + wire.text(2, name) + (wire.text(4, shown) if shown else b"") + shared
            data += wire.blob(4, wire.integer(1, id) + wire.blob(2, entry))
        for name, id in self._names.items():
            data += wire.blob(5, wire.integer(1, id) + wire.blob(2, wire.integer(1, id) + wire.text(2, name)))
        return wire.blob(1, data + b"".join([wire.blob(6, stat) for stat in self._stats]))


def device() -> bytes:
    """A host that launches work on a GPU: flows, steps, lines of XLA, occurrences, odd picoseconds."""
    flow = 5 << 2 | 7 << 58
    gpu, host, environment = Plane("/device:GPU:0", 1), Plane("/host:CPU", 9), Plane("Task Environment")
    kernel = {"hlo_op": "&fusion.1", "hlo_module": "&jit_train", "flops": 4096, "occupancy": 0.5}
    gpu.line(
        "Stream #13(Compute)",
        1000,
        gpu.event("fusion_kernel_1", 2_000_400, 1_500_500, common=kernel, flow=flow | 1, correlation_id=17),
        gpu.event("memset", 4_000_499, 1, bytes=1024),
        id=13,
    )
    gpu.line("XLA Ops", 1000, gpu.event("%fusion.1 = f32[8] fusion()", 2_000_400, 1_500_500, shown="fusion.1"))
    gpu.line("Steps", 1000, gpu.event("0", 0, 6_000_000, step_num=0, group_id=0), id=3)
    gpu.line("counted", 1000, gpu.event("cache miss", -12, 700_000), id=4)
    gpu.own(device_type_string="H100", clock_rate=1980000)
    host.line(
        "python",
        0,
        host.event("train", 500_000, 9_000_000, step_num=4, _r=1, hlo=b"\x00\x01"),
        host.event("cuLaunchKernel", 1_000_000, 300_000, flow=flow | 2),
        host.event("produced by nobody", 9_000_000, _c=3, _ct=15),
        id=1 << 40,
        shown="main python thread",
    )
    host.own(process_id=4711)
    environment.own(profile_start_time=START, profile_stop_time=START + 10**7)
    space = gpu.bytes() + host.bytes() + environment.bytes()
    return space + wire.text(2, "CUPTI is not available") + wire.text(3, "buffer nearly full") + wire.text(4, "node7")


def cut() -> bytes:
    """The file ends inside its second plane."""
    data = device()
    return data[: len(data) * 2 // 3]


def collectives() -> bytes:
    """A GPU of a JAX process: a kernel of NCCL tells what it does, an operation of XLA begins or ends it only."""
    gpu, environment = Plane("/device:GPU:0", 1), Plane("Task Environment")
    reduce = {"hlo_op": "&all-reduce-start.1", "hlo_module": "&jit_train"}
    argument = "(ncclDevKernelArgsStorage<4096ul>)"
    gpu.line(
        "Stream #22(NCCL)",
        1000,
        gpu.event(f"ncclDevKernel_AllReduce_Sum_f32_RING_LL{argument}", 2_000_000, 1_500_000, common=reduce),
        gpu.event(f"ncclDevKernel_AllGather_RING_LL{argument}", 4_000_000, 1_000_000, hlo_op="&all-gather-start.2"),
        gpu.event(f"ncclDevKernel_SendRecv{argument}", 6_000_000, 1_000_000, hlo_op="&collective-permute-start.3"),
        id=22,
    )
    start = gpu.event("%all-reduce-start.1 = f32[8] all-reduce-start()", 2_000_000, 10_000, shown="all-reduce-start.1")
    gpu.line("XLA Ops", 1000, start)
    environment.own(profile_start_time=START, profile_stop_time=START + 10**7)
    return gpu.bytes() + environment.bytes() + wire.text(4, "node7")


def device_json() -> bytes:
    """What the exporter would make of `device`: planes as pids, all values of args as text."""
    flow = 5 << 2 | 7 << 58

    def named(pid: int, name: str, threads: dict[int, str]) -> list[Any]:
        found: list[Any] = [{"args": {"name": name}, "name": "process_name", "ph": "M", "pid": pid}]
        for tid, thread in threads.items():
            found.append({"args": {"name": thread}, "name": "thread_name", "ph": "M", "pid": pid, "tid": tid})
        return found

    def event(pid: int, tid: int, name: str, ts: float, dur: float, **args: str) -> Any:
        return {"args": args, "dur": dur, "name": name, "ph": "X", "pid": pid, "tid": tid, "ts": ts}

    events = [
        *named(1, "/device:GPU:0", {13: "Stream #13(Compute)"}),
        *named(701, "/host:CPU", {1: "python"}),
        event(701, 1, "train", 0.5, 9, step_num="4"),
        event(701, 1, "cuLaunchKernel", 1, 0.3, flow=str(flow | 2)),
        event(1, 13, "fusion_kernel_1", 3.0004, 1.5005, flow=str(flow | 1), hlo_op="fusion.1", note="4 of 8"),
        {},
    ]
    lines = ",\n".join(json.dumps(one) for one in events)
    head = '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},\n"traceEvents":[\n'
    return f"{head}{lines}]}}\n".encode()


MADE = {
    "xplane/device/input.pb": device,
    "xplane/cut/input.pb": cut,
    "xplane/collectives/input.pb": collectives,
    "tensorflow-profiler/device/input.json": device_json,
}


def main() -> None:
    """Write all inputs."""
    for path, make in MADE.items():
        (ROOT / path).write_bytes(make())


if __name__ == "__main__":
    main()
