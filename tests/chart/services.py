"""What the chart is to deploy, as the code tells it: the components that are ours, and the settings that each reads."""

import re

from kit.process.settings import KeyedServiceSettings, MessageStoreSettings, ServiceSettings
from services.gateway.settings import GatewaySettings
from services.ingest.settings import IngestSettings
from services.memory.settings import MemorySettings
from services.orchestrator.settings import OrchestratorSettings
from services.reranker.settings import RerankerSettings
from services.retriever.settings import RetrieverSettings
from services.tools.settings import ToolsSettings

SETTINGS: dict[str, type[ServiceSettings]] = {
    "gateway": GatewaySettings,
    "orchestrator": OrchestratorSettings,
    "retriever": RetrieverSettings,
    "reranker": RerankerSettings,
    "ingest": IngestSettings,
    "ingest-worker": IngestSettings,
    "memory": MemorySettings,
    "tools": ToolsSettings,
}
"""Our services, by component."""

SERVERS = {"nats", "qdrant", "elasticsearch", "vllm"}
"""Other makers' servers that the chart can run."""

STATELESS = set(SETTINGS) - {"retriever"}
"""Of these any number may run. One retriever has the embedded engines' indexes on its volume."""

TOKEN_HOLDERS = {"prepare", "restore"}
"""Components that ask the API server for something."""

GRPC_PORT, OPS_PORT, HTTP_PORT, VLLM_PORT = 7000, 9000, 8080, 8000


def callees(component: str) -> set[str]:
    """The services that it calls, by the addresses among its settings."""
    names = [re.fullmatch(r"([a-z_]+)_address", name) for name in SETTINGS[component].model_fields]
    called = {found[1].replace("_", "-") for found in names if found} & set(SETTINGS)
    return (
        called - {"reranker"} if component == "ingest" else called
    )  # of the two that share settings, the worker embeds


def stores(component: str) -> bool:
    """Whether it keeps its state in NATS."""
    return issubclass(SETTINGS[component], MessageStoreSettings)


def signs(component: str) -> bool:
    return issubclass(SETTINGS[component], KeyedServiceSettings)
