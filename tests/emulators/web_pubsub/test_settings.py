"""Tests of the settings of the Web PubSub emulator."""

from emulators.web_pubsub.settings import AnyEvent, HubSettings, ServiceSettings


def test_a_hub_may_have_its_own_settings() -> None:
    """A hub uses its own settings; hubs without own settings use the default settings."""
    own, other = HubSettings(anonymous=True), HubSettings(close_code=4_000)
    settings = ServiceSettings("k" * 32, {"live": own}, other)
    assert (settings.get_hub_settings("live"), settings.get_hub_settings("x")) == (own, other)


def test_the_event_set_for_any_event_contains_each_name() -> None:
    """The set of event names that stands for any event (``*`` on Azure) contains every name."""
    assert all(name in AnyEvent() for name in ("message", "", "a" * 100))
