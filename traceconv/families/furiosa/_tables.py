"""The tables of the Furiosa profiler as text: CSV, boxes as polars prints them, columns as pandas prints them.

    shape: (13, 4)
    ┌─────────────────────────────────┬──────────────────┬───┬───────┐
    │ trace_id                        ┆ span_id          ┆ … ┆ dur   │
    │ ---                             ┆ ---              ┆   ┆ ---   │
    │ str                             ┆ str              ┆   ┆ i64   │
    ╞═════════════════════════════════╪══════════════════╪═══╪═══════╡
    │ 7cf3d3b7439cf4c3fac1a479987831… ┆ 78b065c19c3675e0 ┆ … ┆ 10000 │

Source: what polars 1.x and pandas 2.x and 3.x print. In a narrow terminal polars breaks cells into several lines
without a rule between rows: a line in which a cell is empty goes on with the row before, since no value but a category
or a name can be empty. It shows the first and last rows and columns, with `…` between them, and so does pandas with
`...`; pandas breaks wide tables into blocks of columns, whose headings end in a backslash. Both say how many rows and
columns there are when they show less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from traceconv.families.common.idle_lines import SPACE, holds
from traceconv.families.common.report_csv import fields_of
from traceconv.families.common.text_tables import OpenTables
from traceconv.io.shown import Counted
from traceconv.model.builder import Builder
from traceconv.model.counted import CONTINUED_ROWS, TABLE_HEADINGS
from traceconv.model.diagnostics import absent, lost, skipped
from traceconv.model.numbers import whole

BAD_ROW = lost("furiosa-table.bad_row", "a row does not fit the columns of its table (a cut or mixed up line)")
OTHER_TABLE = skipped(
    "furiosa-table.other_table", "lines of other tables than the profiler's were left out", quiet=True
)
ELIDED_ROWS = absent(
    "furiosa-table.elided_rows",
    "rows were left out when the table was printed, or cut off later (print all of them, or use CSV)",
)
ELIDED_COLUMNS = absent(
    "furiosa-table.elided_columns",
    "columns were left out when the table was printed (print all of them, or use CSV)",
)

COLUMNS = (
    *("trace_id", "parent_span_id", "span_id", "start", "end", "cat", "name", "thread.id", "dram_base", "pe_index"),
    *("execution_index", "instruction_index", "operator_index", "dur"),
)
TOTAL, RUN, WAIT, AVERAGE, COUNT = "NPU Total", "NPU Run", "NPU IoWait", "average elapsed(ns)", "count"
#: A table with one of these is one of this profiler.
_TELLING = {"trace_id", "thread.id", "pe_index", TOTAL, WAIT, AVERAGE}
#: Cells that can be empty.
_MAY_BE_EMPTY = ("cat", "name", "")
_ELLIPSES = ("…", "...", "..")
#: Takes a row: its cells by column, its line, the number of its table.
RowHandler = Callable[[dict[str, str], int, int], bool]

_SHAPE = re.compile(r"shape: \(([0-9][0-9_,]{0,20}), ([0-9]{1,9})\)\s*")
_PANDAS_SHAPE = re.compile(r"\[([0-9]{1,18}) rows x ([0-9]{1,9}) columns\]\s*")
_BOX = re.compile(r"[┌│╞└├].*")
_NAMES = "|".join(re.escape(name) for name in (*COLUMNS, TOTAL, RUN, WAIT, AVERAGE, "average_elapsed (ns)", "..."))
_NAME = re.compile(rf"(?<!\S)(?:{_NAMES}|count)(?!\S)")
#                             trace_id            name  thread.id    dur
_PANDAS = re.compile(
    rf"(?P<prefix>\S.*?\s)??\s*(?P<names>(?:{_NAMES}|count)(?:\s+(?:{_NAMES}|count))*)\s*(?P<more>\\?)\s*"
)


def _canonical(name: str) -> str:
    return re.sub(r"[\s_()]", "", name).lower()


_LAST_WORDS = {name.rpartition(" ")[2] for name in (*COLUMNS, TOTAL, RUN, WAIT, AVERAGE, COUNT, "(ns)", "...")}
_LONGEST_HEADING = 1000
#: Patterns in the other lines of tables: shapes, boxes, headings.
_KNOWN_BYTES = b"|".join(
    (
        holds(b"(?:shape: |parent_span_id|\xe2[\x94\x95])"),
        rb"(?:[^\n]* )?(?:%b)[ \\]*\r?\n" % "|".join(map(re.escape, sorted(_LAST_WORDS))).encode(),
    )
)
_KNOWN = {_canonical(name): name for name in (*COLUMNS, TOTAL, RUN, WAIT, AVERAGE, COUNT)}


def _pandas_match(line: str) -> re.Match[str] | None:
    """Return the heading that pandas prints; only a line that ends like one is looked at closely."""
    last = line.rstrip(" \\").rpartition(" ")[2]
    return _PANDAS.fullmatch(line) if last in _LAST_WORDS and len(line) < _LONGEST_HEADING else None


def known_column(name: str) -> str:
    """Return the name of a column as other versions and broken headings spell it; "" for those that were left out."""
    return "" if name in _ELLIPSES else _KNOWN.get(_canonical(name), name)


def is_ours(columns: Sequence[str]) -> bool:
    """Return whether a table with these columns is one of this profiler."""
    known = set(columns) & set(_KNOWN.values())
    return len(known) > 1 and bool(known & _TELLING) and all(name in known or not name for name in columns)


def csv_columns(line: str) -> tuple[str, list[str]] | None:
    """Return the separator and the columns of a CSV of the data frame, if the line is its heading."""
    if "parent_span_id" not in line or "execution_index" not in line:
        return None
    for separator in ",;\t":
        columns = [name.strip().strip('"') for name in line.split(separator)]
        if {"parent_span_id", "execution_index", "start"} <= set(columns):
            return separator, columns
    return None


def box_cells(line: str) -> list[str]:
    """Return the cells of a line of a box table."""
    cells = [cell.strip() for cell in re.split("[│┆]", line.strip())]
    return cells[1:-1] if line.rstrip().endswith("│") else cells[1:]


def box_columns(lines: list[list[str]]) -> list[str]:
    """Return the columns of a box table from the lines above its double rule.

    Names, dashes, types, each on several lines.
    """
    width = max((len(line) for line in lines), default=0)
    columns = []
    for at in range(width):
        chunks = [line[at] for line in lines if at < len(line)]
        columns.append(known_column("".join(chunks[: chunks.index("---")] if "---" in chunks else chunks)))
    return columns


class _Table(msgspec.Struct):
    """The common part of all kinds of tables.

    Attributes:
        number: of the table in the log.
        columns: "" for those that were left out.
        shape: the numbers of rows and columns, as far as stated.
        shown: the rows so far.
    """

    number: int
    columns: list[str] = msgspec.field(default_factory=list)
    shape: tuple[int, int] | None = None
    shown: int = 0


class _Box(_Table):
    heading: list[list[str]] = msgspec.field(default_factory=list)
    pending: list[str] | None = None
    pending_at: int = 0
    gaps: int = 0


class _Pandas(_Table):
    """Blocks of columns, one below the other; `rows` holds line, index and cells.

    Attributes:
        ends: where the names of the current block end, and so do its values.
        more: whether another block follows.
        over: whether all rows were seen; only the shape may follow.
        place: the row of the current block that comes next.
    """

    ends: list[int] = msgspec.field(default_factory=list)
    block: list[str] = msgspec.field(default_factory=list)
    more: bool = False
    over: bool = False
    in_block: bool = True
    place: int = 0
    gaps: int = 0
    rows: list[tuple[int, str, dict[str, str]]] = msgspec.field(default_factory=list)


class _Csv(_Table):
    separator: str = ","
    quoted: str = ""
    lines: int = 0


class TextTables:
    """Reads the lines of a log, and passes on the rows of its tables.

    Args:
        out: the builder, for problems and the balance.
        row: takes a row, and returns whether it could be read.

    Attributes:
        changed: whether the last line ended or changed a table, though it belongs to none.
    """

    def __init__(self, out: Builder, row: RowHandler) -> None:
        self._out = out
        self._row = row
        self._open: OpenTables[_Table] = OpenTables()
        self._shape: tuple[int, int] | None = None
        self.count = 0
        self.changed = False

    def line(self, number: int, line: str) -> bool:
        """Read a line; False if it belongs to no table."""
        self.changed = False
        shape = _SHAPE.search(line)
        if shape is not None and shape.end() == len(line):
            self._shape = whole(re.sub("[_,]", "", shape[1])), whole(shape[2])
            return self._merged(TABLE_HEADINGS)
        box = _BOX.search(line)
        if box is not None:
            return self._box_line(number, line[: box.start()], box[0])
        heading = csv_columns(line)
        if heading is not None:
            return self._begin("", _Csv(self.count + 1, heading[1], separator=heading[0]))
        pandas = _pandas_match(line)
        if pandas is not None and self._pandas_heading(line, pandas):
            return True
        known = self._open.find(line)
        return known is not None and self._inside(number, *known)

    @property
    def ends_blank(self) -> bool:
        """Whether a blank line may end a table."""
        return any(isinstance(table, _Pandas) for table in self._open.all())

    def known(self) -> tuple[bytes, ...]:
        """Return the patterns of the starts of lines of the open tables; empty if not known."""
        opened = self._open.all()
        if len(opened) > 1:
            return ()
        within = b"(?!)"
        if opened and isinstance(opened[0], _Csv):
            if self._open.find("") != ("", opened[0], ""):
                return ()
            separator, columns = opened[0].separator.encode(), opened[0].columns
            before = columns.index("trace_id") if "trace_id" in columns else 0
            begin = rb"(?:[^\n%b]*%b){%d}" % (separator, separator, before)
            within = b"|".join((holds(b'"'), holds(separator, len(columns) - 1), begin + SPACE + b"*[0-9a-f]{4}"))
        elif opened and isinstance(opened[0], _Pandas):
            if not opened[0].in_block or opened[0].over:
                return ()
            within = SPACE + rb"*(?:\[|name)|" + holds(SPACE)
        return (_KNOWN_BYTES, within)

    def end(self) -> None:
        """End the log."""
        for table in self._open.all():
            self._close(table)

    def _merged(self, kind: Counted, count: int = 1) -> bool:
        self._out.balance.merged[kind] += count
        return True

    def _begin(self, prefix: str, table: _Table) -> bool:
        """Open a table, and close the one with the same prefix. Return True: the line is read."""
        before = self._open.close(prefix)
        if before is not None:
            self._close(before)
        table.shape, self._shape = self._shape, None
        self.count += 1
        self._open.open(prefix, table)
        return self._merged(TABLE_HEADINGS)

    def _inside(self, number: int, prefix: str, table: _Table, line: str) -> bool:
        """Read a line of an open table that is not its heading; return whether it belongs to the table."""
        if isinstance(table, _Csv):
            return self._csv_line(number, table, line)
        if isinstance(table, _Pandas):
            return self._pandas_line(number, prefix, table, line)
        return False

    def _close(self, table: _Table) -> None:
        """Pass on the remaining rows of a table, and count rows and columns that were not printed."""
        gaps = 0
        if isinstance(table, _Box):
            self._flush(table)
            gaps = table.gaps
            if not table.columns and table.heading:
                code = BAD_ROW if is_ours(box_columns(table.heading)) else OTHER_TABLE
                self._out.skip(code, self._place(table), "a heading without rows", count=len(table.heading))
        elif isinstance(table, _Pandas):
            self._hand_over(table)
            gaps = table.gaps
        elif isinstance(table, _Csv) and table.quoted:
            self._out.skip(BAD_ROW, self._place(table), "a quoted cell that does not end", count=table.lines)
        if not is_ours(table.columns):
            return
        missing = table.shape[0] - table.shown if table.shape else gaps
        if missing > 0:
            known = "" if table.shape else "how many, the text does not say"
            self._out.problem(ELIDED_ROWS, self._place(table), known, count=missing)
        if "" in table.columns[1:]:
            hidden = table.shape[1] - sum(bool(name) for name in table.columns) if table.shape else 1
            self._out.problem(ELIDED_COLUMNS, self._place(table), count=max(1, hidden))

    def _place(self, table: _Table) -> str:
        return f"{self._out.info.name}: table {table.number}"

    # -- boxes ------------------------------------------------------------------------------------------------

    def _box_line(self, number: int, prefix: str, line: str) -> bool:
        heading = self._open.find(prefix + line)
        table = heading[1] if heading is not None and prefix in (heading[0], "") else None
        if line[0] == "┌":
            return self._begin(prefix, _Box(self.count + 1))
        if not isinstance(table, _Box):
            return False
        if heading is not None and line[0] == "└":
            self._open.close(heading[0])
            self._close(table)
        if line[0] == "╞" and not table.columns:
            table.columns = box_columns(table.heading)
            self._merged(TABLE_HEADINGS, len(table.heading))
        if line[0] != "│":
            return self._merged(TABLE_HEADINGS)
        self._cells(number, table, box_cells(line))
        return True

    def _cells(self, number: int, table: _Box, cells: list[str]) -> None:
        if not table.columns:
            table.heading.append(cells)
        elif len(cells) != len(table.columns):
            table.shown += 1
            self._out.skip(BAD_ROW, number, f"{len(cells)} cells, expected {len(table.columns)}")
        elif all(cell in _ELLIPSES for cell in cells):
            self._flush(table)
            table.gaps += 1
            self._merged(TABLE_HEADINGS)
        elif table.pending is not None and self._goes_on(table.columns, cells):
            table.pending = [one + other for one, other in zip(table.pending, cells, strict=True)]
            self._merged(CONTINUED_ROWS)
        else:
            self._flush(table)
            table.pending, table.pending_at = cells, number

    @staticmethod
    def _goes_on(columns: list[str], cells: list[str]) -> bool:
        return any(not cell and name not in _MAY_BE_EMPTY for name, cell in zip(columns, cells, strict=True))

    def _flush(self, table: _Box) -> None:
        """Add the row before, which is complete."""
        cells, table.pending = table.pending, None
        if cells is not None:
            table.shown += 1
            self._hand(dict(zip(table.columns, cells, strict=True)), table.pending_at, table.number)

    def _hand(self, cells: dict[str, str], at: int, table: int) -> None:
        cells.pop("", None)
        if not is_ours(list(cells)):
            self._out.skip(OTHER_TABLE, at)
        elif not self._row(cells, at, table):
            self._out.skip(BAD_ROW, at, " ".join(cells.values())[:60])

    # -- pandas -----------------------------------------------------------------------------------------------

    def _pandas_heading(self, line: str, heading: re.Match[str]) -> bool:
        """Read a heading of pandas: of the next block if the open table awaits one, else of a new table."""
        prefix = heading["prefix"] or ""
        rest = line[len(prefix) :]
        names = list(_NAME.finditer(rest))
        columns = [known_column(name[0]) for name in names]
        open_table = self._open.find(line)
        before = open_table[1] if open_table is not None else None
        if isinstance(before, _Pandas) and before.more and not before.in_block:
            before.place, before.in_block = 0, True
            before.columns += columns
            self._merged(TABLE_HEADINGS)
            table = before
        elif is_ours(columns):
            table = _Pandas(self.count + 1, list(columns))
            self._begin(prefix, table)
        else:
            return False
        table.ends, table.block, table.more = [name.end() for name in names], columns, bool(heading["more"])
        return True

    def _pandas_line(self, number: int, prefix: str, table: _Pandas, line: str) -> bool:
        shape = _PANDAS_SHAPE.fullmatch(line)
        if shape is not None:
            table.shape = whole(shape[1]), whole(shape[2])
        elif line.strip() and not table.over:
            if line.strip() == "name" and not table.place:
                return self._merged(TABLE_HEADINGS)  # the name of the index
            return table.in_block and self._pandas_row(number, table, line)
        elif not table.over and (table.more or table.gaps or "" in table.columns):
            table.in_block, table.over = False, not table.more  # a block or the shape follows
            return self._merged(TABLE_HEADINGS)
        self._open.close(prefix)
        self._close(table)
        self.changed = True
        return self._merged(TABLE_HEADINGS) if shape is not None or not line.strip() else False

    def _pandas_row(self, number: int, table: _Pandas, line: str) -> bool:
        if len(line.rstrip()) > table.ends[-1] or len(line.split()) < 2:
            return False
        is_first = len(table.block) == len(table.columns)
        if all(set(word) == {"."} for word in line.split()):
            table.gaps += is_first
            return self._merged(TABLE_HEADINGS)
        starts = [0, *table.ends[:-1]]
        cells = [line[start:end].strip() for start, end in zip(starts, table.ends, strict=True)]
        index, _, cells[0] = cells[0].rpartition(" ")
        values = dict(zip(table.block, cells, strict=True))
        if is_first:
            table.rows.append((number, index.strip(), values))
        elif table.place < len(table.rows) and table.rows[table.place][1] == index.strip():
            table.rows[table.place][2].update(values)
            self._merged(CONTINUED_ROWS)
        else:
            return False
        table.place += 1
        return True

    def _hand_over(self, table: _Pandas) -> None:
        for number, index, cells in table.rows:
            if AVERAGE in cells and "name" not in cells:
                cells["name"] = index
            table.shown += 1
            self._hand(cells, number, table.number)
        table.rows.clear()

    # -- CSV --------------------------------------------------------------------------------------------------

    def _csv_line(self, number: int, table: _Csv, line: str) -> bool:
        self.changed = table.quoted != ""
        line = f"{table.quoted}\n{line}" if table.quoted else line
        table.lines += 1
        if line.count('"') % 2 and table.lines < 100:
            table.quoted = line
            return True
        self._merged(CONTINUED_ROWS, table.lines - 1)
        table.quoted, table.lines = "", 0
        cells = fields_of(line, table.separator)
        if len(cells) != len(table.columns):
            if not _starts_like_a_row(table.columns, cells):
                return False
            self._out.skip(BAD_ROW, number, f"{len(cells)} cells, expected {len(table.columns)}")
            return True
        values = dict(zip(table.columns, cells, strict=True))
        if not self._row(values, number, table.number):
            self._out.skip(BAD_ROW, number, line[:60])
        return True


def _starts_like_a_row(columns: list[str], cells: list[str]) -> bool:
    """Return whether a line of CSV with too few or too many cells is a row that was cut, and not other output."""
    at = columns.index("trace_id") if "trace_id" in columns else 0
    return at < len(cells) and re.fullmatch(r"[0-9a-f]{4,}", cells[at].strip()) is not None


def describes_tables(lines: list[str]) -> str:
    """Describe the first table of this profiler in the lines; return "" if there is none."""
    headings: dict[str, list[list[str]]] = {}  # by the prefix of the lines
    for line in lines:
        box = _BOX.search(line)
        if box is not None:
            prefix = line[: box.start()]
            if box[0][0] == "│":
                headings.setdefault(prefix, []).append(box_cells(box[0]))
                continue
            columns = box_columns(headings.pop(prefix, [])) if box[0][0] == "╞" else []
            if is_ours(columns):
                return f"a box with columns such as {', '.join(name for name in columns[:3] if name)}"
            headings.pop(prefix, None)
        if csv_columns(line) is not None:
            return "CSV with parent_span_id and execution_index"
        pandas = _pandas_match(line)
        if pandas is not None and is_ours([known_column(name[0]) for name in _NAME.finditer(pandas["names"])]):
            return "columns of the profiler's data frame"
    return ""
