"""Tests of the emulator's requests to event handlers (upstreams)."""

import pytest
from aiohttp import web

from emulators.web_pubsub.upstream import AsgiUpstream, HttpUpstream, UpstreamError
from tests.emulators.web_pubsub.serving import Handler


async def _serve_app(runner: web.ServerRunner) -> str:
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


async def test_an_event_is_posted_to_the_url_with_its_name() -> None:
    """An event is sent by POST to a URL that contains the event's name; redirects are not followed."""
    seen = []

    async def reply_to_request(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.path, request.headers["ce-hub"], await request.read()))
        return web.Response(status=302, headers={"Location": "/elsewhere", "X-Mixed": "Case"}, body=b"moved")

    runner = web.ServerRunner(web.Server(reply_to_request))
    upstream = HttpUpstream(f"{await _serve_app(runner)}/events/{{event}}")
    try:
        answer = await upstream.send_request("POST", "a/b", {"ce-hub": "h"}, b"body")
    finally:
        await upstream.close()
        await runner.cleanup()
    assert seen == [("POST", "/events/a/b", "h", b"body")]
    assert (answer.status, answer.headers["x-mixed"], answer.body) == (302, "Case", b"moved")


@pytest.mark.parametrize(("size", "is_accepted"), [(1024 * 1024, True), (1024 * 1024 + 1, False)])
async def test_event_handler_responses_over_1_mib_are_rejected(size: int, is_accepted: bool) -> None:  # noqa: FBT001
    """A response of an event handler over 1 MiB is rejected."""

    async def reply_with_large_body(_: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * size)

    runner = web.ServerRunner(web.Server(reply_with_large_body))
    upstream = HttpUpstream(await _serve_app(runner))
    try:
        if is_accepted:
            assert len((await upstream.send_request("POST", "e", {}, b"")).body) == size
        else:
            with pytest.raises(UpstreamError):
                await upstream.send_request("POST", "e", {}, b"")
    finally:
        await upstream.close()
        await runner.cleanup()


async def test_an_unreachable_url_raises_upstream_error() -> None:
    """An event handler with an unreachable or invalid URL causes an UpstreamError."""
    for url in ("http://127.0.0.1:1/", "nonsense"):
        upstream = HttpUpstream(url)
        with pytest.raises(UpstreamError):
            await upstream.send_request("POST", "e", {}, b"")
        await upstream.close()


async def test_a_failing_event_handler_application_raises_upstream_error() -> None:
    """If an event handler in the emulator's own process raises an exception, the emulator raises an UpstreamError."""
    handler = Handler(status=201, body=b"done", headers={"x-a": "b"})
    upstream = AsgiUpstream(handler, "/e/{event}")
    answer = await upstream.send_request("POST", "x", {"ce-type": "azure.webpubsub.user.x", "ce-eventname": "x"}, b"1")
    assert (answer.status, answer.body, answer.headers["x-a"]) == (201, b"done", "b")
    with pytest.raises(UpstreamError):
        await upstream.send_request("POST", "x", {}, b"")


async def test_a_header_that_is_no_text_raises_upstream_error() -> None:
    """A header value with an unpaired surrogate cannot be sent and causes an UpstreamError."""
    with pytest.raises(UpstreamError):
        await AsgiUpstream(Handler(), "/e").send_request("POST", "x", {"ce-userid": "\ud800"}, b"")
