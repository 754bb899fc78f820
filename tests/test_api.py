"""The library as a user of it sees it."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import traceconv
from tests.golden import ROOT
from traceconv import errors
from traceconv.errors import NothingRead
from traceconv.reading import NO_DATA

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"


def test_the_names_stay_what_they_are_after_use(tmp_path: Path) -> None:
    """Importing a submodule sets an attribute of the package: none may have the name of a function."""
    code = (
        "import traceconv, sys\n"
        "for name in ('a', 'b'):\n"
        f"    traceconv.merge([{str(KINETO)!r}, {str(ONEDNN)!r}], {str(tmp_path)!r} + '/' + name + '.pftrace')\n"
        f"    traceconv.convert({str(ONEDNN)!r}, {str(tmp_path)!r} + '/' + name + '.json')\n"
        f"    traceconv.identify({str(ONEDNN)!r}); traceconv.formats(); traceconv.read({str(ONEDNN)!r})\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
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
    with pytest.raises(traceconv.TraceconvError, match="two clocks that nothing relates"):
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
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True, text=True)
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


def test_results_are_shown_in_a_line(tmp_path: Path) -> None:
    log = "100 slices, 2 tracks"
    assert repr(traceconv.read(ONEDNN)) == f"<Trace of 'input.log': {log}>"
    result = traceconv.convert(ONEDNN, tmp_path / "out.json")
    assert repr(result) == f"<Result: <Trace of 'input.log': {log}>, clocks: 1 ok>"
    merged = traceconv.merge([KINETO, ONEDNN], tmp_path / "both.json")
    assert re.fullmatch(
        r"<Result: <Trace of 2 inputs: \d+ slices, 2 instants, \d+ flows, \d+ tracks>, clocks: 2 ok>", repr(merged)
    )
    (tmp_path / "empty.json").write_text("[]")
    assert repr(traceconv.read(tmp_path / "empty.json")) == "<Trace of 'empty.json': empty>"


def test_old_names_are_known_for_one_version_more() -> None:
    with pytest.warns(DeprecationWarning, match="Facts is now Constraints"):
        assert traceconv.Facts is traceconv.Constraints
    with pytest.warns(DeprecationWarning, match="parse_facts is now parse_constraints"):
        assert traceconv.parse_facts is traceconv.parse_constraints
