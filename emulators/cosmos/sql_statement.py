"""Parser of SELECT statements in Cosmos DB SQL, and builder of the query plans that clients request for statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from emulators.cosmos.sql_expressions import (
    DocumentPath,
    ExpressionReader,
    NamedExpression,
    SqlExpression,
    SqlRow,
    build_path_expression,
)
from emulators.cosmos.sql_functions import compute_aggregate
from emulators.cosmos.sql_values import UNDEFINED
from emulators.cosmos.wire import CosmosError, build_unsupported_error

_AGGREGATE_NAMES = {"COUNT": "Count", "SUM": "Sum", "MIN": "Min", "MAX": "Max", "AVG": "Average"}


@dataclass(frozen=True)
class SortKey:
    """Sort key of an ORDER BY clause: path in the document, text in the query, and direction."""

    path: DocumentPath
    text: str
    descending: bool


@dataclass(frozen=True)
class SqlStatement:
    """Parsed SELECT statement.

    Attributes:
        text: The text of the query.
        select: Function that computes the result for a row.
        select_text: The text between SELECT (or TOP) and FROM.
        is_value: True for a SELECT VALUE statement, whose results are values instead of objects.
        alias: The name that the FROM clause gives to the document, such as `c`.
        condition: Function that evaluates the WHERE clause for a row; None without a WHERE clause.
        condition_text: The text of the WHERE clause; empty without a WHERE clause.
        sort_keys: The sort keys of the ORDER BY clause.
        top: The number in the TOP clause; None without the clause.
        offset: The number in the OFFSET clause; None without the clause.
        limit: The number in the LIMIT clause; None without the clause.
        aggregates: The aggregate calls in the statement: name, and function that computes the argument.
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
    def can_concatenate_results(self) -> bool:
        """True if the client can concatenate the partitions' results without merging them."""
        return not self.sort_keys and not self.aggregates and self.top is None and self.offset is None

    @property
    def results_to_skip(self) -> int:
        """Number of results to skip, from the OFFSET clause."""
        return self.offset or 0

    @property
    def max_results(self) -> int | None:
        """Maximum number of results, from the TOP or LIMIT clause; None without such a clause."""
        return self.limit if self.top is None else self.top

    def matches(self, document: Mapping[str, Any]) -> bool:
        """Return whether a document matches the WHERE clause."""
        return self.condition is None or self.condition(SqlRow(document)) is True

    def compute_sort_keys(self, document: Mapping[str, Any]) -> list[Any]:
        """Return the values of a document by which the ORDER BY clause sorts."""
        return [build_path_expression(key.path)(SqlRow(document)) for key in self.sort_keys]

    def list_result_if_defined(self, document: Mapping[str, Any]) -> list[Any]:
        """Return the result of the query for one document, in a list of one element; an empty list if undefined."""
        value = self.select(SqlRow(document))
        return [] if value is UNDEFINED else [value]

    def list_aggregate_result_if_defined(self, documents: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the aggregate over all documents, in a list of one element; an empty list if undefined."""
        rows = [SqlRow(document) for document in documents]
        totals = tuple(compute_aggregate(name, [argument(row) for row in rows]) for name, argument in self.aggregates)
        value = self.select(SqlRow(UNDEFINED, totals))
        return [] if value is UNDEFINED else [value]

    def build_plan(self) -> dict[str, Any]:
        """Build the query plan, which tells the client how to merge partitions and which query to send to each."""
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
            "rewrittenQuery": self._render_query_for_partition(),
            "hasSelectValue": self.is_value,
            "hasNonStreamingOrderBy": False,
        }

    def _render_query_for_partition(self) -> str:
        """Return the query that the client sends to each physical partition; the client then merges the results."""
        where = f" WHERE {self.condition_text}" if self.condition_text else ""
        if self.aggregates:
            if not self.is_value or len(self.aggregates) != 1 or self.sort_keys or self.max_results is not None:
                raise build_unsupported_error("cross-partition aggregates except a single one after SELECT VALUE")
            return f"SELECT VALUE {self._render_partial_aggregate()} FROM {self.alias}{where}"  # noqa: S608  parsed by this server
        needed = None if self.max_results is None else self.results_to_skip + self.max_results
        limit = "" if needed is None else f" OFFSET 0 LIMIT {needed}"
        if not self.sort_keys:
            return f"SELECT {self.select_text} FROM {self.alias}{where}{limit}"  # noqa: S608  parsed by this server
        items = ", ".join(f'{{"item": {key.text}}}' for key in self.sort_keys)
        order = ", ".join(f"{key.text} {'DESC' if key.descending else 'ASC'}" for key in self.sort_keys)
        placeholder = "({documentdb-formattableorderbyquery-filter})"
        where = f" WHERE ({self.condition_text}) AND {placeholder}" if self.condition_text else f" WHERE {placeholder}"
        return (
            f"SELECT {self.alias}._rid, [{items}] AS orderByItems, {self._render_payload_expression()} AS payload"  # noqa: S608  parsed by this server
            f" FROM {self.alias}{where} ORDER BY {order}{limit}"
        )

    def _render_payload_expression(self) -> str:
        """Return the expression that the statement selects, such as `c` for `SELECT * FROM c`.

        The query for a partition returns the expression's value as property `payload`.

        Raises:
            CosmosError: the statement selects a list of fields.
        """
        if self.select_text == "*":
            return self.alias
        if self.is_value:
            return self.select_text[len("VALUE") :]
        raise build_unsupported_error(
            "cross-partition ORDER BY after SELECT with a list of fields; use SELECT * or SELECT VALUE"
        )

    def _render_partial_aggregate(self) -> str:
        """Return the expression that computes the aggregate of one partition in the form that clients can merge."""
        name, _ = self.aggregates[0]
        call = self.select_text[len("VALUE") :].strip()
        if name == "AVG":
            argument = call[call.index("(") :]
            return f'[{{"item": {{"sum": SUM{argument}, "count": COUNT{argument}}}}}]'
        return f'[{{"item": {call}}}]'


def parse_statement(text: str, parameters: Mapping[str, Any]) -> SqlStatement:
    """Parse a SELECT statement in Cosmos DB SQL.

    Args:
        text: The text of the query.
        parameters: The values of the query's parameters, by name with @.

    Raises:
        CosmosError: 400 if the query is invalid or not supported.
    """
    return _StatementReader(text, parameters).parse_query()


class _WhereClause(NamedTuple):
    """WHERE clause of a statement: function that evaluates it for a row, and its text; None and "" if it is missing."""

    condition: SqlExpression | None
    text: str


class _OffsetAndLimit(NamedTuple):
    """Numbers in the OFFSET and LIMIT clauses of a statement; None if the clauses are missing."""

    offset: int | None
    limit: int | None


class _StatementReader(ExpressionReader):
    """Parser of one whole SELECT statement; each method parses the clause that begins at the next token."""

    def parse_query(self) -> SqlStatement:
        self.read_required_word("SELECT")
        top = self._parse_row_count() if self.try_read_one_of("TOP") else None
        self._look_ahead_and_set_alias()
        start = self.next_token.start
        is_value = self.next_token.text.upper() == "VALUE"
        select = self._parse_select()
        select_text = self.text[start : self.next_token.start].strip()
        self._parse_from()
        condition, condition_text = self._parse_where()
        sort_keys = self._parse_order_by()
        offset, limit = self._parse_offset_and_limit()
        if self.next_token.kind != "end":
            raise self.build_error_at_next_token()
        if self.aggregates and (sort_keys or top is not None or offset is not None):
            raise build_unsupported_error("aggregates with ORDER BY, TOP or OFFSET")
        return SqlStatement(
            self.text, select, select_text, is_value, self.alias, condition, condition_text,
            sort_keys, top, offset, limit, tuple(self.aggregates),
        )  # fmt: skip

    def _look_ahead_and_set_alias(self) -> None:
        """Look ahead to the FROM clause and read the document's name, which the SELECT clause already uses."""
        start = self.index
        depth = 0
        while self.next_token.kind != "end":
            token = self.read_token()
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if depth == 0 and token.kind == "name" and token.text.upper() == "FROM":
                self._parse_and_set_alias()
                self.index = start
                return
        raise CosmosError(400, "The query has no FROM clause.")

    def _parse_and_set_alias(self) -> None:
        self.alias = self.parse_name()
        if self.try_read_one_of("AS") or (
            self.next_token.kind == "name"
            and self.next_token.text.upper() not in ("WHERE", "ORDER", "OFFSET", "JOIN", "GROUP")
        ):
            self.alias = self.parse_name()

    def _parse_from(self) -> None:
        self.read_required_word("FROM")
        self._parse_and_set_alias()

    def _parse_select(self) -> SqlExpression:
        if self.try_read_one_of("*"):
            return lambda row: row.document
        if self.try_read_one_of("VALUE"):
            return self.parse_expression()
        fields = [self._parse_selected_field(1)]
        while self.try_read_one_of(","):
            fields.append(self._parse_selected_field(len(fields) + 1))
        return lambda row: {name: value for name, part in fields if (value := part(row)) is not UNDEFINED}

    def _parse_selected_field(self, field_number: int) -> NamedExpression:
        start = self.index
        part = self.parse_expression()
        last = self.tokens[self.index - 1]
        if self.try_read_one_of("AS"):
            return NamedExpression(self.parse_name(), part)
        is_path = self.tokens[start].text == self.alias and last.kind == "name" and self.index - start > 1
        return NamedExpression(last.text if is_path else f"${field_number}", part)

    def _parse_where(self) -> _WhereClause:
        if not self.try_read_one_of("WHERE"):
            return _WhereClause(None, "")
        start = self.next_token.start
        condition = self.parse_expression()
        return _WhereClause(condition, self.text[start : self.next_token.start].strip())

    def _parse_order_by(self) -> tuple[SortKey, ...]:
        if not self.try_read_one_of("ORDER"):
            return ()
        self.read_required_word("BY")
        keys = [self._parse_sort_key()]
        while self.try_read_one_of(","):
            keys.append(self._parse_sort_key())
        return tuple(keys)

    def _parse_sort_key(self) -> SortKey:
        start = self.next_token.start
        if self.next_token.text != self.alias:
            raise self.build_error_at_next_token()
        self.read_token()
        path = self.parse_path_after_alias()
        text = self.text[start : self.tokens[self.index - 1].end]
        descending = self.try_read_one_of("DESC")
        if not descending:
            self.try_read_one_of("ASC")
        return SortKey(path, text, descending)

    def _parse_offset_and_limit(self) -> _OffsetAndLimit:
        if not self.try_read_one_of("OFFSET"):
            return _OffsetAndLimit(None, None)
        offset = self._parse_row_count()
        self.read_required_word("LIMIT")
        return _OffsetAndLimit(offset, self._parse_row_count())

    def _parse_row_count(self) -> int:
        token = self.read_token()
        value = self.parameters.get(token.text) if token.kind == "parameter" else token.text
        if not str(value).isdecimal():
            raise CosmosError(400, f"'{token.text}' is not a valid number for TOP, OFFSET or LIMIT.")
        return int(str(value))
