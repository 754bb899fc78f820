"""The library as a user of it sees it."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import gzip
import importlib
import re
import shutil
import subprocess
import sys
import types
import typing
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import numpy.typing
import pytest
from msgspec import Struct

import traceconv
from tests import HANG_S
from tests.golden import ROOT
from traceconv import errors
from traceconv.errors import NothingRead, UsageError
from traceconv.io.limits import Limits
from traceconv.reading import NO_DATA
from traceconv.recordings import Settings, opened

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
#: The library for wrong calls, which type checkers refuse.
UNTYPED: Any = traceconv


def test_the_names_stay_what_they_are_after_use(tmp_path: Path) -> None:
    """Importing a submodule sets an attribute of the package: none may have the name of a function."""
    code = (
        "import traceconv, sys\n"
        "for name in ('a', 'b'):\n"
        f"    traceconv.merge([{str(KINETO)!r}, {str(ONEDNN)!r}], {str(tmp_path)!r} + '/' + name + '.pftrace')\n"
        f"    traceconv.convert({str(ONEDNN)!r}, {str(tmp_path)!r} + '/' + name + '.json')\n"
        f"    traceconv.identify({str(ONEDNN)!r}); traceconv.formats(); traceconv.read({str(ONEDNN)!r})\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=HANG_S, check=False)
    assert result.returncode == 0, result.stderr.decode()
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


@pytest.mark.parametrize("name", [name for name in traceconv.__all__ if name.islower()])
def test_every_public_function_is_documented(name: str) -> None:
    assert (getattr(traceconv, name).__doc__ if name != "__version__" else "text").strip()


def test_a_read_trace_can_be_written(tmp_path: Path) -> None:
    trace = traceconv.read(KINETO)
    traceconv.write(trace, tmp_path / "a.pftrace")
    traceconv.convert(KINETO, tmp_path / "b.pftrace")
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


def test_a_trace_on_unrelated_clocks_is_not_written(tmp_path: Path) -> None:
    log = tmp_path / "two.log"
    line = "onednn_verbose,v1,{},primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:a::f0,,,16,0.25"
    log.write_text(line.format("1795245457236.579102") + "\n" + line.format("12345.5") + "\n")
    with pytest.raises(traceconv.TraceconvError, match="two unrelated clocks"):
        traceconv.write(traceconv.read(log), tmp_path / "a.pftrace")


def test_an_output_says_how_to_write_there(tmp_path: Path) -> None:
    """The same for all that writes: the writer, whether a file may be replaced, whether losses are refused."""
    target = tmp_path / "trace"
    as_json = traceconv.Output(target, to="chrome-json")
    traceconv.convert(KINETO, as_json)
    json = target.read_bytes()
    for write in (
        lambda output: traceconv.convert(KINETO, output),
        lambda output: traceconv.merge([KINETO], output),
        lambda output: traceconv.write(traceconv.read(KINETO), output),
    ):
        with pytest.raises(traceconv.UsageError, match="the file exists"):
            write(as_json)
        write(traceconv.Output(target, force=True, to="perfetto"))
        assert target.read_bytes() != json
        write(traceconv.Output(target, force=True, to="chrome-json"))
        assert target.read_bytes() == json
    cut = tmp_path / "cut.log.gz"
    cut.write_bytes(gzip.compress(ONEDNN.read_bytes())[:-100])
    with pytest.raises(traceconv.LostData):
        traceconv.write(traceconv.read(cut), traceconv.Output(tmp_path / "a.json", strict=True))
    assert not (tmp_path / "a.json").exists()


def test_what_is_known_of_the_clocks_is_given_as_constraints(tmp_path: Path) -> None:
    """All that functions take and return can be imported from the package."""
    paths = [str(KINETO), str(ONEDNN)]
    constraints = traceconv.parse_constraints(paths, drifts=[f"{ONEDNN}=1ppm"])
    policy = traceconv.Policy(on_ambiguous="separate")
    result = traceconv.merge(paths, tmp_path / "a.pftrace", constraints=constraints, policy=policy)
    alignment, checks = traceconv.estimate(paths, constraints=constraints, policy=policy)
    survey = traceconv.clocks(paths, constraints=traceconv.Constraints(same_machine=True))
    assert isinstance(result, traceconv.Result)
    assert isinstance(result.trace, traceconv.Trace)
    assert isinstance(alignment, traceconv.Alignment)
    assert isinstance(checks, traceconv.Causality)
    assert isinstance(survey, traceconv.Survey)
    assert all(isinstance(line, traceconv.ReceiptLine) for line in alignment.receipt)


def test_all_errors_can_be_imported_from_the_package() -> None:
    own = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)}
    assert own <= set(traceconv.__all__)
    assert all(getattr(traceconv, name) is getattr(errors, name) for name in own)


# -- options ----------------------------------------------------------------------------------------------------------


def test_names_are_seen_before_first_use() -> None:
    code = "import traceconv, sys; print(*dir(traceconv)); assert 'numpy' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=HANG_S, check=True, text=True)
    assert set(traceconv.__all__) <= set(result.stdout.split())


def test_options_are_texts_or_what_these_stand_for(tmp_path: Path) -> None:
    (profile,) = (ROOT / "mxnet" / "counters").glob("input.*")
    for options in ({"api_counters": "false", "pid": "7"}, {"api_counters": False, "pid": 7}):
        trace = traceconv.read(profile, format="mxnet", options=options)
        assert [track.pid for track in trace.tracks if track.pid is not None] == [7]
    one = traceconv.Input(profile, options={"api_counters": True})
    assert traceconv.merge([one], tmp_path / "a.json", options={"pid": 7}).trace.sources[0].format == "mxnet"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pid": 1.5}, "option pid is a text, a whole number, true or false, not 1.5"),
        ({"pid": True}, "option pid of mxnet is a whole number, not 'true'"),
        ({"api_counters": 1}, "option api_counters of mxnet is true or false, not '1'"),
        ({"api_counters": None}, "option api_counters is a text"),
    ],
)
def test_an_option_of_another_type_is_refused(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    (profile,) = (ROOT / "mxnet" / "counters").glob("input.*")
    with pytest.raises(traceconv.TraceconvError, match=re.escape(said)):
        traceconv.read(profile, format="mxnet", options=options)
    with pytest.raises(traceconv.TraceconvError, match=re.escape(said)):
        traceconv.convert(profile, tmp_path / "a.json", options=options)


# -- inputs of which nothing is read ----------------------------------------------------------------------------------

UNREAD = '[{"ph": "X", "name": "a"}, {"ph": "?", "ts": 1}, {"ph": "X", "name": "b"}]'


def test_data_of_which_none_is_read_is_a_failure(tmp_path: Path) -> None:
    unread = tmp_path / "unread.json"
    unread.write_text(UNREAD)
    said = r"unread.json: nothing of it could be read: 2 x .* \(chrome.bad_time\) \[unread.json:event 1: "
    for inputs in ([unread], [KINETO, unread]):
        with pytest.raises(NothingRead, match=said):
            traceconv.merge(inputs, tmp_path / "out.json")
    with pytest.raises(NothingRead, match=said):
        traceconv.read(unread)
    assert not (tmp_path / "out.json").exists()


def test_the_head_of_a_log_is_no_data(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("onednn_verbose,v1,info,oneDNN v3.0\nonednn_verbose,v1,primitive,exec,cpu,conv\n")
    with pytest.raises(NothingRead, match=r"1 x a line breaks off .*a\.log:line 2"):
        traceconv.convert(log, tmp_path / "out.json")
    log.write_text("onednn_verbose,v1,info,oneDNN v3.0\n")
    assert traceconv.convert(log, tmp_path / "out.json").trace.sources[0].balance.kept


def test_one_event_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(UNREAD[:-1] + ', {"ph": "X", "name": "c", "ts": 1, "dur": 1}]')
    assert traceconv.convert(path, tmp_path / "out.json").trace.sources[0].balance.written == 1


@pytest.mark.parametrize(
    "case", ["chrome-trace/empty-events", "nsight-compute/no_kernels", "tvm-debugger/header-only", "nvprof/only-tables"]
)
def test_no_data_is_a_notice(case: str, tmp_path: Path) -> None:
    (path,) = (ROOT / case).glob("input.*")
    (source,) = traceconv.convert(path, tmp_path / "out.json").trace.sources
    assert [entry.count for entry in source.diagnostics if entry.code is NO_DATA] == [1]


@pytest.mark.parametrize("case", ["clock-anchor/alone", "perf-header/monotonic", "onednn-verbose/info-only"])
def test_data_kept_as_metadata_is_data(case: str, tmp_path: Path) -> None:
    (path,) = (ROOT / case).glob("input.*")
    (source,) = traceconv.convert(path, tmp_path / "out.json").trace.sources
    assert source.diagnostics.count(NO_DATA) == 0


# -- what a shell shows -----------------------------------------------------------------------------------------------


def test_a_trace_is_shown_in_five_lines(tmp_path: Path) -> None:
    log = (
        "<Trace of 'input.log'\n events: 100 slices, 2 tracks\n clocks: CLOCK_REALTIME\n"
        " span: 36.344000 ms, from 1795245457236579000 ns\n problems: 4 skipped by design>"
    )
    assert repr(traceconv.read(ONEDNN)) == log
    (tmp_path / "empty.json").write_text("[]")
    assert repr(traceconv.read(tmp_path / "empty.json")).splitlines()[::3] == [
        "<Trace of 'empty.json'",
        " span: none",
    ]
    many = [shutil.copy(ONEDNN, tmp_path / f"{number}.log") for number in range(5)]
    shown = repr(traceconv.merge(many).trace).splitlines()
    assert len(shown) == 5
    assert shown[0] == "<Trace of '0.log', '1.log', '2.log' and 2 more"


def test_a_result_is_shown_with_its_verdicts(tmp_path: Path) -> None:
    result = traceconv.convert(ONEDNN, tmp_path / "out.json")
    assert repr(result) == f"<Result: 1 ok\n{result.trace!r}>"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: UNTYPED.merge(str(KINETO)), "the inputs are a single path: a list of paths is expected"),
        (lambda: UNTYPED.report(KINETO), "the inputs are a single path: a list of paths is expected"),
        (lambda: UNTYPED.merge(traceconv.Input(KINETO)), "the inputs are a single path: a list of paths is expected"),
        *(
            (partial(call, []), "there are no inputs: a list of paths is expected")
            for call in (traceconv.merge, traceconv.report, traceconv.frames, traceconv.stacks, traceconv.clocks)
        ),
        (lambda: UNTYPED.merge(5), "the inputs are of type int: a list of paths is expected"),
        (lambda: UNTYPED.read(5), "5 is not a path"),
        (lambda: UNTYPED.merge([None]), "None is not a path"),
        (lambda: UNTYPED.Input(KINETO, offset_ns=-1.5), "offset_ns=-1.5 is not an integer"),
        (
            lambda: UNTYPED.Input(KINETO, offset_ns=1, offset_within_ns=None),
            "offset_within_ns=None is not an integer",
        ),
        (lambda: UNTYPED.Policy(on_ambiguous="maybe"), "on_ambiguous='maybe' is not one of fail, separate, best"),
    ],
)
def test_an_argument_of_another_kind_is_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(errors.UsageError, match=f"^{re.escape(said)}$"):
        call()


def test_a_section_is_shown_in_one_short_line() -> None:
    (section,) = traceconv.report([KINETO], traceconv.Questions(("operations",)))
    assert str(section) == f"<Section operations: {len(section.rows)} rows>"


def test_a_table_of_events_is_shown_in_one_line() -> None:
    trace = traceconv.read(ONEDNN)
    assert repr(trace.slices) == "<Slices: 100 rows: ts, dur, track, name, category, args_at, args_len, origin>"
    assert repr(trace.flows) == "<Flows: 0 rows: from_slice, to_slice, name, category, origin>"


# -- a merge without an output ----------------------------------------------------------------------------------------


def test_a_merge_without_an_output_returns_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = traceconv.merge([KINETO, ONEDNN])
    assert [line.verdict for line in result.receipt] == ["ok", "ok"]
    assert list(tmp_path.iterdir()) == []
    written = traceconv.merge([KINETO, ONEDNN], "both.pftrace")
    assert result.trace.counts() == written.trace.counts()
    traceconv.write(result.trace, "again.pftrace")
    assert (tmp_path / "again.pftrace").read_bytes() == (tmp_path / "both.pftrace").read_bytes()


def test_a_merge_without_an_output_writes_its_report(tmp_path: Path) -> None:
    traceconv.merge([KINETO, ONEDNN], report=tmp_path / "receipt.json")
    assert (tmp_path / "receipt.json").stat().st_size
    with pytest.raises(traceconv.UsageError, match="exists"):
        traceconv.merge([KINETO, ONEDNN], report=tmp_path / "receipt.json")


# -- names ------------------------------------------------------------------------------------------------------------


def _classes_in(hint: Any) -> set[type]:
    """Return the classes of the package in a type hint, inside of unions and containers."""
    inner = set().union(*map(_classes_in, typing.get_args(hint)))
    kind = typing.get_origin(hint) or hint
    return inner | {kind} if isinstance(kind, type) and kind.__module__.startswith("traceconv.") else inner


def _hints(owner: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return the type hints of a public function or class; `names` are those that a module imports for types only."""
    return {
        name: hint
        for name, hint in typing.get_type_hints(owner, {**names, **vars(sys.modules[owner.__module__])}).items()
        if not name.startswith("_")
    }


