"""Files of stacks, as their viewers read them: protobuf's own decoder, `go tool pprof`, speedscope in a browser."""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import os
import queue
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import traceconv
from tests import HANG_S, commands, oracle
from tests.answers.test_layers import Sample, Slice, made
from tests.answers.test_weighted_stacks import KINETO, LAYERS, PERF, SAME_MACHINE
from tests.golden import ROOT as GOLDEN
from tests.ui import shot
from traceconv import Stacks
from traceconv.answers.stack_files import FORMS, write_stacks
from traceconv.answers.weighted_stacks import stacks_of
from traceconv.io.shown import one_line

CUT = GOLDEN / "pytorch-kineto/cut/input.json"
EVIL = ["a;b", "line\nbreak\r\u2028", "", " ", "ends 12 7", 'quote"\\', "\ud800", "日本 語", "\x00\x1b[2J", "a" * 5000]
#: Of profile.proto: the fields of each message, by their numbers; a capital is a message, `*` is repeated.
MESSAGES = {
    "Profile": {
        1: "*ValueType",
        2: "*Sample",
        3: "*Mapping",
        4: "*Location",
        5: "*Function",
        6: "*text",
        14: "default",
    },
    "ValueType": {1: "type", 2: "unit"},
    "Sample": {1: "*location_id", 2: "*value", 3: "*Label"},
    "Label": {1: "key", 2: "str", 3: "num"},
    "Mapping": {1: "id", 5: "filename", 7: "has_functions"},
    "Location": {1: "id", 2: "mapping_id", 3: "address", 4: "*Line"},
    "Line": {1: "function_id", 2: "line"},
    "Function": {1: "id", 2: "name", 4: "filename"},
}


@functools.cache
def profile_class() -> Any:
    """The class of `Profile`, whose decoder is that of protobuf."""
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field in fields.items():
            kind = field.strip("*")
            one = message.field.add(name=kind.lower(), number=number, label=3 if field[0] == "*" else 1)
            one.type = one.TYPE_MESSAGE if kind in MESSAGES else one.TYPE_STRING if kind == "text" else one.TYPE_INT64
            if kind in MESSAGES:
                one.type_name = f".p.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


Weights = Counter[tuple[str, tuple[str, ...], str]]


def expected(stacks: Stacks) -> Weights:
    """The weights by track, stack and measure."""
    found: Weights = Counter()
    for row in stacks:
        title = row.event if row.unit != "samples" else f"samples of {row.event}"
        found[row.track, tuple(name or "(no name)" for name in row.stack), title] += row.weight
    return found


def of_pprof(path: Path) -> tuple[Weights, Any]:
    profile = profile_class()()
    profile.ParseFromString(gzip.decompress(path.read_bytes()))
    text = profile.text
    assert text[0] == ""
    assert len(set(text)) == len(text)
    functions = {one.id: text[one.name] for one in profile.function}
    mappings = {one.id: text[one.filename] for one in profile.mapping}
    assert 0 not in functions | mappings
    locations = {one.id: functions[one.line[0].function_id] for one in profile.location}
    assert all(one.mapping_id in mappings or not one.mapping_id for one in profile.location)
    titles = [text[one.type] for one in profile.valuetype]
    assert text[profile.default] == titles[0]
    found: Weights = Counter()
    for sample in profile.sample:
        assert len(sample.value) == len(titles)
        stack = tuple(locations[number] for number in reversed(sample.location_id))
        (label,) = sample.label
        assert text[label.key] == "thread"
        for title, value in zip(titles, sample.value, strict=True):
            if value:
                found[text[label.str], stack, title] += value
    return found, profile


