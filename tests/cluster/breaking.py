"""The users of `traffic.py` at work while something is broken, and the account of it afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.cluster.accounting import settle
from tests.cluster.cluster import Cluster, Pod
from tests.cluster.facts import User
from tests.cluster.faults import kill_processes
from tests.cluster.release import Release
from tests.cluster.report import Section
from tests.cluster.traffic import Load, Traffic

REASONS_SHOWN = 6
ANSWERS_BETWEEN = 3


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


def about_killing(load: Load) -> str:
    """What `kill_and_wait` does under this load, for a report."""
    return (
        f"{load.uploaders} upload without a pause, {load.askers} ask, and {load.readers} follow answers of a slow language "
        "model as event streams; who fails tries again at another gateway. The next pod is killed when the last one is ready "
        "again."
    )


def staying(cluster: Cluster, component: str = "") -> list[Pod]:
    """Without those that a roll-out just before has replaced and that still serve what they had in hand."""
    return [pod for pod in cluster.pods(component) if not pod.is_ending]


def kill_and_wait(cluster: Cluster, pod: Pod, traffic: Traffic) -> None:
    """SIGKILL to a pod; returns once all of its component are ready again and the users have been answered since."""
    there = staying(cluster, pod.component)
    (now,) = [one for one in there if one.uid == pod.uid]
    kill_processes(cluster, now)

    def is_back(pods: list[Pod]) -> bool:
        same = [one for one in pods if one.uid == pod.uid]
        has_restarted = not same or same[0].restarts > now.restarts
        return has_restarted and len(pods) == len(there) and all(one.is_ready for one in pods)

    cluster.until_pods(is_back, f"{pod.name} is back", component=pod.component)
    answers = traffic.journal.answers
    traffic.until(lambda journal: journal.answers >= answers + ANSWERS_BETWEEN, f"answers after {pod.name} was killed")


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
