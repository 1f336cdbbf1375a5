"""Endpoint groups by what they answer; the module of a group is loaded for the first request that is its own.

Models, domains and descriptions of a group cost time that neither the start nor a request to another group shall wait
for. The host and the router need to know no more of an operation than its method and route.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from shared.http.operations import Group, Operation


class LazyGroup:
    """An endpoint group, known by its operations' methods and routes until one of them is asked for.

    Args:
        name: the group's.
        module: declares the group as ``GROUP``.
        addresses: the method and route of each operation, in the order of their declaration: ``GET healthz``.
        durable: whether its handlers start background work; they find the client in ``durable_runner.CLIENT``.
        own_problems: whether it tells of errors otherwise than by problem documents.
    """

    def __init__(
        self, name: str, module: str, *addresses: str, durable: bool = False, own_problems: bool = False
    ) -> None:
        self.name = name
        self.durable = durable
        self.own_problems = own_problems
        self._module = module
        parts = (address.partition(" ") for address in addresses)
        self.endpoints = tuple(LazyEndpoint(method, route, self) for method, _, route in parts)

    @property
    def is_loaded(self) -> bool:
        """Whether the module is imported and read."""
        return "operations" in self.__dict__

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations, loaded on first use.

        Raises:
            ImportError: the module cannot be loaded; the next use tries again.
            LookupError: the module declares something else than is listed.
        """
        group: Group = import_module(self._module).GROUP
        listed = [(self.name, one.method, one.route) for one in self.endpoints]
        declared = [(group.name, one.method, one.route) for one in group.operations]
        if listed != declared:
            raise LookupError(f"{self._module} declares {declared}, but the table of contents lists {listed}")
        if any(one.own_problems != self.own_problems for one in group.operations):
            raise LookupError(f"the table of contents says otherwise than {self._module} how errors are told")
        return tuple(group.operations)


@dataclass(frozen=True, slots=True)
class LazyEndpoint:
    """A method at a route of a group that may not be loaded yet."""

    method: str
    route: str
    group: LazyGroup

    @property
    def own_problems(self) -> bool:
        """Whether it tells of errors otherwise than by problem documents."""
        return self.group.own_problems

    @property
    def is_loaded(self) -> bool:
        """Whether the group's module is imported."""
        return self.group.is_loaded

    def loaded(self) -> Operation:
        """Return the operation, loading its group's module where no request has needed it yet."""
        return next(one for one in self.group.operations if (one.method, one.route) == (self.method, self.route))


async def all_operations(groups: Sequence[LazyGroup]) -> list[Operation]:
    """Return the operations of all groups; modules that are not imported yet are imported in a worker thread."""
    if not all(group.is_loaded for group in groups):
        await asyncio.to_thread(lambda: [group.operations for group in groups])
    return [operation for group in groups for operation in group.operations]
