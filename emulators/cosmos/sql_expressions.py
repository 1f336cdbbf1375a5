"""Parser of Cosmos DB SQL expressions; an expression becomes a Python function that computes its value for a row."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from emulators.cosmos.sql_functions import AGGREGATES, FUNCTIONS
from emulators.cosmos.sql_values import UNDEFINED, SqlBoolean, compare_values_if_ordered, evaluate_equality
from emulators.cosmos.wire import CosmosError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<parameter>@\w+)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<symbol><=|>=|!=|<>|[()\[\]{},.:*=<>+\-])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class SqlToken:
    """Token of a query: kind (number, string, parameter, name, symbol or end), text, start and end in the query."""

    kind: str
    text: str
    start: int
    end: int


def build_syntax_error(query_text: str, position: int) -> CosmosError:
    """Return the error that reports invalid syntax at a position of a query."""
    found = query_text[position : position + 30]
    return CosmosError(400, f"Syntax error, or syntax that the Cosmos test server does not implement, near '{found}'.")


@lru_cache(maxsize=1_000)
def tokenize(text: str) -> tuple[SqlToken, ...]:
    """Split a query into tokens, followed by a token of kind `end`.

    Raises:
        CosmosError: 400 if the text contains an invalid token.
    """
    tokens: list[SqlToken] = []
    position, last = 0, len(text.rstrip())
    while position < last:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise build_syntax_error(text, position)
        position = match.end()
        tokens.append(SqlToken(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup), position))
    return (*tokens, SqlToken("end", "", last, last))


def parse_string_literal(literal: str) -> str:
    """Return the value of a string literal in single or double quotes, with escapes decoded."""
    inner = literal[1:-1]
    if literal[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    return str(json.loads(f'"{inner}"', strict=False))


@dataclass(frozen=True, slots=True)
class SqlRow:
    """Row for which a compiled expression is evaluated: a document, and the results of aggregates, if computed."""

    document: Any
    totals: tuple[Any, ...] = ()


type SqlExpression = Callable[[SqlRow], Any]

type DocumentPath = tuple[str | int, ...]
"""Path of a value in a document: property names and array indexes."""


class NamedExpression(NamedTuple):
    """Name of a property in a JSON object, and the expression that computes the value of the property."""

    name: str
    expression: SqlExpression


_ORDERS: dict[str, Callable[[int], bool]] = {
    "<": lambda result: result < 0,
    "<=": lambda result: result <= 0,
    ">": lambda result: result > 0,
    ">=": lambda result: result >= 0,
}
_LITERALS: dict[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None, "UNDEFINED": UNDEFINED}
_RESERVED = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "ORDER", "OFFSET", "LIMIT", "WHERE", "FROM", "AS", "LIKE"})


@dataclass
class ExpressionReader:
    """Parser of the expressions in a query; each method consumes the next tokens of the query.

    Attributes:
        text: The text of the query.
        parameters: The values of the query's parameters, by name with @.
        alias: The name that the FROM clause gives to the document, such as `c`.
        aggregates: The aggregate calls parsed so far: name, and function that computes the argument.
    """

    text: str
    parameters: Mapping[str, Any]
    alias: str = "c"
    aggregates: list[tuple[str, SqlExpression]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = tokenize(self.text)
        self.index = 0

    @property
    def next_token(self) -> SqlToken:
        """Next token of the query text; it is not consumed."""
        return self.tokens[self.index]

    def build_error_at_next_token(self) -> CosmosError:
        """Return the error that reports invalid syntax at the next token."""
        return build_syntax_error(self.text, self.next_token.start)

    def read_token(self) -> SqlToken:
        """Consume the next token and return it."""
        self.index += 1
        return self.tokens[self.index - 1]

    def try_read_one_of(self, *words: str) -> bool:
        """Consume the next token and return True if the token is one of these keywords or symbols."""
        if self.next_token.kind in ("name", "symbol") and self.next_token.text.upper() in words:
            self.index += 1
            return True
        return False

    def read_required_word(self, word: str) -> None:
        """Consume a required keyword or symbol; any other token is a syntax error."""
        if not self.try_read_one_of(word):
            raise self.build_error_at_next_token()

    def parse_name(self) -> str:
        """Parse and return a name; a reserved word is a syntax error."""
        if self.next_token.kind != "name" or self.next_token.text.upper() in _RESERVED:
            raise self.build_error_at_next_token()
        return self.read_token().text

    def parse_expression(self) -> SqlExpression:
        """Parse an expression; return a function that computes the value of the expression for a row."""
        parts = [self._parse_conjunction()]
        while self.try_read_one_of("OR"):
            parts.append(self._parse_conjunction())
        return parts[0] if len(parts) == 1 else lambda row: _evaluate_and_or(parts, row, decisive_value=True)

    def _parse_conjunction(self) -> SqlExpression:
        parts = [self._parse_negation()]
        while self.try_read_one_of("AND"):
            parts.append(self._parse_negation())
        return parts[0] if len(parts) == 1 else lambda row: _evaluate_and_or(parts, row, decisive_value=False)

    def _parse_negation(self) -> SqlExpression:
        return _build_negation(self._parse_negation()) if self.try_read_one_of("NOT") else self._parse_comparison()

    def _parse_comparison(self) -> SqlExpression:
        left = self._parse_primary()
        if self.try_read_one_of("="):
            right = self._parse_primary()
            return lambda row: evaluate_equality(left(row), right(row))
        if self.try_read_one_of("!=", "<>"):
            other = self._parse_primary()
            return _build_negation(lambda row: evaluate_equality(left(row), other(row)))
        if self.next_token.kind == "symbol" and self.next_token.text in _ORDERS:
            return _build_order_comparison(left, self.read_token().text, self._parse_primary())
        if self.try_read_one_of("NOT"):
            return _build_negation(self._parse_in_or_between(left))
        return self._parse_in_or_between(left) if self.next_token.text.upper() in ("IN", "BETWEEN") else left

    def _parse_in_or_between(self, left: SqlExpression) -> SqlExpression:
        if self.try_read_one_of("BETWEEN"):
            low = _build_order_comparison(left, ">=", self._parse_primary())
            self.read_required_word("AND")
            bounds = [low, _build_order_comparison(left, "<=", self._parse_primary())]
            return lambda row: _evaluate_and_or(bounds, row, decisive_value=False)
        self.read_required_word("IN")
        self.read_required_word("(")
        tests = [self._parse_equality(left) for _ in self._iterate_until_closing_symbol(")")]
        if not tests:
            raise self.build_error_at_next_token()
        return lambda row: _evaluate_and_or(tests, row, decisive_value=True)

    def _parse_equality(self, left: SqlExpression) -> SqlExpression:
        right = self.parse_expression()
        return lambda row: evaluate_equality(left(row), right(row))

    def _iterate_until_closing_symbol(self, closing_symbol: str) -> Iterator[None]:
        """Yield once for each element of a list that ends with the symbol ``closing_symbol``, such as ``)``.

        The caller must parse one element in each step.
        """
        if self.try_read_one_of(closing_symbol):
            return
        while True:
            yield
            if self.try_read_one_of(closing_symbol):
                return
            self.read_required_word(",")

    def _parse_primary(self) -> SqlExpression:
        token = self.next_token
        if token.kind == "symbol":
            return self._parse_symbol_expression()
        self.read_token()
        match token.kind:
            case "number":
                return _build_constant(json.loads(token.text))
            case "string":
                return _build_constant(parse_string_literal(token.text))
            case "parameter":
                if token.text not in self.parameters:
                    raise CosmosError(
                        400, f"The parameter '{token.text}' is not in the list `parameters` of the query."
                    )
                return _build_constant(self.parameters[token.text])
            case "name" if token.text.upper() not in _RESERVED:
                return self._parse_call_path_or_constant(token)
            case _:
                raise build_syntax_error(self.text, token.start)

    def _parse_symbol_expression(self) -> SqlExpression:
        """Parse an expression that begins with a symbol: parentheses, a negative number, an array or an object."""
        if self.try_read_one_of("("):
            inner = self.parse_expression()
            self.read_required_word(")")
            return inner
        if self.try_read_one_of("-"):
            number = self.read_token()
            if number.kind != "number":
                raise build_syntax_error(self.text, number.start)
            return _build_constant(-json.loads(number.text))
        if self.try_read_one_of("["):
            elements = [self.parse_expression() for _ in self._iterate_until_closing_symbol("]")]
            return lambda row: [value for part in elements if (value := part(row)) is not UNDEFINED]
        self.read_required_word("{")
        members = [self._parse_object_property() for _ in self._iterate_until_closing_symbol("}")]
        return lambda row: {name: value for name, part in members if (value := part(row)) is not UNDEFINED}

    def _parse_object_property(self) -> NamedExpression:
        token = self.read_token()
        if token.kind not in ("string", "name"):
            raise build_syntax_error(self.text, token.start)
        self.read_required_word(":")
        name = parse_string_literal(token.text) if token.kind == "string" else token.text
        return NamedExpression(name, self.parse_expression())

    def _parse_call_path_or_constant(self, name_token: SqlToken) -> SqlExpression:
        upper = name_token.text.upper()
        if self.try_read_one_of("("):
            return self._parse_function_call(name_token, upper)
        if name_token.text == self.alias:
            return build_path_expression(self.parse_path_after_alias())
        if upper in _LITERALS:
            return _build_constant(_LITERALS[upper])
        raise CosmosError(400, f"Identifier '{name_token.text}' could not be resolved.")

    def parse_path_after_alias(self) -> DocumentPath:
        """Parse a path after the document's name, as in `c.a[0]`; return its property names and array indexes."""
        steps: list[str | int] = []
        while self.next_token.text in (".", "["):
            if self.try_read_one_of("."):
                if self.next_token.kind != "name":
                    raise self.build_error_at_next_token()
                steps.append(self.read_token().text)
                continue
            self.read_required_word("[")
            steps.append(self._parse_path_step(self.read_token()))
            self.read_required_word("]")
        return tuple(steps)

    def _parse_path_step(self, step_token: SqlToken) -> str | int:
        if step_token.kind == "string":
            return parse_string_literal(step_token.text)
        if step_token.kind == "number" and step_token.text.isdecimal():
            return int(step_token.text)
        raise build_syntax_error(self.text, step_token.start)

    def _parse_function_call(self, name_token: SqlToken, upper_name: str) -> SqlExpression:
        arguments = [self.parse_expression() for _ in self._iterate_until_closing_symbol(")")]
        if upper_name in AGGREGATES and len(arguments) == 1:
            self.aggregates.append((upper_name, arguments[0]))
            index = len(self.aggregates) - 1
            return lambda row: row.totals[index]
        fewest, most, function = FUNCTIONS.get(upper_name, (1, 0, None))
        if function is None or not fewest <= len(arguments) <= most:
            raise CosmosError(
                400,
                f"The function '{name_token.text}' with {len(arguments)} arguments is not supported by this test "
                "server.",
            )
        return lambda row: function(*(argument(row) for argument in arguments))


