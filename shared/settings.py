"""Every setting of the service: one frozen model, read from the environment on first use."""

import os
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

EMBEDDED_ENGINE: Final = "kusto-uri"
"""File of a data directory that holds where its embedded query engine listens."""


class Stores(StrEnum):
    """Where state lives: files and SQLite under DATA_DIR, or the tenant's Azure services."""

    EMBEDDED = "embedded"
    AZURE = "azure"


class Settings(BaseModel):
    """The app settings, by the name that the environment gives them."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore")

    stores: Stores = Field(
        Stores.EMBEDDED, alias="STORES", description="`embedded` (SQLite and files under DATA_DIR) or `azure`."
    )
    data_dir: Path = Field(Path(".data"), alias="DATA_DIR", description="Folder of the embedded stores.")
    token_issuer: str = Field("oi-workspace", alias="TOKEN_ISSUER", description="`iss` of the tokens issued here.")
    token_audience: str = Field("oi-api", alias="TOKEN_AUDIENCE", description="`aud` of the tokens issued here.")
    refresh_seconds: float = Field(
        5.0,
        gt=0,
        le=15,
        alias="REFRESH_SECONDS",
        description="How old the in-memory copy of catalog, keys and revocations may get; bounds how long a revoked "
        "token still works on another instance.",
    )
    entra_tenant_id: str = Field(
        "", alias="ENTRA_TENANT_ID", description="Tenant whose Entra ID tokens `/workspace/api/keys` accepts."
    )
    entra_audience: str = Field("", alias="ENTRA_AUDIENCE", description="`aud` that such a token must name.")
    entra_authority: str = Field(
        "https://login.microsoftonline.com",
        alias="ENTRA_AUTHORITY",
        description="Base address of OpenID discovery; a sovereign cloud has its own.",
    )
    entra_console_client_id: str = Field(
        "",
        alias="ENTRA_CONSOLE_CLIENT_ID",
        description="Client id of the app registration as which the web console signs people in; public. None: no such "
        "button.",
    )
    kusto_uri: str = Field(
        "http://127.0.0.1:8088",
        alias="KUSTO_URI",
        description="The Data Explorer cluster, or the embedded endpoint (plain http is taken on loopback only).",
    )
    kusto_database: str = Field("Telemetry", alias="KUSTO_DATABASE", description="The database queried there.")
    max_at_work: int = Field(
        32,
        ge=1,
        le=10_000,
        alias="MAX_AT_WORK",
        description="Requests that an instance works on together, each for its first quarter of a second; others wait, "
        "and in a crowd that stays are refused with 503 `OVERLOADED`.",
    )
    query_timeout_seconds: int = Field(
        60, ge=1, le=200, alias="QUERY_TIMEOUT_SECONDS", description="Server time-out of a query."
    )
    cosmos_endpoint: str = Field(
        "", alias="COSMOS_ENDPOINT", description="The Cosmos DB account's address; unused with embedded stores."
    )
    cosmos_database: str = Field(
        "workspace", alias="COSMOS_DATABASE", description="The database there that holds the workspace's containers."
    )
    data_store_accounts: str = Field(
        "",
        alias="DATA_STORE_ACCOUNTS",
        description="The Cosmos DB account of each data store, `lookup=resource id,...`; unused with embedded stores.",
    )
    data_store_dns_suffix: str = Field(
        "documents.azure.com",
        alias="DATA_STORE_DNS_SUFFIX",
        description="What the addresses of these accounts end with; a sovereign cloud has its own.",
    )
    continuation_secret: str = Field(
        "",
        repr=False,
        alias="CONTINUATION_SECRET",
        description="Signs the continuation tokens of document lists, the same on all instances; 32 characters or "
        "more, a Key Vault reference. Embedded stores make their own.",
    )
    blob_endpoint: str = Field(
        "",
        alias="BLOB_ENDPOINT",
        description="The storage account's blob address, with the containers `cold`, `downloads`, `checkpoints` "
        "and `checkpoint-state`; unused with "
        "embedded stores.",
    )
    key_vault_uri: str = Field(
        "", alias="KEY_VAULT_URI", description="The key vault's address; unused with embedded stores."
    )
    token_key: str = Field(
        "token-signing",
        alias="TOKEN_KEY",
        description="Name of the P-256 key there that signs tokens; a new version signs an hour after it was made.",
    )
    checkpoint_key: str = Field(
        "checkpoint-signing",
        alias="CHECKPOINT_KEY",
        description="Name of the P-256 key there that signs checkpoints, whose first version signs, or `name/version`.",
    )
    public_url: str = Field(
        "",
        alias="PUBLIC_URL",
        description="Address of the service as its callers see it, such as `https://plant.example`: scheme, host and "
        "port only. Behind a gateway, links and the OAuth issuer begin with it. Default: the address of each request.",
    )
    files_url: str = Field(
        "http://127.0.0.1:7071",
        alias="FILES_URL",
        description="Address that links to files of the embedded stores begin with; the local host sets it to its own.",
    )
    event_hubs_namespace: str = Field(
        "",
        alias="EventHubs__fullyQualifiedNamespace",
        description="Event Hubs namespace of the hubs `telemetry` and `impulses`; unused with embedded stores.",
    )
    event_hub_sources: str = Field(
        "",
        alias="EVENT_HUB_SOURCES",
        description="Connections with an Event Hub of their own, as `hub/consumerGroup,...`; each gets a trigger.",
    )
    background_schedule: str = Field(
        "*/1 * * * * *",
        alias="BACKGROUND_SCHEDULE",
        description="NCRONTAB schedule (six fields) of the one timer; each tick starts the background jobs that are "
        "due. No job runs more often than the timer.",
    )
    simulators_enabled: bool = Field(
        True,
        alias="SIMULATORS_ENABLED",
        description="Whether this deployment runs the simulators of the workspace document.",
    )
    simulator_schedule: str = Field(
        "*/1 * * * * *",
        alias="SIMULATOR_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which simulators are due.",
    )
    checkpoint_schedule: str = Field(
        "*/15 * * * * *",
        alias="CHECKPOINT_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which signed checkpoints of grown chains are due.",
    )
    web_pubsub_endpoint: str = Field(
        "",
        alias="WEB_PUBSUB_ENDPOINT",
        description="The Web PubSub service of the live stream; the local host sets its own.",
    )
    web_pubsub_access_key: str = Field(
        "",
        repr=False,
        alias="WEB_PUBSUB_ACCESS_KEY",
        description="Access key of that service; left out, the app signs in with its managed identity.",
    )
    web_pubsub_hub: str = Field("live", alias="WEB_PUBSUB_HUB", description="The hub there.")
    web_pubsub_identity: str = Field(
        "",
        alias="WEB_PUBSUB_IDENTITY",
        description="Object id of the service's own managed identity, with which it calls the event handler.",
    )
    web_pubsub_audience: str = Field(
        "", alias="WEB_PUBSUB_AUDIENCE", description="`aud` of the tokens with which it calls the event handler."
    )
    live_schedule: str = Field(
        "*/5 * * * * *",
        alias="LIVE_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which closing streams with an invalid token is due.",
    )
    compaction_schedule: str = Field(
        "0 */10 * * * *",
        alias="COMPACTION_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which merging the archive's blobs of past hours is due.",
    )
    compaction_quiet_minutes: float = Field(
        10.0,
        gt=0,
        alias="COMPACTION_QUIET_MINUTES",
        description="How long an hour of the archive must have got no blob before its blobs are merged, and how long "
        "after that the merged ones stay.",
    )
    download_expiry_schedule: str = Field(
        "0 */5 * * * *",
        alias="DOWNLOAD_EXPIRY_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which removing expired downloads is due.",
    )
    download_hours: float = Field(
        24.0, gt=0, le=24, alias="DOWNLOAD_HOURS", description="How long a download and its files stay, in hours."
    )
    managed_identity_client_id: str = Field(
        "", alias="AZURE_CLIENT_ID", description="Client id of the user-assigned identity, read by azure-identity."
    )
    website_hostname: str = Field(
        "", alias="WEBSITE_HOSTNAME", description="Host name of the function app; Azure sets it by itself."
    )
    allowed_hosts: str = Field(
        "",
        alias="ALLOWED_HOSTS",
        description="Further values of the Host header that the MCP server takes, separated by commas, `name:*` for "
        "any port: the names of a gateway or of a domain of one's own. This machine's own name is always taken.",
    )
    cors_origins: str = Field(
        "",
        alias="CORS_ORIGINS",
        description="Origins whose scripts may call the API from a browser, separated by commas, such as "
        "`https://dash.example`; none unless named.",
    )
    log_level: str = Field("INFO", alias="LOG_LEVEL", description="Level of the service's own log.")
    application_insights: str = Field(
        "",
        repr=False,
        alias="APPLICATIONINSIGHTS_CONNECTION_STRING",
        description="The Application Insights resource that traces and metrics go to, where no `OTEL_*` variable names "
        "a collector. Its Functions host reads the same setting for its own.",
    )

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, value: str) -> str:
        """Accept an http or https origin; drop one slash at its end."""
        address = value.removesuffix("/")
        parts = urlsplit(address)
        if address and (parts.scheme not in {"http", "https"} or not parts.hostname or address != _origin(parts)):
            raise ValueError("PUBLIC_URL must be scheme, host and port only, such as https://plant.example")
        return address

    def hosts(self) -> tuple[str, ...]:
        """Return the values of the Host header that are taken where a rebound name would be a danger."""
        own = ("127.0.0.1", "127.0.0.1:*", "localhost", "localhost:*", "[::1]", "[::1]:*")
        public = urlsplit(self.public_url).netloc
        named = (self.website_hostname, public, *(name.strip() for name in self.allowed_hosts.split(",")))
        return (*own, *(name for name in named if name))

    def origins(self) -> tuple[str, ...]:
        """Return the origins whose scripts may call the API."""
        return tuple(origin.strip().rstrip("/") for origin in self.cors_origins.split(",") if origin.strip())

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        """Return the settings that the given environment holds; an empty value counts as left out.

        Raises:
            pydantic.ValidationError: a value breaks its rule.
        """
        aliases = {str(field.alias) for field in cls.model_fields.values()}
        return cls.model_validate({name: environment[name] for name in aliases if environment.get(name)})


def _origin(parts: SplitResult) -> str:
    """Return scheme, host and port of an address; user, path, query and fragment are left out.

    Raises:
        ValueError: the port is not a number.
    """
    port = f":{parts.port}" if parts.port is not None else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}"


@cache
def settings() -> Settings:
    """Return the settings of this process, read once."""
    return Settings.read(os.environ)
