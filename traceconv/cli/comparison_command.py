"""`traceconv diff` and `history`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import chain

import click
from msgspec import Struct
from msgspec.structs import replace

from traceconv import api
from traceconv.cli.completion import complete_files
from traceconv.cli.options import (
    HeadedCommand,
    Named,
    Verbosity,
    from_option,
    grouped,
    importer_option,
    settings_options,
)
from traceconv.cli.question_commands import part_of_slices
from traceconv.cli.results import verbosity_options
from traceconv.cli.tables import PICTURE, Shown, print_sections, section_options
from traceconv.cli.terminal import say, working
from traceconv.comparison.comparison import MIN_CHANGE, RUNS, Run, compare
from traceconv.comparison.history import history
from traceconv.comparison.runs import (
    AS_RUNS,
    SEVERAL,
    Recorded,
    Selection,
    by_start,
    can_be_read_again,
    runs_in,
    unlike_keys,
    usual_run,
)
from traceconv.comparison.side_by_side import side_by_side
from traceconv.errors import InputError, UnrecognizedFormat, UsageError
from traceconv.io.folders import check_all_there
from traceconv.io.shown import listed, one_line, quantity
from traceconv.model.diagnostics import FILES
from traceconv.recordings import Settings

_SIDES = ("--before", "--after", "--before-runs", "--after-runs")
#: The exit codes of a gate: something became slower, or nothing can be decided.
SLOWER, UNDECIDED = 5, 6
#: The most names of undecided rows in a message.
_MOST_NAMED = 10


class _DiffCommand(HeadedCommand):
    """A command whose options `--before` and `--after` take all files that follow them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the option before each of its files, as click expects, and parse that."""
        repeated: list[str] = []
        option = ""
        for arg in args:
            if arg in _SIDES:
                option = arg
            elif option and not (arg.startswith("-") and arg != "-"):
                repeated += [option, arg]
            else:
                option = ""
                repeated.append(arg)
        return super().parse_args(ctx, repeated)


class _Sides(Struct, frozen=True):
    """The runs of both sides: each is a recording, or a folder or archive of the recordings of its ranks.

    Attributes:
        before, after: their names.
        found: those that were not named, but found in a folder of runs.
    """

    before: Sequence[str]
    after: Sequence[str]
    found: frozenset[str] = frozenset()


def _sides(
    files: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    before_runs: tuple[str, ...],
    after_runs: tuple[str, ...],
) -> _Sides:
    """Raise UsageError unless both sides have a run."""
    stated = (before, before_runs), (after, after_runs)
    if files and any(map(any, stated)):
        raise UsageError(f"{files[0]}: it is not said which side this run is of", hint="--before A... --after B...")
    if files:
        if len(files) != 2:
            raise UsageError(
                f"two runs are compared, not {len(files)}", hint="of several runs a side: --before A... --after B..."
            )
        return _Sides(files[:1], files[1:])
    found = [[run for folder in folders for run in runs_in(folder)] for _, folders in stated]
    sides = [[*runs, *more] for (runs, _), more in zip(stated, found, strict=True)]
    for side, option in zip(sides, _SIDES, strict=False):
        if not side:
            raise UsageError(
                f"{option}: there is no run", hint="traceconv diff BEFORE AFTER, or --before A... --after B..."
            )
    return _Sides(sides[0], sides[1], frozenset(chain(*found)))


def _selection(
    by: tuple[str, ...], where: str | None, between: str | None, step_name: str, keep_warm_up: bool
) -> Selection:
    where, between = part_of_slices("--where", where), part_of_slices("--between", between)
    keys = tuple(dict.fromkeys(key.strip() for text in by for key in text.split(",")))
    return Selection(keys, where, between, step_name, keep_first=keep_warm_up)


class _Gate(Struct, frozen=True):
    """What makes the command fail.

    Attributes:
        above: the share by which something may become slower; None for no gate.
        on_rows: whether any row counts, not the total alone.
        strict: whether it fails, too, if nothing can be decided.
    """

    above: float | None
    on_rows: bool
    strict: bool


def _gate(fail_above: float | None, fail_on: str | None, strict: bool) -> _Gate:
    """Raise UsageError if --fail-on would do nothing."""
    if fail_on and fail_above is None and not strict:
        raise UsageError(f"--fail-on {fail_on}: nothing makes the command fail", hint="--fail-above 5%, or --strict")
    return _Gate(fail_above, fail_on == "rows", strict)


def _share(_context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Return a share that is given in percent: a bare number might be either."""
    if text is None:
        return None
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / 100 if percent and not rest else -1.0
    except ValueError:
        share = -1.0
    if not 0 <= share < 100:
        raise UsageError(f"{option.opts[0]}: {text!r} is not a share in percent", hint="5%")
    return share


