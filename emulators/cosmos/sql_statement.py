"""Parser of SELECT statements and their query plans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulators.cosmos.sql_expressions import ExpressionReader, SqlExpression, SqlRow, path_expression
from emulators.cosmos.sql_functions import aggregate_values
from emulators.cosmos.sql_values import UNDEFINED
from emulators.cosmos.wire import CosmosError, unsupported

_AGGREGATE_NAMES = {"COUNT": "Count", "SUM": "Sum", "MIN": "Min", "MAX": "Max", "AVG": "Average"}


@dataclass(frozen=True)
class SortKey:
    """Sort key: path in the document, text in the query, and direction."""

    path: tuple[str | int, ...]
    text: str
    descending: bool


@dataclass(frozen=True)
class SqlStatement:
    """SELECT statement.

    Attributes:
        text: The query.
        select: Computes the result of a row.
        select_text: The text between SELECT (and TOP) and FROM.
        is_value: Whether it is SELECT VALUE.
        alias: The alias of the document.
        condition: The WHERE clause, if it has one.
        condition_text: Its text.
        sort_keys: The ORDER BY clause.
        top: The TOP clause.
        offset: The OFFSET clause.
        limit: The LIMIT clause.
        aggregates: The aggregates: names and arguments.
    """

    text: str
    select: SqlExpression
    select_text: str
    is_value: bool
    alias: str
    condition: SqlExpression | None
    condition_text: str
    sort_keys: tuple[SortKey, ...]
    top: int | None
    offset: int | None
    limit: int | None
    aggregates: tuple[tuple[str, SqlExpression], ...]

    @property
    def is_plain(self) -> bool:
        """Whether partitions can return results in sequence, without a merge by the client."""
        return not self.sort_keys and not self.aggregates and self.top is None and self.offset is None

    @property
    def skipped(self) -> int:
        """Number of results to skip."""
        return self.offset or 0

    @property
    def max_results(self) -> int | None:
        """Most results of the statement, if limited."""
        return self.limit if self.top is None else self.top

    def matches(self, document: Mapping[str, Any]) -> bool:
        """Return whether a document matches the WHERE clause."""
        return self.condition is None or self.condition(SqlRow(document)) is True

    def keys(self, document: Mapping[str, Any]) -> list[Any]:
        """Return the sort keys of a document."""
        return [path_expression(key.path)(SqlRow(document)) for key in self.sort_keys]

    def results(self, document: Mapping[str, Any]) -> list[Any]:
        """Return the result of a document, an empty list if it is undefined."""
        value = self.select(SqlRow(document))
        return [] if value is UNDEFINED else [value]

    def aggregate(self, documents: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the aggregate of documents, an empty list if it is undefined."""
        rows = [SqlRow(document) for document in documents]
        totals = tuple(aggregate_values(name, [argument(row) for row in rows]) for name, argument in self.aggregates)
        value = self.select(SqlRow(UNDEFINED, totals))
        return [] if value is UNDEFINED else [value]

    def plan(self) -> dict[str, Any]:
        """Return the query plan: the steps of the client, and the query for each partition."""
        names = [_AGGREGATE_NAMES[name] for name, _ in self.aggregates]
        return {
            "distinctType": "None",
            "top": self.top,
            "offset": self.offset,
            "limit": self.limit,
            "orderBy": ["Descending" if key.descending else "Ascending" for key in self.sort_keys],
            "orderByExpressions": [key.text for key in self.sort_keys],
            "groupByExpressions": [],
            "groupByAliases": [],
            "aggregates": names if self.is_value else [],
            "groupByAliasToAggregateType": {},
            "rewrittenQuery": self._rewritten(),
            "hasSelectValue": self.is_value,
            "hasNonStreamingOrderBy": False,
        }

    def _rewritten(self) -> str:
        where = f" WHERE {self.condition_text}" if self.condition_text else ""
        if self.aggregates:
            if not self.is_value or len(self.aggregates) != 1 or self.sort_keys or self.max_results is not None:
                raise unsupported("aggregates over partitions other than one SELECT VALUE")
            return f"SELECT VALUE {self._partial()} FROM {self.alias}{where}"  # noqa: S608  parsed by this server
        needed = None if self.max_results is None else self.skipped + self.max_results
        limit = "" if needed is None else f" OFFSET 0 LIMIT {needed}"
        if not self.sort_keys:
            return f"SELECT {self.select_text} FROM {self.alias}{where}{limit}"  # noqa: S608  parsed by this server
        items = ", ".join(f'{{"item": {key.text}}}' for key in self.sort_keys)
        order = ", ".join(f"{key.text} {'DESC' if key.descending else 'ASC'}" for key in self.sort_keys)
        placeholder = "({documentdb-formattableorderbyquery-filter})"
        where = f" WHERE ({self.condition_text}) AND {placeholder}" if self.condition_text else f" WHERE {placeholder}"
        return (
            f"SELECT {self.alias}._rid, [{items}] AS orderByItems, {self._payload()} AS payload"  # noqa: S608  parsed by this server
            f" FROM {self.alias}{where} ORDER BY {order}{limit}"
        )

    def _payload(self) -> str:
        if self.select_text == "*":
            return self.alias
        if self.is_value:
            return self.select_text[len("VALUE") :]
        raise unsupported("ORDER BY over partitions with a list of fields; use SELECT * or SELECT VALUE")

    def _partial(self) -> str:
        name, _ = self.aggregates[0]
        call = self.select_text[len("VALUE") :].strip()
        if name == "AVG":
            argument = call[call.index("(") :]
            return f'[{{"item": {{"sum": SUM{argument}, "count": COUNT{argument}}}}}]'
        return f'[{{"item": {call}}}]'


