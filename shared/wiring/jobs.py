"""Services of background jobs: imports of telemetry files, and audit bundles.

Audit bundles are zip files with audit chains and proofs that are verified offline.
"""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.downloads import DOWNLOADS, DownloadServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.queries import QueryServices

if TYPE_CHECKING:
    from shared.audit_bundles.work import BundleRunner
    from shared.imports.ports import TelemetryTable
    from shared.imports.preview import ImportPreview
    from shared.imports.service import ImportService
    from shared.imports.work import ImportRunner

_LINK_LIFETIME = timedelta(hours=1)
"""Lifetime of the link with which the query engine reads a file of imported rows."""


class ImportServices:
    """Imports historical telemetry; imports share the job store and the file store of downloads."""

    def __init__(
        self,
        backends: Backends,
        catalog: CatalogServices,
        cold_data: ColdDataServices,
        downloads: DownloadServices,
        queries: QueryServices,
    ) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._cold_data = cold_data
        self._downloads = downloads
        self._queries = queries

    @cached_property
    def service(self) -> "ImportService":
        """Service that creates and starts imports."""
        from shared.imports.service import ImportService

        downloads = self._downloads
        return ImportService(
            self._catalog.reader.get_catalog,
            downloads.jobs,
            downloads.blobs,
            downloads.job_quota,
            downloads.service,
            self._backends.disk_guard,
            timedelta(hours=self._settings.download_hours),
            runtime=self._backends.runtime,
        )

    @cached_property
    def preview(self) -> "ImportPreview":
        """Service that previews the rows of uploaded files."""
        from shared.imports.preview import ImportPreview

        return ImportPreview(self._catalog.reader.get_catalog, self._downloads.blobs, runtime=self._backends.runtime)

    @cached_property
    def runner(self) -> "ImportRunner":
        """Service that executes the steps of an import."""
        from shared.imports.archive_writer import HistoryArchive
        from shared.imports.work import ImportRunner, ImportStores

        downloads, cold_data, runtime = self._downloads, self._cold_data, self._backends.runtime
        stores = ImportStores(
            downloads.jobs,
            downloads.blobs,
            HistoryArchive(cold_data.blobs, cold_data.scratch, runtime=runtime),
            self._telemetry_table,
            self._backends.job_leases,
            downloads.archive_progress,
            cold_data.scratch,
            self._backends.disk_guard,
            # The embedded engine reads LZ4 in less than half the time; Azure Data Explorer does not document it.
            table_compression="snappy" if self._backends.uses_azure else "lz4",
        )
        return ImportRunner(self._catalog.reader.get_catalog, stores, downloads.job_quota, runtime=runtime)

    @cached_property
    def _telemetry_table(self) -> "TelemetryTable":
        from shared.backends.azure.kusto import KustoTelemetryTable

        configured = self._settings
        uri, identity = self._queries.get_engine_uri(), configured.managed_identity_client_id
        return self._backends.register_for_closing(
            KustoTelemetryTable(
                uri,
                configured.kusto_database,
                self._build_blob_address_for_query_engine,
                identity,
                runtime=self._backends.runtime,
            )
        )

    async def _build_blob_address_for_query_engine(self, blob_name: str) -> str:
        """Return the address from which the query engine reads a file of imported rows.

        This is a signed URL or, for a local engine, a path.
        """
        if self._backends.uses_azure:
            return await self._downloads.blobs.create_download_link(
                blob_name, blob_name, self._backends.runtime.now() + _LINK_LIFETIME
            )
        from shared.backends.embedded.blobs import build_blob_path

        return str(build_blob_path(self._settings.data_dir.absolute() / "blobs" / DOWNLOADS, blob_name))


class AuditBundleServices:
    """Builds audit bundles; bundles share the job store and the file store of downloads."""

    def __init__(
        self,
        backends: Backends,
        catalog: CatalogServices,
        cold_data: ColdDataServices,
        provenance: ProvenanceServices,
        downloads: DownloadServices,
    ) -> None:
        self._backends = backends
        self._catalog = catalog
        self._cold_data = cold_data
        self._provenance = provenance
        self._downloads = downloads

    @cached_property
    def runner(self) -> "BundleRunner":
        """Service that builds the bundle of a job."""
        from shared.audit_bundles.chain_section import ChainSources
        from shared.audit_bundles.work import BundleRunner

        runtime = self._backends.runtime
        provenance = self._provenance
        return BundleRunner(
            self._downloads.jobs,
            ChainSources(
                provenance.chain_store,
                provenance.checkpoints,
                provenance.verifier,
                provenance.receipts.roots,
                provenance.chain_overview,
                runtime,
            ),
            self._downloads.blobs,
            self._cold_data.scratch,
            self._downloads.job_quota,
            self._catalog.load_workspace_id,
            runtime=runtime,
        )