def build_path_expression(steps: DocumentPath) -> SqlExpression:
    """Return a function that finds the value at a path in the document of a row."""
    return lambda row: _get_value_at_path_or_undefined(row.document, steps)


def _build_constant(value: Any) -> SqlExpression:
    return lambda _: value


def _build_negation(inner: SqlExpression) -> SqlExpression:
    def evaluate_negation(row: SqlRow) -> SqlBoolean:
        value = inner(row)
        return not value if isinstance(value, bool) else UNDEFINED

    return evaluate_negation


def _build_order_comparison(left: SqlExpression, operator: str, right: SqlExpression) -> SqlExpression:
    holds = _ORDERS[operator]

    def evaluate_comparison(row: SqlRow) -> SqlBoolean:
        """Return whether the comparison of the operands is true for a row; UNDEFINED if their types have no order."""
        result = compare_values_if_ordered(left(row), right(row))
        return UNDEFINED if result is None else holds(result)

    return evaluate_comparison


def _evaluate_and_or(operands: list[SqlExpression], row: SqlRow, *, decisive_value: bool) -> SqlBoolean:
    """Evaluate operands that are joined by OR (``decisive_value`` is True) or by AND (``decisive_value`` is False).

    The result is ``decisive_value`` if an operand has this value. Otherwise, the result is undefined if an operand is
    not a boolean.
    """
    result: SqlBoolean = not decisive_value
    for part in operands:
        value: object = part(row)
        if value is decisive_value:
            return decisive_value
        if not isinstance(value, bool):
            result = UNDEFINED
    return result


def _get_value_at_path_or_undefined(value: Any, steps: DocumentPath) -> Any:
    for step in steps:
        is_index = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not is_index and not (isinstance(value, dict) and step in value):
            return UNDEFINED
        value = value[step]
    return value
