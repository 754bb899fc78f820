"""How far a long command is, on a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import traceconv
from tests import HANG_S
from tests.golden import ROOT
from traceconv.cli import terminal
from traceconv.families.perf import data as perf_data
from traceconv.io import progress, sqlite
from traceconv.io.source import Source

MB = 1 << 20


@pytest.mark.parametrize(
    ("read", "stage", "writing", "seconds", "line"),
    [
        ({}, "", ("", 0), 1.2, "merging: 0:01"),
        ({"a": 50 * MB}, "", ("", 0), 2.0, "merging: 50 MB of 200 MB, 25 MB/s, 0:06 left to read"),
        ({"a": 50 * MB}, "sorting", ("", 0), 3.0, "merging: 50 MB of 200 MB read, sorting, 0:03"),
        ({"a": 100 * MB, "b": 5 * MB}, "", ("", 0), 100.0, "merging: 105 MB of 200 MB, 1.1 MB/s, 1:30 left to read"),
        ({"a": 100 * MB, "b": 100 * MB}, "aligning", ("", 0), 4000.0, "merging: 200 MB read, aligning, 1:06:40"),
        (
            {"a": 100 * MB, "b": 100 * MB},
            "aligning",
            ("out.pftrace", 3 << 30),
            9.0,
            "writing out.pftrace: 3.0 GB, 0:09",
        ),
    ],
)
def test_it_says_bytes_rate_and_time(
    read: dict[str, int], stage: str, writing: tuple[str, int], seconds: float, line: str
) -> None:
    assert terminal.described("merging", {"a": 100 * MB, "b": 100 * MB}, read, stage, writing, seconds) == line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def wait_for(self, pattern: str) -> None:
        """Return when it shows something, which a thread of its own writes."""
        end = time.monotonic() + HANG_S
        while not re.search(pattern, self.getvalue()):
            assert time.monotonic() < end, self.getvalue()
            time.sleep(0.01)


def test_it_follows_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal, "_AFTER_S", 0.0)
    monkeypatch.setattr(terminal, "_EVERY_S", 0.01)
    path = tmp_path / "a\x1b.json"
    path.write_bytes(bytes(4 * MB))
    with terminal.working("reading", False, [path]), path.open("rb", buffering=0) as file:
        progress.note(str(path), file)
        file.read(MB)
        screen.wait_for(r"reading: 1\.0 MB of 4\.0 MB, [\d.]+ [KM]?B/s, [\d:]+ left to read")
        file.read()
        with (tmp_path / "out").open("wb") as sink:
            progress.note("out", sink)
            sink.write(bytes(2 * MB))
            screen.wait_for(r"writing out: 2\.0 MB")
    assert screen.getvalue().endswith("\r\x1b[K")
    assert progress.positions() == []


def test_files_count_as_read_whether_or_not_they_were_seen_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal, "_AFTER_S", 0.0)
    monkeypatch.setattr(terminal, "_EVERY_S", 0.05)
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_bytes(bytes(4 * MB))
    with terminal.working("reading", False, paths):
        assert Source(paths[0]).head().data
        time.sleep(0.2)
        assert "4.0 MB" not in screen.getvalue()  # a head is not the file
        for source in map(Source, paths[:2]):
            with source.open() as file:
                file.read()
        screen.wait_for("reading: 8.0 MB of 12 MB, ")


def test_perf_data_moves_along(monkeypatch: pytest.MonkeyPatch) -> None:
    positions: list[int | None] = []
    flush = perf_data.RecordReader._flush

    def seen(self: perf_data.RecordReader, limit: int) -> None:
        positions.extend(at for _, at in progress.positions())
        flush(self, limit)

    monkeypatch.setattr(perf_data.RecordReader, "_flush", seen)
    progress.start()
    try:
        traceconv.read(next((ROOT / "perf-data" / "several_events").glob("input.*")))
        assert [at for _, at in progress.positions()] == [None]
    finally:
        progress.stop()
    assert len(set(positions)) > 1
    assert positions == sorted(at for at in positions if at is not None)


@pytest.mark.parametrize("case", ["nvprof/streams-and-ranges", "nsight-systems/h100_metrics"])
def test_a_database_moves_along(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = (ROOT / case).glob("input.*")
    positions: list[int | None] = []
    batches = sqlite.Database.batches

    def seen(self: sqlite.Database, *args: Any, **options: Any) -> Iterator[list[sqlite.Row]]:
        for batch in batches(self, *args, **options):
            yield batch
            positions.extend(at for _, at in progress.positions())

    monkeypatch.setattr(sqlite.Database, "batches", seen)
    progress.start()
    try:
        traceconv.read(path)
        assert progress.positions() == [(str(path), path.stat().st_size)]
    finally:
        progress.stop()
    assert len(set(positions)) > 2
    assert positions == sorted(at for at in positions if at is not None)


def test_what_is_done_after_reading_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    set_stage = progress.set_stage

    def seen(doing: str) -> None:
        stages.append(doing)
        set_stage(doing)

    monkeypatch.setattr(progress, "set_stage", seen)
    (log,) = (ROOT / "onednn-verbose" / "torch-convnet-process").glob("input.*")
    (profile,) = (ROOT / "pytorch-kineto" / "torch-convnet-process").glob("input.*")
    traceconv.merge([profile, log], traceconv.Output(tmp_path / "x.pftrace", trim=str(profile)))
    assert stages == ["sorting", "sorting", "aligning", "moving times", "cutting to the window"]
    stages.clear()
    traceconv.report([profile], traceconv.Questions(sections=("steps", "memory")))
    assert stages == ["sorting", "aligning", "section steps", "section memory"]
    progress.start()
    try:
        progress.set_stage("aligning")
        with Source(log).open():
            assert progress.stage() == ""
    finally:
        progress.stop()


def test_nothing_is_shown_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_AFTER_S", 0.0)
    for screen, quiet in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", screen)
        with terminal.working("reading", quiet, [tmp_path]):
            time.sleep(0.3)
        assert screen.getvalue() == ""


def test_what_is_short_shows_nothing_on_a_terminal(tmp_path: Path) -> None:
    terminal, ours = pty.openpty()
    log = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
    # However busy the machine is, the second after which progress is shown does not pass.
    program = "from traceconv.cli import terminal, main; terminal._AFTER_S = float('inf'); main()"
    command = [sys.executable, "-c", program, "convert", str(log), "-o", str(tmp_path / "a.pftrace")]
    try:
        subprocess.run(command, stdout=subprocess.PIPE, stderr=ours, timeout=HANG_S, check=True)
        said = os.read(terminal, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(terminal)
    assert said.startswith("input.log (onednn-verbose)")
    assert "\x1b[K" not in said
