"""The options about the recordings that a command reads, as objects, and the completion of their values in a shell."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar, cast

import click
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align import Policy
from traceconv.align.constraints import NameMap, by_input, input_named, pairs, parse_constraints, parse_map
from traceconv.align.inputs import ON_AMBIGUOUS
from traceconv.cli.completion import complete_files, complete_files_and_formats, complete_formats
from traceconv.cli.terminal import say
from traceconv.errors import UsageError
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.shown import Counted, quantity
from traceconv.io.spill import parse_size
from traceconv.model.diagnostics import FILES
from traceconv.model.numbers import parse_duration, step_of
from traceconv.reading import Expanded, Recording, expand
from traceconv.recordings import Input, Opened, Settings

RECORDINGS = Counted("recording", "recordings")

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]


def grouped(keyword: str, build: Callable[..., Any], *options: Decorator[Any]) -> Decorator[Any]:
    """Return a decorator that declares some options for a command.

    Args:
        keyword: the parameter of the command that takes what they become.
        build: makes that of their values; its parameters have their names, and defaults where no option is declared.
        options: in the order of the help text.
    """
    names = list(inspect.signature(build).parameters)

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def collected(**values: Any) -> Any:
            return function(
                **{keyword: build(**{name: values.pop(name) for name in names if name in values})}, **values
            )

        for option in reversed(options):
            collected = option(collected)
        return cast(Function, collected)

    return decorate


def limits_of(max_length: str, max_ratio: int) -> Limits:
    """Return what the options say."""
    return Limits(parse_size(max_length, "--max-length"), max_ratio)


LIMITS = (
    click.option(
        "--max-length",
        metavar="SIZE",
        default="16M",
        show_default=True,
        help="Longest line, name or arg, in bytes. Longer lines and args are left out; longer names are cut.",
    ),
    click.option(
        "--max-ratio",
        type=click.IntRange(0),
        default=DEFAULT_LIMITS.ratio,
        show_default=True,
        help="Refuse an input that grows to more than this many times its size: beyond 32 MB unpacked, beyond 256 MB "
        "in the args of its events or in the output. 0: no limit.",
    ),
)
#: The heading of the options that stand below the others in the help of a command.
_HEADINGS = {
    **dict.fromkeys(("--offset", "--same-machine", "--anchor", "--drift", "--clock", "--tz", "--date"), "Clocks"),
    **dict.fromkeys(("--on-ambiguous", "--same-run", "--map"), "Clocks"),
    **dict.fromkeys(("--memory", "--max-length", "--max-ratio"), "Limits"),
}


class HeadedCommand(click.Command):
    """A command whose help has the options about clocks and limits under headings of their own, after the others."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to the formatter."""
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Options", *_HEADINGS.values())}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                heading = next((_HEADINGS[name] for name in parameter.opts if name in _HEADINGS), "Options")
                records[heading].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


#: The command gets them as `limits`.
limit_options = grouped("limits", limits_of, *LIMITS)


#: The most files left out that are listed by name.
_MOST_LISTED = 20


class Verbosity(Struct, frozen=True):
    """How much a command prints: errors only, a summary, or everything."""

    quiet: bool = False
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose contradict each other")


def expanded(
    files: Sequence[str],
    limits: Limits,
    *,
    skip_unknown: bool = False,
    named: Collection[str] = (),
    output: AnyPath = "",
    each: bool = False,
    verbosity: Verbosity | None = None,
) -> Expanded:
    """Return the recordings, and list what is taken of folders and archives, and what is not.

    The arguments are those of `expand`.
    """
    expansion = expand(files, skip_unknown=skip_unknown, named=named, output=output, each=each, limits=limits)
    verbosity = verbosity or Verbosity()
    if not verbosity.quiet:
        _list(expansion, verbosity.verbose)
    return expansion


def left_out_json(expansion: Expanded) -> list[dict[str, str]]:
    """Return what was left out of folders and archives."""
    return [{"file": file, "reason": reason} for file, reason in expansion.left_out.items()]


def _list(expansion: Expanded, verbose: bool) -> None:
    inside = [recording for recording in expansion.recordings if recording.is_inside]
    taken = [_described(recording) for recording in inside]
    if taken:
        say(f"{quantity(len(taken), RECORDINGS)} taken:", *taken)
    left = [f"  {path}: {reason}" for path, reason in expansion.left_out.items()]
    if left:
        say(f"{quantity(len(left), FILES)} left out:", *left[: None if verbose else _MOST_LISTED])
    if len(left) > _MOST_LISTED and not verbose:
        say(f"  and {len(left) - _MOST_LISTED} more")


