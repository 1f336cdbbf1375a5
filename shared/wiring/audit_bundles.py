"""Services that build audit bundles: zip files with audit chains and proofs that are verified offline."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.downloads import DownloadServices
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from shared.audit_bundles.work import BundleRunner


class AuditBundleServices:
    """Builds audit bundles; bundles use the same stores of jobs and files as downloads."""

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
