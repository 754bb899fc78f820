"""Answer a question in SQL about a trace: DuckDB over views of its tables, locked against everything else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from traceconv.answers.frames import Frames
from traceconv.database.connection import add_view, connect, interruptible, literal, text_bytes
from traceconv.database.views import VIEWS
from traceconv.errors import TraceconvError, UsageError, refuse_single_texts
from traceconv.model.trace import needed
from traceconv.writers import outgrown, room_of

if TYPE_CHECKING:
    import pyarrow

_ONE = "one query is asked at a time: SELECT, WITH, FROM, VALUES, DESCRIBE or SUMMARIZE"
#: Parts of a query that show, or group by, columns that they do not name.
_WHOLE = ("SHOW_REF", "PIVOT")
#: Types of DuckDB that Arrow or Parquet does not have.
_AS_TEXT = ("uhugeint", "bignum", "bit", "interval", "time with time zone", "variant")
_INTEGERS = ("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint")
#: Types that are printed as they are; Python lacks dates and times of others, such as infinity.
_PRINTED = ("boolean", *_INTEGERS, "float", "double", "decimal", "varchar", "blob")
_HINT = "traceconv query --list prints the views and their columns"


class _Problem(msgspec.Struct):
    """An error as DuckDB describes it; `position` counts bytes of the query, and `name` is what it does not know."""

    exception_message: str = ""
    error_message: str = ""
    position: str = ""
    type: str = ""
    name: str = ""

    @property
    def message(self) -> str:
        """What is wrong, in a line; tables that DuckDB knows are none of the trace, so a view is suggested."""
        if self.type != "Table":
            return " ".join((self.exception_message or self.error_message).split())
        name, views = self.name.casefold(), [view.name for view in VIEWS]
        if name in views:
            return f"{self.name} is a view, which a query has to name itself: FROM {name}"
        similar = get_close_matches(name, views, 1)
        return f"no view is called {self.name}" + "".join(f'; did you mean "{view}"?' for view in similar)


class _Names(msgspec.Struct, frozen=True):
    """The names in a query.

    Attributes:
        tables: the tables, in lower case.
        columns: texts that may name columns, in lower case; None if it may take whole rows.
    """

    tables: frozenset[str]
    columns: frozenset[str] | None


def ask(frames: Frames, query: str, allow: Sequence[str] = (), *, printed: bool = False) -> pyarrow.Table:
    """Return the answer to a question in SQL.

    Args:
        frames: the tables of the trace.
        query: one SELECT over the views.
        allow: folders whose files the query may read.
        printed: whether dates, times and the like are texts, also inside lists and structs.

    Raises:
        UsageError: DuckDB or pyarrow is not installed, the query is wrong or asks for what is locked, or columns of
            the result have one name.
    """
    refuse_single_texts(allow=allow)
    duckdb = needed("duckdb", "sql")
    try:
        with connect() as connection:
            connection.execute("set errors_as_json = true")
            names = _names_in(connection, query)
            shown = [view.named(names.columns) for view in VIEWS if view.name in names.tables]
            texts = sum(text_bytes(add_view(connection, frames, view)) for view in shown)
            _lock(connection, allow)
            room = room_of(frames.trace)
            most = room if texts > room else 0
            return _checked(interruptible(connection, lambda: _run(duckdb, connection, query, printed, most)))
    except duckdb.Error as error:
        raise _wrong(query, _problem(str(error))) from None


def check(query: str) -> None:
    """Raise the errors of `ask` that are known before inputs are read: it does not know DuckDB, or no SELECT."""
    with connect() as connection:
        _names_in(connection, query)


def _names_in(connection: Any, query: str) -> _Names:
    """Return the names in a query. Raises UsageError unless it is one SELECT, by the parser of DuckDB."""
    try:
        query.encode()
    except UnicodeEncodeError as error:
        at = len(query[: error.start].encode())
        raise _wrong(query, _Problem("not UTF-8", position=str(at)), "'\\xFF'::blob is a byte") from None
    # A literal, since DuckDB 1.4 loads pandas for parameters.
    ((text,),) = connection.execute(f"select json_serialize_sql({literal(query)}::varchar)").fetchall()
    try:
        tree = msgspec.json.decode(text)
    except RecursionError:
        hint = "a + b + c nests, list_sum([...]) does not"
        raise UsageError("the question nests too deeply", at="SQL", hint=hint) from None
    if tree["error"] and tree["error_type"] == "parser":
        raise _wrong(query, msgspec.convert(tree, _Problem))
    if tree["error"] or len(tree["statements"]) != 1:
        raise UsageError(_ONE, hint=_HINT)
    tables, aliases, values, texts = set[str](), set[str](), set[str](), set[str]()
    whole = False
    for node in _nodes(tree):
        texts |= {text.casefold() for text in _texts_in(node)}
        name = str(node.get("table_name", "")).strip('"').casefold()
        if node.get("type") in ("BASE_TABLE", "SHOW_REF"):
            tables.add(name)
        # SHOW TABLES and the like: only what a query names is there.
        if node.get("type") == "SHOW_REF" and not node.get("query") and all(view.name != name for view in VIEWS):
            raise UsageError("SHOW, or DESCRIBE, without the name of a view", hint=_HINT)
        if node.get("class") == "COLUMN_REF":
            values.add(node["column_names"][-1].casefold())
        whole = whole or node.get("class") == "STAR" or bool(node.get("column_name_alias"))
        whole = whole or node.get("type") in _WHOLE or node.get("ref_type") == "NATURAL"
        if "class" not in node:  # those of tables, not of expressions
            aliases.add(str(node.get("alias", "")).casefold())
    # A table as a value is its rows.
    whole = whole or bool(values & (tables | aliases))
    return _Names(frozenset(tables), None if whole else frozenset(texts))


def _texts_in(node: dict[str, Any]) -> Iterator[str]:
    for value in node.values():
        yield from (text for text in (value if isinstance(value, list) else (value,)) if isinstance(text, str))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in a document of JSON."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left += node.values()
        elif isinstance(node, list):
            left += node


def _run(duckdb: Any, connection: Any, query: str, printed: bool, room: int) -> pyarrow.Table:
    """Return the answer; its texts may take `room` bytes, as often as they stand in it, 0 for no limit."""
    try:
        found = connection.sql(query)
        casts = [_cast(kind, printed) for kind in found.types]
        if casts != list(map(str, found.types)):
            columns = enumerate(zip(found.columns, casts, strict=True), 1)
            found = found.project(", ".join(f"#{at}::{cast} as {_quoted(name)}" for at, (name, cast) in columns))
        if room and _answer_bytes(found) > room:
            raise outgrown(room, "ask for fewer rows, or a part of the text; ")
        return found.to_arrow_table()
    except duckdb.Error:
        connection.execute(query)  # whose errors say where in the query they are
        raise


def _answer_bytes(found: Any) -> int:
    """Return the bytes of the texts of an answer, which is computed for it."""
    sizes = [size for at, kind in enumerate(found.types, 1) if (size := _size(kind, f"value_{at}"))]
    lengths = ", ".join(f"{size} as bytes_{at}" for at, size in enumerate(sizes))
    sums = " + ".join(f"coalesce(sum(bytes_{at}), 0)" for at in range(len(sizes)))
    # In functions of items DuckDB 1.4 knows columns by their names only.
    values = found.project(", ".join(f"#{at} as value_{at}" for at in range(1, 1 + len(found.types))))
    ((total,),) = values.project(lengths).aggregate(sums).fetchall() if sizes else ((0,),)
    return int(total)


def _size(kind: Any, value: str) -> str:
    """Return an expression for the bytes of the texts in a value of a type; "" for types without texts."""
    if kind.id == "varchar":
        return f"strlen({value}::VARCHAR)"
    if kind.id == "blob":
        return f"octet_length({value})"
    if kind.id in ("list", "array"):
        (_, part), *_ = kind.children
        return _size_of_items(part, f"{value}::{part}[]")
    if kind.id == "map":
        sizes = (_size_of_items(part, f"map_{name}s({value})") for name, part in kind.children)
    elif kind.id == "union":
        sizes = (_size(part, f"union_extract({value}, {literal(tag)})") for tag, part in kind.children[1:])
    elif kind.id in ("struct", "tuple"):
        places = (literal(name) if name else str(at) for at, (name, _) in enumerate(kind.children, 1))
        parts = zip(places, kind.children, strict=True)
        sizes = (_size(part, f"struct_extract({value}, {place})") for place, (_, part) in parts)
    else:
        return ""
    return " + ".join(f"coalesce({size}, 0)" for size in sizes if size)


def _size_of_items(kind: Any, values: str) -> str:
    item = f"item_{len(values)}"  # another one than in what is around it
    size = _size(kind, item)
    return size and f"coalesce(list_sum(list_transform({values}, lambda {item}: {size})), 0)"


def _cast(kind: Any, printed: bool) -> str:
    """Return a type in SQL, with text in place of each type that tables lack, or that is not printed as it is."""
    if kind.id in ("list", "array"):
        (_, part), *size = kind.children
        return f"{_cast(part, printed)}[{size[0][1] if size else ''}]"
    if kind.id == "map":
        return f"MAP({', '.join(_cast(part, printed) for _, part in kind.children)})"
    if kind.id in ("struct", "tuple", "union") and kind.children:
        is_union = kind.id == "union"
        members = enumerate(kind.children[is_union:], 1)  # the first one of a union tells which one it is
        named = [f"{_quoted(name or f'element{at}')} {_cast(part, printed)}" for at, (name, part) in members]
        return f"{'UNION' if is_union else 'STRUCT'}({', '.join(named)})"
    is_kept = kind.id in _PRINTED if printed else kind.id not in _AS_TEXT
    return str(kind) if is_kept else "VARCHAR"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _lock(connection: Any, allow: Sequence[str]) -> None:
    folders = ", ".join(literal(f"{os.path.abspath(folder)}/") for folder in allow)
    connection.execute(f"set allowed_directories = [{folders}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def _checked(table: pyarrow.Table) -> pyarrow.Table:
    """Return the result with integers of 64 bits where they fit: sums have 128. UsageError: columns have one name."""
    pa = needed("pyarrow", "sql")
    twice = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"several columns of the result are called {twice!r}", hint=f"{twice} AS another_name")
    columns = [_narrow(pa, column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _narrow(pa: Any, column: Any) -> Any:
    if not pa.types.is_decimal(column.type) or column.type.scale:
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def _problem(text: str) -> _Problem:
    """Return the description of an error: JSON, perhaps behind the name of its class."""
    try:
        return msgspec.json.decode(text[text.find("{") :], type=_Problem)
    except msgspec.MsgspecError:
        return _Problem(text)


def _wrong(query: str, problem: _Problem, hint: str = _HINT) -> TraceconvError:
    """Return an error that says where in the query it is."""
    message = problem.message
    if not problem.position.isdigit():
        return UsageError(message, at="SQL", hint=hint)
    before = query.encode("utf-8", "replace")[: int(problem.position)].decode("utf-8", "ignore")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return UsageError(message, at=f"SQL:{line}:{column}", hint=hint)
