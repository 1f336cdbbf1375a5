"""Measurement of the memory that a process uses."""

from pathlib import Path


def read_resident_mb(pid: int) -> float:
    """Return the resident memory of a running process in MB, as Linux reports it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"cannot read the memory of process {pid}: the process has ended")
