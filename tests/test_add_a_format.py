"""A format in a package of its own: the page that leads through it is followed, and what can go wrong is said."""

from __future__ import annotations

import os
import re
import shlex
import site
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import HANG_S
from traceconv.api import read
from traceconv.errors import ImporterFailed, UsageError
from traceconv.families import plugins as plugin_formats
from traceconv.families.plugins import PluginWarning, plugins
from traceconv.families.registry import importer_class, importers
from traceconv.io.source import Source
from traceconv.testing import check_importer

ROOT = Path(__file__).parent.parent
BARE = "from traceconv import Importer\nclass Toy(Importer): name = 'toy'"
PAGE = (ROOT / "docs" / "add-a-format.md").read_text(encoding="utf-8")


def files_of_the_page() -> dict[str, str]:
    """The files that the page shows, by name: the name stands in a line before the block."""
    return dict(re.findall(r"^`([\w.-]+)`[^`]*(?:`[^`]+`[^`]*)*?\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def commands_of_the_page() -> list[str]:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return block.splitlines()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with the files of the page, and variables to run in an environment where its package is installed."""
    folder = tmp_path_factory.mktemp("toy")
    for name, text in files_of_the_page().items():
        (folder / name).write_text(text, encoding="utf-8")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv], check=True)
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    packages = sysconfig.get_path("purelib", vars={"base": str(venv), "platbase": str(venv)})
    parent = "".join(f"{path}\n" for path in [str(ROOT), *site.getsitepackages()])
    (Path(packages) / "parent.pth").write_text(parent, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*pip, "-e", str(folder)], capture_output=True, text=True, timeout=HANG_S)
    if done.returncode:
        pytest.skip(f"pip cannot install a package here: {done.stderr.strip().splitlines()[-1:]}")
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return folder, variables | {"PATH": f"{python.parent}{os.pathsep}{variables['PATH']}"}


def test_the_page_is_followed(environment: tuple[Path, dict[str, str]]) -> None:
    """Each command as it stands there, but for the installation; `traceconv` is that of this repository."""
    folder, variables = environment
    printed: dict[str, str] = {}
    for command in commands_of_the_page()[1:]:
        words = shlex.split(command)
        extra = dict(word.split("=") for word in words if word.isupper() or word.startswith("UPDATE"))
        words = [word for word in words if not word.startswith("UPDATE")]
        module = ["-m", "pytest", "-p", "no:cacheprovider", "-q"] if words[0] == "pytest" else ["-m", "traceconv"]
        line = [str(folder / "venv" / "bin" / "python"), *module, *words[1:]]
        done = subprocess.run(line, cwd=folder, env=variables | extra, capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        printed[command] = done.stdout + done.stderr
    assert "option    process (default: toy): the name of the process." in printed["traceconv formats toy"]
    assert "toy (the heading of the toy profiler)" in printed["traceconv identify example.toylog"]
    assert (folder / "example.pftrace").stat().st_size > 100
    assert (folder / "both.json").read_text(encoding="utf-8").count('"softmax"') == 2
    expected = (folder / "example.expected").read_text(encoding="utf-8")
    assert "4 lines = 3 written + 1 metadata" in expected
    assert "15750000" in expected


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install packages that are nothing but a module and its metadata: name, entry points, text of the module."""

    def install(package: str, points: str, text: str = "") -> None:
        about = tmp_path / f"{package}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[traceconv.formats]\n{points}\n")
        (tmp_path / f"{package}.py").write_text(text or files_of_the_page()["traceconv_toy.py"], encoding="utf-8")

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("traceconv.model.diagnostics.DECLARED", {})
    before = set(sys.modules)
    plugins.cache_clear()
    yield install
    plugins.cache_clear()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_format_of_another_package(installed: Callable[..., None], tmp_path: Path) -> None:
    assert "toy" not in importers()
    plugins.cache_clear()
    installed("toy_one", "toy = toy_one:Toy")
    assert importers()["toy"].title == "Log of the toy profiler"
    path = tmp_path / "run"
    path.write_text(files_of_the_page()["example.toylog"])
    check_importer(importer_class("toy"), path)


def test_an_importer_of_another_package_that_fails_is_named(installed: Callable[..., None], tmp_path: Path) -> None:
    text = files_of_the_page()["traceconv_toy.py"].replace("except ValueError", "except KeyError")
    installed("toy_bug", "toy = toy_bug:Toy", text)
    path = tmp_path / "run.log"
    path.write_text(files_of_the_page()["example.toylog"] + "x y z\n")
    said = failure(path)
    assert "run.log: the importer toy failed: ValueError: " in said.message
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "parse_ns(start, MS)" in line]
    assert said.message.endswith(f"(a bug of the importer: {tmp_path / 'toy_bug.py'}, line {lines[0]})")
    assert "tell the authors of toy_bug; TRACECONV_DEBUG=1 shows the traceback" in said.hint


def test_an_importer_that_forgets_its_balance_is_named(installed: Callable[..., None], tmp_path: Path) -> None:
    text = files_of_the_page()["traceconv_toy.py"].replace("            out.balance.written += 1\n", "")
    installed("toy_bug", "toy = toy_bug:Toy", text)
    path = tmp_path / "run.log"
    path.write_text(files_of_the_page()["example.toylog"])
    said = failure(path)
    assert (
        "run.log: the importer toy failed: InvalidTrace: the balance of run.log is not even: 4 lines =" in said.message
    )
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "def read(" in line]
    assert said.message.endswith(f"(a bug of the importer: {tmp_path / 'toy_bug.py'}, line {lines[0]})")


def failure(path: Path) -> ImporterFailed:
    """What a user is told of an input: the tests run with TRACECONV_DEBUG, so that no bug of an importer is hidden."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRACECONV_DEBUG")
        with pytest.raises(ImporterFailed) as caught:
            read(path)
    return caught.value


