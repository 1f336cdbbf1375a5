"""Tests that every store of webhooks and of their deliveries meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.backends.azure.cosmos_webhooks import CosmosWebhookStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.backends.embedded.webhooks import SCHEMA, SqliteWebhookStore
from shared.timestamps import format_rfc3339
from shared.webhooks.events import WebhookEventType
from shared.webhooks.models import Attempt, Delivery, DeliveryStatus
from shared.webhooks.ports import DeliveryPlace, WebhookStore
from tests.adapters.cosmos import KINDS, open_accounts

START = datetime(2026, 1, 5, 0, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)
type Opener = Callable[[], WebhookStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> WebhookStore:
            if account:
                return CosmosWebhookStore(account())
            database = SqliteDatabase(tmp_path / "webhooks.sqlite", SCHEMA)
            stack.push_async_callback(database.close)
            return SqliteWebhookStore(database)

        yield open_another


@pytest.fixture
def store(open_store: Opener) -> WebhookStore:
    """Provide an empty store; each test runs with each kind of store."""
    return open_store()


def build_delivery(delivery_id: str = "m1", endpoint: str = "endpoint-a", **changes: Any) -> Delivery:
    """Return a delivery whose first attempt is due at the start of the test."""
    made = Delivery(
        id=delivery_id,
        endpoint=endpoint,
        event_type=WebhookEventType.WEBHOOK_TEST,
        body='{"type":"webhook.test","data":{"name":"Ümlaut"}}',
        created_at=START,
        next_attempt_at=START,
        expires_at=START + timedelta(days=30),
    )
    return made.model_copy(update=changes)


async def test_a_webhook_document_can_be_changed(open_store: Opener) -> None:
    """Another process reads a changed document; if the change function returns None, it is unchanged."""
    store, other = open_store(), open_store()
    assert await store.read_state_document("endpoints") is None
    assert await store.change_state_document("endpoints", lambda before: None if before is None else "never") is None
    assert await store.change_state_document("endpoints", lambda before: f"{before} one") == "None one"
    assert await other.change_state_document("endpoints", lambda _: None) == "None one"
    assert await other.read_state_document("endpoints") == "None one"
    assert await other.read_state_document("amendments") is None


async def test_concurrent_changes_of_a_webhook_document_are_not_lost(open_store: Opener) -> None:
    """If two processes change a document at the same time, both changes are stored."""
    stores = open_store(), open_store()

    def append_letter(before: str | None) -> str:
        return (before or "") + "x"

    await asyncio.gather(*(stores[number % 2].change_state_document("counter", append_letter) for number in range(6)))
    assert await stores[0].read_state_document("counter") == "xxxxxx"


async def test_an_exception_of_the_change_function_is_raised(store: WebhookStore) -> None:
    """If the change function raises an exception, the document is unchanged and the caller gets the exception."""

    def raise_error(before: str | None) -> str:
        raise LookupError(before)

    await store.change_state_document("endpoints", lambda _: "one")
    with pytest.raises(LookupError):
        await store.change_state_document("endpoints", raise_error)
    assert await store.read_state_document("endpoints") == "one"


async def read_delivery(store: WebhookStore, endpoint: str, delivery_id: str) -> Delivery | None:
    """Return a stored delivery; None if it does not exist."""
    return await store.change_delivery(endpoint, delivery_id, lambda _: None)


async def test_adding_a_webhook_delivery_again_changes_nothing(open_store: Opener) -> None:
    """Adding a delivery again changes nothing; another webhook may have a delivery with the same id."""
    store, other = open_store(), open_store()
    await store.add_deliveries([build_delivery(), build_delivery(endpoint="endpoint-b", body="b")])
    await other.add_deliveries([build_delivery(body="changed"), build_delivery("m2")])
    assert await read_delivery(other, "endpoint-a", "m1") == build_delivery()
    assert await read_delivery(other, "endpoint-a", "m2") == build_delivery("m2")
    assert await read_delivery(other, "endpoint-b", "m1") == build_delivery(endpoint="endpoint-b", body="b")
    assert await read_delivery(other, "endpoint-b", "m2") is None


async def test_a_webhook_delivery_is_claimed_by_one_worker(open_store: Opener) -> None:
    """A claimed delivery is not due for other workers until the claim expires."""
    store, other = open_store(), open_store()
    await store.add_deliveries([build_delivery(), build_delivery("m2", next_attempt_at=START + SECOND)])
    [claimed] = await store.claim_due_deliveries("endpoint-a", START, START + 30 * SECOND, "lease-1", 10)
    assert claimed == build_delivery(lease="lease-1", scheduled_at=START)
    assert await other.claim_due_deliveries("endpoint-a", START, START + 30 * SECOND, "lease-2", 10) == []
    assert await other.find_due_endpoint_id(START, ()) is None
    later = await other.claim_due_deliveries("endpoint-a", START + 31 * SECOND, START + 60 * SECOND, "lease-2", 10)
    assert [each.id for each in later] == ["m2", "m1"]


async def test_deliveries_are_rescheduled_after_the_clocks_were_set_back(open_store: Opener) -> None:
    """After clocks are set back, deliveries that are scheduled in the future are due at once."""
    store, other = open_store(), open_store()
    before = START + 1800 * SECOND
    await store.add_deliveries([build_delivery("claimed", next_attempt_at=before)])
    [claimed] = await store.claim_due_deliveries("endpoint-a", before, before + 30 * SECOND, "lease-1", 1)
    waiting = build_delivery("waiting", next_attempt_at=before, scheduled_at=before)
    later = build_delivery("later", next_attempt_at=before, scheduled_at=START)
    ended = build_delivery("ended", next_attempt_at=None, scheduled_at=before)
    await store.add_deliveries([waiting, later, ended])
    until = START + 30 * SECOND
    assert await other.reschedule_and_count_after_clock_setback(START, until, START + 300 * SECOND, 10) == 2
    assert await other.reschedule_and_count_after_clock_setback(START, until, START + 300 * SECOND, 10) == 0
    due = await other.claim_due_deliveries("endpoint-a", START, START + 60 * SECOND, "lease-2", 10)
    assert [each.id for each in due] == ["waiting"]
    done = claimed.copy_with_attempt(Attempt(at=START), status=DeliveryStatus.DELIVERED, next_attempt_at=None)
    assert await store.try_save_claimed_delivery(done, "lease-1")
    assert await read_delivery(other, "endpoint-a", "later") == later
    assert await read_delivery(other, "endpoint-a", "ended") == ended


class NewerDelivery(Delivery):
    """Delivery of a newer version of the service, which this version cannot parse."""

    retries: Any = "automatic"


def build_newer_delivery() -> Delivery:
    """Return a delivery that cannot be parsed and became due before others."""
    before = START - SECOND
    content = build_delivery("newer", next_attempt_at=before, scheduled_at=before).model_dump(exclude={"retries"})
    return NewerDelivery.model_validate(content)


async def test_a_delivery_that_cannot_be_parsed_stops_no_others(
    open_store: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    """A delivery that cannot be parsed is logged and delayed; the other deliveries of its webhook are claimed."""
    store, other = open_store(), open_store()
    await store.add_deliveries([build_newer_delivery(), build_delivery()])
    until = START + 30 * SECOND
    claimed = await other.claim_due_deliveries("endpoint-a", START, until, "lease-1", 10)
    assert [each.id for each in claimed] == ["m1"]
    [record] = [each for each in caplog.records if each.message == "a webhook delivery cannot be parsed"]
    assert record.__dict__["fields"] == {"webhook": "endpoint-a", "delivery": "newer"}
    assert await store.find_due_endpoint_id(until - SECOND, ()) is None
    assert await store.find_due_endpoint_id(until, ()) == "endpoint-a"


async def test_a_delivery_that_cannot_be_parsed_is_not_listed(store: WebhookStore) -> None:
    """The pages of a webhook's deliveries contain all deliveries except those that cannot be parsed."""
    older = build_delivery("older", created_at=START - SECOND)
    await store.add_deliveries([build_newer_delivery(), build_delivery(), older])
    assert await store.list_deliveries("endpoint-a", None, None, 1) == [build_delivery()]
    assert await store.list_deliveries("endpoint-a", None, None, 2) == [build_delivery(), older]