def test_all_that_functions_take_and_return_is_exported() -> None:
    """Also the classes of the attributes of that: what is two steps from a function has a name of its own here."""
    public = {name: getattr(traceconv, name) for name in traceconv.__all__}
    names = public | {"npt": numpy.typing, "np": numpy}
    wanted: set[type] = set()
    for one in public.values():
        if isinstance(one, types.FunctionType):
            wanted |= set().union(*map(_classes_in, _hints(one, names).values()))
    for one in list(wanted):
        if dataclasses.is_dataclass(one) or issubclass(one, Struct):
            wanted |= set().union(*map(_classes_in, _hints(one, names).values()))
    assert len(wanted) > 40
    assert {one.__name__ for one in wanted} - {"Opened"} <= set(traceconv.__all__)


def test_type_checkers_see_the_names_that_programs_get() -> None:
    (block,) = (node for node in ast.parse(Path(traceconv.__file__).read_text()).body if isinstance(node, ast.If))
    seen = {"__version__"}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        if node.module != "typing":
            for name in node.names:
                assert getattr(traceconv, name.name) is getattr(importlib.import_module(str(node.module)), name.name)
                seen.add(name.name)
    assert seen == {*traceconv.__all__, "open"}


def test_completion_offers_public_names_alone() -> None:
    assert {name for name in dir(traceconv) if not name.startswith("__")} == {*traceconv.__all__, "open"} - {
        "__version__"
    }


