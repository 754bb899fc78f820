"""The golden cases: what is in a case folder, and how a case is read.

golden/<format>/<case>/input.*      the recording; exactly one
golden/<format>/<case>/beside/      files that lay beside the recording; optional
golden/<format>/<case>/case.toml    what the case pins, where the input comes from, options; expect_empty = true for a
                                    case whose output holds no event
golden/<format>/<case>/expect.txt   the trace, one event a line (absent if the input is refused)
golden/<format>/<case>/expect.json  the Chrome JSON output (likewise), for the formats of PINS_JSON only
golden/<format>/<case>/expect.diag  the balance, notes and diagnostics, or the error

golden/merge/<case>/case.toml       inputs = ["<format>/<case>", ...], offsets = {...}, policy = {...}, same_machine,
                                    attribute = true for --layer-counters, trim; expectations as above

golden/align/<case>/                see tests.align.merges
"""

from __future__ import annotations

import io
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from traceconv import __version__
from traceconv.align import Policy, align
from traceconv.align.constraints import Constraints
from traceconv.answers.attributed import attributed
from traceconv.answers.selection import trimmed
from traceconv.api import read
from traceconv.families.outputs import writer_named
from traceconv.io.spill import Memory
from traceconv.merging.traces import merge_traces
from traceconv.model.layout import validate
from traceconv.model.numbers import parse_duration
from traceconv.model.trace import Trace

ROOT = Path(__file__).parent.parent / "golden"
#: The formats whose cases pin the JSON output: these hold every shape that the writer writes, and merges show in it the
#: times that alignment made. In all cases the trace processor is shown the output, and it is read back.
PINS_JSON = ("chrome-trace", "merge")


@dataclass(frozen=True)
class Case:
    """One golden case; `format` is "merge" for several inputs."""

    folder: Path

    @property
    def name(self) -> str:
        return f"{self.format}/{self.folder.name}"

    @property
    def format(self) -> str:
        return self.folder.parent.name

    @cached_property
    def about(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "case.toml").read_text(encoding="utf-8"))

    @property
    def expectations(self) -> set[str]:
        """The names of the files that a case has whose input is read."""
        return {"expect.diag", "expect.txt"} | ({"expect.json"} if self.format in PINS_JSON else set())

    @property
    def input(self) -> Path:
        (path,) = self.folder.glob("input.*")
        return path

    def named_input(self, tmp_path: Path) -> Path:
        """The input under the name that it had when it was recorded."""
        beside = self.folder / "beside"
        if beside.is_dir():
            shutil.copytree(beside, tmp_path, dirs_exist_ok=True)
        elif "file_name" not in self.about:
            return self.input
        tmp_path.mkdir(parents=True, exist_ok=True)
        copy = tmp_path / self.about.get("file_name", self.input.name)
        shutil.copyfile(self.input, copy)
        return copy

    @property
    def options(self) -> dict[str, str]:
        return {key: _text(value) for key, value in self.about.get("options", {}).items()}

    def traces(self, tmp_path: Path) -> list[Trace]:
        """The inputs as read."""
        if self.format != "merge":
            return [read(self.named_input(tmp_path), format=self.format, options=self.options)]
        parts = [Case(ROOT / name) for name in self.about["inputs"]]
        return [read(part.named_input(tmp_path), format=part.format, options=part.options) for part in parts]

    def merged(self, traces: list[Trace]) -> Trace:
        """The inputs on one time axis."""
        offsets = {int(index): parse_duration(text) for index, text in self.about.get("offsets", {}).items()}
        same_machine = self.about.get("same_machine", False)
        alignment = align(
            traces,
            policy=Policy(**self.about.get("policy", {})),
            constraints=Constraints(offsets=offsets, same_machine=same_machine),
        )
        merged = merge_traces(traces, alignment)
        if self.about.get("attribute", False):
            merged = attributed(merged, Memory().parts(), counters=True)
        if "trim" in self.about:
            merged = trimmed(merged, self.about["trim"])
        validate(merged)
        return merged


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def cases() -> Iterator[Case]:
    """All cases but those of golden/align, in the order of their names."""
    for path in sorted(ROOT.glob("*/*")):
        if path.is_dir() and path.parent.name != "align":
            yield Case(path)


def by_format(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Return the mark of a test that gets all cases of a format at once, as `cases`."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.format, []).append(case)
    return pytest.mark.parametrize("cases", found.values(), ids=list(found))


def written(trace: Trace, format: str) -> bytes:
    """The bytes of a trace in an output format."""
    sink = io.BytesIO()
    writer_named(format).write(trace, sink)
    return sink.getvalue()


def without_version(text: str) -> str:
    """A Chrome JSON output that does not change with the version of traceconv: no release rewrites the goldens."""
    before, after = f'"traceconv":{{"version":"{__version__}"', '"traceconv":{"version":"VERSION"'
    assert text.count(before) == 1
    return text.replace(before, after)
