"""Parsed Bicep templates with functions that look up their declarations."""

import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.infra.bicep_syntax import (
    Array,
    Call,
    Condition,
    Declaration,
    File,
    Interpolation,
    Literal,
    Loop,
    Name,
    Node,
    Object,
    Operation,
    parse_file,
)

BICEP = Path(__file__).parents[2] / "infra" / "bicep"
_OPAQUE = (Call, Operation)
_ALL_CAPITALS_BUT_THE_LAST = re.compile(r"^[A-Z]+(?=[A-Z])")


class Template:
    """Bicep template with access to its declarations.

    Args:
        path: path of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    @property
    def file(self) -> File:
        """Syntax tree of the template's file."""
        return parse_file(self.path)

    @property
    def required(self) -> set[str]:
        """Names of the parameters that have no default value."""
        return {name for name, each in self.file.find_declarations("param").items() if each.value is None}

    @property
    def parameters(self) -> set[str]:
        """Names of all parameters."""
        return set(self.file.find_declarations("param"))

    @property
    def outputs(self) -> set[str]:
        """Names of the outputs."""
        return set(self.file.find_declarations("output"))

    def read_variable(self, name: str) -> Any:
        """Return the plain value of a variable in the template."""
        return self.to_plain_value(self.file.find_declarations("var")[name].value)

    def iterate_resources(self) -> Iterator[tuple[str, str, Object]]:
        """Yield symbol, type with version, and body of each resource in the file."""
        for symbol, each in self.file.find_declarations("resource").items():
            if not each.existing:
                yield symbol, each.target, get_body(each)

    def find_resource_body(self, symbol: str) -> Any:
        """Return the body of the resource with the given symbol."""
        return self.to_plain_value(get_body(self.file.find_declarations("resource")[symbol]))

    def iterate_modules(self) -> Iterator[tuple[str, Path, set[str]]]:
        """Yield symbol, file and parameter names of each module that the file uses."""
        for symbol, each in self.file.find_declarations("module").items():
            parameters = get_property(get_body(each), "params")
            assert isinstance(parameters, Object), f"{self.path.name}: {symbol}"
            names = {str(key.value) for key, _ in parameters.members if isinstance(key, Literal)}
            yield symbol, (self.path.parent / each.target).resolve(), names

    def list_possible_names(self, declared: Declaration) -> set[str]:
        """Return the last part of each name that a resource can have; a loop over texts gives several names.

        Raises:
            TypeError: if the loop is over anything else, because its names would be missed.
        """
        name = get_property(get_body(declared), "name")
        if not isinstance(declared.value, Loop):
            return {str(self.to_plain_value(name)).rsplit("/", 1)[-1]}
        items = self.to_plain_value(self._resolve_node(declared.value.items))
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise TypeError(f"{self.path.name}: {declared.name} has a loop whose names are known only after evaluation")
        return set(items)

    def to_plain_value(self, node: Node | None) -> Any:
        """Convert an expression to texts, numbers, lists and objects; names become texts, calls stay nodes."""
        match node:
            case Literal(value):
                return value
            case Name(name):
                return name
            case Interpolation(parts):
                return "".join(_render_source(each) for each in parts)
            case Array(items):
                return [self.to_plain_value(each) for each in items]
            case Object(members):
                return {self.to_plain_value(key): self.to_plain_value(value) for key, value in members}
            case _:
                return node

    def iterate_property_names(self, node: Node) -> Iterator[str]:
        """Yield all property names of the objects in an expression, in all branches, loops and variables."""
        match node:
            case Object(members):
                for key, value in members:
                    yield str(self.to_plain_value(key))
                    yield from self.iterate_property_names(value)
            case Array(items):
                for each in items:
                    yield from self.iterate_property_names(each)
            case Loop(body=inner) | Condition(body=inner):
                yield from self.iterate_property_names(inner)
            case Operation("?", (_, true, false)):
                yield from self.iterate_property_names(true)
                yield from self.iterate_property_names(false)
            case Call("union" | "concat" | "filter", arguments):
                for each in arguments:
                    yield from self.iterate_property_names(each)
            case Name() if (resolved := self._resolve_node(node)) is not node:
                yield from self.iterate_property_names(resolved)

    def _resolve_node(self, node: Node) -> Node:
        declared = self.file.find_declarations("var").get(node.name) if isinstance(node, Name) else None
        return declared.value if declared is not None and declared.value is not None else node


class Templates:
    """All template files of a folder.

    Args:
        folder: folder of the templates.
    """

    def __init__(self, folder: Path = BICEP) -> None:
        self.folder = folder

    @cached_property
    def all(self) -> list[Template]:
        """All templates of the folder."""
        return [Template(path) for path in sorted(self.folder.glob("**/*.bicep"))]

    def find_template(self, name: str) -> Template:
        """Return the template of a file by the file's name without suffix."""
        return next(each for each in self.all if each.path.stem == name)

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def list_resource_names(self, template: str, kind: str) -> set[str]:
        """Return the last part of the name of each resource of this type that the template creates.

        Loops over parameters are left out, because their names depend on the values of the parameters.
        """
        source = self.find_template(template)
        found: set[str] = set()
        for each in source.file.find_declarations("resource").values():
            if not each.existing and each.target.partition("@")[0] == kind and not _loops_over_parameter(source, each):
                found |= source.list_possible_names(each)
        return found


def _loops_over_parameter(source: Template, declared: Declaration) -> bool:
    """Return whether a loop is over a parameter or over a filtered parameter."""
    items = declared.value.items if isinstance(declared.value, Loop) else None
    if not isinstance(items, Name):
        return False
    resolved = source._resolve_node(items)
    return items.name in source.parameters or isinstance(resolved, _OPAQUE)


def to_returned_name(output: str) -> str:
    """Return the name under which Azure Resource Manager returns an output: ``APP_URL`` becomes ``apP_URL``.

    Source: https://github.com/Azure/bicep/issues/9360
    """
    return _ALL_CAPITALS_BUT_THE_LAST.sub(lambda found: found[0].lower(), output)


def get_body(declared: Declaration) -> Object:
    """Return the object literal of a resource or module, without condition and loop."""
    node = declared.value
    while isinstance(node, Condition | Loop):
        node = node.body
    assert isinstance(node, Object), declared.name
    return node


def get_property(node: Object, name: str) -> Node:
    """Return the value of a property of an object."""
    return next(value for key, value in node.members if key == Literal(name))


def _render_source(node: Node) -> str:
    if isinstance(node, Literal):
        return str(node.value)
    return "${" + (node.name if isinstance(node, Name) else "...") + "}"
