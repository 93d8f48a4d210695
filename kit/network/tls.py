"""The certificates with which a process proves what it is, to other services and to NATS, and those that it trusts. The files are
looked at again while it runs (kit.file_source): connections that are made later use what they hold then."""

import ssl
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kit.errors import FailedPrecondition
from kit.file_source import FileSource


class UnusableCertificate(ValueError):
    """The files do not hold what is needed, or do not fit each other."""


class BadCertificates(FailedPrecondition):
    """A process cannot start with the files that it was given for TLS."""

    reason = "BAD_CERTIFICATES"


@dataclass(frozen=True)
class Certificates:
    """What a process shows and whom it trusts: PEM texts that fit each other."""

    chain: bytes
    private_key: bytes = field(repr=False)
    authorities: bytes
    not_before: datetime
    not_after: datetime


class CertificateSource:
    """The certificates in three files, as they are at the moment. Raises BadCertificates when they are not usable at the start."""

    def __init__(self, cert_file: Path, key_file: Path, ca_file: Path) -> None:
        paths = (cert_file, key_file, ca_file)
        try:
            self._source = FileSource(paths, lambda: _read(*paths), setting="GROUNDWORK_TLS_*_FILE")
        except (OSError, ValueError) as error:
            raise BadCertificates(
                f"TLS cannot be used: {error}; see GROUNDWORK_TLS_CERT_FILE, GROUNDWORK_TLS_KEY_FILE and GROUNDWORK_TLS_CA_FILE"
            ) from error

    def current(self) -> Certificates:
        """The same object as long as nothing changed."""
        return self._source.current()


def _read(cert_file: Path, key_file: Path, ca_file: Path) -> Certificates:
    """Raises UnusableCertificate, OSError."""
    chain, private_key, authorities = cert_file.read_bytes(), key_file.read_bytes(), ca_file.read_bytes()
    certificate = _certificates(chain, cert_file)[0]
    _certificates(authorities, ca_file)
    if _public_part(private_key, key_file) != certificate.public_key():
        raise UnusableCertificate(f"the key in {key_file} does not belong to the certificate in {cert_file}")
    return Certificates(
        chain, private_key, authorities, certificate.not_valid_before_utc, certificate.not_valid_after_utc
    )


def _certificates(pem: bytes, path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise UnusableCertificate(f"{path} holds no certificate in PEM form") from error


def _public_part(pem: bytes, path: Path) -> object:
    try:
        return serialization.load_pem_private_key(pem, password=None).public_key()
    except (ValueError, TypeError) as error:
        raise UnusableCertificate(f"{path} holds no private key in PEM form without a password") from error


def read_authorities(path: Path, setting: str) -> bytes:
    """The authorities in a file. Raises BadCertificates, naming the setting."""
    try:
        pem = path.read_bytes()
        _certificates(pem, path)
    except (OSError, ValueError) as error:
        raise BadCertificates(f"TLS cannot be used: {error}; see {setting}") from error
    return pem


def nats_context(
    url: str, *, ca_file: Path | None, cert_file: Path | None, key_file: Path | None
) -> FileSource[ssl.SSLContext] | None:
    """What NATS at `url` is connected to with; None where no address begins with tls://. Raises BadCertificates."""
    schemes = {urlsplit(server.strip()).scheme for server in url.split(",")}
    if "tls" not in schemes:
        if ca_file is not None:
            raise BadCertificates(
                "GROUNDWORK_NATS_CA_FILE is set, but GROUNDWORK_NATS_URL asks for no TLS: write tls:// instead of nats://"
            )
        return None
    if schemes != {"tls"}:
        raise BadCertificates("GROUNDWORK_NATS_URL names servers with and without tls://; write tls:// before each")

    def read() -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=ca_file)
        if cert_file is not None:
            # With no password at all OpenSSL would ask for one at the terminal.
            context.load_cert_chain(cert_file, key_file, password="")
        return context

    paths = [path for path in (ca_file, cert_file, key_file) if path is not None]
    try:
        return FileSource(paths, read, setting="GROUNDWORK_NATS_CA_FILE")
    except (OSError, ValueError) as error:
        named = ", ".join(map(str, paths))
        raise BadCertificates(
            f"TLS with NATS cannot be used: {error} ({named}); see GROUNDWORK_NATS_CA_FILE"
        ) from error
