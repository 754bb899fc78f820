"""Logs whose lines bear the mark of whoever collected them: read as if each writer had written a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import ROOT, Case, by_format, cases
from tests.together import together
from traceconv.api import identify, read
from traceconv.errors import TraceconvError, UnrecognizedFormat
from traceconv.io.log_collectors import _LEAST_LINES
from traceconv.io.source import Source
from traceconv.model.trace import Trace
from traceconv.reading import REFUSED, recognise

ONEDNN = ROOT / "onednn-verbose" / "v2-threads-ts" / "input.log"
INPUTS = {
    "onednn-verbose": ONEDNN,
    "nvprof-text": ROOT / "nvprof-text" / "gpu-trace" / "input.log",
    "openvino": ROOT / "openvino" / "printed" / "input.txt",
    "pytorch-table": ROOT / "pytorch-table" / "memory-and-flops" / "input.txt",
    "perf-stat": ROOT / "perf-stat" / "text" / "input.txt",
}
MARKS = {
    "torchrun": "[rank{}]: ",
    "mpirun": "[1,{}]<stdout>:",
    "srun": "{}: ",
    "compose": "worker-{}  | ",
    "compose in colour": "\x1b[36mworker-{}  |\x1b[0m ",
    "kubernetes": "2026-03-04T10:11:12.12345678{}Z stdout F ",
    "journald": "Mar 04 10:11:12 host{} python[123]: ",
}


def marked(path: Path, *marks: str) -> bytes:
    """The lines of a file once for each mark, interleaved."""
    lines = path.read_bytes().splitlines(keepends=True)
    return b"".join(mark.encode() + line for line in lines for mark in marks)


def events(trace: Trace) -> tuple[dict[str, int], list[int]]:
    return trace.counts(), sorted(trace.slices.dur.tolist())


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("format", INPUTS)
def test_a_mark_changes_nothing(format: str, mark: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(marked(INPUTS[format], mark.format(0)))
    assert identify(path)[0] == format
    plain, found = read(INPUTS[format]), read(path)
    assert events(found) == events(plain)
    assert found.sources[0].balance == plain.sources[0].balance
    assert found.sources[0].format == format


@pytest.mark.parametrize("name", ["torchrun", "mpirun", "compose", "srun"])
def test_two_writers_are_two(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(marked(ONEDNN, MARKS[name].format(0), MARKS[name].format(1)))
    plain, found = read(ONEDNN), read(path)
    assert found.counts()["slices"] == 2 * plain.counts()["slices"]
    tops = [track.name for track in found.tracks if track.parent < 0]
    assert len(set(tops)) == 2 * sum(track.parent < 0 for track in plain.tracks)
    assert any("were read on their own" in note for note in found.sources[0].notes)
    assert found.sources[0].balance.even


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(marked(ONEDNN, "[rank0]: ", "[rank1]: "))
    _, second = recognise(Source(path)).streams
    assert second.writer == "rank1"
    assert [line.number for line in second.lines()][:3] == [2, 4, 6]
    assert second.head().data == ONEDNN.read_bytes()  # without the marks
    assert second.head().tail == second.head().data


def test_a_writer_that_wrote_something_else_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    other = b"".join(b"[rank1]: loss %d\n" % number for number in range(20))
    path.write_bytes(marked(ONEDNN, "[rank0]: ") + other)
    found = read(path)
    assert events(found) == events(read(ONEDNN))
    assert found.sources[0].diagnostics.count(REFUSED) == 1
    assert found.sources[0].balance.skipped["lines of a writer that could not be read"] == 20


def onednn_lines(count: int) -> list[bytes]:
    """A log of oneDNN, made by hand."""
    line = b"onednn_verbose,v1,%d.5,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:abcd::f0,,,16,0.003\n"
    return [b"onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71)\n"] + [line % (9000 + n) for n in range(1, count)]


@pytest.mark.parametrize("count", [3, 5, 40, 900])
@pytest.mark.parametrize("number", [b"%d: ", b"%6d: ", b"[rank%d]: "])
def test_numbers_of_lines_are_no_writers(count: int, number: bytes, tmp_path: Path) -> None:
    """Made by hand, as `nl -s ': '` prints: one writer for each line would be one track for each."""
    path, plain = tmp_path / "log", tmp_path / "plain"
    lines = onednn_lines(count)
    plain.write_bytes(b"".join(lines))
    path.write_bytes(b"".join(number % (n + 1) + line for n, line in enumerate(lines)))
    if b"rank" in number and count < 900:
        assert len(recognise(Source(path)).streams) == count  # no line has its number in brackets
        return
    trace = read(path)
    assert events(trace) == events(read(plain))
    assert len(trace.tracks) == len(read(plain).tracks)
    assert any("prefixes were removed" in note for note in trace.sources[0].notes)


@pytest.mark.parametrize("buffer", [1, 3000, 1 << 24])
def test_many_writers_take_one_pass(buffer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by hand: however many writers there are, the log is read to count them, and to put their lines apart."""
    monkeypatch.setattr("traceconv.io.log_collectors._BUFFER_BYTES", buffer)
    path = tmp_path / "log"
    lines = onednn_lines(12)
    texts = [b"%d: %s" % (rank, line) for line in lines for rank in range(60)]
    path.write_bytes(b"no mark yet\n" + b"".join(texts) + b"continued")
    passes = []
    whole = Source(path)
    monkeypatch.setattr(whole, "open", lambda opened=whole.open: passes.append(1) or opened())
    streams = recognise(whole).streams
    assert len(streams) == 60
    for rank, stream in enumerate(streams):
        found = list(stream.lines(keep_ends=True))
        more = [b"continued"] if rank == 59 else []
        assert [line.text for line in found] == [*lines, *more]
        assert [line.number for line in found] == [2 + rank + 60 * n for n in range(len(lines))] + [722] * len(more)
        with stream.open() as opened:
            assert opened.read() == b"".join([*lines, *more])
    assert len(passes) == 3  # one for the head


