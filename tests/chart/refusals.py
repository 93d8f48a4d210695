"""Values that helm must refuse, and what it has to say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Refusal:
    name: str
    values: Mapping[str, Any]
    words: tuple[str, ...]
    """What the message has: the key, and of a sentence of the chart's own the words that are always the same."""


REFUSALS = (
    # By the schema. Helm words these; they name the place and the key.
    Refusal("a component that there is not", {"gatway": {"replicas": 2}}, ("gatway", "not allowed")),
    Refusal("a key that there is not", {"gateway": {"replica": 2}}, ("/gateway", "replica", "not allowed")),
    Refusal("a key of another component", {"memory": {"proxies": []}}, ("/memory", "proxies", "not allowed")),
    Refusal("a key below", {"tls": {"certManager": {"issuer": {}}}}, ("/tls/certManager", "issuer", "not allowed")),
    Refusal("a key of an autoscaler", {"tools": {"autoscaling": {"min": 1}}}, ("/tools/autoscaling", "min")),
    Refusal(
        "half a policy of an autoscaler",
        {"autoscaling": {"behavior": {"scaleDown": {"policies": [{"periodSeconds": 15}]}}}},
        ("/autoscaling/behavior/scaleDown/policies/0", "type", "value"),
    ),
    Refusal("a word where a number belongs", {"gateway": {"replicas": "two"}}, ("/gateway/replicas", "integer")),
    Refusal(
        "a number where a word belongs", {"auth": {"bootstrapKey": 123456789012}}, ("/auth/bootstrapKey", "string")
    ),
    Refusal("a word where yes or no belongs", {"tls": {"enabled": "yes"}}, ("/tls/enabled", "boolean")),
    Refusal("one where several belong", {"gateway": {"proxies": "10.0.0.0/8"}}, ("/gateway/proxies", "array")),
    Refusal("no time to notice a stop", {"drain": {"preStopSeconds": 0}}, ("/drain/preStopSeconds", "minimum")),
    Refusal("fewer than none", {"tools": {"replicas": -1}}, ("/tools/replicas", "minimum")),
    Refusal("two servers of NATS", {"nats": {"replicas": 2}}, ("/nats/replicas", "1, 3, 5")),
    Refusal("a budget that allows no drain", {"tools": {"pdb": {"maxUnavailable": 0}}}, ("/tools/pdb/maxUnavailable",)),
    Refusal("a level that there is not", {"telemetry": {"logLevel": "LOUD"}}, ("/telemetry/logLevel", "INFO")),
    Refusal("an evaluation without questions", {"evaluation": {"enabled": True}}, ("evaluation.questions",)),
    Refusal("a metric that there is not", {"evaluation": {"failUnder": {"f1": 1}}}, ("/evaluation/failUnder", "f1")),
    Refusal("a time that is none", {"backup": {"schedule": "at three"}}, ("/backup/schedule",)),
    Refusal("a size that is none", {"tools": {"tmpSize": "1 GB"}}, ("/tools/tmpSize",)),
    Refusal("a size in a wrong place", {"retriever": {"persistence": {"size": -5}}}, ("/retriever/persistence/size",)),
    Refusal("a name that no Service may have", {"fullnameOverride": "1st"}, ("/fullnameOverride",)),
    Refusal("a name that is too long", {"fullnameOverride": "a" * 39}, ("/fullnameOverride",)),
    Refusal("a name with capitals", {"ingress": {"className": "NGINX"}}, ("/ingress/className",)),
    Refusal(
        "a host with a scheme", {"gateway": {"allowedHosts": ["https://a.example.com"]}}, ("/gateway/allowedHosts",)
    ),
    Refusal(
        "a public address with a path",
        {"gateway": {"publicUrl": "https://a.example.com/chat"}},
        ("/gateway/publicUrl",),
    ),
    Refusal(
        "a list of no components",
        {"networkPolicy": {"internet": {"from": ["orchestra"]}}},
        ("/networkPolicy/internet/from",),
    ),
    Refusal(
        "a certificate of no component",
        {"tls": {"existingSecrets": {"gatway": "x"}}},
        ("/tls/existingSecrets", "gatway"),
    ),
    Refusal(
        "rules of no component", {"networkPolicy": {"egress": {"gatway": []}}}, ("/networkPolicy/egress", "gatway")
    ),
    Refusal("a variable that is no name", {"tools": {"env": {"A-B": "1"}}}, ("/tools/env", "A-B")),
    Refusal("a variable from nowhere", {"tools": {"env": {"A": {"secretRef": {"name": "x"}}}}}, ("/tools/env/A",)),
    # By templates/_checks.tpl, in its own words.
    Refusal(
        "two bootstrap keys",
        {"auth": {"bootstrapKey": "a-key-of-my-own", "existingSecret": "mine"}},
        ("auth.bootstrapKey and auth.existingSecret are both set",),
    ),
    Refusal("a short key", {"auth": {"bootstrapKey": "short"}}, ("auth.bootstrapKey must be at least 12 characters",)),
    Refusal(
        "a key with a space", {"auth": {"bootstrapKey": "twelve and more"}}, ("auth.bootstrapKey must be at least 12",)
    ),
    Refusal(
        "certificates for nothing",
        {"tls": {"certManager": {"enabled": True, "issuerRef": {"name": "ca"}}}},
        ("tls.certManager.enabled needs tls.enabled=true",),
    ),
    Refusal(
        "certificates by nobody",
        {"tls": {"enabled": True, "certManager": {"enabled": True}}},
        ("tls.certManager.enabled needs tls.certManager.issuerRef.name",),
    ),
    Refusal(
        "an address without a scheme",
        {"llm": {"baseUrl": "llm.example.com/v1"}},
        ("llm.baseUrl", "llm.example.com/v1", "it must be an address such as http://name:8000"),
    ),
    Refusal(
        "a key of no speech endpoint",
        {"speech": {"existingSecret": "speech-access"}},
        ("speech.existingSecret holds the key of speech.baseUrl",),
    ),
    Refusal(
        "a key of no endpoint that speaks",
        {"speech": {"baseUrl": "http://whisper.example.com/v1", "outputExistingSecret": "voices-access"}},
        ("speech.outputExistingSecret holds the key of speech.outputBaseUrl",),
    ),
    Refusal(
        "a collector without a scheme",
        {"telemetry": {"otlpEndpoint": "otel:4317"}},
        ("telemetry.otlpEndpoint", "it must be an address such as"),
    ),
    Refusal(
        "a node without a scheme",
        {
            "qdrant": {"external": {"url": "https://q"}},
            "elasticsearch": {"external": {"url": "https://es-1:9200,es-2"}},
        },
        ("elasticsearch.external.url has", "es-2", "it must be addresses such as https://es-1:9200"),
    ),
    Refusal(
        "a server with a scheme",
        {"nats": {"enabled": False, "external": {"servers": ["nats://nats:4222"]}}},
        ("nats.external.servers has", "write host:port, without scheme or user"),
    ),
    Refusal(
        "an engine here and there",
        {"qdrant": {"enabled": True, "external": {"url": "https://q:6333"}}},
        ("qdrant.enabled and qdrant.external.url", ".external.url are both set"),
    ),
    Refusal(
        "two retrievers with an index each",
        {"retriever": {"replicas": 2}},
        ("There can be only one retriever as long as", "retriever.replicas"),
    ),
    Refusal(
        "a retriever that scales with an index of its own",
        {"qdrant": {"enabled": True}, "retriever": {"autoscaling": {"enabled": True}}},
        ("There can be only one retriever as long as", "retriever.autoscaling"),
    ),
    Refusal(
        "a message store here and there",
        {"nats": {"external": {"servers": ["nats:4222"]}}},
        ("nats.enabled and nats.external.servers are both set",),
    ),
    Refusal(
        "an authority for no certificates",
        {"nats": {"enabled": False, "external": {"servers": ["nats:4222"], "caSecret": "ca"}}},
        ("nats.external.caSecret is for certificates",),
    ),
    Refusal(
        "a Secret of no server",
        {"elasticsearch": {"enabled": True, "external": {"existingSecret": "x"}}},
        ("elasticsearch", ".external names a Secret and no server"),
    ),
    Refusal(
        "a name without a password",
        {"elasticsearch": {"external": {"url": "https://es:9200", "username": "u"}}},
        ("elasticsearch.external.username needs elasticsearch.external.existingSecret",),
    ),
    Refusal("no message store", {"nats": {"enabled": False}}, ("There is no message store",)),
    Refusal(
        "two language models under one name",
        {"vllm": {"enabled": True, "model": "/models/b"}, "llm": {"baseUrl": "http://x/v1"}},
        ("vllm.enabled and llm.baseUrl are both set",),
    ),
    Refusal("a server of no model", {"vllm": {"enabled": True}}, ("vllm.enabled needs vllm.model",)),
    Refusal(
        "a model of the hub without a way",
        {"vllm": {"enabled": True, "model": "Qwen/Qwen3-8B"}},
        ("vllm.model is ", "Qwen/Qwen3-8B", "of the hub, to which there is no way"),
    ),
    Refusal(
        "a model that calls no tools",
        {"vllm": {"enabled": True, "model": "/models/qwen", "toolCallParser": ""}},
        ("vllm.toolCallParser is empty",),
    ),
    Refusal(
        "a key for no model", {"llm": {"existingSecret": "x"}}, ("llm.existingSecret holds the key of llm.baseUrl",)
    ),
    Refusal(
        "operations without a model",
        {"llm": {"operations": {"answer": ["a"]}}},
        ("llm.operations names models, and there is none",),
    ),
    Refusal(
        "models for no GPU",
        {"reranker": {"gpu": {"download": True}}},
        ("reranker.gpu.download needs reranker.gpu.enabled=true",),
    ),
    Refusal(
        "models without a way",
        {"reranker": {"gpu": {"enabled": True, "download": True}}},
        ("reranker.gpu.download needs a way to the hub",),
    ),
    Refusal(
        "thousandths of a volume",
        {"nats": {"persistence": {"size": "500m"}}},
        ("500m", "is no quantity that this chart can reckon with"),
    ),
    Refusal("an ingress without hosts", {"ingress": {"enabled": True}}, ("ingress.enabled needs ingress.hosts",)),
    Refusal(
        "a route of no gateway",
        {"route": {"enabled": True, "hostnames": ["a.example.com"]}},
        ("route.enabled needs route.parentRefs",),
    ),
    Refusal(
        "a route without hosts",
        {"route": {"enabled": True, "parentRefs": [{"name": "public"}]}},
        ("route.enabled needs route.hostnames",),
    ),
    Refusal(
        "fewest above most",
        {"tools": {"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 2}}},
        ("tools", ".autoscaling.minReplicas is "),
    ),
    Refusal(
        "a queue that nobody follows",
        {"ingestWorker": {"autoscaling": {"keda": {"enabled": True}}}},
        ("ingestWorker", ".autoscaling.keda.enabled needs "),
    ),
    Refusal(
        "a share of nothing",
        {"tools": {"autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}}}},
        ("tools", ".autoscaling goes by the share of the processor"),
    ),
)