def of_speedscope(path: Path) -> Weights:
    """The weights of a document, which has to keep the rules of its format."""
    document = json.loads(path.read_bytes())
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    found: Weights = Counter()
    for profile in document["profiles"]:
        assert profile["type"] == "sampled"
        assert profile["unit"] in ("nanoseconds", "none")
        assert (profile["startValue"], profile["endValue"]) == (0, sum(profile["weights"]))
        assert all(profile["samples"])
        track, title = re.fullmatch(r"(.*) \((.*)\)", profile["name"], re.DOTALL).groups()
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            found[track, tuple(frames[number]["name"] for number in stack), title] += weight
    first = document["profiles"][document["activeProfileIndex"]]
    title = document["profiles"][0]["name"].rpartition(" (")[2]
    assert first["endValue"] == max(one["endValue"] for one in document["profiles"] if one["name"].endswith(title))
    return found


def of_folded(path: Path) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, weight = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(weight)
    return found


def hostile() -> Stacks:
    slices = [Slice(1, name, at * 20, at * 20 + 9) for at, name in enumerate(EVIL)]
    slices += [Slice(2, "outer", 0, 500), *(Slice(2, name, at * 20, at * 20 + 9) for at, name in enumerate(EVIL))]
    return stacks_of(made(slices, []), slices=True)


@pytest.fixture(params=["slices", "samples", "layers", "hostile", "hostile samples"])
def stacks(request: pytest.FixtureRequest) -> Stacks:
    if request.param == "slices":
        return traceconv.stacks([KINETO])
    if request.param == "samples":
        return traceconv.stacks([PERF])
    if request.param == "layers":
        return traceconv.stacks(LAYERS, constraints=SAME_MACHINE)
    if request.param == "hostile":
        return hostile()
    samples = [
        Sample(1, at, event, at, (name, "inner")) for at, name in enumerate(EVIL) for event in ("cycles", "a;b\n")
    ]
    return stacks_of(made([Slice(1, "a;b", 3, 9)], samples))


def whole(weights: Weights) -> Weights:
    """Without halves of surrogate pairs, which UTF-8 cannot express, and without zeros."""

    def shown(text: str) -> str:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    return Counter(
        {(shown(track), tuple(map(shown, stack)), title): one for (track, stack, title), one in weights.items() if one}
    )


def test_pprof_holds_what_the_rows_hold(stacks: Stacks, tmp_path: Path) -> None:
    path = tmp_path / "a.pb.gz"
    write_stacks(stacks, str(path), force=False)
    found, profile = of_pprof(path)
    assert whole(found) == whole(expected(stacks))
    files = {profile.text[one.filename] for one in profile.mapping}
    assert files == {file for _, file in stacks.frames} - {""}
    units = {profile.text[one.unit] for one in profile.valuetype}
    assert units == {"nanoseconds" if unit == "ns" else "count" for _, unit in stacks.measures}


def test_speedscope_holds_what_the_rows_hold(stacks: Stacks, tmp_path: Path) -> None:
    path = tmp_path / "a.speedscope.json"
    write_stacks(stacks, str(path), force=False)
    assert whole(of_speedscope(path)) == whole(expected(stacks))


def test_folded_lines_hold_the_rows_of_the_first_event(stacks: Stacks, tmp_path: Path) -> None:
    path = tmp_path / "a.folded"
    said = write_stacks(stacks, str(path), force=False)
    rows = [row for row in stacks if (row.event, row.unit) == stacks.measures[0]]
    of_rows: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        of_rows[tuple(one_line(name).replace(";", ":") or "(no name)" for name in (row.track, *row.stack))] += (
            row.weight
        )
    assert of_folded(path) == of_rows
    assert f": {sum(row.number for row in rows)} of " in said
    for event, _ in stacks.measures[1:]:
        count = sum(row.number for row in stacks if row.event == event)
        assert f"{count} sample{'s' if count != 1 else ''} of {event}: folded stacks have one weight" in said


