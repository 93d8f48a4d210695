"""NATS: its servers, what they have room for, and on how many of them each stream is kept."""

from __future__ import annotations

from collections.abc import Iterable

from cli.cluster.checks.finding import Finding, count, listed, shortened
from cli.cluster.checks.volumes import is_full
from cli.cluster.quantities import in_bytes
from cli.cluster.snapshot import NatsServer, Snapshot, Stream

_REPLICAS = "GROUNDWORK_NATS_REPLICAS"
_LIMIT_SHARE = 0.9
_WRITE_ERROR = "write error"
"""In what nats-server (2.15) says of its health."""


def has_majority(snapshot: Snapshot) -> bool:
    """Whether so many servers answer that something can be written; True where NATS is no part of the release."""
    nats = snapshot.workload_of("nats")
    return nats is None or not nats.wanted or 2 * len(_answering(snapshot)) > nats.wanted


def missing_servers(snapshot: Snapshot) -> Iterable[Finding]:
    """Too few servers for a majority, or for as many copies as the services ask for."""
    nats = snapshot.workload_of("nats")
    if nats is None:
        return
    answering = len(_answering(snapshot))
    if not has_majority(snapshot):
        sentence = f"NATS has no majority ({answering} of {nats.wanted} servers answer), so that nothing can be written"
        cure = "bring its other pods back; what else is said here about nodes and about pods of nats is the reason"
        yield Finding("NATS_WITHOUT_MAJORITY", "nats", sentence, cure)
    asked = asked_copies(snapshot)
    if asked > nats.wanted:
        sentence = (
            f"The services ask for {asked} copies of everything, and there are {count(nats.wanted, 'NATS server')}"
        )
        cure = f"set nats.replicas to {asked} (helm upgrade); services that start wait for that"
        yield Finding("NATS_SERVERS_MISSING", "nats", sentence, cure)


def silent_servers(snapshot: Snapshot) -> Iterable[Finding]:
    """Servers that run and do not answer, or say that they are not well."""
    for server in snapshot.nats:
        if server.problem:
            sentence = f"NATS server {server.pod} runs and does not answer at its monitoring port ({server.problem})"
            cure = (
                f"groundwork cluster logs nats shows what it does; if nothing, kubectl delete pod {server.pod} "
                "starts it anew"
            )
            yield Finding("NATS_SILENT", f"pod {server.pod}", sentence, cure)
        elif _WRITE_ERROR in server.health and not server.disk_full:
            sentence = (
                f"NATS server {server.pod} could not write, and keeps nothing more of that stream ({server.health})"
            )
            cure = (
                f"it is started anew within ten minutes and catches up; kubectl delete pod {server.pod} does that now, and "
                "its disk wants a look if it comes again"
            )
            yield Finding("NATS_WRITE_ERROR", f"pod {server.pod}", sentence, cure)
        elif not server.healthy and not server.disk_full and has_majority(snapshot):
            sentence = f"NATS server {server.pod} is not well ({server.health or 'it does not say why'})"
            cure = (
                "one that has just started catches up by itself; if it lasts for minutes look at groundwork cluster "
                "logs nats"
            )
            yield Finding("NATS_UNHEALTHY", f"pod {server.pod}", sentence, cure)


def lagging_servers(snapshot: Snapshot) -> Iterable[Finding]:
    """Servers that have not caught up with the leader of the cluster, as it says."""
    leader = next((each for each in snapshot.nats if each.is_meta_leader), None)
    if leader is None:
        if len(snapshot.nats) > 1 and has_majority(snapshot) and not any(each.problem for each in snapshot.nats):
            sentence = "The NATS servers have elected no leader"
            cure = (
                "that takes seconds; if it lasts they do not reach each other at port 6222: look at network "
                "policies and DNS"
            )
            yield Finding("NATS_WITHOUT_LEADER", "nats", sentence, cure)
        return
    if leader.behind:
        sentence = f"NATS servers {listed(leader.behind)} have not caught up with {leader.name}"
        yield Finding("NATS_BEHIND", "nats", sentence, "wait a minute; restart no other server meanwhile")
    known = {each.name for each in snapshot.nats}
    gone = [name for name in leader.offline if name not in known]
    nats = snapshot.workload_of("nats")
    if gone and nats is not None and leader.cluster_size > nats.wanted:
        sentence = (
            f"NATS still counts {listed(gone)} as members, which are no more, so that its majority is larger than it "
            "need be"
        )
        cure = "nats server cluster peer-remove takes them out"
        yield Finding("NATS_PEERS_GONE", "nats", sentence, cure)


