"""Model of a deployment: it evaluates a Bicep template with its parameters and lists the resources.

The model evaluates conditions, loops, names and bodies as a preview does. A value that is known only at run time
(``UNKNOWN``) makes a name unknown. A condition or loop over such a value hides its whole module, as in a preview.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from tests.infra.bicep_syntax import (
    Array,
    ArrayType,
    Call,
    Condition,
    Declaration,
    File,
    Interpolation,
    Lambda,
    Literal,
    Loop,
    Member,
    Name,
    NamedType,
    Node,
    Object,
    ObjectType,
    Operation,
    Type,
    UnionType,
    parse_file,
)

SUBSCRIPTION = "33333333-3333-3333-3333-333333333333"
TENANT = "44444444-4444-4444-4444-444444444444"


class DeploymentError(ValueError):
    """Error that the compiler or a deployment would report."""


class _Unknown:
    """Placeholder for a value that is known only while a deployment runs."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


class ShortCircuitError(Exception):
    """Error that a condition or loop depends on a value which is known only while the deployment runs."""


@dataclass(frozen=True)
class Resource:
    """Resource that a deployment creates.

    Attributes:
        type: provider and type.
        name: full name; None if it is known at run time only.
        version: version of the API.
        location: region; empty for a type without a region.
        body: the evaluated body.
        path: the template and symbol that declare it.
        id: resource id; None if the name is unknown.
        batched: True if a loop creates its resources one after another.
        after: symbols of the same template that the resource names in ``dependsOn``.
    """

    type: str
    name: str | None
    version: str
    location: str
    body: dict[str, Any]
    path: str
    id: str | None = None
    batched: bool = False
    after: frozenset[str] = frozenset()


@dataclass
class Deployment:
    """Result of evaluating a Bicep template with parameters.

    Attributes:
        resources: everything that the deployment creates.
        hidden: modules that a preview does not show.
        outputs: outputs of the main template.
    """

    resources: list[Resource] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def list_resources(self, kind: str) -> list[Resource]:
        """Return the resources of the given type."""
        return [each for each in self.resources if each.type == kind]

    def list_names(self, kind: str) -> list[str | None]:
        """Return the names of all resources of a type, in order."""
        return [each.name for each in self.list_resources(kind)]


def hash_to_unique_text(values: tuple[str, ...]) -> str:
    """Return 13 letters in place of the result of ``uniqueString`` for these values."""
    digest = hashlib.sha256("\0".join(values).encode()).digest()
    return "".join("abcdefghijklmnopqrstuvwxyz234567"[each % 32] for each in digest[:13])


