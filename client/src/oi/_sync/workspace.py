"""Entry point of the client: an object whose attributes give access to all parts of the API, such as queries."""

from collections.abc import Generator, Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from oi._sync.amendments import Amendments
from oi._sync.audit import Audit
from oi._sync.documents import Documents
from oi._sync.downloads import Downloads
from oi._sync.items import Alerts, Items, Webhooks
from oi._sync.queries import Queries
from oi._sync.stream import stream_messages
from oi._sync.telemetry import Telemetry
from oi._sync.transport import Transport
from oi.requests import get_yaml_reply, parse_json_reply, require_no_content
from oi.results import QueryResult

if TYPE_CHECKING:
    from oi.models import Identity, WorkspacePlan

_DOCUMENT = "/oi-api/workspace/document"


class Workspace:
    """Client of one deployment of the service, which has one workspace.

    Attributes:
        queries: warm queries (saved KQL queries).
        telemetry: sends telemetry messages.
        audit: appends to, reads and verifies the audit log.
        amendments: documented corrections of plant data.
        downloads: downloads of stored telemetry.
        team: members of the team: people and services.
        connections: data connections, the sources of telemetry.
        surfaces: named groups of data connections.
        alerts: alerts, and the rules that raise them.
        webhooks: https addresses that receive events.

    Args:
        url: address of the service, for instance ``https://plant.example``.
        key: API key; the client exchanges it for tokens and renews them.
        token: JWT instead of a key, or a function that returns a valid JWT and is called before each request.
        scopes: access rights of the tokens; all rights of the key if omitted. Request only what the program needs.
        timeout: seconds to wait for a connection or for the next part of a reply; queries, audit exports and audit
            verifications wait at least 240 s for the reply.

    Raises:
        ValueError: both ``key`` and ``token`` are given, or neither; or one of the arguments has invalid characters.
        UnreachableError: the proxy that the environment variables name cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        token: str | Callable[[], str] | None = None,
        scopes: list[str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        transport = self._transport = Transport(url, key=key, token=token, scopes=scopes, timeout=timeout)
        self.queries = Queries(transport)
        self.telemetry = Telemetry(transport)
        self.audit = Audit(transport)
        self.amendments = Amendments(transport)
        self.downloads = Downloads(transport)
        self.team = Items(transport, "/oi-api/team", "members")
        self.connections = Items(transport, "/oi-api/connections", "connections")
        self.surfaces = Items(transport, "/oi-api/surfaces", "surfaces")
        self.alerts = Alerts(transport)
        self.webhooks = Webhooks(transport)

    def __enter__(self) -> Self:
        """Return the workspace."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all network connections to the service."""
        self.close()

    def close(self) -> None:
        """Close all network connections to the service."""
        self._transport.close()

    def whoami(self) -> "Identity":
        """Return the caller's identity and access rights."""
        identity: Identity = self._transport.get_json("/workspace/api/keys/whoami")
        return identity

    def get_token(self, *, renew: bool = False) -> str:
        """Return the access token that was passed to the client, or a token for the API key.

        A token for the API key is valid for at least another minute, unless the key expires earlier.

        Args:
            renew: whether to request a new token even if the current one has not expired; without effect if the token
                cannot be renewed.
        """
        return self._transport.get_token(rejected_token=self._transport.newest_token if renew else "")

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Send a request to any route of the API and return the JSON reply; None for a deletion or an empty reply.

        Args:
            method: HTTP method.
            path: URL path, in which variable parts are percent-encoded.
            options: ``params`` (query parameters), ``json`` or ``content`` (body), ``headers``, ``appends`` (True to
                send an ``Idempotency-Key``), ``reads`` (True for a POST that changes no data), and ``is_slow`` (True to
                wait up to 240 s for the reply).

        Raises:
            ApiError: the service rejects the request or cannot be reached, or another server replied.
        """
        response = self._transport.request(method, path, **options)
        if method == "DELETE":
            require_no_content(response)
        return parse_json_reply(response) if response.content else None

    def kql(
        self,
        text: str,
        *,
        time_range: str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        limit: int | None = None,
    ) -> QueryResult:
        """Execute the text of a KQL query; arguments and errors as :meth:`Queries.run_kql`."""
        return self.queries.run_kql(text, time_range=time_range, start=start, end=end, limit=limit)

    def stream(
        self,
        *,
        connection: str | None = None,
        surface: str | None = None,
        since: datetime | str | None = None,
        on_failure: Callable[[str], None] | None = None,
    ) -> Generator[dict[str, Any]]:
        """Iterate over new telemetry messages; arguments and errors as :func:`oi._sync.stream.stream_messages`."""
        return stream_messages(
            self._transport, connection=connection, surface=surface, since=since, on_failure=on_failure
        )

    def documents(self, store: str, database: str, table: str) -> Documents:
        """Return an object that reads and changes the JSON documents of a table.

        Args:
            store: short name of the data store (database account) in URLs.
            database: short name of the database in URLs.
            table: name of the Cosmos DB container.
        """
        return Documents(self._transport, store, database, table)

    def export_document(self) -> str:
        """Return the definition of the whole workspace as a YAML document."""
        response = self._transport.request("GET", _DOCUMENT, headers={"Accept": "application/yaml"})
        return get_yaml_reply(response)

    def plan_document(self, document: str) -> "WorkspacePlan":
        """Return the changes that a YAML workspace document would make; ``planTag`` identifies this plan of changes."""
        response = self._transport.request("POST", f"{_DOCUMENT}/plan", content=document, headers=_YAML, reads=True)
        plan: WorkspacePlan = parse_json_reply(response)
        return plan

    def apply_document(self, document: str, plan_tag: str) -> "WorkspacePlan":
        """Change the workspace so that it matches a workspace document; return the applied plan of changes.

        Args:
            document: workspace document in YAML.
            plan_tag: ``planTag`` of the plan that was reviewed.

        Raises:
            PreconditionFailedError: the workspace was changed after the plan was made.
        """
        headers = {**_YAML, "If-Match": plan_tag}
        response = self._transport.request("PUT", _DOCUMENT, content=document, headers=headers)
        plan: WorkspacePlan = parse_json_reply(response)
        return plan


_YAML: Mapping[str, str] = {"Content-Type": "application/yaml"}
