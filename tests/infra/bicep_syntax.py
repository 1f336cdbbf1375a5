"""Parser for Bicep templates and parameter files, which rejects unknown constructs."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path


class BicepSyntaxError(ValueError):
    """Error that a template contains a construct that the parser does not know."""


@dataclass(frozen=True)
class Literal:
    """Literal value: a text without interpolation, a number, a boolean or null."""

    value: str | int | bool | None


@dataclass(frozen=True)
class Interpolation:
    """String literal with expressions in the text, such as `'${name}-hub'`."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Name:
    """Name of a parameter, variable, symbol or loop item."""

    name: str


@dataclass(frozen=True)
class Call:
    """Function call with its arguments."""

    function: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True)
class Member:
    """Access to a property of a value; ``safe`` is true for the operator ``.?``."""

    base: "Node"
    name: "Node"
    safe: bool = False


@dataclass(frozen=True)
class Operation:
    """Operator with its operands; ``?`` is the ternary operator."""

    operator: str
    operands: tuple["Node", ...]


@dataclass(frozen=True)
class Lambda:
    """Lambda expression: a function without a name."""

    parameters: tuple[str, ...]
    body: "Node"


@dataclass(frozen=True)
class Array:
    """Array literal: items in brackets."""

    items: tuple["Node", ...]


@dataclass(frozen=True)
class Object:
    """Object literal, whose keys may be interpolated."""

    members: tuple[tuple["Node", "Node"], ...]


@dataclass(frozen=True)
class Loop:
    """Loop ``[for item in items: body]``; the name of its index is empty if it has none."""

    item: str
    index: str
    items: "Node"
    body: "Node"


@dataclass(frozen=True)
class Condition:
    """Condition ``if (condition) body`` of a resource or module."""

    condition: "Node"
    body: "Node"


type Node = Literal | Interpolation | Name | Call | Member | Operation | Lambda | Array | Object | Loop | Condition


@dataclass(frozen=True)
class NamedType:
    """Built-in type, or a type that a file declares."""

    name: str


@dataclass(frozen=True)
class ArrayType:
    """Type of an array whose items have one type."""

    item: "Type"


@dataclass(frozen=True)
class UnionType:
    """Type that is a union of literal values."""

    values: tuple[str | int | bool | None, ...]


@dataclass(frozen=True)
class ObjectType:
    """Object type: its properties, the names of ``optional`` properties, and the type of additional properties."""

    members: tuple[tuple[str, "Type"], ...]
    optional: frozenset[str]
    rest: "Type | None" = None


type Type = NamedType | ArrayType | UnionType | ObjectType


