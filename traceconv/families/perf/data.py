"""perf.data, as `perf record` writes it, without the help of perf.

    perf record -k CLOCK_MONOTONIC -F 999 -g -- python run.py

It reads samples with call chains, tracepoints with fields (scheduling becomes states of threads), names of threads, and
counts of lost records. The header states the clock, the host and the command. Both forms (file and pipe), both
endiannesses, and cut recordings are read.

A perf.data holds addresses and no symbols. A frame is named by the mapped file and the offset in it
(`libc.so.6+0x8a0b1`), one of the kernel by its address. `perf script` and `perf data convert --to-json` print symbols,
if they run on the machine of the recording.

The container is described in `_file`, the records in `_records`, what samples become in `_tracks`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from typing import Any, ClassVar

from traceconv.families.importer import Match, option
from traceconv.families.perf._file import ORDERS, Buffer, Damage, PerfFile, read_header
from traceconv.families.perf._records import MESSAGE, UNREAD_HEADER, RecordReader
from traceconv.families.perf._tracks import NO_CPU_HELP, PERF_CLOCK, PERF_MARKS, is_possible_pair, marks_of_perf
from traceconv.families.perf._tracks import Header as TextHeader
from traceconv.io import progress
from traceconv.io.limits import Unpacked
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.counted import RECORDS
from traceconv.model.forms import Form
from traceconv.model.marks import FormatMarks


@contextlib.contextmanager
def _bytes_of(source: Source) -> Iterator[Buffer]:
    """Yield the whole input: mapped if it is a plain file, read into memory if it is compressed or a stream."""
    if source.path is not None:
        with source.path.open("rb") as stream:
            if stream.read(8) in ORDERS:
                with mmap(stream.fileno(), 0, access=ACCESS_READ) as mapped:
                    progress.note(source.display, mapped)
                    yield mapped
                return
    with source.open() as packed:
        yield packed.read()


@dataclass(frozen=True)
class PerfData:
    """perf.data of Linux perf."""

    symbols: bool = option(
        False,
        "name frames by the functions of the files on this machine, where these are of the same build.",
    )

    name: ClassVar[str] = "perf-data"
    title: ClassVar[str] = "perf.data of Linux perf (perf record)"
    url: ClassVar[str] = "https://perf.wiki.kernel.org/index.php/Tutorial"
    versions: ClassVar[str] = "files of perf 2.6.32 to 6.18: of perf record, also through a pipe"
    clock: ClassVar[ClockDomain] = PERF_CLOCK
    marks: ClassVar[FormatMarks] = PERF_MARKS
    record: ClassVar[str] = "perf record -k CLOCK_MONOTONIC -F 999 -g -- python run.py"
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sample", "sample of its thread, with call stack, period and CPU"),
        ("tracepoint", "instant on its thread, fields as args; a sample besides if it has a call chain"),
        ("sched:sched_switch, sched:sched_wakeup, PERF_RECORD_SWITCH", "slices: states of threads"),
        ("PERF_RECORD_COMM, FORK, EXIT, LOST, THROTTLE", "instant on its thread; names of threads"),
        ("PERF_RECORD_MMAP, MMAP2, KSYMBOL", "names of frames"),
        ("header: host, command, versions", "metadata"),
    )
    skips = (MESSAGE,)
    lost: ClassVar[tuple[str, ...]] = (
        "The file holds no symbols: frames are named by mapped file and offset, those of the kernel by "
        "address. -O symbols=true reads names from the same builds on this machine.",
        "Branch stacks, registers, copies of stacks (--call-graph dwarf) and addresses of data are not shown.",
        "Traces of hardware units (Intel PT) are counted, not decoded.",
        "Compressed recordings (-z) need the module zstandard, or Python 3.14.",
        "A recording in a folder (perf record --threads) is not read.",
        NO_CPU_HELP,
    )
    checked = (
        ("perf 6.1", "recorded", "threads, events, times, periods and CPUs against perf script of the same recordings"),
        (
            "perf 2.6 to 6.17, on x86, ARM and AArch64; pipes, zstd, groups, Intel PT, lost records",
            "82 public recordings (repositories google/perf_data_converter: src/quipper/testdata and src/testdata, "
            "mstange/linux-perf-data, KDAB/hotspot, AStooke/Test, Akshay1Dhumal/numatop, CaoYucong/CWM-project, "
            "DMdSA/ComputacaoParalela, DarkBenky/ReadWriteBytes, haandfeng/MultiThreadProfilling, nishkp/598APE-HW3, "
            "wukun1113216744/cpu_check)",
            "by a reading of our own: time, thread and CPU of 480,031 samples, their 645,305 frames, sums of periods, "
            "numbers of other records",
        ),
    )
    line_up: ClassVar[str] = (
        "Record with -k CLOCK_MONOTONIC. The header then holds readings of it and of the wall clock, which "
        "align the recording with files on either. No other tool reads perf's default clock (without -k). If "
        "another file is on CLOCK_MONOTONIC or relates it to the wall clock, --clock FILE=monotonic places it, to "
        "within 10 ms and 500 ppm of the time since boot (2 s per hour)."
    )

    def form(self, head: Head) -> Form:
        """Return the first form of a recording: the recording itself."""
        return Form(0, marks_of_perf)

    def sniff(self, head: Head) -> Match:
        """Recognise the magic number."""
        if head.data.startswith(tuple(ORDERS)):
            return Match.yes("the magic of perf.data")
        return Match.no("no magic of perf.data")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole recording."""
        out.info.unit = "byte"
        out.balance.unit = RECORDS
        with _bytes_of(source) as data:
            try:
                file = read_header(data)
            except Damage as damage:
                hint = "is the file whole?" if damage.at else "without --from, the format is detected"
                raise source.malformed(damage.reason, hint=hint, where=f"byte {damage.at}") from None
            RecordReader(out, file, data, self.symbols, Unpacked(source.display, len(data), source.limits)).read()
        _tell(out, file)


def _tell(out: Builder, file: PerfFile) -> None:
    """Set the clock, the metadata and the notes for the user."""
    info: dict[str, Any] = dict(file.info)
    if isinstance(info.get("cmdline"), list):
        info["cmdline"] = " ".join(info["cmdline"])
    clocks = [event.clockid for event in file.events]
    header = TextHeader(info, clocks[0] if clocks else None, known=True)
    if file.clock_pair is not None and header.clockid is not None:
        if is_possible_pair(header.clockid, *file.clock_pair):
            header.reference = file.clock_pair
        else:
            out.problem(UNREAD_HEADER, "header", f"impossible times of its clocks: {file.clock_pair}")
    header.tell(out)
    if file.unfinished:
        out.note(
            "perf was ended before it could finish the file: read up to its end; names of events and hosts are absent"
        )
