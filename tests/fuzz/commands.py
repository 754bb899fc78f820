"""The command line of a run: a command with options that it takes, over inputs that lie in a folder.

Left out are commands that read no recording (formats, how, demo, anchor) and the server of `open`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from tests.fuzz import inputs
from tests.golden import Case

#: Each command as often as it stands here.
COMMANDS = [
    *["convert"] * 8,
    *["merge"] * 5,
    *["report"] * 5,
    *["align", "clocks", "info", "identify", "export"],
    *["check"] * 2,
    *["diff"] * 3,
    "history",
    *["query"] * 2,
]
#: These take runs of one program: damaged copies of a recording.
_OF_RUNS = ("diff", "history")
#: These do not take the format of each of several files.
_OF_ONE_FORMAT = ("convert", "info", *_OF_RUNS)
_WINDOWS = ["0us..10us", "5us..", "..1ms", "1ms..20ms", "20us..45us", "3s..2s", "ProfilerStep#2..3", "conv"]
_CONDITIONS = [
    *(
        "name~conv",
        "dur>1us",
        "dur>=0 and name!=x",
        "args.device=0",
        "args.step_num>1",
        "not name~^a",
        "category=cpu_op",
    ),
    *("(dur>1us or name~k) and thread~1", "process=1", "name=", "dur<", "track~.*"),
]
_SECTIONS = [
    *("overview", "operations", "steps", "device", "ranks", "memory", "logs", "primitives", "layers"),
    *("stated_totals", "step_times", "host_late", "collectives", "hosts"),
]
_OFFSETS = ["0ns", "+1.5ms", "-3h", "9e9s", "1795245461050843000ns"]
_CLOCKS = ["realtime", "monotonic", "none", "boottime@h", "perf"]
_TABLES = ["parquet", "csv", "arrow", "folded", "speedscope.json", "pb.gz"]
_VIEWS = ["slices", "kernels", "launches", "steps", "counters", "samples", "flows", "tracks", "clocks", "recordings"]
_QUERIES = [
    *(f"from {view}" for view in [*_VIEWS, "collectives", "nothing"]),
    "select name, count(*), sum(dur), sum(self_dur) from slices group by all order by all",
    "select args, rank, process, thread, category from slices order by ts, id limit 20",
    "select * from kernels natural join launches",
    "select name, args->>'$.shape', try_cast(args->>'$.device' as int) from slices where depth > 0",
    "select list(name), string_agg(name, ','), max(args) from slices",
    "copy slices to 'out/x.csv'",
]
#: Options of `report` that `diff` and `history` take, too.
_OF_COMPARISONS = ("--by", "--where", "--between", "--step-name", "--details", "--top")
_KEYS = ["name", "category", "track", "thread", "process", "rank", "input", "shape", "arg:device", "arg:stream"]
_FOLDER, _OUT = "in", "out"


@dataclass(frozen=True)
class Run:
    """A command over inputs; paths are relative to the folder of the run, in which it is saved as `run.json`.

    Attributes:
        number: which run of its seed it is.
        words: the command and its arguments.
        stdin: the input that is standard input, "" for none.
        compared: whether it runs without the kernel, too.
    """

    number: int
    words: list[str]
    stdin: str
    compared: bool

    def save(self, folder: Path) -> None:
        """Write it beside its inputs."""
        (folder / "run.json").write_text(json.dumps(asdict(self), indent=1))

    @staticmethod
    def load(folder: Path) -> Run:
        """The run of a folder."""
        return Run(**json.loads((folder / "run.json").read_text()))


def laid_out(number: int, seed: int, folder: Path) -> Run:
    """The run of a number, with its inputs and itself saved in a folder."""
    rng = Random(f"{seed}:{number}")
    command = rng.choice(COMMANDS)
    cases, options = _cases(rng, command)
    paths = []
    for index, case in enumerate(cases):
        path = inputs.laid(rng, case, folder / _FOLDER / str(index))
        paths.append(path.relative_to(folder).as_posix())
    if len(paths) > 1 and rng.random() < 0.05:
        paths[1] = paths[0]
    if command != "check" and rng.random() < 0.5:
        options += _from(command, cases, paths)
    for case, path in zip(cases, paths, strict=True):
        given = f"{path}:" if len(paths) > 1 else ""
        for key, value in case.options.items() if command not in ("check", "identify", "clocks") else ():
            options += ["-O", f"{given}{key}={value}"]
    stdin = ""
    if command in ("convert", "report", "info", "check") and len(paths) == 1 and rng.random() < 0.03:
        stdin, paths = paths[0], ["-"]
    elif command in ("merge", "report", "align") and rng.random() < 0.05:
        paths = [_FOLDER]
    run = Run(
        number,
        [command, *_arguments(rng, command, paths), *options, *_options(rng, command, paths)],
        stdin,
        compared=command == "convert" or number % 4 == 0,
    )
    run.save(folder)
    return run


def _cases(rng: Random, command: str) -> tuple[list[Case], list[str]]:
    if command in ("convert", "info"):
        return [inputs.drawn(rng)], []
    if command == "check":
        return [inputs.drawn(rng, inputs.CHECKED)], []
    if command in _OF_RUNS:
        return [inputs.drawn(rng, inputs.COMPARED if rng.random() < 0.8 else None)] * rng.choice([2, 2, 2, 4, 6, 8]), []
    if command in ("merge", "align") or rng.random() < 0.3:
        if rng.random() < 0.6:
            case = rng.choice(inputs.merges())
            return inputs.parts(case), ["--same-machine"] * ("same_machine" in case.about and command != "identify")
        return [inputs.drawn(rng) for _ in range(rng.choice([2, 2, 2, 3]))], []
    return [inputs.drawn(rng)], []


def _arguments(rng: Random, command: str, paths: list[str]) -> list[str]:
    match command:
        case "diff" if len(paths) > 2 or rng.random() < 0.2:
            return ["--before", *paths[::2], "--after", *paths[1::2]]
        case "query":
            return [*paths, rng.choice(_QUERIES)]
    return paths


def _from(command: str, cases: list[Case], paths: list[str]) -> list[str]:
    if command in _OF_ONE_FORMAT:
        return ["--from", cases[0].format]
    if command == "identify":
        return []
    return [word for case, path in zip(cases, paths, strict=True) for word in ("--from", f"{path}={case.format}")]


def _options(rng: Random, command: str, paths: list[str]) -> list[str]:
    some: list[tuple[float, Iterable[str]]] = []
    several = [
        (0.3, ["--on-ambiguous", rng.choice(["fail", "separate", "best"])]),
        (0.2, ["--same-machine"]),
        (0.2, ["--same-run"]),
        (0.1, ["--skip-unknown"]),
        (
            0.15,
            [
                "--offset",
                f"{rng.choice(paths)}={rng.choice(_OFFSETS)}",
            ],
        ),
        (0.05, ["--drift", f"{rng.choice(paths)}={rng.choice(['12ppm', '-40ppb', '1e9ppm'])}"]),
        (0.05, ["--anchor", f"{paths[0]}@{rng.choice(['1s', '0'])}={paths[-1]}@{rng.choice(['1ms', '2s~5us'])}"]),
        (
            0.05,
            ["--clock", f"{rng.choice(paths)}={rng.choice(_CLOCKS)}"],
        ),
        (0.05, ["--tz", f"{rng.choice(paths)}={rng.choice(['+02:00', 'UTC', 'Europe/Berlin', '-12'])}"]),
        (0.05, ["--date", f"{rng.choice(paths)}={rng.choice(['2018-10-26', '1970-01-01', '9999-12-31'])}"]),
        (0.05, ["--map", "convolution=*conv*,*Conv*"]),
    ]
    limits = [(0.03, ["--max-length", rng.choice(["100", "10K"])]), (0.03, ["--max-ratio", rng.choice(["0", "1"])])]
    said = [(0.1, ["-v"]), (0.05, ["-q"])]
    written = [
        (0.1, ["--strict"]),
        (0.15, ["--attribute"]),
        (0.1, ["--layer-counters"]),
        (0.2, ["--trim", rng.choice([*_WINDOWS, *paths])]),
        (0.05, ["--memory", rng.choice(["60M", "200M"])]),
    ]
    output: list[str] = []
    match command:
        case "convert":
            some = [*limits, *said, *written]
            output = ["-o", f"{_OUT}/o.{rng.choice(['pftrace', 'json', 'json', 'pftrace', 'json.gz'])}"]
        case "merge":
            pages = [(0.3, ["--report", f"{_OUT}/{rng.choice(['a.html', 'a.json'])}"]), (0.2, ["--collective-flows"])]
            some = [*limits, *said, *written, *several, *pages]
            output = ["-o", f"{_OUT}/o.{rng.choice(['pftrace', 'json'])}"]
        case "report":
            some = [*limits, *said, *several, *_questions(rng)]
            if rng.random() < 0.5:
                output = ["-o", f"{_OUT}/r.{rng.choice(['html', 'json', 'csv', 'md', 'txt'])}"]
            else:
                output = ["--format", rng.choice(["text", "markdown", "csv", "json", "html"])]
        case "export":
            some = [*limits, *said, *several, (0.3, ["--arg", "device"]), (0.05, ["--strict"])]
            some.append((0.1, ["--slices"]))
            output = ["-o", f"{_OUT}/t.{rng.choice(_TABLES)}"]
        case "diff" | "history":
            kinds = ["html", "json", "csv", "md", "txt", *["pftrace"] * (command == "diff")]
            asked = [(share, words) for share, words in _questions(rng) if words[0] in _OF_COMPARISONS]
            some = [*limits, *said, *asked, (0.3, ["--keep-warm-up"]), (0.1, ["--min-change", "0.1%"])]
            if command == "diff":
                gate = ["--fail-above", "5%", "--fail-on", rng.choice(["total", "rows"])]
                some += [(0.3, gate), (0.2, ["--strict"]), (0.1, ["--rename", "conv=gemm"])]
            output = ["-o", f"{_OUT}/d.{rng.choice(kinds)}"] if rng.random() < 0.7 else []
        case "query":
            some = [*limits, *said, *several, (0.05, ["--strict"]), (0.05, ["--memory", "200M"])]
            output = ["-o", f"{_OUT}/q.{rng.choice(['csv', 'json', 'parquet', 'md'])}"] if rng.random() < 0.5 else []
        case "align":
            some = [*limits, *said, *several, (0.5, ["--report", f"{_OUT}/{rng.choice(['a.html', 'a.json'])}"])]
        case "clocks":
            some = [*limits, *several[1:2], *several[3:-1], (0.5, ["--json"])]
        case "identify":
            some = [*limits, (0.5, ["--all"]), (0.3, ["--json"])]
        case "info" | "check":
            some = [*limits, (0.5, ["--json"])]
    return [*(word for share, words in some if rng.random() < share for word in words), *output]


def _questions(rng: Random) -> list[tuple[float, list[str]]]:
    return [
        (0.3, ["--section", rng.choice(_SECTIONS)]),
        (0.1, ["--section", rng.choice(_SECTIONS)]),
        (0.3, ["--by", ",".join(rng.sample(_KEYS, rng.randrange(1, 4)))]),
        (0.2, ["--where", rng.choice(_CONDITIONS)]),
        (0.2, ["--between", rng.choice(_WINDOWS)]),
        (0.1, ["--step-name", rng.choice([".*", "ProfilerStep.*", "(a+)+$", "conv.*", "["])]),
        (0.1, ["--stacks", rng.choice(["pytorch-kineto", "perf-script", "onednn-verbose"])]),
        (0.2, ["--details"]),
        (0.2, ["--top", rng.choice(["0", "3"])]),
        (0.2, ["--sort", rng.choice(["total", "count", "mean", "self", "max", "name"])]),
        (0.05, ["--strict"]),
    ]