@dataclass(frozen=True)
class Declaration:
    """Statement that declares a parameter, variable, resource, module, output, type or function.

    Attributes:
        kind: its keyword: param, var, output, resource, module, type, func.
        name: the name that it declares.
        target: type and version of a resource, or path of a module; otherwise empty.
        value: its expression; None for a type and for a parameter without default.
        type: type of a parameter, output or function, or the declared type; otherwise None.
        existing: True if a resource is only referenced.
        decorators: arguments by decorator.
        parameters: names of a function's parameters.
    """

    kind: str
    name: str
    target: str = ""
    value: Node | None = None
    type: Type | None = None
    existing: bool = False
    decorators: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """Parsed Bicep file.

    Attributes:
        path: path of the file.
        scope: resourceGroup or subscription.
        declarations: declarations in the order of the file.
        imports: path of the file for each imported name.
        using: for a parameter file, the path of its template; otherwise empty.
    """

    path: Path
    scope: str
    declarations: tuple[Declaration, ...]
    imports: dict[str, str]
    using: str

    def find_declarations(self, kind: str) -> dict[str, Declaration]:
        """Return the declarations of a kind, for example resources, by name."""
        return {each.name: each for each in self.declarations if each.kind == kind}


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|//[^\n]*|/\*.*?\*/|\#disable[^\n]*)
    |(?P<newline>\n)
    |(?P<multiline>'''.*?''')
    |(?P<quote>')
    |(?P<int>\d+)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>=>|==|!=|=~|!~|<=|>=|&&|\|\||\?\?|\.\?|[-+*/%<>!?:.,=|@()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\'": "'", "\\\\": "\\", "\\$": "$"}
_PRECEDENCE = (("??",), ("||",), ("&&",), ("==", "!=", "=~", "!~"), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_CONSTANTS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int
    parts: tuple[Node, ...] = ()


@cache
def parse_file(path: Path) -> File:
    """Parse a Bicep file.

    Raises:
        BicepSyntaxError: if the file has a construct that the parser does not know.
    """
    try:
        return _Parser(_tokenize(path.read_text(encoding="utf-8"))).parse_statements(path)
    except BicepSyntaxError as error:
        raise BicepSyntaxError(f"{path.name}: {error}") from error


def parse_expression(text: str) -> Node:
    """Parse one Bicep expression."""
    parser = _Parser(_tokenize(text))
    node = parser.parse_expression()
    parser.expect("end")
    return node


def _tokenize(text: str) -> list[_Token]:
    tokens, at, line = [], 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise BicepSyntaxError(f"line {line}: unknown character {text[at]!r}")
        kind, value = str(found.lastgroup), found[0]
        if kind == "quote":
            token, at = _read_quoted_text(text, found.end(), line)
            tokens.append(token)
            continue
        if kind == "multiline":
            tokens.append(_Token("text", value, line, (Literal(value[3:-3].removeprefix("\n")),)))
        elif kind != "space":
            tokens.append(_Token(value if kind == "sign" else kind, value, line))
        line += value.count("\n")
        at = found.end()
    return [*tokens, _Token("newline", "\n", line), _Token("end", "", line)]


def _read_quoted_text(text: str, at: int, line: int) -> tuple[_Token, int]:
    """Return the quoted text at an offset, and the offset after it."""
    parts: list[Node] = []
    plain = ""
    while at < len(text) and text[at] != "'":
        if text[at] == "\n":
            break
        if text.startswith("${", at):
            end = _find_closing_brace(text, at + 2)
            parts += [Literal(plain), parse_expression(text[at + 2 : end])]
            plain, at = "", end + 1
        elif text[at] == "\\":
            plain += _ESCAPES[text[at : at + 2]]
            at += 2
        else:
            plain += text[at]
            at += 1
    if at >= len(text) or text[at] != "'":
        raise BicepSyntaxError(f"line {line}: a quoted text has no closing quote")
    return _Token("text", "", line, (*parts, Literal(plain))), at + 1


def _find_closing_brace(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if text[at] == "'":
            at = _read_quoted_text(text, at + 1, 0)[1]
            continue
        if text[at] == "}" and depth == 0:
            return at
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    raise BicepSyntaxError("an interpolation in a text has no closing brace")


class _Parser:
    """Recursive-descent parser over the tokens of one file."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    # Tokens

    def _peek_token(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _read_token(self) -> _Token:
        token = self._peek_token()
        self._at += 1
        return token

    def _read_token_of_kind(self, kind: str) -> bool:
        if self._peek_token().kind == kind:
            self._at += 1
            return True
        return False

    def expect(self, kind: str) -> _Token:
        """Return the next token; raise an error if it does not have the expected kind."""
        if kind == "end":
            self._skip_lines()
        token = self._read_token()
        if token.kind != kind:
            raise BicepSyntaxError(f"line {token.line}: expected {kind}, found {token.text or token.kind!r}")
        return token

    def _skip_lines(self) -> None:
        while self._read_token_of_kind("newline"):
            pass

    def _read_token_if(self, kind: str) -> bool:
        """Skip empty lines; if the next token has this kind, consume it and return True."""
        self._skip_lines()
        return self._read_token_of_kind(kind)

    def _parse_plain_text(self) -> str:
        token = self.expect("text")
        [part] = token.parts
        return str(part.value) if isinstance(part, Literal) else ""

    def _read_word(self, text: str) -> bool:
        token = self._peek_token()
        if (token.kind, token.text) == ("name", text):
            self._at += 1
            return True
        return False

    # Statements

    def parse_statements(self, path: Path) -> File:
        """Parse all statements of a file."""
        scope, using = "resourceGroup", ""
        imports: dict[str, str] = {}
        declarations: list[Declaration] = []
        while not self._read_token_if("end"):
            decorators = self._parse_decorators()
            keyword = self.expect("name").text
            if keyword == "targetScope":
                self.expect("=")
                scope = self._parse_plain_text()
            elif keyword == "using":
                using = self._parse_plain_text()
            elif keyword == "import":
                imports |= self._parse_imports()
            elif keyword in _STATEMENTS:
                declarations.append(_STATEMENTS[keyword](self, decorators))
            else:
                raise BicepSyntaxError(
                    f"line {self._peek_token().line}: {keyword} does not begin a statement that the parser knows"
                )
            self.expect("newline")
        return File(path, scope, tuple(declarations), imports, using)

    def _parse_decorators(self) -> dict[str, tuple[Node, ...]]:
        found = {}
        while self._read_token_of_kind("@"):
            name = self.expect("name").text
            found[name] = self._parse_arguments()
            self._skip_lines()
        return found

    def _parse_imports(self) -> dict[str, str]:
        self.expect("{")
        names = []
        while not self._read_token_if("}"):
            names.append(self.expect("name").text)
            self._read_token_of_kind(",")
        if not self._read_word("from"):
            raise BicepSyntaxError(f"line {self._peek_token().line}: the keyword `from` must follow the imported names")
        path = self._parse_plain_text()
        return dict.fromkeys(names, path)

    def _parse_param(self, decorators: dict[str, tuple[Node, ...]]) -> Declaration:
        name = self.expect("name").text
        kind = None if self._peek_token().kind == "=" else self.parse_type()
        value = self.parse_expression() if self._read_token_of_kind("=") else None
        return Declaration("param", name, value=value, type=kind, decorators=decorators)

    def _parse_var(self, decorators: dict[str, tuple[Node, ...]]) -> Declaration:
        name = self.expect("name").text
        self.expect("=")
        return Declaration("var", name, value=self._parse_value(), decorators=decorators)

    def _parse_output(self, decorators: dict[str, tuple[Node, ...]]) -> Declaration:
        name, kind = self.expect("name").text, self.parse_type()
        self.expect("=")
        return Declaration("output", name, value=self._parse_value(), type=kind, decorators=decorators)

    def _parse_resource(self, decorators: dict[str, tuple[Node, ...]]) -> Declaration:
        name, target, existing = self.expect("name").text, self._parse_plain_text(), self._read_word("existing")
        self.expect("=")
        return Declaration("resource", name, target, self._parse_value(), existing=existing, decorators=decorators)

    def _parse_module(self, decorators: dict[str, tuple[Node, ...]]) -> Declaration:
        name, target = self.expect("name").text, self._parse_plain_text()
        self.expect("=")
        return Declaration("module", name, target, self._parse_value(), decorators=decorators)

    def _parse_declared_type(self, decorators: dict[str, tuple[Node, ...]]) -> Declaration:
        name = self.expect("name").text
        self.expect("=")
        return Declaration("type", name, type=self.parse_type(), decorators=decorators)

    def _parse_func(self, decorators: dict[str, tuple[Node, ...]]) -> Declaration:
        name = self.expect("name").text
        self.expect("(")
        parameters = []
        while not self._read_token_of_kind(")"):
            parameters.append(self.expect("name").text)
            self.parse_type()
            self._read_token_of_kind(",")
        kind = self.parse_type()
        self.expect("=>")
        body = self.parse_expression()
        return Declaration("func", name, value=body, type=kind, decorators=decorators, parameters=tuple(parameters))

    def _parse_value(self) -> Node:
        """Parse an expression, a loop, or a body with a condition."""
        if self._read_word("if"):
            self.expect("(")
            condition = self.parse_expression()
            self.expect(")")
            return Condition(condition, self._parse_value())
        return self.parse_expression()

    # Types

    def parse_type(self) -> Type:
        """Parse the type of a parameter or property."""
        first = self._parse_suffixed_type()
        if self._peek_token().kind != "|":
            return first
        options = [first]
        while self._read_token_of_kind("|"):
            options.append(self._parse_suffixed_type())
        values = [value for each in options if isinstance(each, UnionType) for value in each.values]
        if len(values) != len(options):
            raise BicepSyntaxError(f"line {self._peek_token().line}: a union type may contain only literals")
        return UnionType(tuple(values))

    def _parse_suffixed_type(self) -> Type:
        found = self._parse_primary_type()
        while self._peek_token().kind == "[" and self._peek_token(1).kind == "]":
            self._at += 2
            found = ArrayType(found)
        return found

    def _parse_primary_type(self) -> Type:
        token = self._read_token()
        if token.kind == "name":
            return UnionType((_CONSTANTS[token.text],)) if token.text in _CONSTANTS else NamedType(token.text)
        if token.kind == "text":
            [part] = token.parts
            return UnionType((part.value,)) if isinstance(part, Literal) else UnionType(())
        if token.kind == "int":
            return UnionType((int(token.text),))
        if token.kind == "(":
            found = self.parse_type()
            self.expect(")")
            return found
        if token.kind == "{":
            return self._parse_object_type()
        raise BicepSyntaxError(f"line {token.line}: expected a type, found {token.text!r}")

    def _parse_object_type(self) -> ObjectType:
        members: list[tuple[str, Type]] = []
        optional = set()
        rest: Type | None = None
        while not self._read_token_if("}"):
            self._parse_decorators()
            if self._read_token_of_kind("*"):
                self.expect(":")
                rest = self.parse_type()
            else:
                name = self._parse_plain_text() if self._peek_token().kind == "text" else self.expect("name").text
                self.expect(":")
                members.append((name, self.parse_type()))
                if self._read_token_of_kind("?"):
                    optional.add(name)
            self._read_token_of_kind(",")
        return ObjectType(tuple(members), frozenset(optional), rest)

    # Expressions

    def parse_expression(self) -> Node:
        """Parse the expression that begins at the current token."""
        if (parameters := self._parse_lambda_parameters()) is not None:
            return Lambda(parameters, self.parse_expression())
        condition = self._parse_binary(0)
        if not self._read_token_of_kind("?"):
            return condition
        true = self.parse_expression()
        self.expect(":")
        return Operation("?", (condition, true, self.parse_expression()))

    def _parse_lambda_parameters(self) -> tuple[str, ...] | None:
        if self._peek_token().kind == "name" and self._peek_token(1).kind == "=>":
            name = self._read_token().text
            self._at += 1
            return (name,)
        ahead, names = 1, []
        if self._peek_token().kind == "(":
            while self._peek_token(ahead).kind == "name":
                names.append(self._peek_token(ahead).text)
                ahead += 1 + (self._peek_token(ahead + 1).kind == ",")
            if self._peek_token(ahead).kind == ")" and self._peek_token(ahead + 1).kind == "=>":
                self._at += ahead + 2
                return tuple(names)
        return None

    def _parse_binary(self, level: int) -> Node:
        if level == len(_PRECEDENCE):
            return self._parse_unary()
        left = self._parse_binary(level + 1)
        while self._peek_token().kind in _PRECEDENCE[level]:
            operator = self._read_token().kind
            left = Operation(operator, (left, self._parse_binary(level + 1)))
        return left

    def _parse_unary(self) -> Node:
        if self._peek_token().kind in {"!", "-"}:
            return Operation(self._read_token().kind, (self._parse_unary(),))
        node = self._parse_primary()
        while self._peek_token().kind in {".", ".?", "[", "!"}:
            sign = self._read_token().kind
            if sign == "[":
                node = Member(node, self.parse_expression())
                self.expect("]")
            elif sign != "!":
                node = Member(node, Literal(self.expect("name").text), safe=sign == ".?")
        return node

    def _parse_primary(self) -> Node:
        token = self._read_token()
        match token.kind:
            case "text":
                node: Node = token.parts[0] if len(token.parts) == 1 else Interpolation(token.parts)
            case "int":
                node = Literal(int(token.text))
            case "name" if token.text in _CONSTANTS:
                node = Literal(_CONSTANTS[token.text])
            case "name":
                node = Call(token.text, self._parse_arguments()) if self._peek_token().kind == "(" else Name(token.text)
            case "(":
                node = self.parse_expression()
                self.expect(")")
            case "[":
                node = self._parse_array()
            case "{":
                node = self._parse_object()
            case _:
                raise BicepSyntaxError(f"line {token.line}: expected an expression, found {token.text!r}")
        return node

    def _parse_arguments(self) -> tuple[Node, ...]:
        self.expect("(")
        found = []
        while not self._read_token_if(")"):
            found.append(self.parse_expression())
            self._skip_lines()
            if self._peek_token().kind != ")":
                self.expect(",")
        return tuple(found)

    def _parse_array(self) -> Node:
        self._skip_lines()
        if self._read_word("for"):
            return self._parse_loop()
        found = []
        while not self._read_token_if("]"):
            found.append(self.parse_expression())
            if self._peek_token().kind not in {"newline", "]"}:
                self.expect(",")
        return Array(tuple(found))

    def _parse_loop(self) -> Loop:
        index = ""
        if self._read_token_of_kind("("):
            item = self.expect("name").text
            self.expect(",")
            index = self.expect("name").text
            self.expect(")")
        else:
            item = self.expect("name").text
        if not self._read_word("in"):
            raise BicepSyntaxError(f"line {self._peek_token().line}: the keyword `in` must follow the names of a loop")
        items = self.parse_expression()
        self.expect(":")
        self._skip_lines()
        body = self._parse_value()
        self._skip_lines()
        self.expect("]")
        return Loop(item, index, items, body)

    def _parse_object(self) -> Object:
        members: list[tuple[Node, Node]] = []
        while not self._read_token_if("}"):
            token = self._peek_token()
            key = self._parse_primary() if token.kind == "text" else Literal(self.expect("name").text)
            self.expect(":")
            members.append((key, self._parse_value()))
            if self._peek_token().kind not in {"newline", "}"}:
                self.expect(",")
        return Object(tuple(members))


_STATEMENTS: dict[str, Callable[[_Parser, dict[str, tuple[Node, ...]]], Declaration]] = {
    "param": _Parser._parse_param,
    "var": _Parser._parse_var,
    "output": _Parser._parse_output,
    "resource": _Parser._parse_resource,
    "module": _Parser._parse_module,
    "type": _Parser._parse_declared_type,
    "func": _Parser._parse_func,
}
