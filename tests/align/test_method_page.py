"""docs/alignment.md names modules, functions and estimators: all of them exist, and none is left out."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.benchmarks.alignment import pictures
from traceconv.align import evidence
from traceconv.model.clocks import Verdict

PAGE = (Path(__file__).parents[2] / "docs" / "alignment.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([a-z_]+)\.([A-Za-z_]+)(?:\([^`]*\))?`", PAGE)))


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_what_is_named_exists(module: str, name: str) -> None:
    for package in ("traceconv.align", "traceconv.model", "traceconv.merging", "traceconv"):
        try:
            found = importlib.import_module(f"{package}.{module}")
        except ModuleNotFoundError:
            continue
        assert name == "py" or hasattr(found, name), f"{found.__name__} has no {name}"
        return
    pytest.fail(f"there is no module {module}")


def test_each_estimator_and_each_verdict_is_told() -> None:
    assert all(f"`{name}`" in PAGE for name in vars(evidence) if name.startswith("by_"))
    assert all(f"`{verdict}`" in PAGE for verdict in Verdict)


def test_its_pictures_can_be_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_DOCS", tmp_path)
    pictures.main()
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == set(re.findall(r"\]\((\S+\.svg)\)", PAGE))
    assert all((tmp_path / name).read_text(encoding="utf-8").endswith("</svg>\n") for name in drawn)
