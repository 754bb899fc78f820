"""What short lines cost by format: `python -m tests.benchmarks.lines [FORMAT ...]`, in CPU ns a byte and a line.

Behind a small file of each format of text come 3 MB of

    empty      newlines
    same       one short line that means nothing, over and over
    varied     lines of 2 to 12 letters, digits and marks, all different
    near       lines of 2 to 12 bytes that begin or end as a row may, all different
    rows       the shortest rows that are data, with varied values

and the CPU time of the whole command, less that with 100 KB of them, is divided by the other bytes: what the first
bytes cost, by which formats are known, does not grow with the file. So is the cost of a line. The ratios are to what
a byte and an event of the main work of `python -m tests.benchmarks` cost, measured in the same way at the same time.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.frame import ROOT, Contestant, measure, traceconv
from tests.benchmarks.generate import generate

BYTES = 3_000_000
_FEW_EVENTS, _EVENTS = 100, 60_000
_FEW = 100_000
_MARKS = "abcdefgzAXZ0123456789_.,;:=-+/%#()[]<> "
_NEAR = ("#", "0.", "1,", "12 ", "- ", "== ", '"a",', "a:", "a  b  ", "x;1;", "{", "[", "1.5ms ", "3%", "  ", "\t")

Row = Callable[[int], str]
#: Of each format a small file, and its shortest rows.
ROWS: dict[str, Row] = {
    "deepsparse/analysis-csv": lambda n: f"a,{n % 97}",
    "deepsparse/analysis-text": lambda n: f"a{n}|||||{n % 97}.5",
    "deepsparse/v030-sr": lambda n: f"a{n}",
    "furiosa-table/csv": lambda n: f"1,,{n},{10**18 + n * 1000},{10**18 + n * 1000 + 500},,a,,,,,,,500",
    "furiosa-table/rngd-cycles": lambda n: f"n,a,{n}",
    "mxnet-table/v1.9-text": lambda n: f"a {n} 1.0000 1.0000 1.0000 1.0000",
    "nsight-compute/details": lambda n: f"{n + 1},,,,k,,,,,,,,m,,1",
    "nsight-compute/raw": lambda n: f"{n},,,,k,1,7,1,1,0,8,{n},1,1,1",
    "nvprof-text/both-traces": lambda n: f"{n}us  1us  -  -  -  -  -  -  -  -  -  -  -  -  a",
    "nvprof-text/csv-imported": lambda n: f"{n % 9973}.5,1,a,{n}",
    "nvprof-text/summary": lambda n: f"9%  {n}us  1  1us  1us  1us  a",
    "onednn-verbose/v35-tensorflow-ts": lambda n: f"dnnl_verbose,{10**12 + n}.5,exec,cpu,a,b,c,,,,,{n % 97}",
    "openvino/average": lambda n: f"a;EXECUTED;;;{n % 97};0",
    "openvino/report": lambda n: f"a;{n}",
    "perf-report/one_event": lambda n: f"{n % 97}.{n % 89:02}% a{n}",
    "perf-script/stacks": lambda n: f"a {n % 97} {n // 1000}.{n % 1000:06}: a:",
    "perf-stat/csv_cores": lambda n: f"{n}.000000000,1,,a,1,9",
    "perf-stat/text_intervals": lambda n: f"{n}.000000000 {n % 97}  a",
    "pytorch-table/conv": lambda n: f"a{n}  1%  1us  1%  1us  1us  {n % 97}",
    "rocprof/calls": lambda n: f"H,a,1,1,1,{n},{n + 9}",
    "rocprof/kernels": lambda n: f"K,1,1,1,1,{n},1,k,1,{n + 1},{n + 2},,,,,,,,,,,",
    "timed-log/syslog": lambda n: f"Mar  1 00:{n // 60 % 60:02}:{n % 60:02} h a:",
    "tvm-debugger/start-and-end-times": lambda n: f"a{n}  b  {n % 97}.5  1  00:00:00  00:00:01  ()  1  1",
    "tvm-profile/graph-csv": lambda n: f'"",1,"c",{n % 97}.5,"h","a",1,,,,,,,',
    "tvm-profile/graph-text": lambda n: f"a{n}  {n % 97}.5  1.5  cpu0  1",
    "vtune/external_tasks": lambda n: f"a,{n},{n + 1},1,1",
    "vtune/hotspots": lambda n: f"a,{n % 97},,,,,",
    "vtune/timeline": lambda n: f"{n},{n % 10**5},{n % 10**5},{n % 97}",
    "vtune/call_tree": lambda n: f"a,,,{n % 97},,",
}
#: How many lines come before the end of a table.
_OPEN = {
    "deepsparse/analysis-text": 5,
    "mxnet-table/v1.9-text": 34,
    "openvino/average": 19,
    "pytorch-table/conv": 23,
    "tvm-debugger/start-and-end-times": 10,
    "tvm-profile/graph-text": 9,
}
#: Files of which another one of the format has the rows.
OTHERS = ("furiosa-table/printed", "mxnet-table/json-cut")
_KINDS = ("empty", "same", "varied", "near", "rows")
_OPTIONS = {"timed-log": ("-O", "time=syslog")}


def source_of(name: str) -> Path:
    """The small file."""
    (source,) = (ROOT / "golden" / name).glob("input.*")
    return source


def head_of(name: str) -> bytes:
    """What it holds up to where rows may stand."""
    lines = source_of(name).read_bytes().splitlines(keepends=True)[: _OPEN.get(name)]
    return b"".join(lines).rstrip(b"\n") + b"\n"


def options_of(name: str) -> tuple[str, ...]:
    """Return the options that the rows need."""
    format = name.partition("/")[0]
    return ("--from", format, *_OPTIONS.get(format, ()))


def _filled(lines: Iterator[str]) -> bytes:
    """Lines until there are enough bytes."""
    kept = list(lines)
    sizes = accumulate(len(line) + 1 for line in kept)
    fitting = sum(1 for _ in takewhile(lambda size: size <= BYTES, sizes))
    return ("\n".join(kept[:fitting]) + "\n").encode()


def _junk(starts: Sequence[str]) -> Iterator[str]:
    chance = random.Random(1)
    seen: set[str] = set()
    while len(seen) * 6 < BYTES:
        start = chance.choice(starts)
        line = (start + "".join(chance.choices(_MARKS, k=chance.randint(2, 12))))[: chance.randint(2, 12)]
        if line.strip() and line not in seen:
            seen.add(line)
            yield line


def _units(row: Row | None) -> dict[str, bytes]:
    units = {
        "empty": b"\n" * BYTES,
        "same": b"x y\n" * (BYTES // 4),
        "varied": _filled(_junk([""])),
        "near": _filled(_junk(_NEAR)),
    }
    if row is not None:
        units["rows"] = _filled(map(row, range(1, BYTES // 6)))
    return units


def _cpu_s(path: Path, name: str) -> float:
    """CPU seconds of a conversion."""
    output = path.with_name("out.pftrace")
    return measure(Contestant(traceconv("convert", path, "-o", output, *options_of(name)), output)).cpu_s


class _Cost(NamedTuple):
    """CPU ns of a byte, and of an event or line."""

    byte: float
    line: float

    def beside(self, other: _Cost) -> str:
        """Return both, with their ratios to another cost."""
        ratios = self.byte / other.byte, self.line / other.line
        return f"{self.byte:.0f} ({ratios[0]:.1f}), {self.line:.0f} ({ratios[1]:.1f})"


def _main_work(folder: Path) -> _Cost:
    """Return what a byte and an event of the main work cost."""
    few, many = folder / "few.json", folder / "many.json"
    sizes = [generate(path, events).bytes for path, events in ((few, _FEW_EVENTS), (many, _EVENTS))]
    costs = [min(_cpu_s(path, "pytorch-kineto") for _ in range(3)) for path in (few, many)]
    ns = (costs[1] - costs[0]) * 1e9
    return _Cost(ns / (sizes[1] - sizes[0]), ns / (_EVENTS - _FEW_EVENTS))


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.lines", description=__doc__.split("\n")[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="such as vtune or vtune/timeline; all by default")
    parser.add_argument("--kinds", default=",".join(_KINDS), help="some of them, with commas")
    args = parser.parse_args(arguments)
    kinds = args.kinds.split(",")
    with tempfile.TemporaryDirectory() as folder:
        unit = _main_work(Path(folder))
        print(f"main work: {unit.byte:.2f} ns a byte, {unit.line:.0f} ns an event")
        print("ns a byte (ratio to a byte of the main work), ns a line (ratio to an event of it) of")
        print(f"{'':34}" + "".join(f" {kind:>26}" for kind in kinds), flush=True)
        for name in sorted((*ROWS, *OTHERS)):
            if not args.formats or any(name.startswith(one) for one in args.formats):
                print(_row(Path(folder), name, kinds, unit), flush=True)


def _row(folder: Path, name: str, kinds: Sequence[str], main_work: _Cost) -> str:
    source = source_of(name)
    text = head_of(name)
    path = folder / f"input{source.suffix}"
    units, shown = _units(ROWS.get(name)), []
    for kind in kinds:
        if kind not in units:
            shown.append("")
            continue
        many = units[kind]
        few = many[: many.find(b"\n", _FEW) + 1]
        costs = []
        for unit in (few, many):
            path.write_bytes(text + unit)
            costs.append(_cpu_s(path, name))
        ns = max(0.0, costs[1] - costs[0]) * 1e9
        cost = _Cost(ns / (len(many) - len(few)), ns / (many.count(b"\n") - few.count(b"\n")))
        shown.append(cost.beside(main_work))
    return f"{name:34}" + "".join(f" {one:>26}" for one in shown)


if __name__ == "__main__":
    main()
