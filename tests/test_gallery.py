"""The page of pictures is complete and small; `python -m tests.gallery` makes it."""

from __future__ import annotations

from tests import gallery
from tests.golden import ROOT
from traceconv.families.registry import importers

LARGEST, ALL_OF_THEM = 45_000, 1_500_000


def test_the_page_shows_every_merge_and_every_format() -> None:
    assert set(gallery.MERGES) == {path.parent.name for path in ROOT.glob("merge/*/expect.txt")}
    assert set(gallery.FORMATS) == set(importers())
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "python -m tests.gallery"


def test_the_pictures_are_there_and_small() -> None:
    pictures = {picture.path for picture in (*gallery.merges(), *gallery.formats())}
    assert set(gallery.PICTURES.iterdir()) == pictures
    sizes = {path.name: path.stat().st_size for path in pictures}
    assert {name: size for name, size in sizes.items() if not 1000 < size <= LARGEST} == {}
    assert sum(sizes.values()) <= ALL_OF_THEM
