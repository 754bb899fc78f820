"""Folders and archives of several files become the recordings in them."""

from __future__ import annotations

import gc
import gzip
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

import traceconv
from tests import commands
from tests.golden import ROOT
from traceconv import cli, reading, recordings
from traceconv.check.chrome_text import load_schema
from traceconv.errors import (
    ImporterFailed,
    InputError,
    UnrecognizedFormat,
    UnrecognizedInput,
    UnrelatedClocks,
    UsageError,
)
from traceconv.families.registry import importer_class, importers
from traceconv.io import folders, limits
from traceconv.io.folders import files_of, natural, shown
from traceconv.io.limits import Limits
from traceconv.io.source import CHUNK_BYTES, Source, fingerprint
from traceconv.model.clocks import Verdict

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
PLAIN_LOG = b"".join(b"2026-11-21T12:00:%02dZ step\n" % second for second in range(20))
CONTENT = {
    "b/onednn.log": ONEDNN.read_bytes(),
    "a.json": KINETO.read_bytes(),
    "notes.txt": b"nothing that is known\n",
    "app.log": PLAIN_LOG,
    ".hidden.json": KINETO.read_bytes(),
}
REASONS = {
    "notes.txt": "no known format; it begins with 'nothing that is known'",
    "app.log": "a plain log: name it to include it",
    ".hidden.json": "hidden",
}


def run(*arguments: object, piped: str = "") -> Result:
    return CliRunner().invoke(cli.cli, [str(argument) for argument in arguments], input=piped)


