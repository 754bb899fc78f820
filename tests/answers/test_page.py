"""The page of `traceconv report`: what it shows, that it stays offline, and what a real browser makes of it."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import traceconv
from tests import HANG_S, oracle
from tests.answers.test_report_command import CUDA, KINETO, ONEDNN, run
from tests.golden import ROOT
from tests.make_ranks import write_ranks
from tests.oracle.fixtures import do_without
from tests.ui import shot
from traceconv.answers import Questions
from traceconv.answers.figures import readable, strip
from traceconv.answers.render import page
from traceconv.answers.section import Activity, Cell, Column, Section, Unit, shown_cell

Dom = Callable[[str], str]

ATTACK = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
EVIL = f"</script></style></title>{ATTACK}\u202e\x1b"


@pytest.fixture
def dom(tmp_path: Path) -> Dom:
    """Returns what a page has become in the browser, after its scripts."""
    try:
        shot.chromium_executable()
    except oracle.OracleMissing as missing:
        do_without("ui", missing)

    def loaded(text: str) -> str:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync"]
        flags += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
        with shot.browser() as chromium:
            done = subprocess.run([chromium, *flags], capture_output=True, timeout=HANG_S, check=True)
        return done.stdout.decode()

    return loaded


@pytest.mark.parametrize("width", [1100, 1400])
def test_the_overview_is_as_wide_as_its_card(width: int, dom: Dom) -> None:
    """Texts are folded, so that the columns behind them are seen without scrolling."""
    html = page(traceconv.report([KINETO, ONEDNN], Questions(("overview",))), 0)
    frame = f'<iframe id="f" width="{width}" height="900"></iframe><script>const f = document.getElementById("f");'
    script = 'const w = f.contentDocument.querySelector(".wide");'
    script += "document.title = `${w.scrollWidth - w.clientWidth} beyond`;"
    framed = f"<title></title>{frame} f.srcdoc = {json.dumps(html).replace('</', '<' + chr(92) + '/')};"
    assert "<title>0 beyond</title>" in dom(f"{framed} f.onload = () => {{ {script} }};</script>")


def names(html: str) -> list[str]:
    return re.findall(r"<tr>\s*<td>(?:<div>)?(.*?)<", html)


def tables(html: str) -> list[str]:
    return re.findall(r"<table>", html)


def clicking(html: str, *buttons: int) -> str:
    """The page without its policy, which would forbid it, and with clicks on headings."""
    html, found = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    assert found == 1
    clicks = "".join(f"document.querySelectorAll('th button')[{number}].click();" for number in buttons)
    return html.replace("</body>", f"<script>{clicks}</script></body>")


def table() -> Section:
    columns = (
        Column("name", "name", Unit.TEXT),
        Column("device_ns", "device", Unit.NS, detail=True),
        Column("device_share", "of kernels", Unit.SHARE, detail=True),
        Column("self_ns", "self", Unit.NS),
        Column("host_share", "of host", Unit.SHARE),
    )
    rows: list[tuple[Cell, ...]] = [
        ("op 10", None, None, 900, 0.083),
        ("op 9", None, None, 10_000, 0.917),
        ("op 100", None, None, None, None),
        ("Op 1", None, None, 0, 0.0),
    ]
    return Section("operations", columns, rows)


def test_all_sections_have_tables_and_those_with_data_plots() -> None:
    html = page(traceconv.report([CUDA]), 0)
    for words in (
        "The run",
        "Where the time goes",
        "Kernels and copies",
        "Busy and idle",
        "What idle devices wait for",
    ):
        assert f"<h3>{words}</h3>" in html
    found = re.findall(r'<section id="(\w+)"', html)
    sections = traceconv.report([CUDA])
    assert found == ["summary", "strip", *(section.name for section in sections[1:] if section.rows), "empty"]
    empty = re.findall(r"<summary>(.*?)</summary>", html)[-1].split(", ")
    assert {*found, *empty} == {
        "strip",
        "empty",
        *(section.name for section in sections if section.notes or section.rows),
    }
    assert html.count('<svg class="track') == html.count('role="img"') == html.count('aria-label="') - len(tables(html))
    assert "<h3>Busy" not in page(traceconv.report([KINETO]), 0)


def test_sentences_lead_to_the_tables_that_they_are_made_of() -> None:
    html = page(traceconv.report([CUDA]), 0)
    links = set(re.findall(r'href="#(\w+)"', html))
    assert {"step_parts", "kernels", "operations"} <= links <= set(re.findall(r'<section id="(\w+)"', html))


def test_names_without_their_template_arguments_still_differ() -> None:
    start = "void at::native::vectorized_elementwise_kernel<4, at::native::"
    names = [f"{start}{what}Functor<float>, std::array<char*, 3> >(int, {'at::' * 20})" for what in ("Mul", "Add")]
    other = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, float> >(at::native::ReduceOp<float>)"
    shown = readable([*names, other, "aten::mm", names[0]])
    assert "MulFunctor" in shown[0]
    assert "AddFunctor" in shown[1]
    assert shown[2:] == ["void at::native::reduce_kernel<...>(at::native::ReduceOp<...>)", "aten::mm", shown[0]]
    assert max(map(len, shown)) <= 80


def test_many_ranks_are_in_natural_order_on_a_small_page(tmp_path: Path) -> None:
    sections = traceconv.report(write_ranks(tmp_path, 32, 2), Questions(("steps", "device", "ranks", "overview")))
    html = page(sections, 100)
    assert len(html.encode()) < 400_000
    found = re.search(r'id="strip".*?</section>', html, re.S)
    assert found
    labels = re.findall(r'class="name">rank (\d+) .*?GPU (\d)', found[0])
    assert labels == [(f"{rank:02}", str(device)) for rank in range(12) for device in range(2)]
    assert "40 more rows are not drawn" in found[0]
    assert "15 of 64 are drawn: the most idle ones." in html
    (device,) = (section for section in sections if section.name == "device")
    assert [row["queue"] != "" for row in device.records()] == sorted(row["queue"] != "" for row in device.records())


def test_steps_of_one_name_are_told_apart_by_their_start_and_track() -> None:
    columns = (
        "name",
        "device",
        "start_ns",
        "compute_ns",
        "host_ns",
        "exposed_comm_ns",
        "wait_ns",
        "untraced_ns",
        "track",
    )
    rows: list[tuple[Cell, ...]] = [("run", "", at, None, 5, 0, 0, 1, track) for track in ("a", "b") for at in (0, 10)]
    section = Section("step_parts", tuple(Column(name, name, Unit.TEXT) for name in columns), rows)
    bars = re.findall(r'class="name">(.*?)</div>', page([section], 0))
    assert bars == ["run at 0 ns · a", "run at 10 ns · a", "run at 0 ns · b", "run at 10 ns · b"]
    many = Section("step_parts", section.columns, [(f"run {at}", "", at, None, at, 0, 0, 0, "a") for at in range(30)])
    assert re.findall(r'class="name">(.*?)</div>', page([many], 0)) == [f"run {at}" for at in range(15, 30)]
    assert "15 of 30 are drawn: the longest ones." in page([many], 0)


def test_bars_are_the_most_self_time_in_whatever_order_the_rows_are() -> None:
    rows: list[tuple[Cell, ...]] = [(f"op {number}", None, None, number, number / 820) for number in range(1, 41)]
    bars = re.findall(r'class="name">(.*?)</div>', page([Section("operations", table().columns, rows)], 0))
    assert bars == [f"op {number}" for number in range(40, 25, -1)]
    assert ">10 µs · 91.7 %<" in page([table()], 0)


def test_the_plot_and_the_table_show_the_same_shares() -> None:
    ranks = [ROOT / "pytorch-kineto" / f"gloo-rank{rank}" / "input.json" for rank in (0, 1)]
    (section,) = traceconv.report(ranks, Questions(("operations",)))
    shares = {row["name"]: row["host_share"] or 0 for row in section.records()}
    assert sum(shares.values()) == pytest.approx(1)
    html = page([section], 0)
    bars = re.findall(r'class="name">(.*?)</div>.*?class="value">.*? · ([^<]*)<', html, re.S)
    assert bars
    assert dict(bars) == {name: shown_cell(shares[name], Unit.SHARE) for name, _ in bars}


def test_steps_are_counted_by_how_long_they_took() -> None:
    html = page(traceconv.report([KINETO], Questions(step_name=r"step#\d+")), 0)
    bars = re.search(r"How long steps take</h3>.*?</figure>", html, re.S)
    assert bars
    sections = traceconv.report([KINETO], Questions(("steps",), step_name=r"step#\d+"))
    sections[0].rows.reverse()
    assert ' x="-' not in page(sections, 0)
    assert sum(int(count) for count in re.findall(r'class="value">(\d+)<', bars[0])) == 4


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = page(traceconv.report([KINETO, ONEDNN]), 0)
    assert not re.search(r"\bsrc=|url\(|@import|\bstyle=|\bon\w+=\"", html)
    assert {link[:1] for link in re.findall(r'href="([^"]*)"', html)} == {"#"}
    assert "default-src &#39;none&#39;" in html


def test_page_of_nothing(tmp_path: Path, dom: Dom) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": []}))
    html = page(traceconv.report([path]), 0)
    assert "the inputs hold no slices" in html
    assert "<figure" not in html
    assert "the inputs hold no slices" in dom(html)
    assert "<main>" in page([], 0)


def test_size_follows_the_rows_that_are_shown() -> None:
    columns = table().columns
    many = Section("operations", columns, [("x" * 5000, None, None, 5, 0.00005)] * 20_000)
    assert len(page([many], 500)) < 500 * 2500
    assert "19500 more rows: --top 20000" in page([many], 500)


@pytest.mark.slow
def test_output_by_ending(tmp_path: Path) -> None:
    target = tmp_path / "report.HTML"
    assert run(CUDA, "-o", target).returncode == 0
    assert target.read_text(encoding="utf-8") == page(traceconv.report([CUDA]), 100)
    assert run(CUDA, "-o", target).returncode == 2
    assert run(CUDA, "-o", target, "-f", "--format", "csv").returncode == 0
    assert target.read_text(encoding="utf-8").startswith("id,text,section,numbers")
    assert run(CUDA, "-o", tmp_path / "a.json").returncode == 0
    assert "operations" in json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert run(CUDA, "--format", "html", "--top", 500).stdout == page(traceconv.report([CUDA]), 500)
    assert run(CUDA, "-o", tmp_path / "a.txt").returncode == 0
    assert run(CUDA, "-o", tmp_path / "a.pdf").returncode == 2
    assert not (tmp_path / "a.pdf").exists()
    assert run(tmp_path / "none.json", "-o", tmp_path / "b.html").returncode == 1
    assert not (tmp_path / "b.html").exists()


@pytest.mark.slow
def test_hostile_names_stay_text_in_the_browser(dom: Dom) -> None:
    columns = (Column("name", EVIL, Unit.TEXT), *table().columns[1:])
    section = Section(
        "operations", columns, [(EVIL, None, None, 5, 0.5), ("${alert(1)} {{ 7 * 7 }}", None, None, 4, 0.5)], [EVIL]
    )
    html = page([section], 0)
    assert "\u202e" not in html
    for text in (html, clicking(html, 0, 0, 1)):
        found = dom(text)
        assert "<title>What took the time</title>" in found
        assert "&lt;img src=x" in found
        assert "<img" not in found
        assert "{{ 7 * 7 }}" in found


@pytest.mark.slow
def test_headings_sort(dom: Dom) -> None:
    html = page([table()], 0)
    assert names(html) == ["op 10", "op 9", "op 100", "Op 1"]
    by_time = dom(clicking(html, 1))
    assert names(by_time) == ["op 9", "op 10", "Op 1", "op 100"], "the unknown one is last"
    assert 'aria-sort="descending"' in by_time
    assert names(dom(clicking(html, 1, 1))) == ["Op 1", "op 10", "op 9", "op 100"]
    by_name = dom(clicking(html, 1, 0))
    assert names(by_name) == ["Op 1", "op 9", "op 10", "op 100"]
    assert by_name.count('aria-sort="') == 1


@pytest.mark.slow
def test_policy_lets_only_the_own_script_run_and_no_network(dom: Dom) -> None:
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        more = f"<img src='{base}/a'><script src='{base}/b'></script><link rel=stylesheet href='{base}/c'>"
        more += f"<script>document.title = 'pwned'; fetch('{base}/d')</script>"
        found = dom(page([table()], 0).replace("</body>", f"{more}</body>"))
        assert not asked
        assert "<title>What took the time</title>" in found
        assert '<button type="button" disabled' not in found, "the page's own script ran"
        assert dom(clicking(page([table()], 0)).replace("</body>", f"{more}</body>"))
        assert asked, "without the policy they are loaded"
    finally:
        server.shutdown()
        server.server_close()


def test_busy_shares_of_the_strip_are_of_the_time_that_it_shows() -> None:
    """The first device works in half of the time, then there is nothing of it."""
    activities = [Activity("GPU 0", 0, 50, [1.0, 0.6]), Activity("GPU 1", 0, 100, [0.25, 0.75])]
    drawn = strip(None, activities)
    assert drawn is not None
    assert [bar.value for bar in drawn.bars] == ["40.0 % busy", "50.0 % busy"]
    assert drawn.bars[0].outline == "M0 100V0H25V40H50V100Z"


def test_the_strip_counts_all_steps_and_says_how_many_it_draws() -> None:
    section = Section("steps", traceconv.report([KINETO], Questions(["steps"]))[0].columns)
    section.rows = [(f"step {at}", "thread", at * 10_000, 10_000, None, "", None, "", "a.json") for at in range(1500)]
    drawn = strip(section, ())
    assert drawn is not None
    assert drawn.caption.startswith("15 ms from the first to the last")
    assert [bar.value for bar in drawn.bars] == ["1500 steps, 1000 drawn"]
