"""Benchmarks. Each prints one JSON object per line; bounds are ratios or differences within one run."""
