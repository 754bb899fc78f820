"""Writes large Chrome traces that look like those of the PyTorch profiler, the same for the same seed.

Shapes of events, order of members and the white space of the pretty form follow what Kineto writes (torch 2.4 and
later): operators with input shapes, nested Python functions, launches with their kernels and `ac2g` flows, forward
and backward passes tied by `fwdbwd` flows, memory instants, counters, metadata. Slices of a thread or stream nest.
The file is written step by step, so any size takes little memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PID = 31854
_MAIN, _BACKWARD = 31854, 31990
_STREAMS = (7, 20)
#: Threads and streams, each a track with slices.
TRACKS = 2 + len(_STREAMS)
BASE_NS = 1790857026000000000
FIRST_NS = 4388822164992817

_OPS = [
    ("aten::conv2d", ["aten::convolution", "aten::_convolution", "aten::cudnn_convolution"]),
    ("aten::linear", ["aten::t", "aten::transpose", "aten::addmm"]),
    ("aten::batch_norm", ["aten::_batch_norm_impl_index", "aten::cudnn_batch_norm"]),
    ("aten::relu_", ["aten::clamp_min_"]),
    ("aten::max_pool2d", ["aten::max_pool2d_with_indices"]),
    ("aten::layer_norm", ["aten::native_layer_norm"]),
    ("aten::softmax", ["aten::_softmax"]),
    ("aten::matmul", ["aten::reshape", "aten::bmm"]),
    ("aten::add", []),
    ("aten::mul", []),
]
_KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> "
    f">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>) [variant {n}]"
    for n in range(60)
] + [f"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x{n}x16" for n in range(40)]
_FUNCTIONS = [f"torch/nn/modules/module.py({100 + n}): _call_impl_{n % 17}" for n in range(300)]
_MODULES = [f"nn.Module: {kind}_{n}" for kind in ("Conv2d", "Linear", "BatchNorm2d", "ReLU") for n in range(40)]


@dataclass
class Summary:
    """What was written.

    Attributes:
        events: all events.
        slices: complete events ("X"), each with args.
        flows: pairs of the start and the end of a flow.
        instants: events without length ("i").
        bytes: the size of the file.
    """

    events: int
    slices: int
    flows: int
    instants: int
    bytes: int


def generate(
    path: Path,
    events: int,
    *,
    pretty: bool = True,
    seed: int = 1,
    rank: int | None = None,
    base_ns: int = BASE_NS,
    first_ns: int = FIRST_NS,
) -> Summary:
    """Write a trace with exactly so many events.

    Args:
        path: the file to write.
        events: at least some tens, for the metadata.
        pretty: white space as Kineto writes it, or none.
        rank: the rank that the file says it is of.
        base_ns: `baseTimeNanoseconds`, from which times count.
        first_ns: the time of the first event.
    """
    generator = _Generator(random.Random(seed), pretty, first_ns)
    written = slices = flows = instants = 0
    separator = ",\n  " if pretty else ","
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_head(pretty, rank, base_ns))
        for batch in generator.batches(events):
            file.write((separator if written else "") + separator.join(batch))
            written += len(batch)
            slices += sum(text.startswith(generator.slice_prefix) for text in batch)
            flows += sum(text.startswith(generator.flow_prefix) for text in batch)
            instants += sum(text.startswith(generator.instant_prefix) for text in batch)
        file.write(_TAIL_PRETTY if pretty else _TAIL_COMPACT)
    return Summary(written, slices, flows, instants, path.stat().st_size)


def _head(pretty: bool, rank: int | None, base_ns: int) -> str:
    distributed = "" if rank is None else f'"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 2}},'
    if not pretty:
        return _HEAD_COMPACT + distributed.replace(" ", "") + f'"baseTimeNanoseconds":{base_ns},"traceEvents":['
    return _HEAD_PRETTY + distributed + f'\n    "baseTimeNanoseconds": {base_ns},\n    "traceEvents": [\n  '


_HEAD_PRETTY = """{
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "Generated GPU", "totalGlobalMem": 85899345920, "computeMajor": 8, "computeMinor": 0
    }
    ],
    "record_shapes": 1,
    "with_stack": 1,
    "profile_memory": 1,
    "displayTimeUnit": "ms",
    """
_HEAD_COMPACT = (
    '{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"Generated GPU","totalGlobalMem":85899345920}],'
    '"displayTimeUnit":"ms",'
)
_TAIL_PRETTY = '\n  ],"traceName": "generated.pt.trace.json" }'
_TAIL_COMPACT = '],"traceName":"generated.pt.trace.json"}'


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


class _Generator:
    def __init__(self, rng: random.Random, pretty: bool, first_ns: int) -> None:
        self._rng = rng
        self._first_ns = first_ns
        self._pretty = pretty
        self._batch: list[str] = []
        self._index = self._sequence = self._correlation = self._python = self._allocated = 0
        self._stream_free = dict.fromkeys(_STREAMS, 0)
        self.slice_prefix = '{\n    "ph": "X"' if pretty else '{"ph":"X"'
        self.flow_prefix = '{\n    "ph": "s"' if pretty else '{"ph":"s"'
        self.instant_prefix = '{\n    "ph": "i"' if pretty else '{"ph":"i"'

    def batches(self, events: int) -> Iterator[list[str]]:
        """The events in chunks that are whole steps; the rest of the number is memory instants."""
        self._metadata(self._first_ns)
        left = events - len(self._batch)
        yield self._take()
        ts, step = self._first_ns + 1_000_000, 0
        while True:
            ts = self._step(ts, step) + self._rng.randrange(1_000, 50_000)
            batch = self._take()
            if len(batch) > left:
                break
            left -= len(batch)
            step += 1
            yield batch
        for _ in range(left):
            ts += 1000
            self._memory(ts, _MAIN)
        yield self._take()

    def _take(self) -> list[str]:
        batch, self._batch = self._batch, []
        return batch

    # How an event is written.

    def _event(self, members: dict[str, object], args: dict[str, str] | None) -> str:
        if not self._pretty:
            text = ",".join([f'"{key}":{value}' for key, value in members.items()])
            inner = ",".join([f'"{key}":{value}' for key, value in args.items()]) if args is not None else None
            return f"{{{text}}}" if inner is None else f'{{{text},"args":{{{inner}}}}}'
        text = ",\n    ".join([f'"{key}": {value}' for key, value in members.items()])
        if args is None:
            return f"{{\n    {text}\n    \n  }}"
        inner = ", ".join([f'"{key}": {value}' for key, value in args.items()])
        return f'{{\n    {text}\n    ,\n    "args": {{\n      {inner}\n    }}\n  }}'

    def _slice(
        self, slot: int, category: str, name: str, place: tuple[int, int], start: int, end: int, args: dict[str, str]
    ) -> None:
        """Fill a reserved place."""
        members = {"cat": f'"{category}"', "name": f'"{name}"', "pid": place[0], "tid": place[1], "ts": _us(start)}
        self._batch[slot] = self._event({"ph": '"X"', **members, "dur": _us(end - start)}, args)

    def _flow(self, phase: str, name: str, id: int, place: tuple[int, int], ts: int) -> None:
        members: dict[str, object] = {"ph": f'"{phase}"', "id": id, "pid": place[0], "tid": place[1]}
        members |= {"ts": _us(ts), "cat": f'"{name}"', "name": f'"{name}"'}
        if phase == "f":
            members["bp"] = '"e"'
        self._batch.append(self._event(members, None))

    def _metadata(self, ts: int) -> None:
        places = [(_PID, 0, "python"), (_PID, _MAIN, "thread (main)"), (_PID, _BACKWARD, "thread (pt_autograd_0)")]
        places += [(0, 0, "python"), *((0, stream, f"stream {stream}") for stream in _STREAMS)]
        for pid, tid, name in places:
            kind = "thread" if tid else "process"
            for suffix, args in (("name", {"name": f'"{name}"'}), ("sort_index", {"sort_index": str(tid)})):
                members = {"ph": '"M"', "name": f'"{kind}_{suffix}"', "ts": _us(ts), "pid": pid, "tid": tid}
                self._batch.append(self._event(members, args))
            members = {"ph": '"M"', "name": '"process_labels"', "ts": _us(ts), "pid": pid, "tid": tid}
            self._batch.append(self._event(members, {"labels": '"GPU 0"' if pid == 0 else '"CPU"'}))

    # What happens; each method returns the time at which it is over.

    def _step(self, ts: int, step: int) -> int:
        slot = self._reserve()
        start, forward = ts, []
        for _ in range(12):
            ts, sequences = self._python_call(ts + self._gap(), self._rng.randrange(1, 5))
            forward += sequences
        self._slice(slot, "user_annotation", f"ProfilerStep#{step}", (_PID, _MAIN), start, ts, self._ids(step))
        for sequence in reversed(forward):
            ts = self._backward(ts + self._gap(), sequence)
        self._counter(ts)
        return ts

    def _python_call(self, ts: int, depth: int) -> tuple[int, list[int]]:
        slot, start = self._reserve(), ts
        self._python += 1
        python_id, sequences = self._python, []
        ts += self._gap()
        if depth:
            for _ in range(self._rng.randrange(1, 3)):
                ts, inner = self._python_call(ts, depth - 1)
                sequences += inner
        else:
            ts, sequence = self._operator(ts)
            sequences.append(sequence)
        ts += self._gap()
        name = self._rng.choice(_MODULES if depth == 1 else _FUNCTIONS)
        args = {"Python parent id": str(python_id - 1), "Python id": str(python_id), "Ev Idx": self._next()}
        self._slice(slot, "python_function", name, (_PID, _MAIN), start, ts, args)
        return ts, sequences

    def _operator(self, ts: int) -> tuple[int, int]:
        self._sequence += 1
        sequence = self._sequence
        name, inner = self._rng.choice(_OPS)
        ts = self._nested_operators(ts, [name, *inner], _MAIN, sequence, flow="s")
        if self._rng.random() < 0.5:
            self._memory(ts, _MAIN)
        return ts + self._gap(), sequence

    def _backward(self, ts: int, sequence: int) -> int:
        name = self._rng.choice(("ConvolutionBackward0", "AddmmBackward0", "ReluBackward0", "MulBackward0"))
        names = [f"autograd::engine::evaluate_function: {name}", name, "aten::convolution_backward"]
        return self._nested_operators(ts, names, _BACKWARD, sequence, flow="f")

    def _nested_operators(self, ts: int, names: list[str], tid: int, sequence: int, flow: str) -> int:
        slots = [(self._reserve(), ts + 900 * depth) for depth in range(len(names))]
        ts = slots[-1][1] + self._gap()
        if sequence % 4 == 0:
            self._flow(flow, "fwdbwd", sequence, (_PID, tid), slots[0][1] + 300)
        ts = self._launch(ts, tid)
        for (slot, start), name in zip(reversed(slots), reversed(names), strict=True):
            ts += self._gap()
            args = self._ids(sequence) | self._shapes()
            self._slice(slot, "cpu_op", name, (_PID, tid), start, ts, args)
        return ts

    def _launch(self, ts: int, tid: int) -> int:
        self._correlation += 1
        id, end = self._correlation, ts + self._rng.randrange(3_000, 9_000)
        args = {"External id": str(id), "cbid": "211", "correlation": str(id)}
        self._slice(self._reserve(), "cuda_runtime", "cudaLaunchKernel", (_PID, tid), ts, end, args)
        self._flow("s", "ac2g", id, (_PID, tid), ts)
        stream = self._rng.choice(_STREAMS)
        start = max(end + 2_000, self._stream_free[stream])
        done = self._stream_free[stream] = start + self._rng.randrange(1_500, 90_000)
        self._flow("f", "ac2g", id, (0, stream), start)
        name = self._rng.choice(_KERNELS)
        self._slice(self._reserve(), "kernel", name, (0, stream), start, done, self._kernel_args(id, stream))
        return end

    def _kernel_args(self, id: int, stream: int) -> dict[str, str]:
        blocks = self._rng.randrange(1, 4096)
        values = {"External id": id, "queued": 0, "device": 0, "context": 1, "stream": stream, "correlation": id}
        values |= {"registers per thread": 32, "shared memory": 1024 * (id % 48)}
        args = {key: str(value) for key, value in values.items()}
        args["blocks per SM"] = f"{blocks / 108:.6f}"
        args["warps per SM"] = f"{blocks / 27:.6f}"
        args |= {"grid": f"[{blocks}, 1, 1]", "block": "[128, 1, 1]", "est. achieved occupancy %": str(id % 100)}
        return args

    def _memory(self, ts: int, tid: int) -> None:
        size = self._rng.randrange(1, 4096) * 512
        self._allocated = max(0, self._allocated + self._rng.choice((-1, 1)) * size)
        members = {"ph": '"i"', "cat": '"cpu_instant_event"', "s": '"t"', "name": '"[memory]"'}
        values = {"Total Reserved": 1 << 31, "Total Allocated": self._allocated, "Bytes": size, "Device Id": 0}
        values |= {"Device Type": 1, "Addr": 94541508641024 + size}
        args = {key: str(value) for key, value in values.items()} | {"Ev Idx": self._next()}
        self._batch.append(self._event({**members, "pid": _PID, "tid": tid, "ts": _us(ts)}, args))

    def _counter(self, ts: int) -> None:
        members = {"ph": '"C"', "name": '"GPU 0 memory"', "pid": 0, "tid": 0, "ts": _us(ts)}
        self._batch.append(self._event(members, {"allocated": str(self._allocated)}))

    def _ids(self, sequence: int) -> dict[str, str]:
        index = self._next()
        args = {"External id": index, "Sequence number": str(sequence), "Fwd thread id": "0"}
        return {**args, "Record function id": "0", "Ev Idx": index}

    def _shapes(self) -> dict[str, str]:
        width = self._rng.choice((16, 32, 64, 128, 256))
        return {
            "Concrete Inputs": '["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"]',
            "Input type": '["float", "float", "float", "ScalarList", "ScalarList", "ScalarList", "Scalar"]',
            "Input Strides": f"[[{width * 1024}, 1024, 32, 1], [27, 9, 3, 1], [1], [], [], [], []]",
            "Input Dims": f"[[32, {width}, 32, 32], [{width}, 3, 3, 3], [{width}], [], [], [], []]",
        }

    def _reserve(self) -> int:
        """A place for an event that is complete only after what lies inside it."""
        self._batch.append("")
        return len(self._batch) - 1

    def _next(self) -> str:
        self._index += 1
        return str(self._index)

    def _gap(self) -> int:
        return self._rng.randrange(400, 6_000)
