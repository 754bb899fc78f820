"""Convert tables to data frames: Arrow, pandas, polars, and readers of Arrow's C interface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from traceconv.errors import TraceconvError, UsageError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_MOST_HTML_ROWS = 50


def needed(module: str, extra: str) -> Any:
    """Return a module of an optional package.

    Raises:
        UsageError: it is not installed; the hint names the extra of traceconv.
    """
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise UsageError(f"{name} is not installed", hint=f"pip install 'traceconv[{extra}]'") from None


class Tabular:
    """A table that converts to data frames. Columns of times are integer ns, and their names end in `_ns`."""

    __slots__ = ()

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as an Arrow table.

        Raises:
            UsageError: pyarrow is not installed.
        """
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas frame. A column of integers with unknown values has them as objects, exactly.

        Raises:
            UsageError: pandas or pyarrow is not installed.
        """
        needed("pandas", "pandas")
        return self.to_arrow().to_pandas(integer_object_nulls=True)

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars frame.

        Raises:
            UsageError: polars or pyarrow is not installed.
        """
        frame: polars.DataFrame = needed("polars", "polars").from_arrow(self.to_arrow())
        return frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as a PyCapsule of Arrow's C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str | None:
        """Return the first rows as an HTML table, for notebooks; None, for which they show the repr, without one."""
        try:
            table = self.to_arrow()
        except TraceconvError:
            return None
        shown = table.slice(0, _MOST_HTML_ROWS).columns
        rows = zip(*(column.to_pylist() for column in shown), strict=True)
        return html_table(table.column_names, rows, table.num_rows)


def html_table(names: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    """Return the first rows as an HTML table, with texts escaped; `count` is the number of all rows."""
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in islice(rows, _MOST_HTML_ROWS)
    )
    rest = f"<p>{count - _MOST_HTML_ROWS} more rows</p>" if count > _MOST_HTML_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