def _described(recording: Recording) -> str:
    name = recording.recognition.cls.name if recording.recognition else "named"
    repeats = f": merge leaves it out: {recording.repeats}" if recording.repeats else ""
    return f"  {shown(recording.path)} ({name}){repeats}"


class Named(Struct, frozen=True):
    """The inputs of a command line, and the values of the options about them, as they were typed.

    Attributes:
        files: files, folders, archives.
        formats: of `--from FILE=FORMAT`.
        offsets: of `--offset FILE=TIME`.
        options: of `-O [FILE:]KEY=VALUE`.
        format: of `--from FORMAT`, where all inputs are of it.
    """

    files: tuple[str, ...]
    skip_unknown: bool = False
    formats: tuple[str, ...] = ()
    offsets: tuple[str, ...] = ()
    same_machine: bool = False
    anchors: tuple[str, ...] = ()
    drifts: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    format: str | None = None

    @property
    def says_something(self) -> bool:
        """Whether there is more than the files."""
        return replace(self, files=(), skip_unknown=False) != Named(())

    def opened(
        self, settings: Settings, verbosity: Verbosity | None = None, output: AnyPath = "", *, single: bool = False
    ) -> Opened:
        """Return the recordings; those in folders and archives are listed.

        Args:
            settings: what the other options say.
            verbosity: how much is printed.
            output: what will be written.
            single: whether there may be only one.

        Raises:
            TraceconvError: an input cannot be opened, an option has a value of another form, names no input, or is
                given twice.
        """
        named = [text.rpartition("=")[0] for text in self.formats]
        expansion = expanded(
            self.files, settings.limits, skip_unknown=self.skip_unknown, named=named, output=output, verbosity=verbosity
        )
        if single:
            expansion.single(self.files[0])
        return self.about(expansion, settings)

    def about(self, expanded: Expanded, settings: Settings) -> Opened:
        """Return the recordings, with the options that apply to them."""
        files = [shown(path) for path in expanded.paths]
        format_of = by_input(self.formats, files, "--from")
        offset_of = {index: _ns(text) for index, text in by_input(self.offsets, files, "--offset").items()}
        input_options: list[dict[str, str]] = [{} for _ in files]
        shared: dict[str, str] = {}
        for text, value in pairs(self.options, "-O", first=True).items():
            file, colon, key = text.rpartition(":")
            (input_options[input_named(file, files, "-O")] if colon else shared)[key] = value
        inputs = [
            Input(path, format_of.get(index, self.format), input_options[index], *offset_of.get(index, (None, 0)))
            for index, path in enumerate(expanded.paths)
        ]
        options_given = {name: getattr(self, name) for name in ("anchors", "drifts", "clocks", "zones", "dates")}
        constraints = replace(parse_constraints(files, **options_given), same_machine=self.same_machine)
        return Opened(expanded, inputs, replace(settings, options=shared, constraints=constraints))


def _settings(
    max_length: str,
    max_ratio: int,
    memory: int | None = None,
    on_ambiguous: str = "fail",
    same_run: bool = False,
    classes: tuple[str, ...] = (),
) -> Settings:
    policy = Policy(NameMap(parse_map(classes)), same_run, on_ambiguous)
    return Settings(policy=policy, memory=memory, limits=limits_of(max_length, max_ratio))


def _ns(text: str) -> tuple[int, int]:
    """Return a time as typed, and its uncertainty, ns: what follows a tilde, or what its last digit counts."""
    time, tilde, within = text.partition("~")
    try:
        ns = parse_duration(time)
        if not tilde:
            return ns, step_of(time, ns)
        if (bound := parse_duration(within)) < 0:
            raise ValueError(f"{within!r} after the `~` is less than 0")
        return ns, bound
    except ValueError as error:
        raise UsageError(f"--offset: {error}") from None


importer_option = click.option(
    "-O",
    "--option",
    "options",
    multiple=True,
    metavar="[FILE:]KEY=VALUE",
    help="Set an option of the importer; `formats NAME` lists them. FILE: limits it to one input.",
)
#: The zone and the day of local times; the name of a file can be left out where there is only one.
_local_times = (
    click.option(
        "--tz",
        "zones",
        multiple=True,
        metavar="[FILE=]ZONE",
        help="Time zone of the local times in FILE or in its name: onnxruntime_profile.json=+02:00. FILE= can be "
        "omitted if there is one input.",
    ),
    click.option(
        "--date",
        "dates",
        multiple=True,
        metavar="[FILE=]DAY",
        help="Day of the first time in FILE, if its times have no day: tvm.log=2018-10-26.",
    ),
)
from_option = click.option(
    "--from",
    "format",
    metavar="FORMAT",
    shell_complete=complete_formats,
    help="Read files as this format, instead of detecting it.",
)