@dataclass(frozen=True)
class Azure:
    """Facts about the Azure environment that Bicep functions return, for use in tests.

    Attributes:
        environment: environment variables that a parameter file reads.
        unique_text: replaces ``uniqueString``.
        hides_outputs: True if every output of a module counts as known at run time only.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    unique_text: Callable[[tuple[str, ...]], str] = hash_to_unique_text
    hides_outputs: bool = False


def evaluate_deployment(
    parameter_file: Path, environment: Mapping[str, str], overrides: Mapping[str, Any] | None = None, **azure_facts: Any
) -> Deployment:
    """Evaluate a parameter file and its template.

    Args:
        parameter_file: the ``.bicepparam`` file.
        environment: environment variables that the file reads.
        overrides: parameters that replace those of the file.
        azure_facts: further arguments of ``Azure``.

    Raises:
        DeploymentError: if the compiler or the deployment would reject the parameters.
    """
    file = parse_file(parameter_file)
    azure = Azure(environment, **azure_facts)
    scope = _Scope(file, {}, azure, "", Deployment())
    given = {each.name: scope.evaluate(_require_node(each.value)) for each in file.find_declarations("param").values()}
    template = (parameter_file.parent / file.using).resolve()
    return deploy_template(template, given | dict(overrides or {}), azure)


def deploy_template(path: Path, parameters: Mapping[str, Any], azure: Azure | None = None) -> Deployment:
    """Evaluate a Bicep template with given parameter values.

    Args:
        path: the ``.bicep`` file.
        parameters: values of the template's parameters.
        azure: facts of the environment.

    Raises:
        DeploymentError: if the compiler or the deployment would reject the parameters.
    """
    result = Deployment()
    template = parse_file(path)
    prefix = f"/subscriptions/{SUBSCRIPTION}"
    if template.scope == "resourceGroup":
        prefix += "/resourceGroups/group"
    main = _Scope(template, dict(parameters), azure or Azure(), prefix, result)
    main.evaluate_file()
    result.outputs = {name: main.evaluate_output(name) for name in template.find_declarations("output")}
    return result


def _require_node(node: Node | None) -> Node:
    assert node is not None
    return node


# Types


def find_type_violations(value: Any, kind: Type | None, file: File, path: str) -> list[str]:
    """Return each violation of a type by a value, with the path of the invalid property."""
    if value is UNKNOWN or kind is None:
        return []
    match kind:
        case NamedType(name):
            faults = _find_named_type_faults(value, name, file, path)
        case UnionType(values):
            faults = [] if value in values else [f"{path} must be one of {list(values)}"]
        case ArrayType(item) if isinstance(value, list):
            faults = [f for i, each in enumerate(value) for f in find_type_violations(each, item, file, f"{path}[{i}]")]
        case ObjectType() if isinstance(value, dict):
            faults = _find_object_faults(value, kind, file, path)
        case _:
            faults = [f"{path} must be an {'array' if isinstance(kind, ArrayType) else 'object'}"]
    return faults


def _find_object_faults(value: dict[str, Any], kind: ObjectType, file: File, path: str) -> list[str]:
    members = dict(kind.members)
    faults = [f"{path}.{name} is missing" for name in members.keys() - kind.optional - value.keys()]
    for name, each in value.items():
        if name not in members and kind.rest is None:
            faults.append(f"{path}.{name} is unknown; known are {sorted(members)}")
        else:
            faults += find_type_violations(each, members.get(name, kind.rest), file, f"{path}.{name}")
    return faults


def _find_named_type_faults(value: Any, name: str, file: File, path: str) -> list[str]:
    plain = {"string": str, "bool": bool, "int": int, "object": dict, "array": list, "any": object}
    if name in plain:
        is_right = isinstance(value, plain[name]) and not (name == "int" and isinstance(value, bool))
        return [] if is_right else [f"{path} must be of type {name}"]
    source = parse_file((file.path.parent / file.imports[name]).resolve()) if name in file.imports else file
    declared = source.find_declarations("type").get(name)
    if declared is None:
        raise DeploymentError(f"{file.path.name}: type {name} is neither built in, declared nor imported")
    return find_type_violations(value, declared.type, source, path) + _find_bound_faults(value, declared, path)


def _find_bound_faults(value: Any, declared: Declaration, path: str) -> list[str]:
    bounds: dict[str, Callable[[Any, Any], bool]] = {
        "minValue": lambda value, bound: value >= bound,
        "maxValue": lambda value, bound: value <= bound,
        "minLength": lambda value, bound: len(value) >= bound,
        "maxLength": lambda value, bound: len(value) <= bound,
        "allowed": lambda value, bound: value in bound,
    }
    faults = []
    for name, arguments in declared.decorators.items():
        if name in bounds and value is not UNKNOWN:
            bound = _evaluate_constant(arguments[0])
            if not bounds[name](value, bound):
                faults.append(f"{path} violates {name} {bound}")
    return faults


def _evaluate_constant(node: Node) -> Any:
    if isinstance(node, Array):
        return [_evaluate_constant(each) for each in node.items]
    if isinstance(node, Operation) and node.operator == "-":
        return -_evaluate_constant(node.operands[0])
    assert isinstance(node, Literal)
    return node.value


# Evaluation


@dataclass
class _Reference:
    """Reference to a resource of a template, with the properties that are known before the deployment."""

    members: dict[str, Any]


@dataclass
class _ModuleReference:
    """Reference to a module that a template uses."""

    file: str
    scope: "_Scope | None"


@dataclass(frozen=True)
class _Instance:
    """One resource or module that a declaration creates, with the current items of its loop."""

    body: Object
    local: dict[str, Any]
    is_deployed: bool

    @property
    def members(self) -> dict[str, Node]:
        """Properties of the body by name."""
        return {str(key.value): value for key, value in self.body.members if isinstance(key, Literal)}


class _Scope:
    """Evaluation of one Bicep file with its parameters."""

    def __init__(self, file: File, given: dict[str, Any], azure: Azure, id_prefix: str, result: Deployment) -> None:
        self.file = file
        self.azure = azure
        self.id_prefix = id_prefix
        self._result = result
        self._declared = {each.name: each for each in file.declarations if each.kind not in {"output", "type"}}
        self._known: dict[str, Any] = {}
        self._given = given
        names = [each.name for each in file.declarations if each.kind != "output"] + list(file.imports)
        if len(names) != len(set(names)):
            raise DeploymentError(f"{file.path.name}: a name is declared twice")
        if not file.using:
            self._check_parameters()

    def _check_parameters(self) -> None:
        parameters = self.file.find_declarations("param")
        name = self.file.path.name
        if surplus := self._given.keys() - parameters.keys():
            raise DeploymentError(f"{name} does not declare the given parameters {sorted(surplus)}")
        for each in parameters.values():
            if each.name not in self._given and each.value is None:
                raise DeploymentError(f"{name}: required parameter {each.name} has no value")
            value = self.look_up(each.name)
            faults = find_type_violations(value, each.type, self.file, each.name) + _find_bound_faults(
                value, each, each.name
            )
            if faults:
                raise DeploymentError(f"{name}: {'; '.join(faults)}")

    # Names

    def look_up(self, name: str) -> Any:
        """Return the value of a parameter, variable, resource or module that the file declares."""
        if name not in self._known:
            self._known[name] = self._resolve_name(name)
        return self._known[name]

    def _resolve_name(self, name: str) -> Any:
        if name in self.file.imports:
            source = parse_file((self.file.path.parent / self.file.imports[name]).resolve())
            return _Scope(source, {}, self.azure, self.id_prefix, Deployment()).look_up(name)
        declared = self._declared.get(name)
        if declared is None:
            raise DeploymentError(f"{self.file.path.name}: no declaration or import of {name}")
        if declared.kind == "param":
            return self._given[name] if name in self._given else self.evaluate(_require_node(declared.value))
        if declared.kind in {"resource", "module"}:
            return self._resolve_symbol(declared)
        return self.evaluate(_require_node(declared.value))

    def evaluate_output(self, name: str) -> Any:
        """Evaluate an output of the template and return its value."""
        declared = self.file.find_declarations("output").get(name)
        if declared is None:
            raise DeploymentError(f"{self.file.path.name}: no declaration of output {name}")
        return self.evaluate(_require_node(declared.value))

    # Resources and modules

    def evaluate_file(self) -> None:
        """Add all resources that the file creates to the result of the deployment."""
        for name in self.file.find_declarations("var"):
            # A variable with fail() must fail even where nothing else reads it.
            self.look_up(name)
        for each in self.file.declarations:
            if each.kind == "resource" and not each.existing:
                self._add_resources(each)
            elif each.kind == "module":
                self._add_module(each)

    def _build_instances(self, node: Node) -> list[_Instance]:
        """Return the instances of a declared resource or module; a loop has one instance for each item."""
        if not isinstance(node, Loop):
            return [self._build_instance(node, {})]
        items = self.evaluate(node.items)
        if items is UNKNOWN:
            raise ShortCircuitError(f"{self.file.path.name}: the items of a loop are known at run time only")
        locals_ = [{node.item: item} | ({node.index: index} if node.index else {}) for index, item in enumerate(items)]
        return [self._build_instance(node.body, local) for local in locals_]

    def _build_instance(self, node: Node, local: dict[str, Any]) -> _Instance:
        is_deployed = True
        if isinstance(node, Condition):
            is_deployed, node = self._is_condition_true(node.condition, local), node.body
        assert isinstance(node, Object)
        return _Instance(node, local, is_deployed)

    def _is_condition_true(self, condition: Node, local: dict[str, Any]) -> bool:
        value = self.evaluate(condition, local)
        if value is UNKNOWN:
            raise ShortCircuitError(f"{self.file.path.name}: the value of a condition is known at run time only")
        return bool(value)

    def _resolve_symbol(self, declared: Declaration) -> Any:
        node = _require_node(declared.value)
        instances = self._build_instances(node)
        if declared.kind == "module":
            found: list[Any] = [self._build_module_reference(declared, each) for each in instances]
        else:
            found = [self._build_reference(declared, each) for each in instances]
        return found if isinstance(node, Loop) else found[0]

    def _build_module_reference(self, declared: Declaration, instance: _Instance) -> _ModuleReference:
        if not instance.is_deployed:
            return _ModuleReference(declared.target, None)
        members = instance.members
        given = self.evaluate(members.get("params", Object(())), instance.local)
        prefix = self._find_scope_id(members, instance.local)
        path = (self.file.path.parent / declared.target).resolve()
        return _ModuleReference(declared.target, _Scope(parse_file(path), given, self.azure, prefix, self._result))

    def _find_scope_id(self, members: dict[str, Node], local: dict[str, Any]) -> str:
        """Return the first part of resource ids for the scope of a resource or module."""
        if "scope" not in members:
            return self.id_prefix
        scope = self.evaluate(members["scope"], local)
        return str(scope.members["id"] if isinstance(scope, _Reference) else scope["id"])

    def _add_module(self, declared: Declaration) -> None:
        found = self.look_up(declared.name)
        for each in found if isinstance(found, list) else [found]:
            if each.scope is not None:
                before = len(self._result.resources)
                try:
                    each.scope.evaluate_file()
                except ShortCircuitError as cause:
                    del self._result.resources[before:]
                    self._result.hidden.append(f"{declared.name}: {cause}")

    def _build_reference(self, declared: Declaration, instance: _Instance) -> _Reference:
        kind, _, version = declared.target.partition("@")
        members, local = instance.members, instance.local
        name = self.evaluate(members["name"], local)
        if "parent" in members:
            name = _concatenate_text([self.evaluate(members["parent"], local).members["name"], "/", name])
        prefix = self._find_scope_id(members, local)
        return _Reference(
            {"name": name, "type": kind, "apiVersion": version, "id": _build_resource_id(prefix, kind, name)}
        )

    def _add_resources(self, declared: Declaration) -> None:
        kind, _, version = declared.target.partition("@")
        for instance in self._build_instances(_require_node(declared.value)):
            if not instance.is_deployed:
                continue
            reference = self._build_reference(declared, instance).members
            plain = Object(tuple(each for each in instance.body.members if each[0] not in _REFERENCES))
            evaluated = self.evaluate(plain, instance.local)
            after = instance.members.get("dependsOn", Array(()))
            assert isinstance(after, Array)
            self._result.resources.append(
                Resource(
                    type=kind,
                    name=None if reference["name"] is UNKNOWN else reference["name"],
                    version=version,
                    location=evaluated.get("location", ""),
                    body=evaluated,
                    path=f"{self.file.path.stem}.{declared.name}",
                    id=None if reference["id"] is UNKNOWN else reference["id"],
                    batched="batchSize" in declared.decorators,
                    after=frozenset(each.name for each in after.items if isinstance(each, Name)),
                )
            )

    # Expressions

    def evaluate(self, node: Node, local: dict[str, Any] | None = None) -> Any:
        """Return the value of a Bicep expression.

        ``local`` contains the items of loops and the arguments of lambdas.
        """
        local = local or {}
        match node:
            case Literal(value):
                found: Any = value
            case Interpolation(parts):
                found = _concatenate_text([self.evaluate(each, local) for each in parts])
            case Name(name):
                found = local[name] if name in local else self.look_up(name)
            case Array(items):
                found = [self.evaluate(each, local) for each in items]
            case Object(members):
                found = {self.evaluate(key, local): self.evaluate(value, local) for key, value in members}
            case Lambda():
                found = (node, local)
            case _:
                found = self._evaluate_compound_node(node, local)
        return found

    def _evaluate_compound_node(self, node: Node, local: dict[str, Any]) -> Any:
        match node:
            case Loop():
                found = self._evaluate_loop(node, local)
            case Member():
                found = self._evaluate_member(node, local)
            case Operation():
                found = self._evaluate_operation(node, local)
            case Call():
                found = self._call_function(node, local)
            case _:
                raise DeploymentError(f"{self.file.path.name}: the model cannot evaluate {node}")
        return found

    def _evaluate_loop(self, node: Loop, local: dict[str, Any]) -> Any:
        items = self.evaluate(node.items, local)
        if items is UNKNOWN:
            return UNKNOWN
        found = []
        for index, item in enumerate(items):
            further = local | {node.item: item} | ({node.index: index} if node.index else {})
            found.append(self.evaluate(node.body, further))
        return found

    def _evaluate_member(self, node: Member, local: dict[str, Any]) -> Any:
        base, name = self.evaluate(node.base, local), self.evaluate(node.name, local)
        if base is UNKNOWN or name is UNKNOWN:
            return UNKNOWN
        if isinstance(base, _Reference):
            return base.members.get(name, UNKNOWN)
        if isinstance(base, _ModuleReference):
            return _Outputs(base) if name == "outputs" else UNKNOWN
        if isinstance(base, _Outputs):
            return base.evaluate_output(name)
        if base is None or (isinstance(base, dict) and name not in base):
            if node.safe:
                return None
            raise DeploymentError(f"{self.file.path.name}: {base} has no property {name}")
        return base[name]

    def _evaluate_operation(self, node: Operation, local: dict[str, Any]) -> Any:
        operator, (first, *others) = node.operator, node.operands
        value = self.evaluate(first, local)
        if operator == "?":
            return UNKNOWN if value is UNKNOWN else self.evaluate(others[0 if value else 1], local)
        if operator == "??":
            return self.evaluate(others[0], local) if value is None else value
        if operator in {"&&", "||"} and value is not UNKNOWN and bool(value) == (operator == "||"):
            return value
        values = [value, *(self.evaluate(each, local) for each in others)]
        if any(each is UNKNOWN for each in values):
            return UNKNOWN
        return _OPERATORS[operator, len(values)](*values)

    def _call_function(self, node: Call, local: dict[str, Any]) -> Any:
        if node.function in self._declared or node.function in self.file.imports:
            return self._call_user_function(node, local)
        values = [self.evaluate(each, local) for each in node.arguments]
        if node.function in _CONTEXT_FUNCTIONS:
            return _CONTEXT_FUNCTIONS[node.function](self, *values)
        if node.function not in _FUNCTIONS:
            raise DeploymentError(f"{self.file.path.name}: function {node.function} is unknown to the model")
        if any(each is UNKNOWN for each in values):
            return UNKNOWN
        return _FUNCTIONS[node.function](*values)

    def _call_user_function(self, node: Call, local: dict[str, Any]) -> Any:
        source: _Scope = self
        if node.function in self.file.imports:
            file = parse_file((self.file.path.parent / self.file.imports[node.function]).resolve())
            source = _Scope(file, {}, self.azure, self.id_prefix, Deployment())
        declared = source._declared[node.function]
        values = [self.evaluate(each, local) for each in node.arguments]
        return source.evaluate(_require_node(declared.value), dict(zip(declared.parameters, values, strict=True)))

    def call_lambda(self, function: tuple[Lambda, dict[str, Any]], *values: Any) -> Any:
        """Return the value of a lambda for given arguments."""
        node, local = function
        return self.evaluate(node.body, local | dict(zip(node.parameters, values, strict=False)))

    def read_text_file(self, path: str) -> str:
        """Return the text of a file in the template's folder."""
        return (self.file.path.parent / path).read_text(encoding="utf-8")


