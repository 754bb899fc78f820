"""Counts what a merge calls between reading and writing: `python -m tests.benchmarks.alignment.calls [FILE...]`.

Without files it merges those of the README. Counted are the distinct functions of the package, and the modules that
they stand in, from when the last input was read until the first byte is written: clocks, checks by events, joining of
processes and the merged trace. `--list` prints them with how often each is called.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

import traceconv
from traceconv import api

_README_INPUTS = (
    "golden/pytorch-kineto/torch-convnet-process/input.json",
    "golden/onednn-verbose/torch-convnet-process/input.log",
    "golden/perf-script/torch-convnet-process/input.txt",
)
_PACKAGE = str(Path(traceconv.__file__).parent)
_ROOT = Path(_PACKAGE).parent


class Calls:
    """Counts the calls of functions of the package while it is switched on."""

    def __init__(self) -> None:
        self.found: Counter[CodeType] = Counter()

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Count a call of a function: comprehensions are parts of the one that they stand in, classes are none."""
        code = frame.f_code
        is_function = code.co_flags & CO_NEWLOCALS and not code.co_name.startswith("<")
        if event == "call" and code.co_filename.startswith(_PACKAGE) and is_function:
            self.found[code] += 1

    @property
    def modules(self) -> set[str]:
        """The files of all that was called, from the folder of the package on."""
        return {str(Path(code.co_filename).relative_to(_ROOT)) for code in self.found}


def counted(inputs: list[str]) -> Calls:
    """Return what is called between reading and writing where some inputs are merged."""
    calls = Calls()
    read, write = api.read_all, api.write_output

    def reading(*arguments: Any) -> Any:
        traces = read(*arguments)
        sys.setprofile(calls)
        return traces

    def writing(*arguments: Any, **options: Any) -> Any:
        sys.setprofile(None)
        return write(*arguments, **options)

    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(api, "read_all", reading),
        patch.object(api, "write_output", writing),
    ):
        try:
            api.merge(inputs, Path(folder) / "out.pftrace")
        finally:
            sys.setprofile(None)
    return calls


def main() -> None:
    """Print the two numbers, and the calls if they are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.alignment.calls", description=__doc__)
    parser.add_argument("files", nargs="*", help="what is merged; by default the files of the README")
    parser.add_argument("--list", action="store_true", help="print each function with how often it is called")
    args = parser.parse_args()
    calls = counted(args.files or [str(_ROOT / one) for one in _README_INPUTS])
    if args.list:
        for code, count in sorted(calls.found.items(), key=lambda one: (one[0].co_filename, one[0].co_firstlineno)):
            print(f"{Path(code.co_filename).relative_to(_ROOT)}:{code.co_firstlineno} {code.co_qualname} {count}")
    print(f"{len(calls.found)} functions in {len(calls.modules)} modules")
    of_alignment = [code for code in calls.found if "/align/" in code.co_filename]
    print(f"{len(of_alignment)} of them in {len({code.co_filename for code in of_alignment})} modules of alignment")


if __name__ == "__main__":
    main()
