"""Benchmarks: each prints one JSON object a line; bounds are ratios or differences taken within one run."""