_REFERENCES = {Literal("parent"), Literal("scope"), Literal("dependsOn")}


@dataclass(frozen=True)
class _Outputs:
    """Outputs of a module; a module that is not deployed has no outputs."""

    module: _ModuleReference

    def evaluate_output(self, name: str) -> Any:
        """Return the value of a module's output."""
        if self.module.scope is None:
            raise DeploymentError(
                f"output {name} of {self.module.file} is used, but a false condition omits this module"
            )
        if self.module.scope.azure.hides_outputs:
            return UNKNOWN
        try:
            return self.module.scope.evaluate_output(name)
        except ShortCircuitError:
            return UNKNOWN


def _concatenate_text(parts: list[Any]) -> Any:
    return UNKNOWN if any(each is UNKNOWN for each in parts) else "".join(_to_text(each) for each in parts)


def _to_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _build_resource_id(prefix: str, kind: str, name: Any) -> Any:
    if name is UNKNOWN:
        return UNKNOWN
    if kind == "Microsoft.Resources/resourceGroups":
        return f"{prefix}/resourceGroups/{name}"
    provider, *types = kind.split("/")
    names = name.split("/")
    if len(types) != len(names):
        raise DeploymentError(f"{kind}: name {name} must have one part for each part of the type")
    return f"{prefix}/providers/{provider}/" + "/".join(f"{a}/{b}" for a, b in zip(types, names, strict=True))


