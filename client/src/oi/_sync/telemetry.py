"""Telemetry that is sent at once, or through a spool file, which stores messages during an outage of the service."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oi._sync.transport import Transport
from oi.batches import MAX_BYTES, MESSAGE_ID_POINTER, add_message_id, encode_ndjson_line, split_into_batches
from oi.errors import ApiError
from oi.refusals import Action, Refusal, interpret_refusal
from oi.requests import quote_path_segment, require_messages_accepted
from oi.spool_file import RefusedMessage, SpooledLine, SpoolFile

_NDJSON = {"Content-Type": "application/x-ndjson"}
_GROWTH = 8
"""Divisor: after the service has accepted a smaller batch, the next one may be larger by an eighth."""


class Telemetry:
    """Sends telemetry for the data connections of the workspace."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def send(
        self,
        lookup: str,
        messages: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        message_id_pointer: str = MESSAGE_ID_POINTER,
    ) -> int:
        """Send messages of a data connection in batches; return the number of messages that the service accepted.

        A message without an id gets one, so that the service stores the message once even if a request is repeated.

        Args:
            lookup: short name of the connection in URLs.
            messages: one message or several, as JSON objects; the properties ``timestamp`` and ``deviceId`` are
                optional.
            message_id_pointer: JSON pointer to the id of a message; pass the ``messageIdPointer`` of the connection if
                it states one.

        Raises:
            ForbiddenError: the API key may only send telemetry of other connections or devices.
            InvalidRequestError: a message is invalid; no message of the same batch was stored. The error's attribute
                ``accepted`` is the number of messages in earlier batches, which were stored.
            JsonTextError: a message cannot be expressed in JSON; earlier batches may have been stored.
        """
        several = [messages] if isinstance(messages, Mapping) else messages
        lines = (encode_ndjson_line(add_message_id(each, message_id_pointer)) for each in several)
        accepted = 0
        for batch in split_into_batches(lines):
            try:
                accepted += self.send_lines(lookup, batch)
            except ApiError as error:
                error.accepted, error.attempted = accepted, len(batch)
                raise
        return accepted

    def send_lines(self, lookup: str, lines: Iterable[bytes]) -> int:
        """Send one batch of messages of a data connection; return the number of messages that the service accepted.

        Args:
            lookup: short name of the connection in URLs.
            lines: messages as NDJSON lines; each message needs an id, so that a repeated request stores it only once.

        Raises:
            ApiError: the service rejects the batch or cannot be reached, or the reply does not confirm all messages.
        """
        batch = list(lines)
        path = f"/oi-api/telemetry/{quote_path_segment(lookup)}"
        # The service stores a messageId once, so the request is safe to repeat without remembering its reply.
        reply = self._transport.request("POST", path, content=b"".join(batch), headers=_NDJSON, appends=True)
        require_messages_accepted(reply, len(batch))
        return len(batch)

    def spool(self, path: Path | str) -> "Spool":
        """Open a spool file, which stores messages until the service has accepted them.

        Args:
            path: path of the file, created if it is missing; only one process may use the file at a time. Its threads
                may share the spool: one thread can store messages while another one sends them.
        """
        return Spool(self, SpoolFile(path))


class Spool:
    """File of messages that the service has not accepted yet; use the object as a context manager."""

    def __init__(self, telemetry: Telemetry, file: SpoolFile) -> None:
        self._telemetry = telemetry
        self._file = file

    def __enter__(self) -> Self:
        """Return the spool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; messages that were not sent remain in the file."""
        self._file.close()

    def __len__(self) -> int:
        """Return the number of messages that still have to be sent."""
        return len(self._file)

    def put(
        self,
        lookup: str,
        messages: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        message_id_pointer: str = MESSAGE_ID_POINTER,
    ) -> None:
        """Store messages of a connection on disk; :meth:`flush` sends them.

        Args:
            lookup: short name of the connection in URLs.
            messages: one message or several, as JSON objects.
            message_id_pointer: as for :meth:`Telemetry.send`.

        Raises:
            JsonTextError: a message cannot be expressed in JSON; no message is stored.
            sqlite3.OperationalError: the disk is full or fails; no message is stored.
        """
        several = [messages] if isinstance(messages, Mapping) else messages
        self._file.append_lines(
            lookup, [encode_ndjson_line(add_message_id(each, message_id_pointer)) for each in several]
        )

    def flush(self) -> int:
        """Send all stored messages, oldest first; return the number of messages that the service has accepted.

        The service can refuse single messages; :meth:`list_refused` returns them, and they are not sent again. If the
        service refuses a whole connection, for instance because it is unknown, the messages of this connection stay on
        disk. The messages of the other connections are sent before the error is raised.

        Raises:
            ApiError: the service is not available, rejects the API key, or refuses a whole connection; messages that
                the service has not accepted stay on disk.
            sqlite3.OperationalError: the disk is full or fails; accepted messages can stay on disk and be sent again.
        """
        sent = 0
        held: dict[str, ApiError] = {}
        max_bytes = MAX_BYTES
        while True:
            lookup, rows = self._file.read_oldest_batch(held, max_bytes)
            if not rows:
                break
            try:
                self._telemetry.send_lines(lookup, [row.line for row in rows])
            except ApiError as error:
                refusal = interpret_refusal(error, lookup)
                if refusal.action in {Action.RETRY, Action.READ_KEY}:
                    raise
                if refusal.action is Action.SEND_FEWER and len(rows) > 1:
                    max_bytes = sum(len(row.line) for row in rows) // 2
                elif not self._try_mark_refused_messages(refusal, rows):
                    held[lookup] = error
                continue
            self._file.remove_accepted([row.row_id for row in rows])
            sent += len(rows)
            max_bytes = min(MAX_BYTES, max_bytes + max_bytes // _GROWTH + 1)
        if held:
            raise next(iter(held.values()))
        return sent

    def list_refused(self) -> list[RefusedMessage]:
        """Return the messages that the service has refused, with its reasons, oldest first."""
        return self._file.list_refused()

    def remove_refused(self, refused: Iterable[RefusedMessage]) -> None:
        """Remove refused messages from the file, for instance after they were corrected and stored again."""
        self._file.remove_refused([each.id for each in refused])

    def _try_mark_refused_messages(self, refusal: Refusal, rows: list[SpooledLine]) -> bool:
        """Mark the messages of a refused batch that the service will never accept; return whether any was marked.

        If the error names no such message, nothing is marked: the service refuses the whole connection.

        Args:
            refusal: interpretation of the error with which the service refused the batch.
            rows: the messages of the batch.
        """
        reasons = refusal.map_rejected_lines_to_reasons([row.line for row in rows])
        if refusal.reason_if_single and len(rows) == 1:
            reasons = {1: refusal.reason_if_single}
        self._file.mark_refused({rows[number - 1].row_id: reason for number, reason in reasons.items()})
        return bool(reasons)
