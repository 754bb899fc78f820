"""Every golden input, damaged at random: only our own errors and counted losses come out, the same without the kernel.

Bytes are changed in any input, and in databases also what a statement can change: values into other types, columns and
tables that go or get other names.

TRACECONV_MUTATIONS=500 pytest tests/test_mutations.py -n 2      # more of them, and other ones each time
TRACECONV_MUTATIONS=2000 pytest tests/test_mutations.py -k "nvprof or nsight"
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests import damage, kernels
from tests.damage import Edit, Mutation
from tests.golden import ROOT, Case, by_format, cases, written
from tests.together import together
from traceconv import kernel
from traceconv.align import align
from traceconv.api import identify, read
from traceconv.errors import TraceconvError, UnrelatedClocks
from traceconv.families.outputs import writer_named
from traceconv.io.sqlite import MAGIC
from traceconv.merging.traces import merge_traces
from traceconv.model.layout import validate
from traceconv.model.trace import Trace

CASES = [case for case in cases() if case.format != "merge"]
MERGES = [case for case in cases() if case.format == "merge"]
WANTED = int(os.environ.get("TRACECONV_MUTATIONS", "0"))
DATABASES = [case for case in CASES if case.input.read_bytes().startswith(MAGIC)]
OTHERS = [case for case in CASES if case not in DATABASES]


def has_members(data: bytes) -> bool:
    return len(data) < MOST_BYTES and b"\0" not in data and len(damage.members(data)) > 2


#: The values of members that are tried of each format, in inputs of fewer bytes.
ODD_MEMBERS, MOST_BYTES = 40, 20_000
#: What modules of the kernel read; tests of these compare the writers with and without it.
READ_BY_KERNEL = {".json", ".pftrace", "onednn-verbose", "perf-script"}


def run(count: int) -> settings:
    """Few by default, for there are hundreds of inputs; the same ones each time, so that a failure is found again."""
    return settings(
        max_examples=WANTED or count,
        derandomize=not WANTED,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


PLACE = st.integers(0, 10**6 - 1)
JUNK = st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from(damage.JUNK))
MUTATIONS = st.builds(Mutation, st.sampled_from(damage.KINDS), PLACE, PLACE, JUNK)
#: Changes that leave the size as it is: of a database with another size little is read.
IN_PLACE = st.builds(Mutation, st.sampled_from(["bits", "overwrite"]), PLACE, PLACE, JUNK)
EDITS = st.builds(
    Edit,
    st.sampled_from(damage.EDIT_KINDS),
    PLACE,
    PLACE,
    st.sampled_from(["", *damage.ROWS]),
    st.sampled_from(damage.CELLS),
)


def each_changed(cases: list[Case], count: int, mutations: st.SearchStrategy[Any], test: Any) -> None:
    """Test some mutations of each case, and of each case other ones."""
    with together() as each:
        for case in cases:
            with each(case.name):
                change(case, count, mutations, test)


def change(case: Case, count: int, mutations: st.SearchStrategy[Any], test: Any) -> None:
    @run(count)
    @given(mutations)
    def changed(chosen: list[Any]) -> None:
        test(case, chosen)

    (changed if WANTED else seed(case.name)(changed))()


@by_format(OTHERS)
def test_damage_is_an_error_of_ours_or_counted(cases: list[Case]) -> None:
    each_changed(cases, 2, st.lists(MUTATIONS, min_size=1, max_size=3), check)


@by_format(DATABASES)
def test_a_changed_database_is_read_or_refused(cases: list[Case]) -> None:
    each_changed(cases, 8, st.lists(EDITS | EDITS | IN_PLACE | MUTATIONS, min_size=1, max_size=4), check)


@by_format([case for case in OTHERS if has_members(case.input.read_bytes())])
def test_odd_values_of_members(cases: list[Case]) -> None:
    """A list cannot be looked up in a set, a number has no length, half of a surrogate pair no encoding."""
    by_key = defaultdict(list)
    for case in cases:
        data = case.input.read_bytes()
        for key, spans in damage.members(data).items():
            by_key[key].append((case, data, spans))
    rng = random.Random(None if WANTED else cases[0].format)
    choices = [(key, value) for key in sorted(by_key) for value in damage.ODD_VALUES]
    for key, value in rng.sample(choices, min(len(choices), WANTED or ODD_MEMBERS)):
        case, data, spans = rng.choice(by_key[key])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / case.about.get("file_name", case.input.name)
            path.write_bytes(damage.with_value(data, spans, value))
            identify_or_refuse(path)
            try:
                trace = read(path, format=case.format, options=case.options)
            except TraceconvError as error:
                check_refusal(error, path)
            else:
                check_read(trace)


@pytest.mark.parametrize("case", MERGES, ids=[case.name for case in MERGES])
@run(6)
@given(which=st.integers(0, 5), mutations=st.lists(MUTATIONS, min_size=1, max_size=2))
def test_a_merge_with_a_damaged_input(case: Case, which: int, mutations: list[Mutation]) -> None:
    """What belongs to merges: clocks, ranks, samples as args of layers, windows."""
    parts = [Case(ROOT / name) for name in case.about["inputs"]]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, part in enumerate(parts):
            path = copied(part, Path(folder) / str(number), mutations if number == which % len(parts) else [])
            paths.append(path)
        found = merge_outcome(case, parts, paths)
        if kernel.COMPILED:
            with kernels.without():
                assert merge_outcome(case, parts, paths) == found


def merge_outcome(case: Case, parts: list[Case], paths: list[Path]) -> list[Any]:
    """A refusal, or both outputs."""
    try:
        inputs = zip(parts, paths, strict=True)
        traces = [read(path, format=part.format, options=part.options) for part, path in inputs]
        merged = case.merged(traces)
    except TraceconvError as error:
        check_one_line(error)
        return [type(error), error.message, error.hint]
    return [merged.counts(), merged.metadata, *(written(merged, output) for output in ("perfetto", "chrome-json"))]


def copied(case: Case, folder: Path, mutations: list[Any]) -> Path:
    """The input with some changes, in a folder with what lies beside it."""
    data = case.input.read_bytes()
    for mutation in mutations:
        data = mutation.apply(data)
    folder.mkdir(exist_ok=True)
    if (case.folder / "beside").is_dir():
        shutil.copytree(case.folder / "beside", folder, dirs_exist_ok=True)
    path = folder / case.about.get("file_name", case.input.name)
    path.write_bytes(data)
    return path


def check(case: Case, mutations: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = copied(case, Path(folder), mutations)
        data = path.read_bytes()
        identify_or_refuse(path)
        found = outcome(path, case)
        if kernel.COMPILED and (path.suffix in READ_BY_KERNEL or case.format in READ_BY_KERNEL):
            with kernels.without():
                assert outcome(path, case) == found
        assert path.read_bytes() == data


def check_one_line(error: TraceconvError) -> None:
    assert "\n" not in error.message + error.hint


def check_refusal(error: TraceconvError, path: Path) -> None:
    check_one_line(error)
    assert path.name in error.message


def check_read(trace: Trace) -> None:
    for text in [*trace.strings, *(track.name for track in trace.tracks)]:
        text.encode()  # no lone surrogate
    json.dumps(trace.metadata, ensure_ascii=False, default=str).encode()
    assert trace.sources[0].balance.even


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
    check_read(trace)
    source = trace.sources[0]
    balance = source.balance
    counts = (balance.read, balance.written, dict(balance.merged), dict(balance.skipped))
    diagnostics = sorted(entry.message() for entry in source.diagnostics)
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