_OPERATORS: dict[tuple[str, int], Callable[..., Any]] = {
    ("!", 1): lambda a: not a,
    ("-", 1): lambda a: -a,
    ("==", 2): lambda a, b: a == b,
    ("!=", 2): lambda a, b: a != b,
    ("=~", 2): lambda a, b: a.lower() == b.lower(),
    ("!~", 2): lambda a, b: a.lower() != b.lower(),
    ("<", 2): lambda a, b: a < b,
    ("<=", 2): lambda a, b: a <= b,
    (">", 2): lambda a, b: a > b,
    (">=", 2): lambda a, b: a >= b,
    ("&&", 2): lambda a, b: a and b,
    ("||", 2): lambda a, b: a or b,
    ("+", 2): lambda a, b: a + b,
    ("-", 2): lambda a, b: a - b,
    ("*", 2): lambda a, b: a * b,
    ("/", 2): lambda a, b: a // b,
    ("%", 2): lambda a, b: a % b,
}


def _merge_values(*values: Any) -> Any:
    if isinstance(values[0], dict):
        return reduce(lambda a, b: a | b, values)
    found: list[Any] = []
    for each in [item for value in values for item in value]:
        if each not in found:
            found.append(each)
    return found


def _contains_item(container: Any, item: Any) -> bool:
    return item in container