def test_names_that_a_folded_line_cannot_hold_are_counted(tmp_path: Path) -> None:
    said = write_stacks(hostile(), str(tmp_path / "a.folded"), force=False)
    changed = sum(1 for name in EVIL if name in ("", "a;b") or not name.isprintable())
    assert f"; {changed} names with ; or line breaks, or empty, changed" in said
    assert "changed" not in write_stacks(traceconv.stacks([KINETO]), str(tmp_path / "b.folded"), force=False)
    text = (tmp_path / "a.folded").read_text(encoding="utf-8")
    assert "p 1 / thread 1;a:b 9\n" in text
    assert "p 1 / thread 1;(no name) 9\n" in text
    assert "p 1 / thread 1;line\\nbreak\\r\\u2028 9\n" in text
    assert "p 1 / thread 1;ends 12 7 9\n" in text


@pytest.mark.parametrize("ending", FORMS)
def test_equal_stacks_give_equal_bytes(ending: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        traceconv.stacks([KINETO], tmp_path / (name + ending))
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize("ending", FORMS)
def test_a_file_appears_whole_or_not_at_all(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(stacks: Stacks) -> Iterator[bytes]:
        yield b"some"
        raise OSError(28, "No space left on device")

    path = tmp_path / f"a{ending}"
    monkeypatch.setitem(FORMS, ending, broken)
    with pytest.raises(traceconv.OutputError, match="No space left"):
        traceconv.stacks([KINETO], path)
    assert [*tmp_path.iterdir()] == []
    path.write_text("old")
    with pytest.raises(traceconv.OutputError, match="No space left"):
        traceconv.stacks([KINETO], traceconv.Output(path, force=True))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "old"


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    done = commands.run("export", PERF, "-o", tmp_path / "a.folded")
    line = (
        "196 of 270 samples in 11 stacks, by cpu-clock/freq=499/ in ns; left out: 74 samples of page-faults/period=100/"
    )
    assert line in done.stderr
    assert "self times of 224 slices: --slices" in done.stderr
    done = commands.run("export", PERF, "--slices", "-o", tmp_path / "b.folded")
    line = "221 of 224 slices in 14 stacks, by self time in ns; left out: 3 slices whose duration was not recorded\n"
    assert done.stderr.endswith(line)
    done = commands.run("export", PERF, "-q", "-o", tmp_path / "a.SpeedScope.JSON")
    assert (done.returncode, done.stderr) == (0, "")
    assert of_speedscope(tmp_path / "a.SpeedScope.JSON")


def test_what_the_command_refuses(tmp_path: Path) -> None:
    path = tmp_path / "a.pb.gz"
    path.write_bytes(KINETO.read_bytes())
    for words, said in (
        ((KINETO, "-o", path), "the file exists"),
        ((path, "-f", "-o", path), "would replace an input"),
        ((KINETO, "--arg", "x", "-o", tmp_path / "b.folded"), "--arg and --by are for tables"),
        ((KINETO, "--slices", "-o", tmp_path / "b.csv"), "--slices is for stacks"),
        ((KINETO, "-o", tmp_path / "b.pb"), "a file of stacks in .folded, .speedscope.json, .pb.gz"),
        ((KINETO, "-o", tmp_path / "no" / "b.folded"), "the folder must exist"),
    ):
        done = commands.run("export", *words)
        assert done.returncode
        assert said in done.stderr
    done = commands.run("export", CUT, "--strict", "-o", tmp_path / "c.folded")
    assert (done.returncode, (tmp_path / "c.folded").exists()) == (1, False)
    with pytest.raises(traceconv.LostData):
        traceconv.stacks([CUT], traceconv.Output(tmp_path / "c.folded", strict=True))
    with pytest.raises(traceconv.UsageError, match="not of a kind of stacks"):
        traceconv.stacks([KINETO], tmp_path / "c.txt")


# -- viewers ----------------------------------------------------------------------------------------------------------


def test_go_reads_pprof(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go: its pprof reads the files")
    path = tmp_path / "a.pb.gz"
    traceconv.stacks([KINETO], path)
    home = {"HOME": str(tmp_path), "PPROF_TMPDIR": str(tmp_path)}
    command = [go, "tool", "pprof", "-top", "-unit=ns", "-nodefraction=0", str(path)]
    done = subprocess.run(command, env=os.environ | home, capture_output=True, text=True, timeout=HANG_S, check=True)
    line = re.compile(r"^ *(\d+)n?s? +[\d.]+% +[\d.]+% +\d+n?s? +[\d.]+% +(.*)$", re.MULTILINE)
    shown = {name: int(own) for own, name in line.findall(done.stdout)}
    own: Counter[str] = Counter()
    for row in traceconv.stacks([KINETO]):
        own[row.stack[-1]] += row.weight
    assert shown == own


#: Sends the text of speedscope, which is beside it, as soon as a name is shown: however long that takes.
WATCHER = """<iframe id="shown" src="SHOWN"></iframe><script>
setInterval(async () => {
  const cells = document.getElementById("shown").contentDocument.body.innerHTML;
  if (cells.includes("NAME")) await fetch("/", {method: "POST", body: cells});
}, 100);
</script>"""


@pytest.fixture
def speedscope(tmp_path: Path) -> Iterator[Callable[[str, str], str]]:
    """A function that shows a file of the folder "served" in speedscope until it has a name, and returns its HTML."""
    package = os.environ.get("SPEEDSCOPE")
    if not package:
        pytest.skip("no speedscope: npm install speedscope, and set SPEEDSCOPE to the folder of the package")
    try:
        shot.chromium_executable()
    except oracle.OracleMissing as missing:
        pytest.skip(str(missing))
    served = tmp_path / "served"
    shutil.copytree(Path(package) / "dist" / "release", served)
    said: queue.Queue[str] = queue.Queue()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            said.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

    def show(file: str, name: str) -> str:
        source = f"index.html#profileURL={address}/{file}&amp;view=sandwich"
        (served / "watcher.html").write_text(WATCHER.replace("SHOWN", source).replace("NAME", name))
        with shot.browser() as chromium:
            command = [chromium, *BROWSER, f"--user-data-dir={tmp_path / 'user'}", f"{address}/watcher.html"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                try:
                    return said.get(timeout=HANG_S)
                finally:
                    process.kill()

    handler = functools.partial(Handler, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield show
        server.shutdown()
        thread.join()


#: Headless, drawing in software, until it is ended.
BROWSER = ("--headless", "--no-sandbox", "--disable-dev-shm-usage", "--use-angle=swiftshader")
BROWSER += ("--enable-unsafe-swiftshader", "--remote-debugging-port=0")


@pytest.mark.slow
@pytest.mark.parametrize("ending", FORMS)
def test_speedscope_shows_the_times(ending: str, speedscope: Callable[[str, str], str], tmp_path: Path) -> None:
    name = "aten::convolution_backward"
    stacks = traceconv.stacks([KINETO], tmp_path / "served" / f"a{ending}")
    total = sum(row.weight for row in stacks if name in row.stack)
    own = sum(row.weight for row in stacks if row.stack[-1] == name)
    cells = [cell for cell in re.sub(r"<[^>]*>", "\0", speedscope(f"a{ending}", name)).split("\0") if cell.strip()]
    at = cells.index(name)
    shown = [f"{one:,}" if ending == ".folded" else f"{one / 1e6:.2f}ms" for one in (total, own)]
    assert [cell.split()[0] for cell in cells[at - 2 : at]] == shown, cells[:40]


def test_the_schema_of_speedscope_accepts_the_documents(stacks: Stacks, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    package = os.environ.get("SPEEDSCOPE")
    if not package:
        pytest.skip("no speedscope: npm install speedscope, and set SPEEDSCOPE to the folder of the package")
    path = tmp_path / "a.speedscope.json"
    write_stacks(stacks, str(path), force=False)
    schema = json.loads((Path(package) / "dist/release/file-format-schema.json").read_bytes())
    jsonschema.validate(json.loads(path.read_bytes()), schema)
