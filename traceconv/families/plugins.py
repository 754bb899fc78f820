"""Load the formats of other packages, which name their importers in the entry point group `traceconv.formats`.

    [project.entry-points."traceconv.formats"]
    toy = "toyformat:ToyImporter"

They are not in the index, so all of them are loaded and asked about every input.
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache
from typing import TYPE_CHECKING

from traceconv.families.importer import Importer
from traceconv.families.index import FORMATS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "traceconv.formats"


class PluginWarning(UserWarning):
    """A format of another package cannot be used."""


@cache
def plugins() -> dict[str, type[Importer]]:
    """Return the importers of other packages, by name. Warns PluginWarning: one of them cannot be used."""
    if not _may_be_any():
        return {}
    from importlib.metadata import entry_points

    importers: dict[str, type[Importer]] = {}
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    for point in points:
        package = point.dist.name if point.dist is not None else point.value
        try:
            if point.name in FORMATS:
                raise ValueError("traceconv has a format of that name")
            if sum(named.name == point.name for named in points) > 1:
                raise ValueError("another package has a format of that name, too")
            importers[point.name] = _load(point)
        except Exception as error:
            what = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            text = f"the format {point.name} of {package} is left out: {what}"
            warnings.warn(text, PluginWarning, 2)
    return importers


def _load(point: EntryPoint) -> type[Importer]:
    """Return the importer of an entry point.

    Raises ValueError if an attribute of importers is missing, and any error of the import.
    """
    cls: type[Importer] = point.load()
    if not (isinstance(cls, type) and issubclass(cls, Importer)):
        raise ValueError(f"{point.value} is no class that inherits from Importer")
    lacks = [name for name in (*Importer.__annotations__, "__dataclass_fields__") if not hasattr(cls, name)]
    lacks += sorted(cls.__abstractmethods__)
    if lacks:
        raise ValueError(f"{point.value} lacks {', '.join(lacks)}")
    if cls.name != point.name:
        raise ValueError(f"{point.value} calls itself {cls.name!r}")
    return cls


def _may_be_any() -> bool:
    """Return whether an installed package may have such an entry point.

    This avoids importing `importlib.metadata`, which is slow.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except NotADirectoryError:
            return True  # an archive
        except OSError:
            continue
        for name in names:
            if name.lower().endswith("-info"):  # .dist-info, .egg-info, EGG-INFO
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                        if GROUP in file.read():
                            return True
                except (OSError, UnicodeDecodeError):
                    continue
    return False
