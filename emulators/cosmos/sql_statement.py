"""Reads one SELECT statement, and says how a client may spread it over partitions."""

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
    """One sort key: its path in the document, its text in the query, and its direction."""

    path: tuple[str | int, ...]
    text: str
    descending: bool


@dataclass(frozen=True)
class SqlStatement:
    """One SELECT statement.

    Attributes:
        text: The query.
        select: Makes a result of a row.
        select_text: The text between SELECT (and TOP) and FROM.
        is_value: Whether it is SELECT VALUE.
        alias: The name of the document.
        condition: The WHERE clause, if it has one.
        condition_text: Its text.
        sort_keys: The ORDER BY clause.
        top: The TOP clause.
        offset: How many results OFFSET skips.
        limit: How many results LIMIT gives.
        aggregates: The aggregates, as names with their arguments.
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
        """Whether partitions can answer it one after the other, without a client that merges."""
        return not self.sort_keys and not self.aggregates and self.top is None and self.offset is None

    @property
    def skipped(self) -> int:
        """How many results it leaves out at the start."""
        return self.offset or 0

    @property
    def most(self) -> int | None:
        """How many results it gives at most, if it says so."""
        return self.limit if self.top is None else self.top

    def matches(self, document: Mapping[str, Any]) -> bool:
        """Says whether a document passes the WHERE clause."""
        return self.condition is None or self.condition(SqlRow(document)) is True

    def keys(self, document: Mapping[str, Any]) -> list[Any]:
        """Gives a document's sort keys."""
        return [path_expression(key.path)(SqlRow(document)) for key in self.sort_keys]

    def results(self, document: Mapping[str, Any]) -> list[Any]:
        """Gives what a document makes: one result, or none if it is undefined."""
        value = self.select(SqlRow(document))
        return [] if value is UNDEFINED else [value]

    def aggregate(self, documents: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Gives the result of an aggregate over documents: one, or none if it is undefined."""
        rows = [SqlRow(document) for document in documents]
        totals = tuple(aggregate_values(name, [argument(row) for row in rows]) for name, argument in self.aggregates)
        value = self.select(SqlRow(UNDEFINED, totals))
        return [] if value is UNDEFINED else [value]

    def plan(self) -> dict[str, Any]:
        """Gives the query plan: what a client must do itself, and what it sends to each partition."""
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
            if not self.is_value or len(self.aggregates) != 1 or self.sort_keys or self.most is not None:
                raise unsupported("aggregates over partitions other than one SELECT VALUE")
            return f"SELECT VALUE {self._partial()} FROM {self.alias}{where}"
        most = None if self.most is None else self.skipped + self.most
        limit = "" if most is None else f" OFFSET 0 LIMIT {most}"
        if not self.sort_keys:
            return f"SELECT {self.select_text} FROM {self.alias}{where}{limit}"
        items = ", ".join(f'{{"item": {key.text}}}' for key in self.sort_keys)
        order = ", ".join(f"{key.text} {'DESC' if key.descending else 'ASC'}" for key in self.sort_keys)
        placeholder = "({documentdb-formattableorderbyquery-filter})"
        where = f" WHERE ({self.condition_text}) AND {placeholder}" if self.condition_text else f" WHERE {placeholder}"
        return (
            f"SELECT {self.alias}._rid, [{items}] AS orderByItems, {self._payload()} AS payload"
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
    """Reads a query.

    Args:
        text: The query.
        parameters: The values of its parameters, by names with @.

    Raises:
        Refusal: 400, it cannot be read, or it needs what is not implemented.
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
        """Looks ahead for the document's name, which the SELECT clause uses before FROM gives it."""
        here = self.place
        depth = 0
        while self.next.kind != "end":
            token = self.take()
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if depth == 0 and token.kind == "name" and token.text.upper() == "FROM":
                self._from_alias()
                self.place = here
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
        start = self.place
        part = self.expression()
        last = self.tokens[self.place - 1]
        if self.take_if("AS"):
            return self.name(), part
        is_path = self.tokens[start].text == self.alias and last.kind == "name" and self.place - start > 1
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
        text = self.text[start : self.tokens[self.place - 1].end]
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
            raise CosmosError(400, f"'{token.text}' is no count for TOP, OFFSET or LIMIT.")
        return int(str(value))
