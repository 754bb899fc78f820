"""What Perfetto's trace processor sees in an output, and the command that has it load a file and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests import oracle
from tests.benchmarks.frame import NotMeasured, Wrong
from tests.benchmarks.generate import TRACKS, Summary

_LARGE_BYTES = 20_000_000
_LOADER = Path(__file__).with_name("tp_load.mjs")
_SQL = """
select
  (select count() from slice where dur != 0) as slices,
  (select count() from flow) as flows,
  (select count() from flow f join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in
   where i.ts < o.ts) as backward,
  (select count(distinct track_id) from slice) as tracks,
  (select count() from slice where dur = 0) as instants,
  (select count() from slice where dur != 0 and arg_set_id is not null) as with_args
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the trace processor shows.

    Attributes:
        slices: slices, without instants, which the trace processor keeps as slices of length 0.
        flows: flows between two slices.
        backward: those of them that lead to something earlier.
        tracks: tracks with slices on them.
        problems: what it counted as an error or as lost.
        instants: slices of length 0.
        with_args: slices, as above, that have args.
    """

    slices: int
    flows: int
    backward: int
    tracks: int
    problems: int
    instants: int
    with_args: int

    def __str__(self) -> str:
        text = f"{self.slices:,} slices on {self.tracks} tracks, {self.flows:,} flows"
        text += f" ({self.backward:,} of them back in time)" if self.backward else ""
        return text + (f", {self.problems:,} errors of import" if self.problems else "")


def judge(trace: Path) -> Seen:
    """Load a trace and count.

    Raises:
        NotMeasured: the trace processor is not installed.
    """
    try:
        with oracle.open_trace(trace) as processor:
            (row,) = oracle.rows(processor, _SQL)
            problems = sum(int(one["value"]) for one in oracle.import_problems(processor))
    except oracle.OracleMissing as missing:
        raise NotMeasured(str(missing)) from missing
    finally:
        if trace.stat().st_size > _LARGE_BYTES:
            oracle.shutdown()  # it would keep the memory
    return Seen(**row, problems=problems)


def all_of(*totals: Summary) -> Seen:
    """What a trace shows that holds all of what was generated, one file or several."""
    slices, flows, instants = (sum(getattr(one, what) for one in totals) for what in ("slices", "flows", "instants"))
    return Seen(slices, flows, 0, TRACKS * len(totals), 0, instants, slices)


def expect(trace: Path, *totals: Summary) -> Seen:
    """What a trace shows, which is all of what was generated.

    Raises:
        Wrong: it is not.
        NotMeasured: the trace processor is not installed.
    """
    seen, right = judge(trace), all_of(*totals)
    if seen != right:
        raise Wrong(f"{trace.name} shows {seen!r}, the input has {right!r}")
    return seen


def load_command(trace: Path) -> list[str]:
    """The command that loads a trace and ends.

    Raises:
        NotMeasured: the trace processor is not installed.
    """
    try:
        return [oracle.node_executable(), str(_LOADER), str(oracle.ui_dir()), str(trace)]
    except oracle.OracleMissing as missing:
        raise NotMeasured(str(missing)) from missing
