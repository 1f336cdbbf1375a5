"""Benchmarks of the service. Each benchmark yields figures (measured values), printed as one JSON object per line.

A figure can have bounds, within which its value must be. Most figures with bounds are ratios or differences of two
measurements in the same run, so that the bounds hold on any machine.
"""
