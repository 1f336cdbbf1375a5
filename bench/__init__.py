"""Benchmarks of the service. Each benchmark yields figures (measured values), printed as one JSON object per line.

Most bounds are ratios or differences of two measurements in the same run, so that they hold on any machine.
"""
