"""Logging of the service: records with the request id and named fields, without secrets."""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from shared.timestamps import format_rfc3339

ROOT = "workspace"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request that the current task serves; empty outside of a request."""


def get_logger(name: str) -> logging.Logger:
    """Return the logger ``workspace.<name>``."""
    return logging.getLogger(f"{ROOT}.{name}")


def fields(**values: object) -> dict[str, Any]:
    """Build the argument ``extra`` of a log call, so that the log record contains these named fields."""
    return {"fields": values}


class JsonFormatter(logging.Formatter):
    """Log formatter that writes a record, its request id and its fields as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record as one line of JSON, with the traceback of an exception under ``exception``."""
        line: dict[str, Any] = {
            "time": format_rfc3339(datetime.fromtimestamp(record.created, UTC)),
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


def parse_log_level(text: str) -> str:
    """Return the name of a log level in upper case.

    Raises:
        ValueError: there is no such log level.
    """
    level = text.upper()
    if level not in _LEVELS:
        raise ValueError(f"must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {text!r}")
    return level


def configure_json_logs(lowest_level: str) -> None:
    """Write the logs of the process to standard error as JSON lines.

    The service's logs are written from ``lowest_level`` on, logs of libraries from WARNING on.

    This is for processes outside the Functions host; the host installs its own log handlers.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(ROOT).setLevel(lowest_level)


class FieldsFormatter(logging.Formatter):
    """Log formatter that writes a record's message, followed by its request id and fields as a JSON object."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the base class's name
        """Format a log record as its message and a JSON object of its fields."""
        values = {"requestId": request_id.get()} if request_id.get() else {}
        values |= getattr(record, "fields", {})
        message = super().formatMessage(record)
        return f"{message} {json.dumps(values, default=str, ensure_ascii=False)}" if values else message


def add_fields_to_log_handlers(lowest_level: str) -> None:
    """Make the log handlers of the Functions host write the fields of records, which they omit by default.

    Args:
        lowest_level: name of the lowest log level that is written.
    """
    for handler in logging.getLogger().handlers:
        if handler.formatter is None:
            handler.setFormatter(FieldsFormatter())
    logging.getLogger(ROOT).setLevel(lowest_level)
