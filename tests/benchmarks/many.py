"""What a track or a clock snapshot costs where there are very many: `python -m tests.benchmarks.many [SHAPE ...]`.

Each file is written with a quarter of the number, and with all. The difference of both runs is divided by the
difference of the numbers, so that the start of the process does not count. The aim is 20 µs of CPU time and 300 bytes
of peak memory for each; the exit code is 0 also where it is missed, since machines differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.frame import Contestant, Cost, measure, traceconv
from traceconv.families.common import wire_writer as wire

_COUNT = 200_000
_AIM_US, _AIM_BYTES = 20, 300


def _json(*events: str) -> Callable[[int], Iterator[bytes]]:
    """Write events of Chrome JSON for each number; {n} in them is the number."""

    def write(count: int) -> Iterator[bytes]:
        yield b"[\n"
        for n in range(count):
            yield "".join(f"{event.replace('{n}', str(n + 1))},\n" for event in events).encode()
        yield b'{"ph":"i","name":"end","pid":1,"tid":1,"ts":0,"s":"t"}]\n'

    return write


def _packet(*fields: bytes) -> bytes:
    return wire.blob(1, b"".join(fields))


def _event(ts: int, kind: int, track: int, name: str = "") -> bytes:
    body = wire.integer(9, kind) + wire.integer(11, track) + (wire.text(23, name) if name else b"")
    return _packet(wire.integer(8, ts), wire.integer(10, 1), wire.blob(11, body))


def _track(uuid: int, name: str) -> bytes:
    return _packet(wire.blob(60, wire.integer(1, uuid) + wire.text(2, name)))


def _tracks(count: int) -> Iterator[bytes]:
    for n in range(count):
        yield _track(n + 1, f"t{n}") + _event(1000 + 10 * n, 1, n + 1, "a") + _event(1005 + 10 * n, 2, n + 1)


def _snapshot(n: int, sequence: int, *ids: int) -> bytes:
    clocks = (wire.blob(1, wire.integer(1, id) + wire.integer(2, 10**9 * at + 1000 * n)) for at, id in enumerate(ids))
    return _packet(wire.integer(10, sequence), wire.blob(6, b"".join(clocks)))


def _snapshots(count: int) -> Iterator[bytes]:
    yield _track(1, "t") + _event(1000, 1, 1, "a") + _event(1005, 2, 1)
    yield from (_snapshot(n, 1, 6, 1) for n in range(count))


def _clocks(count: int) -> Iterator[bytes]:
    """Write snapshots of a clock of a sequence of its own each."""
    yield _track(1, "t") + _event(1000, 1, 1, "a") + _event(1005, 2, 1)
    yield from (_snapshot(n, n + 2, 6, 64) for n in range(count))


@dataclass(frozen=True)
class Shape:
    """A file with many of something.

    Attributes:
        name: the file.
        write: yields its content, with so many.
    """

    name: str
    write: Callable[[int], Iterator[bytes]]


_NAMED = '{"ph":"M","name":"thread_name","pid":1,"tid":{n},"args":{"name":"t{n}"}}'
SHAPES: dict[str, Shape] = {
    "named-threads": Shape("in.json", _json(_NAMED, '{"ph":"X","name":"a","pid":1,"tid":{n},"ts":{n},"dur":1}')),
    "processes": Shape("in.json", _json('{"ph":"X","name":"a","pid":{n},"tid":{n},"ts":{n},"dur":1}')),
    "counters": Shape("in.json", _json('{"ph":"C","pid":1,"name":"c{n}","ts":{n},"args":{"":1}}')),
    "tracks": Shape("in.pftrace", _tracks),
    "snapshots": Shape("in.pftrace", _snapshots),
    "clocks": Shape("in.pftrace", _clocks),
}
#: By name, what is done with the file, and the output. A merge has another file beside it, with few events.
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "pftrace": (("convert", "SOURCE", "-o", "OUTPUT"), "out.pftrace"),
    "json": (("convert", "SOURCE", "-o", "OUTPUT"), "out.json"),
    "report": (("report", "SOURCE"), ""),
    "check": (("check", "SOURCE"), ""),
    "merge": (("merge", "SOURCE", "OTHER", "-o", "OUTPUT", "--offset", "other.json=1us"), "out.pftrace"),
}


def cost_of(command: str, shape: Shape, count: int, folder: Path, limit_s: int) -> Cost:
    """Return what a command on a shape with so many costs."""
    parts, written = COMMANDS[command]
    output = folder / written if written else None
    names = {"SOURCE": folder / shape.name, "OTHER": folder / "other.json", "OUTPUT": output or folder}
    with names["SOURCE"].open("wb") as file:
        file.writelines(shape.write(count))
    names["OTHER"].write_bytes(b"".join(_json('{"ph":"X","name":"b","pid":7,"tid":7,"ts":{n},"dur":1}')(9)))
    return measure(Contestant(traceconv(*(names.get(one, one) for one in parts)), output), limit_s=limit_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate, measure, print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.many", description=__doc__.split("\n")[0])
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"{', '.join(SHAPES)}; all of them by default")
    parser.add_argument("--count", type=int, default=_COUNT, help="how many (%(default)s)")
    parser.add_argument("--command", action="append", choices=COMMANDS, help="all of them by default")
    parser.add_argument("--limit", type=int, default=600, help="of each run, in seconds")
    args = parser.parse_args(arguments)
    print(f"{'':18}{'command':>9}{'µs each':>9}{'bytes each':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for name in args.shapes or SHAPES:
            for command in args.command or COMMANDS:
                few, many = (
                    cost_of(command, SHAPES[name], count, Path(folder), args.limit)
                    for count in (args.count // 4, args.count)
                )
                more = args.count - args.count // 4
                us, size = (many.cpu_s - few.cpu_s) / more * 1e6, (many.peak_bytes - few.peak_bytes) / more
                missed = "" if us <= _AIM_US and size <= _AIM_BYTES else "  above the aim"
                print(f"{name:18}{command:>9}{us:9.1f}{size:12.0f}{missed}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
