"""Chrome JSON of other shapes than the main work to .pftrace, beside parsing it."""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.count import count_slices
from tests.benchmarks.frame import Contestant, Goal, Measured, Race, Reached, Work, Wrong, script, traceconv
from tests.benchmarks.to_pftrace import OURS, PARSER

_SHUFFLED_AT_ONCE = 1 << 15


def _slice(number: int, name: str = "", thread: int = 4, args: str = "") -> str:
    """A slice of 8 µs that starts 10 µs after the one before."""
    name, more = name or f"op{number % 60}", f',"args":{args}' if args else ""
    start = f'"pid":1,"tid":{number % thread},"ts":{10 * number},"dur":8'
    return f'{{"ph":"X","cat":"op","name":"{name}",{start}{more}}}'


def _point(number: int, phase: str, more: str = "", *, name: str = "op", pair: bool = True) -> str:
    """An event without a duration; a pair has one name."""
    kind = (number // 2 if pair else number) % 60
    start = f'"pid":1,"tid":1,"ts":{10 * number}'
    return f'{{"ph":"{phase}","cat":"op","name":"{name}{kind}",{start}{more}}}'


def _mxnet(number: int) -> str:
    pair, last = divmod(number, 2)
    start = f'"ts":{20 * pair + 15 * last},"pid":0,"tid":{pair % 3}'
    return f'{{"name":"dot{pair % 60}","cat":"operator","ph":"{"BE"[last]}",{start}}}'


def _tensorflow(number: int) -> str:
    start = f'"pid":701,"tid":{number % 5},"ts":{10 * number}.{number % 1000:03}'
    args = f'{{"long_name":"model/dense_{number % 40}/MatMul:MatMul","correlation_id":"{number}"}}'
    return f'{{"ph":"X",{start},"dur":7.484999999999999,"name":"MatMul{number % 60}","args":{args}}}'


def _flow(number: int) -> str:
    pair, last = divmod(number, 4)
    if last < 2:
        return _slice(2 * pair + last, thread=2)
    other = (pair * 7919) % 65536  # in no order
    end = ',"bp":"e"' if last == 3 else ""
    return (
        f'{{"ph":"{"sf"[last - 2]}","cat":"f","name":"f","id":{other},"pid":1,"tid":{last - 2},"ts":{20 * pair}{end}}}'
    )


#: By name: the event of each number.
_SHAPES: dict[str, Callable[[int], str]] = {
    "distinct names": lambda n: _slice(n, f"op number {n} of the run"),
    "distinct keys": lambda n: _slice(n, args=f'{{"key{n}":{n}}}'),
    "nestable async": lambda n: _point(n, "be"[n % 2], f',"id":"0x{n // 2 % 5000:x}"'),
    "legacy async": lambda n: _point(n, "SF"[n % 2], f',"id":"0x{n // 2 % 5000:x}"'),
    "counters": lambda n: _point(n, "C", f',"args":{{"value":{n % 977}}}', name="counter", pair=False),
    "crossing": lambda n: (
        f'{{"ph":"X","cat":"op","name":"op{n % 60}","pid":1,"tid":1,"ts":{10 * n},"dur":{15 + n % 40}}}'
    ),
    "begin/end": lambda n: _point(n, "BE"[n % 2]),
    "1,000 tracks": lambda n: _slice(n, thread=1000),
    "instants": lambda n: _point(n, "i", ',"s":"t"', pair=False),
    "deep args": lambda n: _slice(n, args=f'{{"a":{{"b":{{"c":[{n},{{"d":[1,2,3]}}]}}}}}}'),
    "shuffled": lambda n: _slice(n, args=f'{{"n":{n}}}'),
    "flows": _flow,
    "escapes": lambda n: _slice(n, args=rf'{{"text":"say \"{n % 5000}\"\n\\path é"}}'),
    "UTF-8 in names": lambda n: _slice(n, f"оператор «{n % 60}» 卷积"),
    "MXNet": _mxnet,
    "TensorFlow": _tensorflow,
}
_HEADS = {
    "TensorFlow": '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[\n'
    '{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},\n',
    "MXNet": '{"traceEvents":[\n{"ph":"M","args":{"name":"cpu/0"},"pid":0,"name":"process_name"},\n',
}


def _numbers(shape: str, events: int) -> Iterator[int]:
    """The numbers of the events in the order of the file."""
    random_ = random.Random(1)
    for first in range(0, events, _SHUFFLED_AT_ONCE if shape == "shuffled" else events):
        numbers = range(first, min(first + _SHUFFLED_AT_ONCE, events) if shape == "shuffled" else events)
        yield from random_.sample(numbers, len(numbers)) if shape == "shuffled" else numbers


def _prepare(folder: Path, events: int) -> Race:
    """A file of each shape, parsed and converted."""
    contestants, slices = {}, {}
    for number, (shape, event_of) in enumerate(_SHAPES.items()):
        source, output = folder / f"{number}.json", folder / f"{number}.pftrace"
        with source.open("w", encoding="utf-8") as file:
            file.write(_HEADS.get(shape, '{"traceEvents":[\n'))
            separator = ""
            for event in map(event_of, _numbers(shape, events)):
                file.write(f"{separator}{event}")
                separator = ",\n"
            file.write("\n]}\n")
        parse = script("load_only", source, os.devnull)
        contestants[_contestant(PARSER, shape)] = Contestant(parse, needs="orjson")
        contestants[_contestant(OURS, shape)] = Contestant(traceconv("convert", source, "-o", output), output)
        slices[output] = _slices_of(shape, events)
    return Race(contestants, f"{len(_SHAPES)} files of {events:,} events", verify=partial(_verify, slices))


def _contestant(name: str, shape: str) -> str:
    return f"{name}, {shape}"


def _slices_of(shape: str, events: int) -> int:
    """How many slices a file has."""
    if shape in ("nestable async", "legacy async", "begin/end", "MXNet", "flows"):
        return events // 2
    return 0 if shape in ("counters", "instants") else events


def _verify(slices: dict[Path, int]) -> list[str]:
    """Each output has the slices of its input.

    Raises:
        Wrong: it has not.
    """
    for output, expected in slices.items():
        if (found := count_slices(output)) != expected:
            raise Wrong(f"{output.name} has {found} slices, the input {expected}")
    return []


def _ratio(measured: Measured, shape: str) -> float:
    parse, convert = (measured.cpu(_contestant(name, shape)) for name in (PARSER, OURS))
    return convert / parse


def _goal(shape: str) -> Goal:
    most = 2.0 if shape == "nestable async" else 1.6

    def judge(measured: Measured) -> Reached:
        ratio = _ratio(measured, shape)
        return Reached(f"{ratio:.2f} ×", ratio / most)

    return Goal(f"{shape}: ≤ {most:g} × {PARSER}", judge)


def _median(measured: Measured) -> Reached:
    ratio = statistics.median(_ratio(measured, shape) for shape in _SHAPES)
    return Reached(f"{ratio:.2f} ×", ratio / 1.2)


SHAPES = Work(
    name="shapes",
    title="Chrome JSON of other shapes",
    goals=(Goal(f"median of the shapes: ≤ 1.2 × {PARSER}", _median), *map(_goal, _SHAPES)),
    events=500_000,
    small=0,
    prepare=_prepare,
)
