"""The renderings that are checked, each of them for every Kubernetes version of KUBERNETES."""

from collections.abc import Mapping
from typing import Any

from tests.chart.case import CERT_MANAGER, GATEWAY_API, KEDA, PROMETHEUS, Case, Given
from tests.chart.network import End
from tests.chart.services import SETTINGS, stores

Values = Mapping[str, Any]

PROMETHEUS_PODS = End("Prometheus", "monitoring", {"app": "prometheus"})
INGRESS_PODS = End("the ingress controller", "ingress-nginx", {"app": "ingress-nginx"})
API_KEY = ("api-key",)
TLS_FILES = ("tls.crt", "tls.key", "ca.crt")
SECTIONS = ("gateway", "orchestrator", "retriever", "reranker", "ingest", "ingestWorker", "memory", "tools")


def of_each(values: Values, *sections: str) -> dict[str, Any]:
    """The same values for several components."""
    return {section: dict(values) for section in sections}


def namespace(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


CASES = (
    Case("defaults"),
    Case("small", "values-small.yaml"),
    Case(
        "gpu",
        "values-gpu.yaml",
        internet=frozenset({"orchestrator", "ingest", "reranker", "vllm"}),
        on_gpus=frozenset({"reranker", "vllm"}),
    ),
    Case(
        "external",
        "values-external.yaml",
        api_versions=(KEDA, CERT_MANAGER, PROMETHEUS),
        given_secrets={
            "qdrant-access": Given(API_KEY, ("retriever",)),
            "elasticsearch-access": Given(API_KEY, ("retriever",)),
            "company-ca": Given(("ca.crt",), tuple(each for each in SETTINGS if stores(each))),
            "llm-access": Given(API_KEY, ("orchestrator",)),
        },
        is_open=False,
        clients=(INGRESS_PODS,),
        scrapers=(PROMETHEUS_PODS,),
        servers={
            **dict.fromkeys(SETTINGS, (4222, 4317)),
            "reranker": (4317,),
            "orchestrator": (4222, 4317, 443),
            "retriever": (4222, 4317, 6333, 9200),
            "backup": (4222,),
            "restore": (4222,),
        },
    ),
    Case(
        "TLS by given Secrets",
        values={"tls": {"enabled": True, "existingSecrets": {"gateway": "my-gateway-tls"}}},
        given_secrets={
            "my-gateway-tls": Given(TLS_FILES, ("gateway",)),
            **{
                f"groundwork-{each}-tls": Given(TLS_FILES, (each,)) for each in (*SETTINGS, "nats") if each != "gateway"
            },
        },
    ),
    Case(
        "TLS by cert-manager",
        values={
            "tls": {"enabled": True, "certManager": {"enabled": True, "issuerRef": {"name": "ca", "kind": "Issuer"}}}
        },
        api_versions=(CERT_MANAGER,),
    ),
    Case(
        "an ingress and a route",
        values={
            "ingress": {
                "enabled": True,
                "className": "nginx",
                "hosts": ["a.example.com", "b.example.com"],
                "tlsSecret": "a",
            },
            "route": {"enabled": True, "parentRefs": [{"name": "public"}], "hostnames": ["c.example.com"]},
            "gateway": {
                "allowedHosts": ["d.example.com"],
                "publicUrl": "https://a.example.com",
                "proxies": ["10.0.0.0/8"],
            },
            "ingest": {
                "scanner": {"address": "clamd.security:3310", "away": "flag"},
                "storageQuotaBytes": 10737418240,
                "watchedFolders": [
                    {"name": "acme/contracts", "volume": {"persistentVolumeClaim": {"claimName": "contracts"}}}
                ],
            },
            "networkPolicy": {"clients": [namespace("ingress-nginx")]},
        },
        api_versions=(GATEWAY_API,),
        is_open=False,
        clients=(INGRESS_PODS,),
    ),
    Case(
        "an address of its own",
        values={"gateway": {"service": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}}},
    ),
    Case(
        "autoscaling",
        values=of_each({"autoscaling": {"enabled": True}}, *(each for each in SECTIONS if each != "retriever")),
    ),
    Case(
        "KEDA",
        values={"ingestWorker": {"autoscaling": {"enabled": True, "keda": {"enabled": True, "namespace": "keda"}}}},
        api_versions=(KEDA,),
    ),
    Case("a bootstrap key", values={"auth": {"bootstrapKey": "a-key-of-my-own"}}),
    Case(
        "a Secret with the bootstrap key",
        values={"auth": {"existingSecret": "my-key"}},
        given_secrets={"my-key": Given(("key",), ("gateway", "test", "evaluation"))},
    ),
    Case(
        "scraped",
        values={
            "metrics": {
                "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
                "rules": {"enabled": True, "labels": {"release": "prometheus"}},
                "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Groundwork"}},
            },
            "networkPolicy": {"scrapers": [namespace("monitoring")]},
            "vllm": {"enabled": True, "model": "/models/qwen", "gpu": {"enabled": False}},
        },
        api_versions=(PROMETHEUS,),
        scrapers=(PROMETHEUS_PODS,),
    ),
    Case("without network policies", values={"networkPolicy": {"enabled": False}}, has_network_policies=False),
    Case(
        "one of each",
        values={"nats": {"replicas": 1}, **of_each({"replicas": 1}, *SECTIONS)},
        is_redundant=False,
    ),
    Case("five servers of NATS", values={"nats": {"replicas": 5}}),
    Case(
        "a model outside",
        values={
            "llm": {
                "baseUrl": "https://models.example.com/v1",
                "existingSecret": "llm-access",
                "providersSecret": "llm-providers",
                "operations": {"answer": ["default/default"]},
            },
            "networkPolicy": {"internet": {"from": ["tools"]}},
        },
        given_secrets={
            "llm-access": Given(API_KEY, ("orchestrator",)),
            "llm-providers": Given(("providers.json",), ("orchestrator",)),
        },
        internet=frozenset({"tools"}),
        servers={"orchestrator": (443,)},
    ),
    Case(
        "speech outside",
        values={
            "speech": {
                "baseUrl": "http://whisper.example.com:8000/v1",
                "outputBaseUrl": "https://voices.example.com/v1",
                "transcriptionModel": "whisper-1",
                "model": "tts-1",
                "existingSecret": "speech-access",
                "outputExistingSecret": "voices-access",
            },
        },
        given_secrets={name: Given(API_KEY, ("gateway",)) for name in ("speech-access", "voices-access")},
        servers={"gateway": (8000, 443)},
    ),
    Case(
        "single sign-on",
        values={"auth": {"issuersSecret": "issuers"}},
        given_secrets={"issuers": Given(("issuers.json",), ("gateway",))},
        servers={"gateway": (443,)},
    ),
    Case("guests", values={"auth": {"guests": {"enabled": True, "max": 50, "limits": "runs=5/day"}}}),
    Case(
        "whatever a pod may have",
        values=of_each(
            {
                "env": {"GROUNDWORK_LOG_LEVEL": "DEBUG", "MY_NAME": {"fieldRef": {"fieldPath": "metadata.name"}}},
                "envFrom": [{"configMapRef": {"name": "mine", "optional": True}}],
                "nodeSelector": {"disk": "fast"},
                "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {}},
                "podAnnotations": {"example.com/note": "1"},
                "podLabels": {"example.com/team": "search"},
                "priorityClassName": "high",
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
                    for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
                ],
            },
            *SECTIONS,
        ),
    ),
    Case(
        "images of one's own",
        values={
            "image": {"registry": "registry.example.com:5000/team", "tag": "1.2.3", "pullSecrets": ["my-registry"]},
            "tools": {"image": {"name": "my-tools", "tag": "7"}},
        },
    ),
    Case("token vectors on volumes", values={"reranker": {"persistence": {"enabled": True}}}),
    Case("engines on servers of one's own", values={"qdrant": {"enabled": True}, "elasticsearch": {"enabled": True}}),
    Case(
        "a language model",
        values={
            "vllm": {
                "enabled": True,
                "model": "/models/qwen",
                "servedName": "qwen",
                "tensorParallelSize": 2,
                "modelVolume": {"existingClaim": "models", "subPath": "qwen"},
                "huggingFaceSecret": "hub",
                "gpu": {"runtimeClassName": "nvidia"},
            }
        },
        given_secrets={"hub": Given(("token",), ("vllm",))},
        on_gpus=frozenset({"vllm"}),
        runtime_class="nvidia",
    ),
    Case("backups", values={"backup": {"enabled": True}}),
    Case("mailboxes", values={"networkPolicy": {"internet": {"sourcePorts": [993]}}}, source_ports=frozenset({993})),
    Case(
        "a browser for tools",
        values={"tools": {"browser": {"enabled": True}, "resources": {"limits": {"memory": "2560Mi"}}}},
    ),
    Case(
        "an evaluation",
        values={"evaluation": {"enabled": True, "questions": [{"question": "How long?", "documents": ["a.pdf"]}]}},
    ),
    Case(
        "an evaluation by questions of a ConfigMap",
        values={"evaluation": {"enabled": True, "existingConfigMap": "my-questions"}},
        given_names=frozenset({("ConfigMap", "my-questions")}),
    ),
    Case("nothing prepared", values={"prepare": {"enabled": False}}),
    Case("names that YAML takes for others", release="on", namespace="0x1f"),
    Case("a name of one's own", values={"fullnameOverride": "search"}, release="team-a", namespace="shared"),
    Case("one of two releases", release="groundwork-a", namespace="shared"),
    Case("the other of two releases", release="b", namespace="shared"),
    Case(
        "a long name",
        values={"qdrant": {"enabled": True}, "elasticsearch": {"enabled": True}, "backup": {"enabled": True}},
        release="a-release-whose-name-has-as-many-letters-as-helm-allows"[:53],
        namespace="shared",
    ),
    Case(
        "another long name", release="a-release-whose-name-has-as-many-letters-as-helm-takes"[:53], namespace="shared"
    ),
)
