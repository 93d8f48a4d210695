"""Certificates for tests: an authority of one's own, and what it issues."""

import socket
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kit.network.hosts import is_address
from kit.network.tls import CertificateSource

LOOPBACK = ("localhost", "127.0.0.1")
_A_DAY = timedelta(days=1)
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""Newer versions of Python ask for it, and for the identifiers of keys."""


class Authority:
    """Issues certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        builder = (
            _builder(self._name, self._name, self._key.public_key(), _A_DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        """Its own certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, name: str = "service", hosts: Sequence[str] = LOOPBACK, lasts: timedelta = _A_DAY
    ) -> tuple[bytes, bytes]:
        """A certificate for servers and clients on these hosts, and its key; PEM. `lasts` may be negative, for one that has
        expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ip_address(each)) if is_address(each) else x509.DNSName(each) for each in hosts]
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(_named(name), self._name, key.public_key(), lasts)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate.public_bytes(serialization.Encoding.PEM), private


class CertificateFolder:
    """The three files of a process, named as by cert-manager. `put` replaces them one after the other, as a simple tool does."""

    def __init__(self, path: Path, certificate: tuple[bytes, bytes], trusted: Sequence[Authority]) -> None:
        self.cert_file, self.key_file, self.ca_file = path / "tls.crt", path / "tls.key", path / "ca.crt"
        path.mkdir(parents=True, exist_ok=True)
        self.put(certificate)
        self.trust(*trusted)

    def put(self, certificate: tuple[bytes, bytes]) -> None:
        """Another certificate and its key."""
        self.cert_file.write_bytes(certificate[0])
        self.key_file.write_bytes(certificate[1])

    def trust(self, *authorities: Authority) -> None:
        """Other authorities."""
        self.ca_file.write_bytes(b"".join(each.pem for each in authorities))

    def source(self) -> CertificateSource:
        """The files, as a process reads them."""
        return CertificateSource(self.cert_file, self.key_file, self.ca_file)

    def environment(self) -> dict[str, str]:
        """The settings that name the files."""
        return {
            "GROUNDWORK_TLS_CERT_FILE": str(self.cert_file),
            "GROUNDWORK_TLS_KEY_FILE": str(self.key_file),
            "GROUNDWORK_TLS_CA_FILE": str(self.ca_file),
        }


def shown_by(address: str, folder: CertificateFolder) -> bytes:
    """The certificate, PEM, with which a gRPC server answers a new connection of who has these files. Blocks."""
    context = ssl.create_default_context(cafile=folder.ca_file)
    context.load_cert_chain(folder.cert_file, folder.key_file)
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        found = secure.getpeercert(binary_form=True)
    assert found is not None
    return ssl.DER_cert_to_PEM_cert(found).encode()


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lasts: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * _A_DAY)
        .not_valid_after(now + lasts)
    )