def missing_stream_copies(snapshot: Snapshot) -> Iterable[Finding]:
    """Streams that are kept on fewer servers than the services ask for, have copies that are behind, or no leader."""
    asked = asked_copies(snapshot)
    few = [each.name for each in snapshot.streams if each.replicas < asked]
    if few:
        sentence = f"{count(len(few), 'stream')} of NATS ({listed(few)}) {_are(few)} kept on fewer than {asked} servers"
        cure = "restart the services when all NATS servers are up: each brings its streams to that number at its start"
        yield Finding("STREAM_COPIES_MISSING", "nats", sentence, cure)
    if not has_majority(snapshot):
        return
    headless = [each.name for each in snapshot.streams if each.replicas > 1 and not each.leader]
    if headless:
        what = f"{count(len(headless), 'stream')} of NATS ({listed(headless)})"
        sentence = f"{what} {_have(headless)} no leader and cannot be written"
        cure = (
            "an election takes seconds; if it lasts bring all NATS servers back, then restart them one after the other"
        )
        yield Finding("STREAM_WITHOUT_LEADER", "nats", sentence, cure)
    behind = [each.name for each in snapshot.streams if _is_behind(each, snapshot)]
    if behind:
        sentence = (
            f"Copies of {count(len(behind), 'stream')} of NATS ({listed(behind)}) have not caught up with their leader"
        )
        yield Finding("STREAM_BEHIND", "nats", sentence, "wait a minute; restart no other NATS server meanwhile")


def full_message_store(snapshot: Snapshot) -> Iterable[Finding]:
    """Servers that had no room for a write, where their volume does not say so by itself; and those near their own limit."""
    for server in snapshot.nats:
        if server.disk_full and not _volume_is_full(server, snapshot):
            said = shortened(server.disk_full, 120)
            sentence = f"NATS server {server.pod} had no room for a write and refuses all others since ({said})"
            cure = (
                f"see that its volume has room, then kubectl delete pod {server.pod}: it writes again after a "
                "restart only"
            )
            yield Finding("NATS_DISK_FULL", f"pod {server.pod}", sentence, cure)
        limit = server.storage_limit_bytes
        if limit and server.storage_bytes >= _LIMIT_SHARE * limit:
            used = f"{in_bytes(server.storage_bytes)} of the {in_bytes(limit)} that it may"
            sentence = f"NATS server {server.pod} keeps {used}, and refuses uploads beyond"
            cure = (
                "enlarge the volumes, and the limit with them (nats.persistence.size; docs/kubernetes.md#upgrade-and-roll-back "
                "says how), or delete documents"
            )
            yield Finding("NATS_STORAGE_LIMIT", f"pod {server.pod}", sentence, cure)


def asked_copies(snapshot: Snapshot) -> int:
    """On how many servers the services want everything to be kept."""
    asked = [each.environment.get(_REPLICAS, "") for each in snapshot.workloads]
    return max((int(each) for each in asked if each.isdigit()), default=1)


def _answering(snapshot: Snapshot) -> list[NatsServer]:
    """Where ports may not be forwarded, by readiness."""
    if snapshot.nats:
        return [each for each in snapshot.nats if not each.problem]
    lost = snapshot.lost_nodes
    return [NatsServer(pod.name) for pod in snapshot.pods_of("nats") if pod.ready and pod.node not in lost]


def _is_behind(stream: Stream, snapshot: Snapshot) -> bool:
    """Whether a copy lags on a server that answers: of one that does not that is said already."""
    answering = {each.name for each in _answering(snapshot)}
    return any(not peer.current and not peer.offline and peer.name in answering for peer in stream.peers)


def _volume_is_full(server: NatsServer, snapshot: Snapshot) -> bool:
    claims = {name for pod in snapshot.pods if pod.name == server.pod for name in pod.claims}
    return any(is_full(claim) for claim in snapshot.claims if claim.name in claims)


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"
