"""Tests that the Functions host accepts the functions of the app.

The rules are those of ``ScriptHost.ValidateFunction``, ``ValidateHttpFunction`` and ``HttpRoutesConflict`` and of
``Utility.FunctionNameValidationRegex`` and ``BindingNameValidationRegex`` in Azure/azure-functions-host.
"""

import re
from collections import Counter
from typing import Any

import azure.functions as func
import pytest

from functions import BLUEPRINTS

FUNCTION_NAME = re.compile(r"(?!host$)[a-z][a-z0-9_\-]{0,127}", re.IGNORECASE)
BINDING_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]{0,127}|\$return")
RESERVED_PREFIXES = ("admin", "runtime")

type Bindings = list[dict[str, Any]]


@pytest.fixture(scope="module")
def function_bindings() -> dict[str, Bindings]:
    """Return the bindings of each function of the app, by function name."""
    app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
    for blueprint in BLUEPRINTS:
        app.register_functions(blueprint)
    # The call raises an error if two functions have the same name.
    return {str(each.get_function_name()): each.get_bindings_dict()["bindings"] for each in app.get_functions()}


def find_http_triggers(function_bindings: dict[str, Bindings]) -> list[dict[str, Any]]:
    return [binding for each in function_bindings.values() for binding in each if binding["type"] == "httpTrigger"]


def test_function_names_are_valid(function_bindings: dict[str, Bindings]) -> None:
    """A function name begins with a letter, has only letters, digits, ``_`` and ``-``, and is not ``host``."""
    assert [name for name in function_bindings if not FUNCTION_NAME.fullmatch(name)] == []


def test_function_names_are_unique(function_bindings: dict[str, Bindings]) -> None:
    """Function names are unique without regard to letter case."""
    assert len({name.lower() for name in function_bindings}) == len(function_bindings)


def test_binding_names_are_valid(function_bindings: dict[str, Bindings]) -> None:
    """A binding name begins with a letter and has only letters and digits."""
    names = {binding["name"] for each in function_bindings.values() for binding in each}
    assert [name for name in names if not BINDING_NAME.fullmatch(name)] == []


def test_each_function_has_one_trigger(function_bindings: dict[str, Bindings]) -> None:
    """A function has exactly one trigger binding."""
    counts = {
        name: sum(str(each["type"]).lower().endswith("trigger") for each in found)
        for name, found in function_bindings.items()
    }
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_http_routes_are_unique(function_bindings: dict[str, Bindings]) -> None:
    """Routes are unique without regard to case, because each function accepts all methods."""
    routes = Counter(str(trigger["route"]).strip("/").lower() for trigger in find_http_triggers(function_bindings))
    assert [route for route, count in routes.items() if count > 1] == []


def test_no_http_route_is_reserved_by_the_host(function_bindings: dict[str, Bindings]) -> None:
    """No route is empty or begins with a prefix that is reserved by the host."""
    routes = [str(trigger["route"]).strip("/").lower() for trigger in find_http_triggers(function_bindings)]
    assert [route for route in routes if not route or route.startswith(RESERVED_PREFIXES)] == []
