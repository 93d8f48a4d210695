"""TLS between services over gRPC, with certificates on both sides: who has none of the installation's own authority neither serves
nor calls. And what operators learn of a certificate."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import grpc
from prometheus_client import Gauge

from kit.network.tls import Certificates, CertificateSource
from kit.observability.ops import Trouble

_EXPIRES = Gauge(
    "groundwork_tls_certificate_expires_timestamp_seconds",
    "When the certificate of this process for TLS between services expires; 0 without TLS.",
)
_TOLD_AT = 0.1
"""What is left of a certificate's lifetime when it is reported. It is renewed when a third is left (the default of cert-manager),
so this little means that renewing fails."""


def channel_credentials(known: Certificates) -> grpc.ChannelCredentials:
    """Shows the certificate, and takes servers with one of the authorities that names their host."""
    return grpc.ssl_channel_credentials(known.authorities, known.private_key, known.chain)


def server_credentials(source: CertificateSource) -> grpc.ServerCredentials:
    """Takes clients with a certificate of the authorities only. Each handshake is made with what the files hold by then."""
    known = source.current()

    def changed() -> grpc.ServerCertificateConfiguration | None:
        """gRPC asks in threads of its own; None keeps what there is."""
        nonlocal known
        if (latest := source.current()) is known:
            return None
        known = latest
        return _configuration(latest)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(known),
        changed,  # type: ignore[arg-type] # None is documented, and missing in the stubs
        require_client_authentication=True,
    )


def _configuration(known: Certificates) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(known.private_key, known.chain)], known.authorities)


class CertificateExpiry:
    """Tells of a certificate that was not renewed in time. What is connected goes on, so it does not stop the service."""

    def __init__(self, source: CertificateSource, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._source = source
        self._now = now
        _EXPIRES.set_function(self._expires_at_s)

    def _expires_at_s(self) -> float:
        return self._source.current().not_after.timestamp()

    def troubles(self) -> Sequence[Trouble]:
        """For readiness."""
        found = self._source.current()
        left = found.not_after - self._now()
        if left > _TOLD_AT * (found.not_after - found.not_before):
            return ()
        when = f"{found.not_after:%Y-%m-%d %H:%M} UTC"
        said = f"expires at {when}" if left > timedelta(0) else f"expired at {when}: no new connection can be made"
        message = f"it {said}; put a new one where GROUNDWORK_TLS_CERT_FILE says, and it is taken without a restart"
        return (Trouble("TLS certificate", message),)
