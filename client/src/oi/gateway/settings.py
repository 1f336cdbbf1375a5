"""Configuration of the gateway, read from a YAML file."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from oi.addresses import check_address_protects_credentials
from oi.credentials import check_credential_characters
from oi.gateway.routes import Route, Routes, parse_route
from oi.gateway.sections import Section, SettingsError

_UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SIZE = re.compile(r"(\d{1,15}) ?([KMGT]iB|B)?")
_LEAST_SPOOL = 2**20
STOP, DROP_OLDEST = "stop", "dropOldest"
"""Policies for a full spool: read no more messages, or delete the oldest ones."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Address of the service, and the source of the API key.

    Attributes:
        url: address of the service.
        key_file: file with the API key; None if the environment variable ``OI_KEY`` contains the key.
    """

    url: str
    key_file: Path | None

    def read_api_key(self) -> str:
        """Read the API key.

        Call this again after a failed request, because an operator may have replaced the key.

        Raises:
            SettingsError: the file or environment variable with the key is missing, unreadable or empty, or contains
                characters that no key can have.
        """
        place = "The variable OI_KEY" if self.key_file is None else f"The file {self.key_file}"
        key = self._read_unchecked_api_key()
        try:
            check_credential_characters(key)
        except ValueError as error:
            raise SettingsError(f"{place} does not contain an API key: {error}.") from None
        return key

    def _read_unchecked_api_key(self) -> str:
        if self.key_file is None:
            key = os.environ.get("OI_KEY", "")
            if not key:
                raise SettingsError("The API key is missing: set `service.keyFile`, or the variable OI_KEY.")
            return key
        try:
            key = self.key_file.read_text(encoding="utf-8-sig").strip()
        except (OSError, ValueError) as error:
            raise SettingsError(f"The API key cannot be read: {error}") from None
        if not key:
            raise SettingsError(f"The file {self.key_file} of the API key is empty.")
        return key


@dataclass(frozen=True, slots=True)
class SpoolSettings:
    """Settings of the spool, the file of messages that wait to be sent.

    Attributes:
        path: path of the file.
        max_bytes: maximum total size in bytes of the messages in the file.
        when_full: policy for a full file: ``stop`` accepts no new messages, ``dropOldest`` deletes the oldest ones.
    """

    path: Path
    max_bytes: int
    when_full: str


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Complete configuration of the gateway.

    Attributes:
        service: address and key of the service.
        source_kind: kind of the source of messages, such as ``mqtt``.
        source: settings of the source, which the module for this kind parses.
        routes: rules that map the addresses of messages to data connections.
        spool: settings of the file of messages that wait to be sent.
        metrics_port: port on 127.0.0.1 that serves the metrics; 0 to serve no metrics.
    """

    service: ServiceSettings
    source_kind: str
    source: Section
    routes: Routes
    spool: SpoolSettings
    metrics_port: int


def load_gateway_settings(path: Path) -> GatewaySettings:
    """Read the configuration from a YAML file.

    Raises:
        SettingsError: a setting is invalid; the message names the first one and the rule.
    """
    from oi.gateway.yaml_file import load_yaml_file  # noqa: PLC0415  needs PyYAML, part of the extra `mqtt`

    return parse_gateway_settings(Section(load_yaml_file(path)))


def parse_gateway_settings(file_section: Section) -> GatewaySettings:
    """Build the configuration of the gateway from the parsed YAML file.

    Raises:
        SettingsError: a setting is invalid; the message names the first one and the rule.
    """
    service = _parse_service_settings(file_section.get_section("service"))
    source = file_section.get_section("source")
    kind = source.get_text("kind")
    routes = [parse_route(each) for each in file_section.get_section_list("routes")]
    spool = _parse_spool_settings(file_section.get_section("spool"))
    metrics = file_section.get_section("metrics", {})
    port = metrics.get_integer("port", 9108, minimum=0, maximum=65_535)
    metrics.check_all_properties_read()
    file_section.check_all_properties_read()
    return GatewaySettings(service, kind, source, _build_routes(routes), spool, port)


def _build_routes(routes: list[Route]) -> Routes:
    try:
        return Routes(routes)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _parse_service_settings(section: Section) -> ServiceSettings:
    url = section.get_text("url").rstrip("/")
    try:
        check_address_protects_credentials(url)
    except ValueError as error:
        raise SettingsError(f"`service.url`: {error}") from None
    parts = urlsplit(url)
    if parts.path or parts.query:
        raise SettingsError("`service.url` must have no path and no query, such as https://plant.example.")
    settings = ServiceSettings(url, section.find_path("keyFile"))
    section.check_all_properties_read()
    return settings


def _parse_spool_settings(section: Section) -> SpoolSettings:
    path = section.get_path("path")
    size = parse_size_bytes(section.get_value_as_text("maxSize", "10GiB"), section.quote_property_path("maxSize"))
    when_full = section.get_choice("whenFull", (STOP, DROP_OLDEST), STOP)
    section.check_all_properties_read()
    return SpoolSettings(path, size, when_full)


def parse_size_bytes(text: str, setting_path: str) -> int:
    """Convert a size such as ``10GiB`` to bytes.

    Args:
        text: number with an optional unit: B, KiB, MiB, GiB, TiB.
        setting_path: path of the setting in the file, for the error message.

    Raises:
        SettingsError: the text is not a size in this form, or the size is less than 1 MiB.
    """
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[(match[2] or "").upper()] if match else 0
    if size < _LEAST_SPOOL:
        raise SettingsError(f"{setting_path} must be a size of at least 1MiB, such as 10GiB.")
    return size
