"""The users of `traffic.py` at work while something is broken, and the account of it afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.cluster.accounting import settle
from tests.cluster.facts import User
from tests.cluster.release import Release
from tests.cluster.report import Section
from tests.cluster.traffic import Load, Traffic

REASONS_SHOWN = 6


@contextmanager
def used_while_broken(release: Release, users: Sequence[User], load: Load, section: Section) -> Iterator[Traffic]:
    """Traffic for the block, in which something is broken and mended. Raises AssertionError when afterwards anything that was
    acknowledged is lost or doubled, an answer was wrong or somebody else's, or a stream did not go on."""
    addresses = _Gateways(release)
    traffic = Traffic(addresses, users, load)
    with traffic.running():
        traffic.until(lambda journal: journal.answers > 0 or not load.askers, "the first answer")
        yield traffic
    journal = traffic.journal
    account = settle(release.addresses[0], users, journal)
    section.figure("acknowledged uploads", account.acknowledged)
    section.figure("lost or doubled", len(account.violations))
    section.figure("answers and streams read to their end", journal.answers)
    section.figure("wrong or foreign answers, broken streams", len(journal.mistakes) + len(journal.unfinished))
    section.figure("streams that went on at another gateway", journal.read_on)
    section.figure("answers that said that they could not search", journal.unavailable)
    reasons = journal.failures_by_reason().most_common(REASONS_SHOWN)
    shown = ", ".join(f"{reason} ({count})" for reason, count in reasons) or "none"
    section.figure("first tries that failed", f"{len(journal.failures)}: {shown}" if journal.failures else "0")
    assert not account.violations, account.violations
    assert not journal.mistakes, journal.mistakes[:10]
    assert not journal.unfinished, journal.unfinished[:10]


class _Gateways:
    """Addresses of the gateways as a client knows them: looked up when it begins, and again when asked to. A client does not learn
    by itself that a pod has died."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._known = [*release.gateway_addresses(), *release.addresses]

    def __call__(self) -> Sequence[str]:
        return self._known

    def look_up(self) -> None:
        """Pods have come and gone."""
        self._known = [*self._release.gateway_addresses(), *self._release.addresses]