async def test_a_delivery_that_cannot_be_parsed_is_not_changed(store: WebhookStore) -> None:
    """A delivery that cannot be parsed is not changed, and the result is None."""
    await store.add_deliveries([build_newer_delivery()])
    assert await store.change_delivery("endpoint-a", "newer", lambda _: build_delivery("newer")) is None
    assert await read_delivery(store, "endpoint-a", "newer") is None


async def test_a_delivery_that_cannot_be_parsed_is_rescheduled(open_store: Opener) -> None:
    """After clocks are set back, a delivery that cannot be parsed is scheduled anew like the others."""
    store = open_store()
    await store.add_deliveries([build_newer_delivery(), build_delivery(scheduled_at=START)])
    at, limit = START - 1800 * SECOND, START - 1500 * SECOND
    assert await store.reschedule_and_count_after_clock_setback(at, at, limit, 10) == 2
    assert await store.reschedule_and_count_after_clock_setback(at, at, limit, 10) == 0
    assert [each.id for each in await store.claim_due_deliveries("endpoint-a", at, START, "lease-1", 10)] == ["m1"]


async def test_another_worker_gets_a_delivery_whose_claim_was_rescheduled(open_store: Opener) -> None:
    """If a worker dies after its claim was rescheduled, another worker gets the delivery at the new time."""
    store, other = open_store(), open_store()
    before, until = START + 1800 * SECOND, START + 30 * SECOND
    await store.add_deliveries([build_delivery(next_attempt_at=before)])
    await store.claim_due_deliveries("endpoint-a", before, before + 30 * SECOND, "lease-1", 1)
    assert await other.reschedule_and_count_after_clock_setback(START, until, START + 300 * SECOND, 10) == 1
    assert await other.find_due_endpoint_id(until - SECOND, ()) is None
    assert len(await other.claim_due_deliveries("endpoint-a", until, until + 30 * SECOND, "lease-2", 10)) == 1


