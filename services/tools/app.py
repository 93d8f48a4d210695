"""Composition root of the tools service."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from google.protobuf.descriptor import FileDescriptor
from groundwork.ingest.v1 import ingest_pb2, reading_pb2
from groundwork.memory.v1 import memory_pb2
from groundwork.reranker.v1 import reranker_pb2
from groundwork.retriever.v1 import retriever_pb2
from groundwork.tools.v1 import tools_pb2, tools_pb2_grpc

from kit.access.principal import current_principal
from kit.access.sealing import Sealer
from kit.breaker import CircuitBreaker
from kit.limits.counters import Counters
from kit.limits.store import JetStreamCounters
from kit.network.egress import EgressGuard, parse_networks
from kit.process.service import Service
from kit.rpc.channel import Channel
from kit.shared_state import LIMIT_RATES
from kit.stores.message_store import open_message_store
from services.tools import toolbox
from services.tools.adapters.browser.running import ChromiumBrowser, find_program, problem
from services.tools.adapters.call_store import KeyValueCallStore
from services.tools.adapters.connection_doors import connection_doors
from services.tools.adapters.connection_records import KeyValueConnections
from services.tools.adapters.http.drive import DriveClient
from services.tools.adapters.http.github import GithubClient
from services.tools.adapters.http.web_client import GuardedWebClient
from services.tools.adapters.http.web_search import search_engine
from services.tools.adapters.mail import ImapMailbox
from services.tools.adapters.mcp.logins import McpLoginClient
from services.tools.adapters.mcp.server_records import KeyValueServerRecords
from services.tools.adapters.mcp.servers import McpServer
from services.tools.adapters.mcp.sessions import SessionPool
from services.tools.adapters.services.ingest import IngestDocuments, IngestFileReader
from services.tools.adapters.services.memory import MemoryService
from services.tools.adapters.services.reranker import RerankerModels
from services.tools.adapters.services.retriever import RetrieverPassages
from services.tools.adapters.sql.opening import open_databases
from services.tools.calling.calls import Calls
from services.tools.calling.execution import Toolbox
from services.tools.calling.processes import Processes
from services.tools.calling.progress import unheard
from services.tools.connections.desk import ConnectionDesk
from services.tools.connections.device_login import DeviceLogins
from services.tools.context import Services, ToolContext
from services.tools.handlers import ToolsServicer
from services.tools.models import Call
from services.tools.projects.records import load_records
from services.tools.projects.searching import RecordSearch
from services.tools.server_admin import ServerAdmin
from services.tools.server_logins import ServerLogins
from services.tools.settings import McpServerSettings, ToolsSettings
from services.tools.sources.chain import guarded
from services.tools.sources.discovery import discover
from services.tools.sources.limits import Deadline, Turns
from services.tools.sources.modules import Connected, module_source
from services.tools.sources.remote import RemoteTools
from services.tools.sources.remote_records import ServerRecord, ServerRecords
from services.tools.sources.remote_tools import RemotePolicy
from services.tools.sources.tokens import Tokens
from services.tools.web.fetching import Fetcher
from services.tools.web.reader import Web
from services.tools.web.searching import WebSearch
from services.tools.web.windows import SharedWindows


async def run(settings: ToolsSettings) -> None:
    """Serves until a signal stops it."""
    async with Service("tools", settings) as service:
        nats = await open_message_store(service, settings)
        sessions = SessionPool(settings.tools_mcp_idle_sessions, settings.tools_mcp_session_idle_s)
        service.stack.push_async_callback(sessions.close)
        calls = Calls(await KeyValueCallStore.open(nats), now=_now)
        service.stack.push_async_callback(calls.close)
        guard = EgressGuard(parse_networks(settings.egress_allowed_networks))
        processes = Processes(settings.tools_processes)
        sealer = _sealer(settings)
        records = await KeyValueServerRecords.open(nats, sealer)
        connection_records = await KeyValueConnections.open(nats, sealer)
        for kept in (records, connection_records):
            service.spawn(kept.settings.follow())
            service.spawn(kept.secrets.keep_sealed())
        counters = await JetStreamCounters.open(nats, [LIMIT_RATES])
        github, drive, mail = _connectable(service, settings, guard)
        doors = connection_doors(settings.tools_oauth, guard, _now, github=github, drive=drive, mail=mail)
        desk = ConnectionDesk(connection_records, doors, DeviceLogins(sealer, _now), _now)
        reading = reading_pb2.DESCRIPTOR.services_by_name["ReadingService"]
        files = IngestFileReader(await service.channel(settings.ingest_worker_address, [reading]))
        services = replace(
            await _services(service, settings),
            web=_web(service, settings, guard, processes, files, _windows(settings, counters)),
            browser=_browser(settings, guard),
            web_search=_web_search(settings, _windows(settings, counters)),
            connections=desk.connections,
            github=github,
            mail=mail,
            drive=drive,
            files=files,
        )
        modules = module_source(
            discover(toolbox, settings, settings.tools_folders),
            processes,
            partial(_context, settings, services),
        )
        login_client = McpLoginClient(guard, _now)
        remote = _remote_tools(settings, records, guard, sessions, Tokens(records, login_client, _now))
        service.spawn(remote.run())
        turns = Turns(settings.tools_calls_at_once, settings.tools_calls_waiting)
        source = guarded(
            [Connected(modules, desk.connections), Deadline(remote)],
            turns,
            allowed=settings.tools_allowed,
            need_approval=settings.tools_need_approval,
            breaker=lambda: CircuitBreaker(
                failures=settings.tools_breaker_failures,
                window_s=settings.tools_breaker_window_s,
                open_s=settings.tools_breaker_open_s,
            ),
        )
        box = Toolbox(source, calls, turns)
        admin = ServerAdmin(remote, records, guard, login_client, _now)
        service.add_servicer(
            tools_pb2_grpc.add_ToolsServiceServicer_to_server,
            ToolsServicer(box, admin, ServerLogins(admin, records, login_client, _now), desk),
            tools_pb2.DESCRIPTOR.services_by_name["ToolsService"],
        )
        await service.serve()


def _windows(settings: ToolsSettings, counters: Counters) -> SharedWindows:
    return SharedWindows(settings.tools_web_host_per_minute, settings.tools_web_run_pages, counters, _now)


def _web(
    service: Service,
    settings: ToolsSettings,
    guard: EgressGuard,
    processes: Processes,
    files: IngestFileReader,
    windows: SharedWindows,
) -> Web | None:
    if not settings.tools_web_hosts:
        return None
    client = GuardedWebClient(guard, settings.tools_web_user_agent)
    service.stack.push_async_callback(client.close)
    return Web(
        Fetcher(
            client,
            windows,
            hosts=settings.tools_web_hosts,
            user_agent=settings.tools_web_user_agent,
            asks_robots=settings.tools_web_robots,
            fresh_s=settings.tools_web_cache_s,
        ),
        processes.run,
        files,
    )


def _browser(settings: ToolsSettings, guard: EgressGuard) -> ChromiumBrowser | None:
    if not settings.tools_web_hosts or problem(settings.tools_browser):
        return None
    return ChromiumBrowser(
        guard,
        find_program(settings.tools_browser),
        settings.tools_web_hosts,
        settings.tools_web_user_agent,
        memory_max_mb=settings.tools_browser_memory_mb,
    )


def _web_search(settings: ToolsSettings, windows: SharedWindows) -> WebSearch | None:
    engine = search_engine(settings)
    if engine is None:
        return None
    return WebSearch(engine, windows, fresh_s=settings.tools_web_cache_s)


def _connectable(
    service: Service, settings: ToolsSettings, guard: EgressGuard
) -> tuple[GithubClient | None, DriveClient | None, ImapMailbox | None]:
    """The services that can be connected here."""
    github = GithubClient(guard, settings.tools_github_url) if settings.tools_github_url else None
    drive = DriveClient(guard, settings.tools_drive_url) if settings.tools_drive_url else None
    for client in (github, drive):
        if client is not None:
            service.stack.push_async_callback(client.close)
    return github, drive, ImapMailbox(guard, settings.tools_mail_url) if settings.tools_mail_url else None


def _sealer(settings: ToolsSettings) -> Sealer | None:
    """None of an installation that gives this service no key: it keeps no secrets."""
    has_key = settings.auth_signing_key or settings.auth_signing_key_file
    return Sealer(settings.own_key()) if has_key else None


def _remote_tools(
    settings: ToolsSettings, records: ServerRecords, guard: EgressGuard, sessions: SessionPool, tokens: Tokens
) -> RemoteTools:
    servers = {
        name: (
            McpServer(name, server, guard, sessions),
            RemotePolicy(server.approved, server.read_only, cached=server.cached, timeout_s=server.timeout_s),
        )
        for name, server in settings.tools_mcp_servers.items()
    }

    def connect(tenant_id: str, name: str, record: ServerRecord) -> McpServer:
        server = McpServerSettings(url=record.url, headers=dict(record.headers))
        return McpServer(name, server, guard, sessions, tokens.of(tenant_id, name, record.url))

    return RemoteTools(servers, records, connect, every_s=settings.tools_mcp_list_every_s)


async def _services(service: Service, settings: ToolsSettings) -> Services:
    async def channel(address: str, contract: FileDescriptor, name: str) -> Channel:
        return await service.channel(address, [contract.services_by_name[name]])

    return Services(
        RetrieverPassages(await channel(settings.retriever_address, retriever_pb2.DESCRIPTOR, "RetrieverService")),
        RerankerModels(await channel(settings.reranker_address, reranker_pb2.DESCRIPTOR, "RerankerService")),
        IngestDocuments(await channel(settings.ingest_address, ingest_pb2.DESCRIPTOR, "IngestService")),
        await asyncio.to_thread(_record_search, settings),
        await asyncio.to_thread(open_databases, settings, service.stack),
        MemoryService(await channel(settings.memory_address, memory_pb2.DESCRIPTOR, "MemoryService")),
    )


def _record_search(settings: ToolsSettings) -> RecordSearch:
    records = load_records(settings.tools_records_file)
    return RecordSearch(records, similarity_min=settings.tools_records_similarity_min)


def _context(settings: ToolsSettings, services: Services, call: Call) -> ToolContext:
    return ToolContext(call.call_id, call.collection_ids, settings, services, _now, current_principal(), unheard)


def _now() -> datetime:
    return datetime.now(UTC)
