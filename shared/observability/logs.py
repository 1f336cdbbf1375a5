"""The service's log: JSON lines with the request id, nothing secret."""

import json
import logging
import sys
from contextvars import ContextVar
from typing import Any

from shared.timestamps import now, rfc3339

ROOT = "workspace"
request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that the current task serves, empty outside of one."""


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a part of the service, below the root ``workspace``."""
    return logging.getLogger(f"{ROOT}.{name}")


def fields(**values: object) -> dict[str, Any]:
    """Return the ``extra`` argument that puts named values beside a log message."""
    return {"fields": values}


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: time, level, logger, message, request id, and the record's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; an exception's text goes under ``exception``."""
        line: dict[str, Any] = {
            "time": rfc3339(now()),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id.get():
            line["requestId"] = request_id.get()
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def configure(level: str) -> None:
    """Send every log of the process to standard error as JSON lines; for hosts that bring no log handler."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(ROOT).setLevel(level)


class FieldsFormatter(logging.Formatter):
    """Formats a record as its message, and behind it the request id and the record's own fields as a JSON object."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the base class's name
        """Return the line."""
        told = {"requestId": request_id.get()} if request_id.get() else {}
        told |= getattr(record, "fields", {})
        message = super().formatMessage(record)
        return f"{message} {json.dumps(told, default=str, ensure_ascii=False)}" if told else message


def add_fields_to_handlers(level: str) -> None:
    """Have the host's own handlers, which by themselves tell messages alone, tell fields too, from a level on.

    Args:
        level: of the service's own log.
    """
    for handler in logging.getLogger().handlers:
        if handler.formatter is None:
            handler.setFormatter(FieldsFormatter())
    logging.getLogger(ROOT).setLevel(level)