def _renamed(_context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    renamed: dict[str, str] = {}
    for text in texts:
        old, separator, new = text.partition("==" if "==" in text else "=")
        if not (old and separator and new) or ("=" in new and separator == "="):
            hint = "a name with = in it: OLD==NEW"
            raise UsageError(f"{option.opts[0]}: {text!r} is not OLD=NEW", hint=hint)
        if renamed.setdefault(old, new) != new:
            raise UsageError(f"{option.opts[0]}: {old!r} has two new names, {renamed[old]!r} and {new!r}")
    return renamed


#: What of each run is compared, and by which keys.
_selection_options = grouped(
    "selection",
    _selection,
    click.option(
        "--by",
        multiple=True,
        default=("name",),
        metavar="KEY,...",
        help="Compare operations by these keys, as in `report --by`. Default: name.",
    ),
    click.option("--where", metavar="CONDITION", help="Compare only slices that meet CONDITION."),
    click.option("--between", metavar="WINDOW", help="Compare this window of time of each run."),
    click.option(
        "--step-name", metavar="REGEX", default="", help="Treat slices whose whole name matches REGEX as steps."
    ),
    click.option("--keep-warm-up", is_flag=True, help="Compare the first step of each thread, too."),
)
_min_change_option = click.option(
    "--min-change",
    metavar="PERCENT",
    default=f"{100 * MIN_CHANGE:g}%",
    show_default=True,
    callback=_share,
    help="The smallest change that is called one.",
)


#: How the files of all runs are read, as `named: Named` without files.
_runs_options = grouped(
    "named",
    partial(Named, ()),
    click.option("--skip-unknown", is_flag=True, help="Leave out files of unknown formats, and list them."),
    importer_option,
    from_option,
)


def _each(
    names: Sequence[str], found: Collection[str], read: Callable[[str], Recorded], verbosity: Verbosity
) -> Iterator[Recorded]:
    """Yield runs; files of no known format that were `found` in a folder of runs are left out, and listed."""
    left_out = []
    for name in names:
        try:
            yield read(name)
        except UnrecognizedFormat as error:
            if name not in found:
                raise
            left_out.append(f"{one_line(name)}: {error.reason}")
    if left_out and len(left_out) == len(names):
        raise InputError("no run in the folder is a recording", hint="; ".join(left_out[:3]))
    if left_out and not verbosity.quiet:
        say(f"{quantity(len(left_out), FILES)} left out:", *(f"  {line}" for line in left_out))


def _recorded(
    selection: Selection, named: Named, settings: Settings, verbosity: Verbosity, shown: Shown, name: str
) -> Recorded:
    """Read a run."""
    return selection.slices(name, replace(named, files=(name,)).opened(settings, verbosity, shown.path))


@click.command("diff", cls=_DiffCommand)
@grouped(
    "sides",
    _sides,
    click.argument("files", nargs=-1, shell_complete=complete_files),
    click.option("--before", multiple=True, metavar="RUN...", help="The runs before the change."),
    click.option("--after", multiple=True, metavar="RUN...", help="The runs after it."),
    click.option("--before-runs", multiple=True, metavar="DIR", help="Each entry of this folder is a run before it."),
    click.option("--after-runs", multiple=True, metavar="DIR", help="Each entry of this folder is a run after it."),
)
@_selection_options
@click.option(
    "--rename",
    "renamed",
    multiple=True,
    metavar="OLD=NEW",
    callback=_renamed,
    help="What was called OLD before is NEW after the change; names with = in them: OLD==NEW.",
)
@_min_change_option
@grouped(
    "gate",
    _gate,
    click.option(
        "--fail-above",
        metavar="PERCENT",
        callback=_share,
        help=f"Exit with {SLOWER} if the verdict is slower, by more than this, such as 5%.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["total", "rows"]),
        help="What --fail-above and --strict look at. Default: total.",
    ),
    click.option("--strict", is_flag=True, help=f"Exit with {UNDECIDED} if the runs are too few to decide."),
)
@section_options(PICTURE)
@_runs_options
@settings_options(memory=True)
@verbosity_options
@click.pass_context
def diff_command(
    ctx: click.Context,
    sides: _Sides,
    selection: Selection,
    renamed: dict[str, str],
    min_change: float,
    gate: _Gate,
    shown: Shown,
    named: Named,
    settings: Settings,
    verbosity: Verbosity,
) -> None:
    """Compare runs before and after a change.

    \b
      traceconv diff before.json after.json
      traceconv diff --before a1.json a2.json --after b1.json b2.json
      traceconv diff --before-runs base/ --after-runs head/ --fail-above 5%
      traceconv diff before.json after.json -o diff.html
      traceconv diff before.json after.json -o diff.pftrace

    A run is a file, or a folder or archive with the files of its ranks. Only several runs a side tell a change from
    noise: the verdict is slower, faster, same or unclear, and unknown otherwise. docs/comparison.md defines them. A
    trace as output has a run of each side, step below step.
    """
    names = [*sides.before, *sides.after]
    there = {new: new for new in renamed.values()}
    check_all_there(names)
    shown.check(names)
    recorded = partial(_recorded, selection, named, settings, verbosity, shown)
    is_drawn = shown.form == PICTURE
    before, after, kept = list[Run](), list[Run](), dict[str, Recorded]()
    with working(f"reading {quantity(len(names), RUNS)}", verbosity.quiet, names):
        for side, of_side, new_names in ((before, sides.before, renamed), (after, sides.after, there)):
            for found in _each(of_side, sides.found, recorded, verbosity):
                if found.is_several and len(of_side) == 1 and gate.above is not None:
                    raise UsageError(SEVERAL, hint=AS_RUNS, at=found.name)
                side.append(selection.run(found, new_names, recorded))
                if is_drawn and (len(names) == 2 or not can_be_read_again(found.name)):
                    kept[found.name] = found
    comparison = compare(before, after, selection.by, min_change=min_change)
    comparison.sections[0].notes += unlike_keys([*before, *after], selection.by)
    tables = replace(shown, form="text", path="-") if is_drawn else shown
    print_sections(comparison.sections, tables, verbosity, lambda tables: f"{', '.join(tables)}: --top 20")
    if is_drawn:
        usual = [usual_run(side).name for side in (before, after)]
        drawn = [kept.get(name) or recorded(name) for name in usual]
        api.write(side_by_side(*drawn, part=comparison.part), api.Output(shown.path, force=shown.force))
        if not verbosity.quiet:
            say(f"wrote {shown.path}: {' and '.join(one_line(run.name) for run in drawn)} on one axis")
    slower = [] if gate.above is None else comparison.slower(gate.above, rows=gate.on_rows)
    if slower:
        say(f"slower by more than {100 * (gate.above or 0):g} %: {listed(map(one_line, slower))}")
        ctx.exit(SLOWER)
    undecided = comparison.undecided(rows=gate.on_rows) if gate.strict else []
    if undecided:
        more = f" and {len(undecided) - _MOST_NAMED} more" if len(undecided) > _MOST_NAMED else ""
        say(f"unclear or unknown: {listed(map(one_line, undecided[:_MOST_NAMED]))}{more}")
        ctx.exit(UNDECIDED)


def _refuse_few(runs: Sequence[object]) -> None:
    if len(runs) < 2:
        raise UsageError("a history has two runs or more", hint="traceconv history RUN..., or a folder of runs")


@click.command("history", cls=HeadedCommand)
@click.argument("runs", nargs=-1, required=True, shell_complete=complete_files)
@_selection_options
@_min_change_option
@section_options()
@_runs_options
@settings_options(memory=True)
@verbosity_options
def history_command(
    runs: tuple[str, ...],
    selection: Selection,
    min_change: float,
    shown: Shown,
    named: Named,
    settings: Settings,
    verbosity: Verbosity,
) -> None:
    """Tell since which run operations are slower or faster.

    \b
      traceconv history base/1.json head/1.json
      traceconv history nightly/ -o history.html

    Runs are given in order: files, or folders or archives with the files of ranks. Of a single folder, each entry is a
    run, ordered by its start if all state one, else by name. docs/comparison.md has the method.
    """
    found_runs = runs_in(runs[0]) if len(runs) == 1 and os.path.isdir(runs[0]) else []
    names = found_runs or list(runs)
    _refuse_few(names)
    check_all_there(names)
    shown.check(names)
    with working(f"reading {quantity(len(names), RUNS)}", verbosity.quiet, names):
        recorded = partial(_recorded, selection, named, settings, verbosity, shown)
        found = [selection.run(run, again=recorded) for run in _each(names, found_runs, recorded, verbosity)]
    _refuse_few(found)
    if found_runs:
        found = by_start(found)
    sections = history(found, selection.by, min_change=min_change)
    sections[1].notes += unlike_keys(found, selection.by)
    print_sections(sections, shown, verbosity, lambda tables: f"{', '.join(tables)}: --top 20")
