"""Query services: engine and warm queries."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.settings import EMBEDDED_ENGINE
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from shared.warm_queries.columns import QueryColumns
    from shared.warm_queries.definitions import QueryDefinitions
    from shared.warm_queries.ports import QueryEngine
    from shared.warm_queries.service import WarmQueries


class QueryServices:
    """Executes and governs queries."""

    def __init__(self, backends: Backends, catalog: CatalogServices, provenance: ProvenanceServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._provenance = provenance

    @cached_property
    def engine(self) -> "QueryEngine":
        """Executes KQL."""
        from shared.backends.azure.kusto import KustoEngine
        from shared.warm_queries.instrumented_engine import InstrumentedEngine

        configured = self._settings
        uri, database = self._find_engine_uri(), configured.kusto_database
        return self._backends.close_at_exit(
            InstrumentedEngine(KustoEngine(uri, database, configured.managed_identity_client_id), database)
        )

    def _find_engine_uri(self) -> str:
        """Return the configured engine, else the one noted in the data directory by its host, else the default."""
        configured = self._settings
        noted = configured.data_dir / EMBEDDED_ENGINE
        if "kusto_uri" in configured.model_fields_set or not noted.exists():
            return configured.kusto_uri
        return noted.read_text(encoding="utf-8")

    @cached_property
    def service(self) -> "WarmQueries":
        """Executes queries."""
        from shared.warm_queries.service import WarmQueries

        return WarmQueries(self._catalog.reader.current, self.engine, self._settings.query_timeout_seconds)

    @cached_property
    def columns(self) -> "QueryColumns":
        """Determines the columns of queries."""
        from shared.warm_queries.columns import QueryColumns

        return QueryColumns(self.engine)

    @cached_property
    def definitions(self) -> "QueryDefinitions":
        """Creates, approves and removes queries."""
        from shared.warm_queries.definitions import QueryDefinitions

        return QueryDefinitions(self._provenance.catalog_service, self.columns)
