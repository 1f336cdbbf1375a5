"""Certificates for tests of TLS."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Certificate authority that issues certificates into a folder.

    Args:
        folder: folder of the files; ``ca.pem`` is the certificate of the authority.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _build_name("authority")
        certificate = self._build_certificate("authority", self._key.public_key(), 1).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.file = folder / "ca.pem"
        write_private_file(
            self.file, certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )

    def issue_certificate(self, name: str, days: int) -> tuple[Path, Path]:
        """Issue a certificate for 127.0.0.1 that is valid for some days; return the files of certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        certificate = self._build_certificate(name, key.public_key(), days).add_extension(names, critical=False)
        paths = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        write_private_file(
            paths[0], certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        write_private_file(
            paths[1],
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )
        return paths

    def _build_certificate(self, name: str, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_build_name(name))
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days))
        )


def _build_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def write_private_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