def _get_substring(text: str, start: int, length: int | None = None) -> str:
    return text[start:] if length is None else text[start : start + length]


def _format_text(pattern: str, *values: Any) -> str:
    return re.sub(r"\{(\d+)\}", lambda found: _to_text(values[int(found[1])]), pattern)


def _compute_guid(*values: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "-".join(values)))


def _fail_deployment(text: str) -> Any:
    raise DeploymentError(text)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "any": lambda value: value,
    "concat": lambda *values: (
        "".join(values) if isinstance(values[0], str) else [item for value in values for item in value]
    ),
    "contains": _contains_item,
    "empty": lambda value: not value,
    "endsWith": lambda text, end: text.lower().endswith(end.lower()),
    "fail": _fail_deployment,
    "first": lambda value: value[0] if value else None,
    "flatten": lambda values: [item for value in values for item in value],
    "format": _format_text,
    "guid": _compute_guid,
    "indexOf": lambda container, item: container.find(item) if isinstance(container, str) else container.index(item),
    "int": int,
    "items": lambda value: [{"key": key, "value": each} for key, each in sorted(value.items())],
    "join": lambda values, separator: separator.join(_to_text(each) for each in values),
    "json": json.loads,
    "last": lambda value: value[-1] if value else None,
    "length": len,
    "max": lambda *values: max(values[0] if isinstance(values[0], list) else values),
    "min": lambda *values: min(values[0] if isinstance(values[0], list) else values),
    "range": lambda start, count: list(range(start, start + count)),
    "replace": lambda text, old, new: text.replace(old, new),
    "skip": lambda value, count: value[count:],
    "split": lambda text, separator: text.split(separator),
    "startsWith": lambda text, start: text.lower().startswith(start.lower()),
    "string": lambda value: value if isinstance(value, str) else json.dumps(value, separators=(",", ":")),
    "substring": _get_substring,
    "take": lambda value, count: value[:count],
    "toLower": str.lower,
    "toUpper": str.upper,
    "trim": str.strip,
    "union": _merge_values,
}


