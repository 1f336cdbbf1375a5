"""How much memory a process holds."""

from pathlib import Path


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB, as Linux tells it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} says nothing of its memory")