def _recording(
    file: str,
    options: tuple[str, ...],
    zones: tuple[str, ...],
    dates: tuple[str, ...],
    format: str | None,
) -> Named:
    return Named((file,), zones=zones, dates=dates, options=options, format=format)


#: The input of a command that takes one, as `named: Named`.
recording_options = grouped(
    "named",
    _recording,
    click.argument("file", shell_complete=complete_files),
    importer_option,
    *_local_times,
    from_option,
)
#: The inputs of a command that takes several, as `named: Named`.
recordings_options = grouped(
    "named",
    Named,
    click.argument("files", nargs=-1, required=True, shell_complete=complete_files),
    click.option(
        "--skip-unknown",
        is_flag=True,
        help="Leave out files of unknown formats, and list them.",
    ),
    click.option(
        "--from",
        "formats",
        multiple=True,
        metavar="FILE=FORMAT",
        shell_complete=complete_files_and_formats,
        help="Read FILE as this format, instead of detecting it.",
    ),
    click.option(
        "--offset",
        "offsets",
        multiple=True,
        metavar="FILE=TIME",
        help="Add TIME to all times of FILE. Its uncertainty is one unit of its last digit (+1.5ms: "
        "±0.1 ms; zero is exact), or what follows a tilde: o.json=+1s~1ns.",
    ),
    click.option(
        "--same-machine",
        is_flag=True,
        help="State that all inputs are from one machine, even if their host names differ (as in containers). "
        "Equal pids then mean one process, and all clocks since boot are one clock.",
    ),
    click.option(
        "--anchor",
        "anchors",
        multiple=True,
        metavar="POINT=POINT[~TIME]",
        help="Declare that two points in two files are one instant, within TIME. A point is a time on the clock of its "
        "file (a.json@1.25s=b.log@30ms~5us), or the start or end of an event: 'a.json:Conv#3.start=b.log:gemm#-1.end' "
        "names the third Conv and the last gemm. Without TIME, the last digit gives the uncertainty: @1s is ±1 s. Two "
        "anchors also give the drift.",
    ),
    click.option(
        "--drift",
        "drifts",
        multiple=True,
        metavar="FILE=PPM",
        help="State the rate at which the clock of FILE runs slow (negative: fast): b.log=12ppm or b.log=-40ppb.",
    ),
    click.option(
        "--clock",
        "clocks",
        multiple=True,
        metavar="FILE=CLOCK[@HOST]",
        help="Clock of the times in FILE: realtime, monotonic, monotonic_raw, boottime, perf, or none (unknown). "
        "HOST is the host name in other files: run.log=monotonic@myhost.",
    ),
    *_local_times,
    importer_option,
)
#: What is done where the clocks leave something open.
_policy = (
    click.option(
        "--on-ambiguous",
        type=click.Choice(ON_AMBIGUOUS),
        default="fail",
        show_default=True,
        help="What to do if an alignment is not certain: refuse (fail), show the files side by side and mark their "
        "tracks (separate), or use the best offset and warn (best).",
    ),
    click.option(
        "--same-run",
        is_flag=True,
        help="State that all files are of one run. Otherwise their events must show it.",
    ),
    click.option(
        "--map",
        "classes",
        multiple=True,
        metavar="CLASS=PATTERN,...",
        help="Treat slices whose names match a PATTERN as the same kind of work: convolution=Conv*,*FusedConv*.",
    ),
)
_memory = click.option(
    "--memory",
    metavar="SIZE",
    callback=lambda _context, _option, text: parse_size(text) if text else None,
    help="Memory to use, such as 2G or 500M. Data beyond it goes to temporary files in TMPDIR. Default: the size of "
    "the inputs plus 500 MB, but at most half of the free memory.",
)


def settings_options(*, policy: bool = False, memory: bool = False) -> Decorator[Any]:
    """Return a decorator that declares the limits, and other options of a command, as `settings: Settings`."""
    return grouped("settings", _settings, *_policy * policy, *(_memory,) * memory, *LIMITS)