def test_a_log_of_its_own_is_left_alone(tmp_path: Path) -> None:
    """A number or a time at the start of each line may be part of a format."""
    for text in (
        "0: one\n1: two\n2: three\n",
        "2026-03-04T10:11:12Z a\n2026-03-04T10:11:13Z b\n2026-03-04T10:11:14Z c\n",
    ):
        path = tmp_path / "log"
        path.write_text(text, encoding="utf-8")
        try:
            assert recognise(Source(path)).streams == ()
        except UnrecognizedFormat:
            assert "one" in text


def _text_cases() -> list[Case]:
    """The goldens in lines that bear a mark as well as not; a mark makes no JSON of a JSON file."""
    found = []
    for case in cases():
        head = case.input.read_bytes()[:4096] if case.format != "merge" else b""
        is_text = head[:2] not in (b"\x1f\x8b", b"PK", b"\xff\xfe", b"\xfe\xff") and b"\0" not in head
        if (
            is_text
            and head.count(b"\n") > _LEAST_LINES
            and head.lstrip()[:1] not in b"{["
            and head[:3] != b"\xef\xbb\xbf"
        ):
            found.append(case)
    return found


@by_format(_text_cases())
def test_two_ranks_of_every_log(cases: list[Case], tmp_path: Path) -> None:
    """Both ranks are read, and nothing of one is mixed into the other."""
    with together() as each:
        for case in cases:
            with each(case.name):
                check_two_ranks(case, tmp_path / "log")


def check_two_ranks(case: Case, path: Path) -> None:
    path.write_bytes(marked(case.input, "[rank0]: "))
    try:
        one = read(path, format=case.format, options=case.options)
    except TraceconvError:
        return  # as without the mark; what is pinned there is pinned by the golden
    path.write_bytes(marked(case.input, "[rank0]: ", "[rank1]: "))
    two = read(path, format=case.format, options=case.options)
    if not case.input.read_bytes().endswith(b"\n"):
        return  # the last line of the first rank would be cut in the middle of the log
    assert two.counts() == {what: 2 * count for what, count in one.counts().items()}
    assert two.sources[0].balance.read == 2 * one.sources[0].balance.read


@pytest.mark.parametrize(
    ("marks", "rank"),
    [
        (["[rank3]: "], 3),
        (["rank_12: "], 12),
        (["[1,5]<stdout>:"], 5),
        (["worker-1  | "], None),
        (["[rank0]: ", "[rank1]: "], None),
        ([""], None),
    ],
)
def test_a_log_of_one_rank_is_of_that_rank(marks: list[str], rank: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(marked(ONEDNN, *marks))
    assert read(path).sources[0].rank == rank
