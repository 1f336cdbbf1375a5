"""Endpoint groups whose modules are imported at the first request to one of their operations.

Importing the models, domains and descriptions of a group takes time. The Functions host and the router need only the
method and route of an operation, so neither the start of the app nor requests to other groups wait for that import.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from shared.http.operations import Group, Operation
from shared.wiring import services


class LazyGroup:
    """Endpoint group that is imported on first use; until then only methods and routes are known.

    Args:
        name: name of the group.
        module: name of the module that declares the group as ``GROUP``.
        addresses: method and route of each operation, such as ``GET healthz``, in the order of the declarations.
        durable: True if handlers start orchestrations with the client in ``durable_runner.CLIENT``.
        has_own_error_format: True if the group's error replies are not problem documents.
        is_versioned: True if the group's requests and replies state a version of the API.
        routes_without_head: routes whose GET has an effect, so that they reject HEAD.
    """

    def __init__(
        self,
        name: str,
        module: str,
        *addresses: str,
        durable: bool = False,
        has_own_error_format: bool = False,
        is_versioned: bool = True,
        routes_without_head: Collection[str] = (),
    ) -> None:
        self.name = name
        self.durable = durable
        self.has_own_error_format = has_own_error_format
        self.is_versioned = is_versioned
        self._module = module
        parts = (address.partition(" ") for address in addresses)
        self.endpoints = tuple(
            LazyEndpoint(method, route, self, method != "GET" or route not in routes_without_head)
            for method, _, route in parts
        )

    @property
    def is_loaded(self) -> bool:
        """True if the module has been imported."""
        return "operations" in self.__dict__

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """Operations of the group, imported on first use.

        Raises:
            ImportError: the import failed; the next use retries it.
            LookupError: the module's declarations differ from ``functions.GROUPS``: addresses, HEAD, error format or
                version.
        """
        group: Group = import_module(self._module).GROUP
        listed = [(self.name, one.method, one.route) for one in self.endpoints]
        declared = [(group.name, one.method, one.route) for one in group.operations]
        if listed != declared:
            raise LookupError(f"{self._module} declares {declared}, but functions.GROUPS lists {listed}")
        if any(one.has_own_error_format != self.has_own_error_format for one in group.operations):
            raise LookupError(f"has_own_error_format of {self._module} differs between the module and functions.GROUPS")
        if any(one.is_versioned != self.is_versioned for one in group.operations):
            raise LookupError(f"is_versioned of {self._module} differs between the module and functions.GROUPS")
        if any(own.allows_head != one.allows_head for own, one in zip(self.endpoints, group.operations, strict=True)):
            raise LookupError(f"allows_head of {self._module} differs from routes_without_head in functions.GROUPS")
        return tuple(group.operations)


@dataclass(frozen=True, slots=True)
class LazyEndpoint:
    """Method and route of an operation; :meth:`load_operation` imports the module of its group if necessary."""

    method: str
    route: str
    group: LazyGroup
    allows_head: bool = True

    @property
    def has_own_error_format(self) -> bool:
        """True if the error replies of the group are not problem documents."""
        return self.group.has_own_error_format

    @property
    def is_versioned(self) -> bool:
        """True if requests and replies state a version of the API."""
        return self.group.is_versioned

    @property
    def is_loaded(self) -> bool:
        """True if the group's module has been imported."""
        return self.group.is_loaded

    def load_operation(self) -> Operation:
        """Return the operation, and import its group's module if necessary."""
        return next(one for one in self.group.operations if (one.method, one.route) == (self.method, self.route))


async def load_operations(groups: Sequence[LazyGroup]) -> list[Operation]:
    """Return the operations of all groups; import missing modules in a worker thread."""
    if not all(group.is_loaded for group in groups):
        await services().runtime.run_in_thread(lambda: [group.operations for group in groups])
    return [operation for group in groups for operation in group.operations]
