"""Client of an Industrial Data Workspace.

:class:`Workspace` is for ordinary code, :class:`AsyncWorkspace` for asyncio; both have the same methods.

Example:
    >>> from oi import Workspace
    >>> with Workspace("https://plant.example", key="oik_...") as workspace:  # doctest: +SKIP
    ...     result = workspace.queries.run("latest-readings", time_range="PT1H", limit=10)
    ...     print(result.rows)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oi._async.workspace import AsyncWorkspace
    from oi._sync.workspace import Workspace
    from oi.errors import (
        ApiError,
        ConflictError,
        ForbiddenError,
        InvalidRequestError,
        NotFoundError,
        OverloadedError,
        PreconditionFailedError,
        ServerError,
        SignInError,
        TooManyRequestsError,
        UnreachableError,
        WebhookError,
    )
    from oi.partition_keys import NULL_KEY
    from oi.results import Column, Governance, QueryResult
    from oi.webhook import verify_webhook

__all__ = [
    "NULL_KEY",
    "ApiError",
    "AsyncWorkspace",
    "Column",
    "ConflictError",
    "ForbiddenError",
    "Governance",
    "InvalidRequestError",
    "NotFoundError",
    "OverloadedError",
    "PreconditionFailedError",
    "QueryResult",
    "ServerError",
    "SignInError",
    "TooManyRequestsError",
    "UnreachableError",
    "WebhookError",
    "Workspace",
    "verify_webhook",
]

_MODULES = {
    "oi._async.workspace": ("AsyncWorkspace",),
    "oi._sync.workspace": ("Workspace",),
    "oi.errors": (
        "ApiError",
        "ConflictError",
        "ForbiddenError",
        "InvalidRequestError",
        "NotFoundError",
        "OverloadedError",
        "PreconditionFailedError",
        "ServerError",
        "SignInError",
        "TooManyRequestsError",
        "UnreachableError",
        "WebhookError",
    ),
    "oi.partition_keys": ("NULL_KEY",),
    "oi.results": ("Column", "Governance", "QueryResult"),
    "oi.webhook": ("verify_webhook",),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that the help of the command ``oi`` appears at once."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
