"""Every golden input, damaged at random: only our own errors and counted losses come out, the same without the kernel.

TRACECONV_MUTATIONS=500 pytest tests/test_mutations.py -n 2      # more of them, and other ones each time
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import kernels
from tests.golden import Case, cases
from traceconv import kernel
from traceconv.align import align
from traceconv.api import identify, read
from traceconv.errors import TraceconvError, UnrelatedClocks
from traceconv.merging import merge_traces
from traceconv.validate import validate
from traceconv.writers import writer_named

CASES = [case for case in cases() if case.format != "merge"]
WANTED = int(os.environ.get("TRACECONV_MUTATIONS", "0"))
#: Few by default, since there are hundreds of inputs; the same ones each time, so that a failure can be found again.
RUN = settings(
    max_examples=WANTED or 6,
    derandomize=not WANTED,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Mutation:
    """One kind of damage; places are shares of the length of the input, in millionths."""

    kind: str
    first: int
    second: int
    junk: bytes

    def apply(self, data: bytes) -> bytes:
        one, other = sorted((self.first * len(data) // 10**6, self.second * len(data) // 10**6))
        match self.kind:
            case "cut":
                return data[:one]
            case "behead":
                return data[one:]
            case "remove":
                return data[:one] + data[other:]
            case "duplicate":
                return data[:other] + data[one:]
            case "swap":
                middle = (one + other) // 2
                return data[:one] + data[middle:other] + data[one:middle] + data[other:]
            case "overwrite":
                return data[:one] + self.junk + data[one + len(self.junk) :]
            case "insert":
                return data[:one] + self.junk + data[one:]
            case "bits":
                flipped = bytes(byte ^ 1 << self.second % 8 for byte in data[one : one + len(self.junk)])
                return data[:one] + flipped + data[one + len(flipped) :]
            case "retype":
                numbers = list(_NUMBER.finditer(data, one)) or list(_NUMBER.finditer(data))
                if not numbers:
                    return data
                number = numbers[self.second % min(len(numbers), _NEAR)]
                return data[: number.start()] + self.other_type(number[0]) + data[number.end() :]
            case "lines":
                lines = data.splitlines(keepends=True)
                at, with_ = (share * len(lines) // 10**6 for share in (self.first, self.second))
                if lines:
                    lines[at], lines[with_] = lines[with_], lines[at]
                return b"".join(lines)
        raise ValueError(self.kind)

    def other_type(self, number: bytes) -> bytes:
        """What may stand in the place of a number."""
        values = [
            b'"%b"' % number,
            b"-" + number,
            number + b".5",
            number + b"e3",
            b"0" + number,
            b"0x" + number,
            *_VALUES,
        ]
        return values[(self.first + self.second) % len(values)]


_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
#: One of so many numbers behind a place is replaced.
_NEAR = 20
_VALUES = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"",
    b"x",
    b"NaN",
    b"inf",
    b"-0",
    b"1e400",
    b"1e-400",
    b"9" * 19,
    b"9" * 40,
)
KINDS = ["cut", "behead", "remove", "duplicate", "swap", "overwrite", "insert", "lines", "bits", "retype"]
JUNK = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from([b"\xff", b"\x00", b'"', b"{", b"]", b"\n", b",", b"-", b"9" * 30, b"1e999", b"NaN", b"\x1b[31m"]),
)
PLACE = st.integers(0, 10**6 - 1)
MUTATIONS = st.lists(st.builds(Mutation, st.sampled_from(KINDS), PLACE, PLACE, JUNK), min_size=1, max_size=3)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@RUN
@given(mutations=MUTATIONS)
def test_damage_is_an_error_of_ours_or_counted(case: Case, mutations: list[Mutation]) -> None:
    data = case.input.read_bytes()
    for mutation in mutations:
        data = mutation.apply(data)
    with tempfile.TemporaryDirectory() as folder:
        if (case.folder / "beside").is_dir():
            shutil.copytree(case.folder / "beside", folder, dirs_exist_ok=True)
        path = Path(folder) / case.about.get("file_name", case.input.name)
        path.write_bytes(data)
        identify_or_refuse(path)
        found = outcome(path, case)
        if kernel.COMPILED:
            with kernels.without():
                assert outcome(path, case) == found
        assert path.read_bytes() == data


def check_refusal(error: TraceconvError, path: Path) -> None:
    assert "\n" not in error.message + error.hint
    assert path.name in error.message


def identify_or_refuse(path: Path) -> None:
    try:
        identify(path)
    except TraceconvError as error:
        check_refusal(error, path)


def outcome(path: Path, case: Case) -> list[Any]:
    """Everything that comes out of an input: a refusal, or the trace, what became of each event, and both outputs."""
    try:
        trace = read(path, format=case.format, options=case.options)
    except TraceconvError as error:
        check_refusal(error, path)
        return [type(error), error.message, error.hint]
    source = trace.sources[0]
    balance = source.balance
    assert balance.even
    counts = (balance.read, balance.written, dict(balance.merged), dict(balance.skipped))
    diagnostics = sorted(entry.describe() for entry in source.diagnostics)
    found = [trace.counts(), counts, diagnostics, trace.metadata, trace.snapshots]
    try:
        merged = merge_traces([trace], align([trace]))
    except UnrelatedClocks as error:
        return [*found, error.message]
    validate(merged)
    for output in ("perfetto", "chrome-json"):
        data = io.BytesIO()
        counted = writer_named(output).write(merged, data)
        assert (counted.slices, counted.logs) == (len(merged.slices.ts), len(merged.logs.ts))
        found.append(data.getvalue())
    return found