def test_no_function_of_python_is_replaced_by_a_star() -> None:
    assert not set(traceconv.__all__) & set(vars(builtins))


def test_the_format_of_a_file_has_names() -> None:
    found = traceconv.identify(ONEDNN)
    assert found == (found.format, found.reason) == ("onednn-verbose", "a line begins with onednn_verbose,")


@pytest.mark.parametrize(
    "more",
    [
        {"options": {"nonsense": "1"}},
        {"policy": traceconv.Policy(on_ambiguous="best")},
        {"constraints": traceconv.Constraints(same_machine=True)},
        {"memory": 1 << 30},
        {"limits": Limits(ratio=5)},
    ],
)
def test_a_trace_takes_no_arguments_for_inputs(more: dict[str, Any], tmp_path: Path) -> None:
    trace = traceconv.read(ONEDNN)
    for call in (
        traceconv.report,
        traceconv.frames,
        traceconv.stacks,
        partial(traceconv.export, output=tmp_path / "tables.csv"),
    ):
        with pytest.raises(UsageError, match=f"read and aligned already: {next(iter(more))} would change nothing"):
            call(trace, **more)
    assert not list(tmp_path.iterdir())


def test_opened_recordings_take_no_other_settings(tmp_path: Path) -> None:
    recordings = opened([ONEDNN], Settings(limits=Limits(ratio=5)))
    assert traceconv.read(recordings).counts() == traceconv.read(ONEDNN).counts()
    with pytest.raises(UsageError, match="opened with their settings: memory would change nothing"):
        traceconv.merge(recordings, tmp_path / "out.pftrace", memory=1 << 30)
    assert not list(tmp_path.iterdir())