def folder(path: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def zipped(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def tarred(path: Path, content: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


WAYS: dict[str, Callable[[Path, dict[str, bytes]], Path]] = {
    "runs": folder,
    "runs.zip": zipped,
    "runs.tar": tarred,
    "runs.tar.gz": tarred,
}


@pytest.fixture(params=WAYS)
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return WAYS[request.param](tmp_path / request.param, CONTENT)


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


def test_recordings_are_taken_in_order_and_the_rest_is_listed(runs: Path, tmp_path: Path) -> None:
    found = traceconv.expand([runs])
    assert [shown(path) for path in found.paths] == [f"{runs}/a.json", f"{runs}/b/onednn.log"]
    assert [one.recognition and one.recognition.cls.name for one in found.recordings] == [
        "pytorch-kineto",
        "onednn-verbose",
    ]
    assert found.left_out == {f"{runs}/{name}": reason for name, reason in REASONS.items()}
    del found
    gc.collect()
    assert os.listdir(tempfile.gettempdir()) == []
    result = run("merge", runs, "-o", tmp_path / "a.pftrace")
    assert result.exit_code == 0, result.output
    assert f"2 recordings taken:\n  {runs}/a.json (pytorch-kineto)\n  {runs}/b/onednn.log" in result.stderr
    for name, reason in REASONS.items():
        assert f"  {runs}/{name}: {reason}\n" in result.stderr
    assert (tmp_path / "a.pftrace").read_bytes() != b""


@pytest.mark.parametrize("command", ["align", "check", "clocks", "export", "info", "identify", "report"])
def test_all_commands_look_at_them_once_and_tell_the_rest(
    command: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(source: Source, format: str | None = None) -> reading.Recognised:
        asked.append(source.name)
        return recognise(source, format)

    recognise = reading.recognise
    for module in (reading, recordings):
        monkeypatch.setattr(module, "recognise", counted)
    more = ["-o", tmp_path / "tables.csv"] if command == "export" else []
    result = run(command, runs, *more)
    assert result.exit_code == (command == "check"), result.output
    assert "2 recordings taken" in result.stderr
    assert all(f"  {runs}/{name}: {reason}\n" in result.stderr for name, reason in REASONS.items())
    assert "onednn" in result.output
    assert sorted(asked) == ["a.json", "app.log", "notes.txt", "onednn.log"]


@pytest.mark.parametrize("command", ["check", "clocks", "identify", "info"])
def test_json_tells_what_is_left_out(command: str, runs: Path) -> None:
    told = json.loads(run(command, "--json", runs).stdout)
    jsonschema.validate(told, load_schema("commands.schema.json"))
    assert {one["file"]: one["reason"] for one in told["left_out"]} == {
        f"{runs}/{name}": reason for name, reason in REASONS.items()
    }


def test_reports_tell_what_is_left_out(runs: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "align.json", tmp_path / "align.html"]
    assert run("align", runs, "--report", paths[0], "--report", paths[1]).exit_code == 0
    told = json.loads(paths[0].read_text())
    jsonschema.validate(told, load_schema("alignment.schema.json"))
    assert {one["file"] for one in told["left_out"]} == {f"{runs}/{name}" for name in REASONS}
    assert f"Left out: {runs}/app.log: a plain log" in paths[1].read_text()
    printed = json.loads(run("report", runs, "--section", "overview", "--format", "json").stdout)
    assert f"left out: {runs}/app.log" in str(printed["notes"]["overview"])


def test_a_report_of_standard_input(tmp_path: Path) -> None:
    out = tmp_path / "report.csv"
    result = CliRunner().invoke(cli.cli, ["report", "-", "-o", str(out)], input=KINETO.read_bytes())
    assert result.exit_code == 0, result.output
    assert "aten::" in out.read_text()


def test_the_library_notes_what_is_left_out(runs: Path, tmp_path: Path) -> None:
    result = traceconv.merge([runs], tmp_path / "out.pftrace")
    left_out = {f"{runs}/{name}": reason for name, reason in REASONS.items()}
    assert result.trace.left_out == left_out
    (overview,) = traceconv.report([runs], traceconv.Questions(("overview",)))
    assert f"left out: {runs}/notes.txt: {REASONS['notes.txt']}" in overview.notes
    assert {source.name for source in result.trace.sources} == {"a.json", "onednn.log"}
    constraints = traceconv.parse_constraints(["x"], drifts=["x=1ppm"])
    with pytest.raises(UsageError, match="by number"):
        traceconv.merge([runs], tmp_path / "other.pftrace", constraints=constraints)


def test_convert_and_read_take_one(runs: Path, tmp_path: Path) -> None:
    result = run("convert", runs, "-o", tmp_path / "out.pftrace")
    assert isinstance(result.exception, UsageError)
    assert result.exception.message == f"{runs}: holds 2 recordings"
    with pytest.raises(UsageError):
        traceconv.read(runs)
    for name, way in WAYS.items():
        one = way(tmp_path / f"one-{name}", {"notes.txt": b"nothing\n", "a.json": KINETO.read_bytes()})
        assert traceconv.read(one).counts() == traceconv.read(KINETO).counts()
        assert traceconv.read(one).left_out == {f"{one}/notes.txt": "no known format; it begins with 'nothing'"}
        converted = run("convert", one, "-f", "-o", tmp_path / "out.pftrace")
        assert "1 recording taken:" in converted.stderr
        assert f"1 file left out:\n  {one}/notes.txt: no known" in converted.stderr


def test_what_is_named_is_taken_once(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", CONTENT)
    found = traceconv.expand([runs, runs / "app.log", runs / "a.json"])
    assert [os.path.relpath(path, runs) for path in found.paths] == ["b/onednn.log", "app.log", "a.json"]
    result = run("info", "--from", "timed-log", runs / "app.log")
    assert result.exit_code == 0
    archive = zipped(tmp_path / "runs.zip", CONTENT)
    for name in (f"{archive}/app.log", "app.log"):
        result = run("align", archive, "--from", f"{name}=timed-log")
        assert "app.log (named)" in result.stderr
    moved = run("align", archive, "--offset", "onednn.log=-350us")
    assert "-350 µs" in moved.stderr


def test_unknown_files_of_a_pattern_are_skipped(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", CONTENT)
    files = [runs / "a.json", runs / "notes.txt", runs / "b" / "onednn.log"]
    refused = commands.run("align", *files)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].endswith("; --skip-unknown leaves it out")
    with pytest.raises(UnrecognizedInput) as error:
        traceconv.estimate(files)
    assert "--skip-unknown" not in error.value.hint
    result = run("align", *files, "--skip-unknown")
    assert result.exit_code == 0, result.output
    assert "1 file left out:" in result.stderr
    assert run("align", files[1], "--skip-unknown").exit_code == 1
    absent = run("align", *files, runs / "absent", "--skip-unknown")
    assert "No such file" in str(absent.exception)
    error_of_stream = run("align", files[0], files[2], "-", "--skip-unknown", piped="hello\n").exception
    assert isinstance(error_of_stream, UnrecognizedFormat)
    assert not isinstance(error_of_stream, UnrecognizedInput)  # a stream is never left out
    read = CliRunner().invoke(cli.cli, ["align", "-", str(KINETO), "--skip-unknown"], input=ONEDNN.read_bytes())
    assert read.exit_code == 0, read.output


def test_a_recording_in_several_forms_is_taken_once(tmp_path: Path) -> None:
    recorded = next((ROOT / "perf-data" / "several_events").glob("input.*"))
    printed = Path(__file__).parent / "perf_script" / "several_events.txt"
    runs = folder(
        tmp_path / "runs",
        {
            "a.json": KINETO.read_bytes(),
            "a.json.gz": gzip.compress(KINETO.read_bytes()),
            "perf.data": recorded.read_bytes(),
            "perf.txt": printed.read_bytes(),
        },
    )
    found = traceconv.expand([runs])
    assert [os.path.basename(path) for path in found.paths] == ["a.json", "perf.data"]
    assert found.left_out == {
        f"{runs}/a.json.gz": f"the same content as {runs}/a.json",
        f"{runs}/perf.txt": f"perf-script of the same recording as {runs}/perf.data",
    }
    other = next((ROOT / "perf-script" / "torch-convnet-process").glob("input.*"))
    (runs / "perf.txt").write_bytes(other.read_bytes())
    assert len(traceconv.expand([runs]).paths) == 3


def perf_json(text: str) -> bytes:
    """Return the samples of what perf script printed, as perf data convert prints them."""
    found = re.findall(r"(?m)^ *(\S+) (\d+)/(\d+) +(\d+)\.(\d{9}):", text)
    samples = ",".join(
        f'\n\t\t{{\n\t\t\t"timestamp": {seconds}{ns},\n\t\t\t"pid": {pid},\n\t\t\t"tid": {tid},'
        f'\n\t\t\t"comm": "{comm}",\n\t\t\t"callchain": [\n\t\t\t]\n\t\t}}'
        for comm, pid, tid, seconds, ns in found
    )
    return f'{{\n\t"linux-perf-json-version": 1,\n\t"headers": {{\n\t}},\n\t"samples": [{samples}\n\t]\n}}\n'.encode()


@pytest.mark.parametrize("name", ["b.pftrace", "b.json", "b.json.gz"])
def test_a_trace_made_of_recordings_that_are_there_is_not_taken(name: str, tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", {"a.json": KINETO.read_bytes(), "onednn.log": ONEDNN.read_bytes()})
    traceconv.merge([runs / "a.json", runs / "onednn.log"], runs / name)
    found = traceconv.expand([runs])
    assert found.left_out == {f"{runs}/{name}": "traceconv made it of a.json, onednn.log"}
    assert len(found.paths) == 2
    assert len(traceconv.expand([runs, runs / name]).paths) == 3  # it is named
    assert len(traceconv.expand([runs], each=True).paths) == 3
    assert f"{runs}/{name}: " in run("check", runs).stdout
    (runs / "onednn.log").unlink()
    assert traceconv.expand([runs]).left_out == {}


@pytest.mark.parametrize("name", ["b.pftrace", "b.pftrace.gz"])
def test_a_trace_with_another_one_appended_is_no_result(name: str, tmp_path: Path) -> None:
    """The file says of the first one what it was made of; the second one is only in this file."""
    runs = folder(tmp_path / "runs", {"a.json": KINETO.read_bytes()})
    traceconv.merge([runs / "a.json"], runs / name)
    traceconv.merge([ONEDNN], tmp_path / name)
    with (runs / name).open("ab") as joined:
        joined.write((tmp_path / name).read_bytes())
    assert traceconv.expand([runs]).left_out == {}


def kineto(slices: int, **members: object) -> bytes:
    """Return a recording of PyTorch with this many slices, and with more top-level members."""
    recording = json.loads(KINETO.read_bytes())
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 7, "tid": 7, "ts": 100.0 + 4 * n, "dur": 2.5}
        for n in range(slices)
    ]
    return json.dumps(recording | {"traceEvents": events} | members).encode()


@pytest.mark.parametrize("slices", [2048, 4097, 20_000])
@pytest.mark.parametrize("name", ["b.pftrace", "b.pftrace.gz", "b.json", "b.json.gz"])
def test_a_large_trace_is_known_as_made_of_its_recording(name: str, slices: int, tmp_path: Path) -> None:
    recording = kineto(slices)
    runs = folder(tmp_path / "runs", {"a.json": recording})
    traceconv.merge([runs / "a.json"], runs / name)
    assert traceconv.expand([runs]).left_out == {f"{runs}/{name}": "traceconv made it of a.json"}
    merged = traceconv.merge([runs]).trace
    assert merged is not None
    assert merged.counts()["slices"] == slices
    # made of another recording of the same size
    (runs / "a.json").write_bytes(recording.replace(b'"dur": 2.5', b'"dur": 3.5', 1))
    assert traceconv.expand([runs]).left_out == {}


@pytest.mark.parametrize("name", ["b.json", "b.json.gz"])
def test_inputs_are_found_in_metadata_that_is_larger_than_the_head(name: str, tmp_path: Path) -> None:
    large = {f"setting {n}": "x" * 1000 for n in range(1000)}
    runs = folder(tmp_path / "runs", {"a.json": kineto(5000, settings=large)})
    traceconv.merge([runs / "a.json"], runs / name)
    assert traceconv.expand([runs]).left_out == {f"{runs}/{name}": "traceconv made it of a.json"}


def test_the_inputs_of_a_trace_are_known_without_reading_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = folder(tmp_path / "runs", {"a.json": kineto(20_000)})
    for name in ("b.pftrace", "c.json"):
        traceconv.merge([runs / "a.json"], tmp_path / name)
        os.rename(tmp_path / name, runs / name)

    def refuse(*_: object) -> None:
        raise AssertionError("an input was read")

    monkeypatch.setattr(reading, "_read_one", refuse)
    assert len(traceconv.expand([runs]).paths) == 1


def test_the_start_of_an_input_is_read_whatever_its_end_adds(tmp_path: Path) -> None:
    """Begins and ends become slices when the input is finished."""
    runs = folder(tmp_path / "runs", {"a.json": kineto(20_000)})
    traceconv.convert(runs / "a.json", runs / "b.pftrace")
    trace = reading.read_start(reading.recognise(Source(runs / "b.pftrace")), 4096)
    assert trace.counts()["slices"] >= 4096


def test_a_bug_of_an_importer_is_told_where_forms_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = next((ROOT / "perf-data" / "several_events").glob("input.*"))
    printed = Path(__file__).parent / "perf_script" / "several_events.txt"
    runs = folder(tmp_path / "runs", {"perf.data": recorded.read_bytes(), "perf.txt": printed.read_bytes()})

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.delenv("TRACECONV_DEBUG", raising=False)
    monkeypatch.setattr(reading, "_read_by", fail)
    with pytest.raises(ImporterFailed, match="a bug"):
        traceconv.expand([runs])


def test_a_trace_is_taken_where_its_recordings_are_not_there(tmp_path: Path) -> None:
    log, other = ONEDNN.read_bytes(), KINETO.read_bytes()
    runs = folder(tmp_path / "runs", {"1/a.log": log, "2/a.log": log + log, "3/a.json": other})
    traceconv.convert(runs / "2" / "a.log", runs / "2" / "b.pftrace")
    assert traceconv.expand([runs / "2"]).left_out == {f"{runs}/2/b.pftrace": "traceconv made it of a.log"}
    (runs / "2" / "a.log").unlink()
    assert traceconv.expand([runs]).left_out == {}  # 1/a.log is another one
    (runs / "2" / "a.log").write_text("no recording")
    assert list(traceconv.expand([runs]).left_out) == [f"{runs}/2/a.log"]
    # a trace of the same name as its input, which is elsewhere
    traceconv.convert(tmp_path / "runs" / "3" / "a.json", folder(tmp_path / "4", {"c.log": log}) / "a.json")
    assert traceconv.expand([tmp_path / "4"]).left_out == {}


@pytest.mark.parametrize("way", ["folder", "zip", "tar"])
def test_a_trace_is_taken_where_its_recording_was_changed(way: str, tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", {"a.log": ONEDNN.read_bytes() * 20})
    traceconv.convert(runs / "a.log", runs / "b.pftrace")
    for name, time in (("a.log", 1_700_000_000), ("b.pftrace", 1_600_000_000)):
        os.utime(runs / name, (time, time))  # a copy of the folder may have any times

    def left_out(name: str) -> dict[str, str]:
        path = runs if way == "folder" else Path(shutil.make_archive(str(tmp_path / name), way, runs))
        return {os.path.basename(file): reason for file, reason in traceconv.expand([path]).left_out.items()}

    assert (runs / "a.log").stat().st_size < 1 << 20  # so the fingerprint counts each byte
    assert left_out("same") == {"b.pftrace": "traceconv made it of a.log"}
    changed = bytearray((runs / "a.log").read_bytes())
    changed[len(changed) // 3] ^= 1
    (runs / "a.log").write_bytes(changed)
    assert left_out("changed") == {}


def test_fingerprints_of_large_files(tmp_path: Path) -> None:
    path, data = tmp_path / "large", bytearray(os.urandom(5 << 20))
    found = set()
    for place in (None, 0, 100_000, 1 << 20, 4 << 20, len(data) - 1):
        if place is not None:
            data[place] ^= 1
        path.write_bytes(data)
        found.add(fingerprint(Source(path)))
    path.write_bytes(data[:-1])
    found.add(fingerprint(Source(path)))
    assert len(found) == 7


def test_each_byte_of_a_large_recording_counts(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", {"a.json": kineto(36_000)})
    data = bytearray((runs / "a.json").read_bytes())
    assert len(data) > 3 << 20
    traceconv.convert(runs / "a.json", runs / "b.pftrace")
    assert traceconv.expand([runs]).left_out == {f"{runs}/b.pftrace": "traceconv made it of a.json"}
    for start in range(100_000, len(data), len(data) // 50):
        place = data.find(b'"dur": 2.5', start)
        changed = data[:place] + data[place:].replace(b"2.5", b"9.5", 1)
        (runs / "a.json").write_bytes(changed)
        assert traceconv.expand([runs]).left_out == {}


def test_copies_in_other_folders_are_taken_once(tmp_path: Path) -> None:
    content = {"a.json": KINETO.read_bytes(), "b/onednn.log": ONEDNN.read_bytes()}
    one, other = folder(tmp_path / "one", content), folder(tmp_path / "other", content)
    traceconv.merge([one / "a.json", one / "b" / "onednn.log"], other / "c.pftrace")
    found = traceconv.expand([one, other])
    assert [shown(path) for path in found.paths] == [f"{one}/a.json", f"{one}/b/onednn.log"]
    assert found.left_out == {
        f"{other}/a.json": f"the same content as {one}/a.json",
        f"{other}/b/onednn.log": f"the same content as {one}/b/onednn.log",
        f"{other}/c.pftrace": "traceconv made it of a.json, onednn.log",
    }
    named = traceconv.expand([one, other / "a.json", tmp_path / "absent"])
    assert named.left_out == {f"{one}/a.json": f"the same content as {other}/a.json"}
    assert len(traceconv.expand([one / "a.json", other / "a.json"]).paths) == 2  # the receipt warns


def test_what_looks_at_each_file_says_which_ones_merge_leaves_out(tmp_path: Path) -> None:
    content = {"a.json": KINETO.read_bytes(), "a.json.gz": gzip.compress(KINETO.read_bytes())}
    runs = folder(tmp_path / "runs", content)
    traceconv.convert(runs / "a.json", runs / "b.pftrace")
    assert run("identify", runs).stderr == (
        f"3 recordings taken:\n  {runs}/a.json (pytorch-kineto)\n"
        f"  {runs}/a.json.gz (pytorch-kineto): merge leaves it out: the same content as {runs}/a.json\n"
        f"  {runs}/b.pftrace (perfetto): merge leaves it out: traceconv made it of a.json\n"
    )


def test_folders_in_each_other_are_one(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", {"a.json": KINETO.read_bytes(), "b/onednn.log": ONEDNN.read_bytes()})
    found = traceconv.expand([runs / "b", runs, runs])
    assert [shown(path) for path in found.paths] == [f"{runs}/b/onednn.log", f"{runs}/a.json"]


def test_an_archive_in_an_archive_is_told(tmp_path: Path) -> None:
    inner = tarred(tmp_path / "inner.tar.gz", CONTENT).read_bytes()
    outer = zipped(tmp_path / "outer.zip", {"inner.tar.gz": inner, "a.json": KINETO.read_bytes(), "c.json": b"{}"})
    found = traceconv.expand([outer])
    assert found.left_out[f"{outer}/inner.tar.gz"] == "an archive in an archive: unpack it first"
    assert [shown(path) for path in found.paths] == [f"{outer}/a.json"]


def test_a_file_is_taken_rather_than_its_copy_in_an_archive(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", {"z.json": KINETO.read_bytes()})
    zipped(runs / "a.zip", {"z.json": KINETO.read_bytes(), "y.txt": b"y"})
    found = traceconv.expand([runs])
    assert [shown(path) for path in found.paths] == [f"{runs}/z.json"]
    assert found.left_out[f"{runs}/a.zip/z.json"] == f"the same content as {runs}/z.json"


def test_what_jax_writes_is_one_recording(tmp_path: Path) -> None:
    names = {
        "perfetto_trace.json.gz": gzip.compress(golden_input("tensorflow-profiler", "jax-perfetto")),
        "vm.trace.json.gz": gzip.compress(golden_input("tensorflow-profiler", "jax")),
        "vm.xplane.pb": golden_input("xplane", "jax"),
    }
    runs = folder(tmp_path / "runs", names)
    assert left_out(runs) == {
        "perfetto_trace.json.gz": f"tensorflow-profiler of the same recording as {runs}/vm.xplane.pb",
        "vm.trace.json.gz": f"tensorflow-profiler of the same recording as {runs}/vm.xplane.pb",
    }
    (runs / "vm.xplane.pb").unlink()
    assert left_out(runs) == {
        "perfetto_trace.json.gz": f"tensorflow-profiler of the same recording as {runs}/vm.trace.json.gz"
    }
    result = run("merge", runs, "-o", tmp_path / "a.pftrace")
    assert result.exit_code == 0, result.output
    assert "tensorflow-profiler of the same recording as" in result.stderr


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("other", ["tensorflow-profiler/jax", "tensorflow-profiler/jax-perfetto"])
def test_named_files_that_are_one_recording_are_said_to_be_one(other: str, is_first: bool) -> None:
    """They are drawn at the same times, with a warning: the user named both."""
    paths = [next((ROOT / case).glob("input.*")) for case in ("xplane/jax", other)]
    trace = traceconv.merge(paths if is_first else paths[::-1]).trace
    assert trace is not None
    one, two = trace.receipt
    assert (one.verdict, two.verdict, one.offset_ns) == (Verdict.OK, Verdict.OK, two.offset_ns)
    (said,) = (str(warning) for warning in two.warnings)
    assert said == f"its events are those of {one.file}: the same recording is drawn twice; leave one of the two out"


def test_named_files_of_one_recording_without_common_times_are_refused(tmp_path: Path) -> None:
    paths = [next((ROOT / "tvm-profile" / case).glob("input.*")) for case in ("graph-json", "graph-text")]
    error = run("merge", *paths, "-o", tmp_path / "a.pftrace").exception
    assert isinstance(error, UnrelatedClocks)
    assert "both are forms of one recording, in which the times differ" in str(error)
    assert error.hint == "leave one of the two out"


def test_forms_that_another_file_is_not_related_to_are_not_said_to_differ(tmp_path: Path) -> None:
    paths = [next((ROOT / "tensorflow-profiler" / case).glob("input.*")) for case in ("jax", "jax-perfetto")]
    error = run("merge", KINETO, *paths, "-o", tmp_path / "a.pftrace").exception
    assert isinstance(error, UnrelatedClocks)
    assert "both are forms" not in str(error)


def test_all_forms_of_a_recording_are_of_one_layer() -> None:
    """So layers and checks do not depend on the form that is read."""
    layers: dict[object, set[object]] = {}
    for path in ROOT.glob("*/*/input*"):
        format = path.parts[-3]
        form = importer_class(format)().form(Source(path).head()) if format in importers() else None
        if form is not None:
            layers.setdefault(form.marks, set()).add(getattr(importer_class(format), "layer", None))
    assert len(layers) == 3
    assert all(len(of_marks) == 1 for of_marks in layers.values()), layers


def test_a_report_of_tvm_is_read_once(tmp_path: Path) -> None:
    """All calls of a name are one row of the text, with durations in hundredths of a microsecond."""
    cases = ("graph-csv", "graph-json", "graph-text", "graph-unsorted-text", "vm-json", "vm-text")
    runs = folder(tmp_path / "runs", {case: golden_input("tvm-profile", case) for case in cases})
    graph, vm = (f"tvm-profile of the same recording as {runs}/{name}-json" for name in ("graph", "vm"))
    assert left_out(runs) == {"graph-csv": graph, "graph-text": graph, "graph-unsorted-text": graph, "vm-text": vm}
    (runs / "graph-json").unlink()
    other = re.sub(rb"\.", b"9.", golden_input("tvm-profile", "graph-text"))
    (runs / "graph-text").write_bytes(other)
    assert left_out(runs) == {"graph-unsorted-text": graph.replace("json", "csv"), "vm-text": vm}


def test_a_long_report_of_tvm_is_read_once(tmp_path: Path) -> None:
    """The text has the sums of all calls, however many there are."""
    calls = [(f"fused_{n % 5}", 1000 + 7 * n % 900) for n in range(10_000)]
    rows = ",".join(
        f'{{"Count":{{"count":1}},"Device":{{"string":"cpu0"}},"Name":{{"string":"{name}"}},'
        f'"Duration (us)":{{"microseconds":{ns / 1000}}},"Percent":{{"percent":1}}}}'
        for name, ns in calls
    )
    sums = {name: sum(ns for other, ns in calls if other == name) / 1000 for name in dict(calls)}
    table = "".join(f"{name}  {us:.2f}  20.00  cpu0  2000\n" for name, us in sums.items())
    total = f"----------\nSum  {sum(sums.values()):.2f}  100.00  10000\n"
    report = f'{{"calls":[{rows}],"device_metrics":{{}},"configuration":{{}}}}'
    text = f"Name  Duration (us)  Percent  Device  Count\n{table}{total}"
    runs = folder(tmp_path / "runs", {"report.json": report.encode(), "report.txt": text.encode()})
    assert left_out(runs) == {"report.txt": f"tvm-profile of the same recording as {runs}/report.json"}


@pytest.mark.parametrize("count", [100, 5000])
def test_long_forms_may_begin_with_other_events(count: int, tmp_path: Path) -> None:
    """The exporters write the threads of one recording in orders of their own."""
    head = '"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/host:CPU"}},'

    def events(dur: int) -> list[str]:
        place = [(2, 50 * n) for n in range(count)] + [(3, 50 * n + 7) for n in range(count)]
        return [f'{{"ph":"X","pid":1,"tid":{tid},"ts":{ts}.5,"dur":{ts % 19 + dur},"name":"op"}}' for tid, ts in place]

    full = f'{{"displayTimeUnit":"ns","metadata":{{"highres-ticks":true}},{head}{",".join(events(1))}]}}'
    bare = f'{{"displayTimeUnit":"ns",{head}{",".join(events(1)[::-1])}]}}'
    runs = folder(tmp_path / "runs", {"a.trace.json": full.encode(), "b.json": bare.encode()})
    assert left_out(runs) == {"b.json": f"tensorflow-profiler of the same recording as {runs}/a.trace.json"}
    (runs / "b.json").write_text(f'{{"displayTimeUnit":"ns",{head}{",".join(events(2))}]}}')
    assert left_out(runs) == {}


def test_the_header_of_a_recording_is_part_of_it(tmp_path: Path) -> None:
    printed = (ROOT / "perf-script" / "torch-convnet-process" / "input.txt").read_text()
    header = "".join(line for line in printed.splitlines(keepends=True) if line.startswith("#"))
    header = header.replace("first sample : 3269.844090", "first sample : 3271.700452")  # the printed part begins there
    runs = folder(tmp_path / "runs", {"a.header.txt": header.encode(), "perf.txt": printed.encode()})
    assert left_out(runs) == {"a.header.txt": f"perf-header of the same recording as {runs}/perf.txt"}
    (runs / "a.header.txt").write_text(header.replace("3271.700452", "3271.700453"))
    assert left_out(runs) == {}


def test_a_missing_input_is_told_before_the_output_exists(tmp_path: Path) -> None:
    output = tmp_path / "out.pftrace"
    output.write_bytes(b"kept")
    absent = run("merge", KINETO, tmp_path / "absent.log", "-o", output).exception
    assert "No such file" in str(absent)
    for command in ("convert", "merge"):
        assert "the file exists" in str(run(command, KINETO, "-o", output).exception)
    assert output.read_bytes() == b"kept"


def test_files_of_archives_cannot_be_named(tmp_path: Path) -> None:
    error = run("report", zipped(tmp_path / "runs.zip", CONTENT) / "a.json").exception
    assert isinstance(error, InputError)
    assert error.hint == "a part of the path is a file; files in an archive cannot be named: name the archive"
    assert str(run("report", zipped(tmp_path / "empty.zip", {})).exception).endswith("the zip archive is empty")


def golden_input(format: str, case: str) -> bytes:
    return next((ROOT / format / case).glob("input.*")).read_bytes()


def left_out(runs: Path) -> dict[str, str]:
    return {os.path.basename(path): reason for path, reason in traceconv.expand([runs]).left_out.items()}


def test_other_forms_are_found_by_the_first_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = (Path(__file__).parent / "perf_script" / "several_events.txt").read_text()
    later = "".join(f"python 7/7 {4000 + n // 1000}.{n % 1000:03}000000: 1 cpu-clock:\n\n" for n in range(200_000))
    content = {f"{n}/perf.txt": (printed.replace(" 2745.", f" {n}745.") + later).encode() for n in (2, 3)}
    content |= {"3/perf.json": perf_json(printed.replace(" 2745.", " 3745."))}
    content |= {"2/perf.data": next((ROOT / "perf-data" / "several_events").glob("input.*")).read_bytes()}
    runs = folder(tmp_path / "runs", content)
    chunks, size = Source.chunks, 0

    def counted(self: Source) -> Iterator[bytes]:
        nonlocal size
        for chunk in chunks(self):
            size += len(chunk)
            yield chunk

    monkeypatch.setattr(Source, "chunks", counted)
    assert traceconv.expand([runs]).left_out == {
        f"{runs}/2/perf.txt": f"perf-script of the same recording as {runs}/2/perf.data",
        f"{runs}/3/perf.txt": f"perf-script of the same recording as {runs}/3/perf.json",
    }
    assert size <= 2 * CHUNK_BYTES < (runs / "2/perf.txt").stat().st_size + (runs / "3/perf.txt").stat().st_size


# -- what could do harm ------------------------------------------------------------------------------------------------


LEADS_OUT = (
    "../evil.json",
    "/evil.json",
    "a/../../evil.json",
    "c:/evil.json",
    "C:\\evil.json",
    "\\\\server\\evil.json",
    "//server/evil.json",
    "a\\evil.json",
)


def test_nothing_leads_out_of_a_folder(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", {"a.json": KINETO.read_bytes(), "sub/b.log": ONEDNN.read_bytes()})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside.json").write_bytes(KINETO.read_bytes())
    os.symlink(tmp_path / "outside.json", runs / "link.json")
    os.symlink(tmp_path / "outside", runs / "links")
    os.symlink("a.json", runs / "again.json")
    os.symlink("nowhere", runs / "broken.json")
    os.mkfifo(runs / "pipe")
    found = traceconv.expand([runs])
    assert [os.path.relpath(path, runs) for path in found.paths] == ["a.json", "sub/b.log"]
    assert {os.path.relpath(path, runs): reason for path, reason in found.left_out.items()} == {
        "link.json": "a link out of the folder",
        "links": "a link to a folder",
        "again.json": "a link to another file in it",
        "broken.json": "No such file or directory",
        "pipe": "not a regular file",
    }


@pytest.mark.parametrize("name", LEADS_OUT)
@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz"])
def test_no_member_leads_out_of_an_archive(name: str, ending: str, tmp_path: Path) -> None:
    archive = WAYS[f"runs.{ending}"](tmp_path / f"x.{ending}", {name: b"[]", "a.json": KINETO.read_bytes()})
    found = traceconv.expand([archive])
    assert [shown(path) for path in found.paths] == [f"{archive}/a.json"]
    assert found.left_out == {f"{archive}/{name}": "its name leads out of the archive"}
    written = [Path(found.paths[0])]
    assert all(path.is_relative_to(tempfile.gettempdir()) for path in written)
    assert not (tmp_path / "evil.json").exists()


@pytest.mark.parametrize("name", LEADS_OUT)
@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz"])
def test_an_archive_of_one_file_that_leads_out_holds_no_recording(name: str, ending: str, tmp_path: Path) -> None:
    archive = WAYS[f"runs.{ending}"](tmp_path / f"x.{ending}", {name: KINETO.read_bytes()})
    for function in (traceconv.read, traceconv.identify):
        with pytest.raises(InputError, match="no recording among the files") as error:
            function(archive)
        assert error.value.hint == f"{archive}/{name}: its name leads out of the archive"


def test_links_and_devices_of_an_archive_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("null", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        archive.add(KINETO, "a.json")
    found = traceconv.expand([path])
    assert [shown(one) for one in found.paths] == [f"{path}/a.json"]
    assert list(found.left_out.values()) == ["a link", "a link", "not a regular file"]
    linked = zipfile.ZipInfo("link")
    linked.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        packed.writestr(linked, "/etc/passwd")
        packed.write(KINETO, "a.json")
    assert list(traceconv.expand([tmp_path / "x.zip"]).left_out.values()) == ["a link"]


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_archives_unpack_within_the_limits(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE_UNPACKED_BYTES", 1 << 20)
    content = {f"{number}.bin": bytes(1 << 20) for number in range(4)}  # none of them alone is too large
    archive = WAYS[f"runs.{ending}"](tmp_path / f"x.{ending}", content | {"a.json": KINETO.read_bytes()})
    with pytest.raises(InputError, match="unpack to more than"):
        traceconv.expand([archive], limits=Limits(ratio=5))
    assert len(traceconv.expand([archive], limits=Limits(ratio=0)).paths) == 1
    gc.collect()
    assert os.listdir(tempfile.gettempdir()) == []
    inside = folder(tmp_path / "runs", {"x": archive.read_bytes(), "b.log": ONEDNN.read_bytes()})
    with pytest.raises(InputError, match="unpack to more than"):
        traceconv.expand([inside], limits=Limits(ratio=5))


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_FILES", 3)
    for name, way in WAYS.items():
        runs = way(tmp_path / name, {f"{number}.txt": b"x" for number in range(5)})
        with pytest.raises(InputError, match="more than 3 files"):
            traceconv.expand([runs])


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz"])
def test_a_damaged_archive_gives_what_can_be_read(ending: str, tmp_path: Path) -> None:
    archive = WAYS[f"runs.{ending}"](
        tmp_path / f"x.{ending}", {"a.log": ONEDNN.read_bytes(), "b.bin": os.urandom(200_000)}
    )
    data = bytearray(archive.read_bytes())
    if ending == "zip":
        data[100_000] ^= 255
    else:
        del data[100_000:]
    archive.write_bytes(data)
    found = traceconv.expand([archive])
    assert [shown(path) for path in found.paths] == [f"{archive}/a.log"]
    assert any(re.search("cannot be unpacked|cut off or damaged", reason) for reason in found.left_out.values())


def test_the_output_is_not_an_input_and_archives_are_not_replaced(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", CONTENT)
    for _ in range(2):
        result = run("merge", runs, "-f", "-o", runs / "out.pftrace")
        assert result.exit_code == 0, result.output
    assert f"{runs}/out.pftrace: it is the output" in result.stderr
    archive = zipped(tmp_path / "x.json", CONTENT)
    refused = run("merge", archive, "-f", "-o", archive)
    assert isinstance(refused.exception, UsageError)
    assert "would replace an input" in refused.exception.message


def test_a_folder_without_recordings(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no recording"):
        traceconv.expand([tmp_path / "empty"])


def test_a_folder_that_cannot_be_read_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)  # the tests may run as root, who reads all
    with pytest.raises(InputError, match="Permission denied") as error:
        traceconv.expand([tmp_path])
    assert error.value.hint.startswith("ask for read permission")


def test_the_reason_is_told_without_the_name_whatever_that_is(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", {"a.json": KINETO.read_bytes(), "b\x1b.txt": b"nothing that is known\n"})
    assert traceconv.expand([runs]).left_out == {f"{runs}/b\x1b.txt": REASONS["notes.txt"]}


def test_files_of_a_folder_come_in_natural_order(tmp_path: Path) -> None:
    names = ["rank0", "rank1", "rank2", "rank10", "rank010b", "rank11"]
    shuffled = ["rank11", "rank010b", "rank10", "rank1", "rank0", "rank2"]
    assert sorted(shuffled, key=natural) == names
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.json").write_text("{}")
    found = files_of(str(tmp_path), Limits())
    assert found is not None
    assert [Path(str(path)).stem for path in found.paths] == names