def _read_environment_variable(scope: _Scope, name: str, default: str | None = None) -> str:
    value = scope.azure.environment.get(name, default)
    if value is None:
        raise DeploymentError(f"{scope.file.path.name}: environment variable {name} is missing")
    return value


def _map_items(scope: _Scope, items: Any, function: Any) -> Any:
    return UNKNOWN if items is UNKNOWN else [scope.call_lambda(function, each) for each in items]


def _filter_items(scope: _Scope, items: Any, function: Any) -> Any:
    if items is UNKNOWN:
        return UNKNOWN
    verdicts = [scope.call_lambda(function, each) for each in items]
    if any(each is UNKNOWN for each in verdicts):
        return UNKNOWN
    return [each for each, verdict in zip(items, verdicts, strict=True) if verdict]


def _to_object(scope: _Scope, items: Any, key: Any, value: Any = None) -> Any:
    if items is UNKNOWN:
        return UNKNOWN
    pairs = [(scope.call_lambda(key, each), scope.call_lambda(value, each) if value else each) for each in items]
    return UNKNOWN if any(key is UNKNOWN for key, _ in pairs) else dict(pairs)


def _call_resource_id(scope: _Scope, *values: Any) -> Any:
    """Return the resource id that the Bicep function ``resourceId`` returns."""
    at = 0 if "/" in values[0] else 1
    prefix = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{values[0]}" if at else scope.id_prefix
    return _build_resource_id(
        prefix, values[at], _concatenate_text([x for each in values[at + 1 :] for x in ("/", each)][1:])
    )