def parse_statement(text: str, parameters: Mapping[str, Any]) -> SqlStatement:
    """Parse a query.

    Args:
        text: The query.
        parameters: The values of its parameters, by name with @.

    Raises:
        CosmosError: 400 if the query is invalid or not supported.
    """
    return _StatementReader(text, parameters).statement()


class _StatementReader(ExpressionReader):
    def statement(self) -> SqlStatement:
        self.expect("SELECT")
        top = self._count() if self.take_if("TOP") else None
        self._find_alias()
        start = self.next.start
        is_value = self.next.text.upper() == "VALUE"
        select = self._select()
        select_text = self.text[start : self.next.start].strip()
        self._from()
        condition, condition_text = self._where()
        sort_keys = self._order_by()
        offset, limit = self._window()
        if self.next.kind != "end":
            raise self.error()
        if self.aggregates and (sort_keys or top is not None or offset is not None):
            raise unsupported("aggregates with ORDER BY, TOP or OFFSET")
        return SqlStatement(
            self.text, select, select_text, is_value, self.alias, condition, condition_text,
            sort_keys, top, offset, limit, tuple(self.aggregates),
        )  # fmt: skip

    def _find_alias(self) -> None:
        """Find the document's alias in FROM, which the preceding SELECT clause uses."""
        start = self.index
        depth = 0
        while self.next.kind != "end":
            token = self.take()
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if depth == 0 and token.kind == "name" and token.text.upper() == "FROM":
                self._from_alias()
                self.index = start
                return
        raise CosmosError(400, "The query has no FROM clause.")

    def _from_alias(self) -> None:
        self.alias = self.name()
        if self.take_if("AS") or (
            self.next.kind == "name" and self.next.text.upper() not in ("WHERE", "ORDER", "OFFSET", "JOIN", "GROUP")
        ):
            self.alias = self.name()

    def _from(self) -> None:
        self.expect("FROM")
        self._from_alias()

    def _select(self) -> SqlExpression:
        if self.take_if("*"):
            return lambda row: row.document
        if self.take_if("VALUE"):
            return self.expression()
        fields = [self._field(1)]
        while self.take_if(","):
            fields.append(self._field(len(fields) + 1))
        return lambda row: {name: value for name, part in fields if (value := part(row)) is not UNDEFINED}

    def _field(self, number: int) -> tuple[str, SqlExpression]:
        start = self.index
        part = self.expression()
        last = self.tokens[self.index - 1]
        if self.take_if("AS"):
            return self.name(), part
        is_path = self.tokens[start].text == self.alias and last.kind == "name" and self.index - start > 1
        return (last.text if is_path else f"${number}"), part

    def _where(self) -> tuple[SqlExpression | None, str]:
        if not self.take_if("WHERE"):
            return None, ""
        start = self.next.start
        condition = self.expression()
        return condition, self.text[start : self.next.start].strip()

    def _order_by(self) -> tuple[SortKey, ...]:
        if not self.take_if("ORDER"):
            return ()
        self.expect("BY")
        keys = [self._sort_key()]
        while self.take_if(","):
            keys.append(self._sort_key())
        return tuple(keys)

    def _sort_key(self) -> SortKey:
        start = self.next.start
        if self.next.text != self.alias:
            raise self.error()
        self.take()
        path = self.path()
        text = self.text[start : self.tokens[self.index - 1].end]
        descending = self.take_if("DESC")
        if not descending:
            self.take_if("ASC")
        return SortKey(path, text, descending)

    def _window(self) -> tuple[int | None, int | None]:
        if not self.take_if("OFFSET"):
            return None, None
        offset = self._count()
        self.expect("LIMIT")
        return offset, self._count()

    def _count(self) -> int:
        token = self.take()
        value = self.parameters.get(token.text) if token.kind == "parameter" else token.text
        if not str(value).isdecimal():
            raise CosmosError(400, f"'{token.text}' is not a valid number for TOP, OFFSET or LIMIT.")
        return int(str(value))
