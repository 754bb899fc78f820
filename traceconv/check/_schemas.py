"""Find the JSON Schemas: package data in a wheel, the top folder `schemas/` in a source tree."""

from __future__ import annotations

import functools
import importlib.resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec


def schema_file(name: str) -> Traversable:
    """Return the file of a schema, such as "chrome_trace.schema.json"."""
    package = importlib.resources.files("traceconv")
    packaged = package / "schemas" / name
    if packaged.is_file():
        return packaged
    # In an editable install, the schemas are in the repository, beside the package.
    return Path(str(package)).parent / "schemas" / name


@functools.cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the decoded schema, which is shared and must not be changed."""
    schema: dict[str, Any] = msgspec.json.decode(schema_file(name).read_bytes())
    return schema
