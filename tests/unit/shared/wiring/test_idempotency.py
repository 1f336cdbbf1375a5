"""Tests of the stores for requests with an Idempotency-Key."""

from shared.wiring import Services


def get_stores(services: Services) -> list[str]:
    """Return the class names of both stores."""
    idempotency = services.idempotency
    return [type(part._store).__name__ for part in (idempotency.keys, idempotency.replies)]


def test_the_settings_choose_the_stores(local: Services, on_azure: Services) -> None:
    """The settings select the stores; keys and replies are in stores of the same kind."""
    assert get_stores(local) == ["SqliteIdempotencyStore", "SqliteReplyStore"]
    assert get_stores(on_azure) == ["CosmosIdempotencyStore", "CosmosReplyStore"]
