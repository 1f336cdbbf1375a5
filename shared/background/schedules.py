"""NCRONTAB schedules (cron expressions of Azure Functions), in UTC."""

import re
import threading
from datetime import datetime, timedelta

from croniter import CroniterError, croniter

_FIELD = re.compile(r"(?:[0-9*,/-]|[A-Za-z]{3})+")
_WITHOUT_SECONDS, _WITH_SECONDS = 5, 6


class Schedule:
    """Schedule from an NCRONTAB expression of six fields, seconds first; with five fields, the seconds are 0.

    See learn.microsoft.com/azure/azure-functions/functions-bindings-timer, "NCRONTAB expressions". Extensions of
    croniter (``L``, ``#``, ``@daily``) are rejected, because the Functions host rejects them, too.
    """

    def __init__(self, expression: str) -> None:
        """Parse an NCRONTAB expression.

        Raises:
            ValueError: the text is not an NCRONTAB expression, or has no occurrence.
        """
        parts = expression.split()
        if len(parts) == _WITHOUT_SECONDS:
            parts.insert(0, "0")
        if len(parts) != _WITH_SECONDS or not all(_FIELD.fullmatch(part) for part in parts):
            raise ValueError(f"{expression!r} is not an NCRONTAB expression such as 0 */5 * * * *")
        self._lock = threading.Lock()
        start = datetime.fromisoformat("2000-01-01T00:00:00Z")
        try:
            # NCRONTAB requires that both the day of month and the day of week match; cron requires only one of them.
            # Parsing takes ten times as long as the search for the next time, so it is done once.
            self._occurrences = croniter(" ".join(parts), start, second_at_beginning=True, day_or=False)
            self.next(start)
        except CroniterError as error:
            raise ValueError(f"{expression!r} is not an NCRONTAB expression: {error}") from None

    def next(self, after: datetime) -> datetime:
        """Return the first time after ``after`` at which the schedule is due."""
        with self._lock:
            instant: datetime = self._occurrences.get_next(datetime, after)
        return instant

    def interval(self, after: datetime) -> timedelta:
        """Return the time between the next two due times after ``after``."""
        first = self.next(after)
        return self.next(first) - first