def _build_subscription_resource_id(_: _Scope, kind: str, name: Any) -> Any:
    return _build_resource_id(f"/subscriptions/{SUBSCRIPTION}", kind, name)


def _describe_resource_group(scope: _Scope, name: str = "") -> dict[str, Any]:
    if name:
        return {"id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}", "name": name}
    return {"id": scope.id_prefix, "name": scope.id_prefix.rpartition("/")[2], "location": UNKNOWN}


def _compute_unique_string(scope: _Scope, *values: Any) -> Any:
    return UNKNOWN if any(each is UNKNOWN for each in values) else scope.azure.unique_text(values)


_CONTEXT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    # A preview does not evaluate it; every cloud that the templates name so far has this suffix.
    "environment": lambda _: {"suffixes": {"storage": "core.windows.net"}},
    "filter": _filter_items,
    "loadJsonContent": lambda scope, path: json.loads(scope.read_text_file(path)),
    "loadTextContent": lambda scope, path: scope.read_text_file(path),
    "map": _map_items,
    "readEnvironmentVariable": _read_environment_variable,
    "resourceGroup": _describe_resource_group,
    "resourceId": _call_resource_id,
    "subscription": lambda _: {"id": f"/subscriptions/{SUBSCRIPTION}", "subscriptionId": SUBSCRIPTION},
    "subscriptionResourceId": _build_subscription_resource_id,
    "tenant": lambda _: {"tenantId": TENANT},
    "toObject": _to_object,
    "uniqueString": _compute_unique_string,
}
