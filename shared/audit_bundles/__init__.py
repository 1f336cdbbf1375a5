"""Audit bundles: zip files with chains, checkpoints and proofs that are verified without the service."""