def test_offsets_of_constraints_are_those_of_inputs() -> None:
    own = [ONEDNN, traceconv.Input(ONEDNN, offset_ns=5_000_000)]
    stated = traceconv.Constraints(offsets={1: 5_000_000})
    found = [traceconv.estimate(own)[0], traceconv.estimate([ONEDNN, ONEDNN], constraints=stated)[0]]
    assert found[0].maps == found[1].maps
    assert [line.offset_ns for line in found[0].receipt] == [0, 5_000_000]
    with pytest.raises(UsageError, match="the input has an offset, and the constraints have one"):
        traceconv.estimate(own, constraints=stated)


def test_opened_recordings_are_one_where_one_is_taken(tmp_path: Path) -> None:
    two = opened([KINETO, ONEDNN], Settings())
    with pytest.raises(traceconv.UsageError, match="2 recordings are open, expected one"):
        traceconv.read(two)
    one = opened([KINETO], Settings())
    with pytest.raises(traceconv.UsageError, match="given for recordings that are open"):
        traceconv.read(one, format="chrome-trace")
    assert len(traceconv.read(one).slices.ts)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("by", lambda path: traceconv.report([path], traceconv.Questions(by="name"))),
        ("sections", lambda path: traceconv.report([path], traceconv.Questions(sections="operations"))),
        ("args", lambda path: traceconv.frames([path], args="Ev Idx")),
        ("clocks", lambda path: traceconv.parse_constraints([path], clocks="a=realtime")),
    ],
)
def test_a_text_is_no_list_of_its_letters(name: str, call: Callable[[str], object]) -> None:
    with pytest.raises(UsageError, match=f"{name}: a list of texts is expected"):
        call(str(ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"))
