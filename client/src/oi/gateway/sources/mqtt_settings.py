"""Settings of a gateway source of the kind ``mqtt``."""

import ssl
import uuid
from dataclasses import dataclass
from pathlib import Path

from oi.gateway.sections import Section, SettingsError

VERSIONS = ("3.1.1", "5")
_HOUR, _YEAR = 3600, 365 * 24 * 3600
_DEFAULT_SESSION = 7 * 24 * _HOUR


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS certificates for the connection to the MQTT broker.

    Attributes:
        ca_file: file with the trusted certificate authorities; None for the certificate authorities of the system.
        certificate_file: file with the client certificate; None to connect without one.
        key_file: file with the private key of the client certificate.
    """

    ca_file: Path | None
    certificate_file: Path | None
    key_file: Path | None

    def build_ssl_context(self) -> ssl.SSLContext:
        """Read the certificate files and build a TLS context; called for each connection, to use renewed certificates.

        Raises:
            SettingsError: a certificate file is missing or invalid.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            # Certificates of private authorities often lack the extensions that Python requires since 3.13.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file)
        except (OSError, ValueError) as error:
            raise SettingsError(f"The certificates of `source.tls` cannot be read: {error}") from None
        return context

    def find_certificate_expiry_unix_seconds(self) -> float | None:
        """Return the expiry of the client certificate in seconds since 1970; None without a client certificate.

        Raises:
            SettingsError: the certificate file cannot be read.
        """
        if self.certificate_file is None:
            return None
        from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415  slow to load

        try:
            return load_pem_x509_certificate(self.certificate_file.read_bytes()).not_valid_after_utc.timestamp()
        except (OSError, ValueError) as error:
            raise SettingsError(f"The client certificate {self.certificate_file} cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class MqttSettings:
    """Settings of the connection to an MQTT broker.

    Attributes:
        host: host name or IP address of the broker.
        port: TCP port of the broker.
        version: version of MQTT: ``3.1.1`` or ``5``.
        client_id: MQTT client id, which identifies the session at the broker; must be different for each gateway.
        username: user name; None to connect without one.
        password_file: file with the password; None to connect without one.
        tls: TLS certificates; None for a connection without TLS.
        shared_group: name of the group of gateways that share the messages (shared subscription); None for no group.
        qos: MQTT quality of service of the subscriptions, 0 or 1.
        keep_alive_seconds: interval of the pings to the broker, in seconds.
        max_in_flight: maximum number of unacknowledged messages that the broker may send (version 5).
        session_seconds: seconds for which the broker stores messages for a disconnected gateway (version 5).
    """

    host: str
    port: int
    version: str
    client_id: str
    username: str | None
    password_file: Path | None
    tls: TlsSettings | None
    shared_group: str | None
    qos: int
    keep_alive_seconds: int
    max_in_flight: int
    session_seconds: int

    @property
    def broker_address(self) -> str:
        """Host and port of the broker as text, for log messages."""
        return f"{self.host}:{self.port}"

    def read_password_if_configured(self) -> str | None:
        """Read the password from its file; None if no file is configured.

        Raises:
            SettingsError: the password file cannot be read.
        """
        if self.password_file is None:
            return None
        try:
            return self.password_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise SettingsError(f"The password of the broker cannot be read: {error}") from None

    def build_subscription_filter(self, topic_filter: str) -> str:
        """Return the topic filter to subscribe to.

        If the gateway belongs to a group of gateways, this is the filter of a shared subscription.
        """
        return topic_filter if self.shared_group is None else f"$share/{self.shared_group}/{topic_filter}"


def parse_mqtt_settings(section: Section, *, is_check: bool = False) -> MqttSettings:
    """Parse the settings of an MQTT source.

    Args:
        section: section ``source`` of the configuration file.
        is_check: True for a test of the configuration, which uses a separate session, so that a running gateway is not
            disturbed.

    Raises:
        SettingsError: a setting is invalid; the message names the first one.
    """
    section.get_text("kind")
    tls = _parse_tls_settings(section.get_section("tls")) if section.has_property("tls") else None
    client_id, group = section.get_text("clientId"), section.find_text("sharedGroup")
    if group is not None and any(each in group for each in "/+#"):
        raise SettingsError(f"{section.quote_property_path('sharedGroup')} must have none of the characters / + #.")
    settings = MqttSettings(
        section.get_text("host"),
        section.get_integer("port", 8883 if tls else 1883, minimum=1, maximum=65_535),
        section.get_choice("version", VERSIONS, "5"),
        f"{client_id}-check-{uuid.uuid4().hex[:6]}" if is_check else client_id,
        section.find_text("username"),
        section.find_path("passwordFile"),
        tls,
        None if is_check else group,
        0 if is_check else int(section.get_choice("qos", ("0", "1"), "1")),
        section.get_integer("keepAliveSeconds", 30, minimum=5, maximum=_HOUR),
        section.get_integer("maxInFlight", 1_000, minimum=1, maximum=4_096),
        0 if is_check else section.get_integer("sessionSeconds", _DEFAULT_SESSION, minimum=0, maximum=_YEAR),
    )
    if is_check:
        section.get_choice("qos", ("0", "1"), "1")
        section.get_integer("sessionSeconds", _DEFAULT_SESSION, minimum=0, maximum=_YEAR)
    if settings.password_file is not None and settings.username is None:
        raise SettingsError(f"{section.quote_property_path('passwordFile')} requires the setting `username`.")
    section.check_all_properties_read()
    return settings


def _parse_tls_settings(section: Section) -> TlsSettings:
    settings = TlsSettings(
        section.find_path("caFile"), section.find_path("certificateFile"), section.find_path("keyFile")
    )
    if (settings.certificate_file is None) != (settings.key_file is None):
        raise SettingsError(
            f"{section.quote_property_path('certificateFile')} and {section.quote_property_path('keyFile')} "
            "must be set together."
        )
    section.check_all_properties_read()
    return settings