@pytest.mark.parametrize(
    ("points", "text", "what"),
    [
        ("toy = toy_bad:Toy", "import there_is_no_such_module", "ModuleNotFoundError: No module named"),
        ("toy = toy_bad:Toy", "raise SystemError('x')", "SystemError: x"),
        ("toy = toy_bad:Nothing", "", "AttributeError: module 'toy_bad' has no attribute 'Nothing'"),
        ("toy = toy_bad", "", "toy_bad is no class that inherits from Importer"),
        ("toy = toy_bad:Toy", BARE, "toy_bad:Toy lacks title, url, "),
        ("other = toy_bad:Toy", "", "toy_bad:Toy calls itself 'toy'"),
        ("viztracer = toy_bad:Toy", "", "traceconv has a format of that name"),
    ],
)
def test_a_format_that_cannot_be_used_is_named_and_left_out(
    points: str, text: str, what: str, installed: Callable[..., None]
) -> None:
    installed("toy_bad", points, text)
    name = points.split()[0]
    with pytest.warns(PluginWarning, match=f"^the format {name} of toy_bad is left out: {re.escape(what)}"):
        assert plugins() == {}
    assert importers()["viztracer"].__module__ == "traceconv.families.chrome.document"
    if name == "toy":
        with pytest.raises(UsageError, match="unknown format 'toy'"):
            importer_class("toy")


def test_two_packages_with_one_name_are_both_left_out(installed: Callable[..., None]) -> None:
    """Whichever is found first: what a file is does not depend on the order of packages."""
    installed("toy_a", "toy = toy_a:Toy")
    installed("toy_b", "toy = toy_b:Toy")
    with pytest.warns(PluginWarning) as said:
        assert plugins() == {}
    assert [str(one.message).split(":")[0] for one in said] == [
        "the format toy of toy_a is left out",
        "the format toy of toy_b is left out",
    ]


def test_without_such_packages_the_metadata_is_not_read() -> None:
    code = "import sys; from traceconv.families.plugins import plugins; assert not plugins(); "
    code += "print('importlib.metadata' in sys.modules)"
    if plugin_formats._may_be_any():
        pytest.skip("a package with a format is installed")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"toy time", Zero', '"toy time", Zero', None),
        ("out.balance.written += 1", "pass", "is not even: 4 lines = 0 written"),
        ("parse_ns(start, MS)", "parse_ns(start, 10**6)", "10\\*\\*exponent ns: NS, US, MS or S, not 1000000"),
        ('{"line": number}', "None", None),
        ("kept[METADATA]", 'kept["metadata"]', "'metadata' has no word for one"),
        ("except ValueError", "except KeyError", "not a number"),
        ('"Log of the toy profiler"', '"Toy"', "too short: 'Toy'"),
        ('option("toy", "the name of the process.")', '"toy"', "no help on option process"),
        ("head.text.startswith(HEADING)", "True", "it claims b''"),
    ],
)
def test_what_newcomers_stumble_over_is_said(
    old: str, new: str, what: str | None, installed: Callable[..., None], tmp_path: Path
) -> None:
    text = files_of_the_page()["traceconv_toy.py"]
    assert old in text
    installed("toy_new", "toy = toy_new:Toy", text.replace(old, new))
    path = tmp_path / "run"
    path.write_text(files_of_the_page()["example.toylog"])
    if what is None:
        check_importer(plugins()["toy"], path)
        assert plugins()["toy"]().sniff(Source(path).head()).reason == "the heading of the toy profiler"
    else:
        with pytest.raises((AssertionError, TypeError, ValueError), match=what):
            check_importer(plugins()["toy"], path)