async def test_simultaneous_claims_get_different_deliveries(open_store: Opener) -> None:
    """Workers that claim at the same time get different deliveries."""
    stores = open_store(), open_store()
    await stores[0].add_deliveries([build_delivery(f"m{number}") for number in range(6)])
    claims = await asyncio.gather(
        *(
            store.claim_due_deliveries("endpoint-a", START, START + SECOND, f"lease-{number}", 6)
            for number, store in enumerate(stores)
        )
    )
    ids = [each.id for claimed in claims for each in claimed]
    assert sorted(ids) == sorted(set(ids))


async def test_a_claim_returns_at_most_the_requested_number_of_deliveries(store: WebhookStore) -> None:
    """A claim returns at most the given number of deliveries, beginning with those that were due first."""
    await store.add_deliveries(
        [build_delivery(f"m{number}", next_attempt_at=START - number * SECOND) for number in range(3)]
    )
    claimed = await store.claim_due_deliveries("endpoint-a", START, START + SECOND, "lease-1", 2)
    assert sorted(each.id for each in claimed) == ["m1", "m2"]


async def test_webhooks_with_due_deliveries_are_listed(store: WebhookStore) -> None:
    """The list contains each webhook with a due delivery, except the excluded ones."""
    await store.add_deliveries(
        [
            build_delivery(),
            build_delivery(endpoint="endpoint-b"),
            build_delivery(endpoint="endpoint-c", next_attempt_at=None),
        ]
    )
    first = await store.find_due_endpoint_id(START, ())
    assert first is not None
    second = await store.find_due_endpoint_id(START, {first})
    assert {first, second} == {"endpoint-a", "endpoint-b"}
    assert await store.find_due_endpoint_id(START, {"endpoint-a", "endpoint-b"}) is None
    assert await store.find_due_endpoint_id(START - SECOND, ()) is None


