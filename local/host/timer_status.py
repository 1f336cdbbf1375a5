"""Keeps when timers last ran and are next due, so that a start can tell what passed while the host was down."""

import json
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from shared.observability.logs import get_logger

_LOGGER = get_logger("local.timers")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """When a timer last ran and when it is due next."""

    last: datetime
    next: datetime

    def document(self) -> dict[str, str]:
        """Return the form in which the Functions host hands it to functions."""
        return {"Last": self.last.isoformat(), "Next": self.next.isoformat(), "LastUpdated": self.last.isoformat()}


class TimerStatusFile:
    """The occurrences of every timer in one JSON file; a file that cannot be read counts as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._documents = self._load()

    def read(self, name: str) -> Occurrence | None:
        """Return a timer's occurrence, None when it never ran."""
        try:
            document = self._documents[name]
            return Occurrence(datetime.fromisoformat(document["Last"]), datetime.fromisoformat(document["Next"]))
        except (KeyError, ValueError, TypeError):
            return None

    def write(self, name: str, occurrence: Occurrence) -> None:
        """Note a timer's occurrence; the file is replaced as a whole.

        Raises:
            OSError: the file cannot be written.
        """
        with self._lock:
            self._documents[name] = occurrence.document()
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(self._documents))
            new.replace(self._path)

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            documents = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            _LOGGER.warning("the status of timers is lost: %s", error)
            return {}
        return documents if isinstance(documents, dict) else {}
