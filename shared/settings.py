"""Settings of the service: one frozen model, read from the environment at the first use."""

import os
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from shared.observability.logs import parse_log_level

EMBEDDED_ENGINE_URL_FILE: Final = "kusto-uri"
"""Name of the file in a data directory that contains the URL of its embedded query engine."""


class Stores(StrEnum):
    """Kind of the stores: files and SQLite under DATA_DIR, or the tenant's Azure services."""

    EMBEDDED = "embedded"
    AZURE = "azure"


class Settings(BaseModel):
    """Settings of the service; the alias of a field is the name of its environment variable."""

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
        description="Maximum age in seconds of the in-memory copy of catalog, keys and revocations; a revoked token "
        "works on other instances for at most this time.",
    )
    entra_tenant_id: str = Field(
        "", alias="ENTRA_TENANT_ID", description="Tenant whose Entra ID tokens `/workspace/api/keys` accepts."
    )
    entra_audience: str = Field("", alias="ENTRA_AUDIENCE", description="`aud` that these Entra ID tokens must name.")
    entra_authority: str = Field(
        "https://login.microsoftonline.com",
        alias="ENTRA_AUTHORITY",
        description="Base address of OpenID discovery; differs in sovereign clouds.",
    )
    entra_console_client_id: str = Field(
        "",
        alias="ENTRA_CONSOLE_CLIENT_ID",
        description="Client id of the app registration with which the web console signs people in; public. If empty, "
        "the console has no button for this sign-in.",
    )
    kusto_uri: str = Field(
        "http://127.0.0.1:8088",
        alias="KUSTO_URI",
        description="The Data Explorer cluster, or the embedded endpoint (plain http is accepted on loopback only).",
    )
    kusto_database: str = Field(
        "Telemetry", alias="KUSTO_DATABASE", description="Database of the cluster or endpoint that queries read."
    )
    max_at_work: int = Field(
        32,
        ge=1,
        le=10_000,
        alias="MAX_AT_WORK",
        description="Requests that an instance processes together, each counted for a quarter of a second; others wait "
        "and under lasting overload are rejected with 503 `OVERLOADED`.",
    )
    query_timeout_seconds: int = Field(
        60, ge=1, le=200, alias="QUERY_TIMEOUT_SECONDS", description="Server time-out of a query."
    )
    max_queries_per_principal: int = Field(
        4,
        ge=1,
        le=1_000,
        alias="MAX_QUERIES_PER_PRINCIPAL",
        description="Queries of one principal that an instance has the query engine run at once; further ones wait.",
    )
    cosmos_endpoint: str = Field(
        "", alias="COSMOS_ENDPOINT", description="The Cosmos DB account's address; unused with embedded stores."
    )
    cosmos_database: str = Field(
        "workspace",
        alias="COSMOS_DATABASE",
        description="Database of the Cosmos DB account that holds the workspace's containers.",
    )
    data_store_accounts: str = Field(
        "",
        alias="DATA_STORE_ACCOUNTS",
        description="The Cosmos DB account of each data store, `lookup=resource id,...`; unused with embedded stores.",
    )
    data_store_dns_suffix: str = Field(
        "documents.azure.com",
        alias="DATA_STORE_DNS_SUFFIX",
        description="Suffix of the addresses of the data stores' accounts; differs in sovereign clouds.",
    )
    continuation_secret: str = Field(
        "",
        repr=False,
        alias="CONTINUATION_SECRET",
        description="Signs the continuation tokens of document lists, the same on all instances; 32 characters or "
        "more, a Key Vault reference. Embedded stores create their own.",
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
        description="Name of the P-256 key in the vault that signs tokens; a new version signs one hour after it was "
        "created.",
    )
    checkpoint_key: str = Field(
        "checkpoint-signing",
        alias="CHECKPOINT_KEY",
        description="Name of the P-256 key in the vault that signs checkpoints with its first version, or "
        "`name/version`.",
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
        description="Base address of links to files of the embedded stores; set by the local host.",
    )
    event_hubs_namespace: str = Field(
        "",
        alias="EventHubs__fullyQualifiedNamespace",
        description="Event Hubs namespace of the hubs `telemetry` and `impulses`; unused with embedded stores.",
    )
    event_hub_sources: str = Field(
        "",
        alias="EVENT_HUB_SOURCES",
        description="Connections with a separate Event Hub, as `hub/consumerGroup,...`; each gets a trigger.",
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
    alert_schedule: str = Field(
        "*/1 * * * * *",
        alias="ALERT_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which the service looks for due alert rules; `every` of a rule "
        "determines when the rule is due.",
    )
    verify_schedule: str = Field(
        "0 30 2 * * *",
        alias="VERIFY_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which the verification of grown audit chains is due. A run "
        "takes at most 600 s and is continued at once.",
    )
    audit_overview_schedule: str = Field(
        "20 */10 * * * *",
        alias="AUDIT_OVERVIEW_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which counting audit chains of an earlier version is due.",
    )
    web_pubsub_endpoint: str = Field(
        "",
        alias="WEB_PUBSUB_ENDPOINT",
        description="The Web PubSub service of the live stream; set by the local host.",
    )
    web_pubsub_access_key: str = Field(
        "",
        repr=False,
        alias="WEB_PUBSUB_ACCESS_KEY",
        description="Access key of the Web PubSub service; if empty, the app uses its managed identity.",
    )
    web_pubsub_hub: str = Field("live", alias="WEB_PUBSUB_HUB", description="Hub of the Web PubSub service.")
    web_pubsub_identity: str = Field(
        "",
        alias="WEB_PUBSUB_IDENTITY",
        description="Object id of the managed identity with which Web PubSub calls the event handler.",
    )
    web_pubsub_audience: str = Field(
        "",
        alias="WEB_PUBSUB_AUDIENCE",
        description="`aud` of the tokens that Web PubSub sends to the event handler.",
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
        le=525_600,
        alias="COMPACTION_QUIET_MINUTES",
        description="Minutes without a new blob in an hour of the archive before its blobs are merged, and minutes "
        "for which the merged blobs are then retained; more than 0 and at most 525,600 (a year).",
    )
    download_expiry_schedule: str = Field(
        "0 */5 * * * *",
        alias="DOWNLOAD_EXPIRY_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which removing expired downloads is due.",
    )
    download_hours: float = Field(
        24.0, gt=0, le=24, alias="DOWNLOAD_HOURS", description="Hours for which a download and its files are retained."
    )
    webhook_allowed_networks: str = Field(
        "",
        alias="WEBHOOK_ALLOWED_NETWORKS",
        description="Internal networks in CIDR form, separated by commas, that webhooks and metadata documents of "
        "OAuth clients may reach; webhooks may use plain http there. By default only public addresses; on the local "
        "host, loopback.",
    )
    webhook_secret_key: str = Field(
        "",
        repr=False,
        alias="WEBHOOK_SECRET_KEY",
        description="Encrypts the secrets of webhooks in the store, the same on all instances; 32 characters or more, "
        "a Key Vault reference. Embedded stores create their own.",
    )
    webhook_schedule: str = Field(
        "*/2 * * * * *",
        alias="WEBHOOK_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which finding new events and retries of webhooks is due.",
    )
    webhook_expiry_schedule: str = Field(
        "0 15 * * * *",
        alias="WEBHOOK_EXPIRY_SCHEDULE",
        description="NCRONTAB schedule (six fields) at which removing webhook deliveries after 30 days is due.",
    )
    own_ports: str = Field(
        "",
        alias="OWN_PORTS",
        description="Further ports of this service, separated by commas, which webhooks must not call at an internal "
        "address; set by the local host.",
    )
    telemetry_retention_days: float = Field(
        366,
        gt=0,
        le=36_500,
        alias="TELEMETRY_RETENTION_DAYS",
        description="Days after their ingestion at which the embedded query engine deletes messages; the archive "
        "retains them. On Azure, the deployment's parameter `telemetryRetentionDays` applies instead.",
    )
    hub_retention_hours: float = Field(
        72,
        gt=0,
        le=8_760,
        alias="HUB_RETENTION_HOURS",
        description="Hours after which the embedded event hub deletes events that every consumer group has read, "
        "including that of the archive, even while its function is disabled. On Azure, the deployment's parameter "
        "`hubRetentionHours` applies instead.",
    )
    disk_reserve_mb: int | None = Field(
        None,
        ge=0,
        alias="DISK_RESERVE_MB",
        description="Megabytes of the disk of DATA_DIR that telemetry leaves free for everything else; with less, it "
        "is rejected with 507 `STORAGE_FULL`, and below twice as much `/readyz` warns. Default: 1000, or a tenth of a "
        "disk below 10 GB. Embedded stores alone.",
    )
    managed_identity_client_id: str = Field(
        "", alias="AZURE_CLIENT_ID", description="Client id of the user-assigned identity, read by azure-identity."
    )
    website_hostname: str = Field(
        "", alias="WEBSITE_HOSTNAME", description="Host name of the function app; set by Azure."
    )
    allowed_hosts: str = Field(
        "",
        alias="ALLOWED_HOSTS",
        description="Further values of the Host header that the MCP server and OAuth accept, separated by commas, "
        "`name:*` for any port: names of a gateway, of a custom domain, or of this machine in a network. Loopback "
        "names, the name of the function app and `PUBLIC_URL` are always accepted.",
    )
    cors_origins: str = Field(
        "",
        alias="CORS_ORIGINS",
        description="Origins whose scripts may call the API from a browser, separated by commas, such as "
        "`https://dash.example`; none by default. It does not apply to links to files and uploads; on Azure, the "
        "deployment allows the same origins to use these.",
    )
    log_level: Annotated[str, AfterValidator(parse_log_level)] = Field(
        "INFO",
        alias="LOG_LEVEL",
        description="Lowest level of the service's own log that is written: `DEBUG`, `INFO`, `WARNING`, `ERROR` or "
        "`CRITICAL`.",
    )
    application_insights: str = Field(
        "",
        repr=False,
        alias="APPLICATIONINSIGHTS_CONNECTION_STRING",
        description="The Application Insights resource that receives traces and metrics, if no `OTEL_*` variable names "
        "a collector. The Functions host reads the same setting for its own telemetry.",
    )

    @field_validator("public_url")
    @classmethod
    def _normalise_public_url(cls, value: str) -> str:
        """Check that PUBLIC_URL is an http or https origin; remove one slash at its end."""
        address = value.removesuffix("/")
        parts = urlsplit(address)
        if address and (parts.scheme not in {"http", "https"} or not parts.hostname or address != _get_origin(parts)):
            raise ValueError(
                "PUBLIC_URL must be only scheme, host and port in lower case, such as https://plant.example"
            )
        return address

    @field_validator("continuation_secret", "webhook_secret_key")
    @classmethod
    def _remove_unresolved_reference(cls, value: str) -> str:
        """Return an empty text if the setting contains a Key Vault reference instead of the secret.

        If Azure cannot read a secret, the setting contains the reference itself, whose text is easy to guess.
        """
        return "" if value.startswith("@Microsoft.KeyVault(") else value

    @field_validator("data_store_accounts")
    @classmethod
    def _check_data_store_accounts(cls, value: str, info: ValidationInfo) -> str:
        """Check that DATA_STORE_ACCOUNTS does not name the account of COSMOS_ENDPOINT.

        The API would expose the audit log and the credentials in this account as tables.
        """
        # Names of accounts are unique, and the first label of an account's host name.
        own_name = (urlsplit(info.data["cosmos_endpoint"]).hostname or "").partition(".")[0]
        names = {part.rpartition("/")[2].strip().lower() for part in value.split(",") if part.strip()}
        if own_name and own_name in names:
            raise ValueError(
                "DATA_STORE_ACCOUNTS must not contain the account of COSMOS_ENDPOINT; give data stores other accounts"
            )
        return value

    @field_validator(
        "simulator_schedule",
        "checkpoint_schedule",
        "alert_schedule",
        "verify_schedule",
        "audit_overview_schedule",
        "live_schedule",
        "compaction_schedule",
        "download_expiry_schedule",
        "webhook_schedule",
        "webhook_expiry_schedule",
    )
    @classmethod
    def _check_job_schedule(cls, value: str, info: ValidationInfo) -> str:
        """Check that the schedule of a background job is an NCRONTAB expression.

        The Functions host checks BACKGROUND_SCHEDULE, the schedule of its timer.
        """
        # The default is not parsed, because loading the parser would delay each cold start.
        if value != cls.model_fields[str(info.field_name)].default:
            from shared.background.runner import Schedule  # noqa: PLC0415  see above

            Schedule(value)
        return value

    @field_validator("webhook_allowed_networks")
    @classmethod
    def _check_allowed_networks(cls, value: str) -> str:
        """Check that WEBHOOK_ALLOWED_NETWORKS contains networks in CIDR form."""
        from shared.outbound.addresses import parse_networks  # noqa: PLC0415  slow, and most apps lack this setting

        try:
            parse_networks(value)
        except ValueError as error:
            raise ValueError(f"WEBHOOK_ALLOWED_NETWORKS must be CIDR networks separated by commas: {error}") from None
        return value

    @field_validator("own_ports")
    @classmethod
    def _check_own_ports(cls, value: str) -> str:
        """Check that OWN_PORTS contains port numbers."""
        if not all(part.strip().isdecimal() for part in value.split(",") if part.strip()):
            raise ValueError("OWN_PORTS must be port numbers separated by commas")
        return value

    def get_base_url(self) -> str:
        """Return the service's base URL for links that are created outside of a request; empty if it is unknown."""
        return self.get_configured_base_url() or (self.files_url if self.stores is Stores.EMBEDDED else "")

    def get_configured_base_url(self) -> str:
        """Return PUBLIC_URL, else the https address of the function app on Azure; empty if neither is known."""
        if self.public_url:
            return self.public_url
        return f"https://{self.website_hostname}" if self.website_hostname else ""

    def list_accepted_hosts(self) -> tuple[str, ...]:
        """Return the accepted values of the Host header, for routes that must resist DNS rebinding."""
        own = ("127.0.0.1", "127.0.0.1:*", "localhost", "localhost:*", "[::1]", "[::1]:*")
        public = urlsplit(self.public_url).netloc
        named = (self.website_hostname, public, *(name.strip() for name in self.allowed_hosts.split(",")))
        return (*own, *(name for name in named if name))

    def list_cors_origins(self) -> tuple[str, ...]:
        """Return the origins (scheme, host and port) whose scripts may call the API from a browser."""
        return tuple(origin.strip().rstrip("/") for origin in self.cors_origins.split(",") if origin.strip())

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the settings from environment variables; an empty value counts as missing.

        Raises:
            pydantic.ValidationError: a value is invalid.
        """
        aliases = {str(field.alias) for field in cls.model_fields.values()}
        return cls.model_validate({name: environment[name] for name in aliases if environment.get(name)})


def _get_origin(parts: SplitResult) -> str:
    """Return the origin (scheme, host and port) of a URL.

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