async def test_a_delivery_result_is_saved_only_with_the_current_lease(open_store: Opener) -> None:
    """A worker can save the result of a delivery only while it holds the lease of its claim."""
    store, other = open_store(), open_store()
    await store.add_deliveries([build_delivery()])
    [first] = await store.claim_due_deliveries("endpoint-a", START, START + SECOND, "lease-1", 1)
    [second] = await other.claim_due_deliveries("endpoint-a", START + SECOND, START + 2 * SECOND, "lease-2", 1)
    attempt = Attempt(at=START, http_status=204, duration_ms=12)
    done = second.copy_with_attempt(attempt, status=DeliveryStatus.DELIVERED, next_attempt_at=None)
    assert not await store.try_save_claimed_delivery(first.copy_with_attempt(attempt, next_attempt_at=START), "lease-1")
    assert await other.try_save_claimed_delivery(done, "lease-2")
    assert await read_delivery(store, "endpoint-a", "m1") == done
    assert await store.find_due_endpoint_id(START + timedelta(days=1), ()) is None
    assert not await store.try_save_claimed_delivery(build_delivery("nowhere"), "lease-1")


async def test_a_failed_delivery_is_due_at_its_next_attempt(store: WebhookStore) -> None:
    """A failed delivery is due again at the time of its next attempt."""
    await store.add_deliveries([build_delivery()])
    [claimed] = await store.claim_due_deliveries("endpoint-a", START, START + SECOND, "lease-1", 1)
    assert await store.try_save_claimed_delivery(
        claimed.copy_with_attempt(Attempt(at=START), next_attempt_at=START + 5 * SECOND), "lease-1"
    )
    assert await store.find_due_endpoint_id(START + 4 * SECOND, ()) is None
    assert await store.find_due_endpoint_id(START + 5 * SECOND, ()) == "endpoint-a"


async def test_a_webhook_delivery_can_be_changed(open_store: Opener) -> None:
    """A changed delivery is stored and returned; for an unknown delivery, the result is None."""
    store, other = open_store(), open_store()
    await store.add_deliveries([build_delivery(status=DeliveryStatus.FAILED, next_attempt_at=None)])

    def double_attempt(before: Delivery) -> Delivery:
        return before.model_copy(update={"status": DeliveryStatus.PENDING, "next_attempt_at": START})

    assert await other.change_delivery("endpoint-a", "m1", lambda _: None) == build_delivery(
        status=DeliveryStatus.FAILED, next_attempt_at=None
    )
    assert await other.change_delivery("endpoint-a", "m1", double_attempt) == build_delivery()
    assert await store.find_due_endpoint_id(START, ()) == "endpoint-a"
    assert await store.change_delivery("endpoint-a", "nowhere", double_attempt) is None


async def test_webhook_deliveries_are_listed_newest_first(store: WebhookStore) -> None:
    """All pages of a webhook together contain each of its deliveries once; they can be filtered by status."""
    made = [build_delivery(f"m{number}", created_at=START + number // 2 * SECOND) for number in range(5)]
    made[1] = made[1].model_copy(update={"status": DeliveryStatus.FAILED, "next_attempt_at": None})
    await store.add_deliveries([*made, build_delivery(endpoint="endpoint-b")])
    listed: list[str] = []
    after: DeliveryPlace | None = None
    while page := await store.list_deliveries("endpoint-a", None, after, 2):
        listed += [each.id for each in page]
        after = DeliveryPlace(format_rfc3339(page[-1].created_at), page[-1].id)
    assert listed == ["m4", "m3", "m2", "m1", "m0"]
    failed = await store.list_deliveries("endpoint-a", DeliveryStatus.FAILED, None, 10)
    assert failed == [made[1]]
    assert await store.list_deliveries("nowhere", None, None, 10) == []


async def test_deliveries_are_deleted_after_their_retention_time(store: WebhookStore) -> None:
    """Deliveries are deleted after their retention time, at most the given number in one call."""
    await store.add_deliveries(
        [build_delivery(f"m{number}", expires_at=START + number * SECOND) for number in range(3)]
    )
    assert await store.delete_and_count_expired_deliveries(START + SECOND, 1) == 1
    assert await store.delete_and_count_expired_deliveries(START + SECOND, 10) == 1
    assert await store.delete_and_count_expired_deliveries(START + SECOND, 10) == 0
    assert [each.id for each in await store.list_deliveries("endpoint-a", None, None, 10)] == ["m2"]
