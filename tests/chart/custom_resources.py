"""Closed schemas of the custom resources that the chart may render, as far as it uses them. They follow the definitions of KEDA
2.21, cert-manager 1.19, Gateway API 1.4 and the Prometheus operator 0.86; a field that is missing here may well exist there."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
DURATION: Schema = {"type": "string", "pattern": r"^([0-9]+(h|m|s|ms))+$"}
LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def closed(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "additionalProperties": False, "properties": properties}


def listed(item: Schema, least: int = 1) -> Schema:
    return {"type": "array", "items": item, "minItems": least}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def resource(api_version: str, kind: str, spec: Schema) -> tuple[tuple[str, str], Schema]:
    metadata = closed(("name",), name=TEXT, namespace=TEXT, labels=LABELS, annotations=LABELS)
    return (api_version, kind), closed(
        ("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"const": api_version},
        kind={"const": kind},
        metadata=metadata,
        spec=spec,
    )


SELECTOR = closed(
    matchLabels=LABELS,
    matchExpressions=listed(
        closed(
            ("key", "operator"), key=TEXT, operator=one_of("In", "NotIn", "Exists", "DoesNotExist"), values=listed(TEXT)
        )
    ),
)

# https://keda.sh/docs/2.21/reference/scaledobject-spec/
_POLICY = closed(
    ("type", "value", "periodSeconds"),
    type=one_of("Pods", "Percent"),
    value={"type": "integer", "minimum": 1},
    periodSeconds={"type": "integer", "minimum": 1, "maximum": 1800},
)
_RULES = closed(
    stabilizationWindowSeconds={"type": "integer", "minimum": 0, "maximum": 3600},
    selectPolicy=one_of("Max", "Min", "Disabled"),
    policies=listed(_POLICY),
)
_SCALED_OBJECT = closed(
    ("scaleTargetRef", "triggers"),
    scaleTargetRef=closed(("name",), apiVersion=TEXT, kind=TEXT, name=TEXT, envSourceContainerName=TEXT),
    pollingInterval=COUNT,
    cooldownPeriod=COUNT,
    initialCooldownPeriod=COUNT,
    idleReplicaCount=COUNT,
    minReplicaCount=COUNT,
    maxReplicaCount=COUNT,
    fallback=closed(
        ("failureThreshold", "replicas"),
        failureThreshold=COUNT,
        replicas=COUNT,
        behavior=one_of("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"),
    ),
    advanced=closed(
        restoreToOriginalReplicaCount=FLAG,
        horizontalPodAutoscalerConfig=closed(name=TEXT, behavior=closed(scaleUp=_RULES, scaleDown=_RULES)),
    ),
    triggers=listed(
        closed(
            ("type", "metadata"),
            type=TEXT,
            name=TEXT,
            metricType=one_of("AverageValue", "Value", "Utilization"),
            useCachedMetrics=FLAG,
            metadata=LABELS,
            authenticationRef=closed(
                ("name",), name=TEXT, kind=one_of("TriggerAuthentication", "ClusterTriggerAuthentication")
            ),
        )
    ),
)

# https://cert-manager.io/docs/reference/api-docs/#cert-manager.io/v1.CertificateSpec
_CERTIFICATE = closed(
    ("secretName", "issuerRef"),
    secretName=TEXT,
    issuerRef=closed(("name",), name=TEXT, kind=one_of("Issuer", "ClusterIssuer"), group=TEXT),
    commonName={"type": "string", "maxLength": 64},
    dnsNames=listed(TEXT),
    duration=DURATION,
    renewBefore=DURATION,
    usages=listed(one_of("server auth", "client auth", "digital signature", "key encipherment")),
    privateKey=closed(
        algorithm=one_of("RSA", "ECDSA", "Ed25519"),
        size={"type": "integer", "enum": [256, 384, 521, 2048, 4096, 8192]},
        rotationPolicy=one_of("Never", "Always"),
        encoding=one_of("PKCS1", "PKCS8"),
    ),
    secretTemplate=closed(labels=LABELS, annotations=LABELS),
    revisionHistoryLimit={"type": "integer", "minimum": 1},
)

# https://gateway-api.sigs.k8s.io/reference/spec/#httproute
_ROUTE = closed(
    ("rules",),
    parentRefs=listed(
        closed(("name",), name=TEXT, namespace=TEXT, sectionName=TEXT, port=COUNT, group=TEXT, kind=TEXT)
    ),
    hostnames=listed(TEXT),
    rules=listed(
        closed(
            ("backendRefs",),
            name=TEXT,
            matches=listed(closed(path=closed(("type", "value"), type=one_of("Exact", "PathPrefix"), value=TEXT))),
            backendRefs=listed(
                closed(("name", "port"), name=TEXT, port=COUNT, kind={"const": "Service"}, weight=COUNT)
            ),
            timeouts=closed(request=DURATION, backendRequest=DURATION),
        )
    ),
)

# https://prometheus-operator.dev/docs/api-reference/api/
_ENDPOINT = closed(
    ("port",),
    port=TEXT,
    path=TEXT,
    interval=DURATION,
    scrapeTimeout=DURATION,
    scheme=one_of("http", "https"),
    honorLabels=FLAG,
    relabelings=listed({"type": "object"}),
    metricRelabelings=listed({"type": "object"}),
)
_NAMESPACES = closed(matchNames=listed(TEXT), any=FLAG)
_SERVICE_MONITOR = closed(
    ("selector", "endpoints"),
    jobLabel=TEXT,
    selector=SELECTOR,
    namespaceSelector=_NAMESPACES,
    endpoints=listed(_ENDPOINT),
    targetLabels=listed(TEXT),
    podTargetLabels=listed(TEXT),
)
_POD_MONITOR = closed(
    ("selector", "podMetricsEndpoints"),
    jobLabel=TEXT,
    selector=SELECTOR,
    namespaceSelector=_NAMESPACES,
    podMetricsEndpoints=listed(_ENDPOINT),
    podTargetLabels=listed(TEXT),
)
_RULE = closed(
    ("expr",),
    alert=TEXT,
    record=TEXT,
    expr=TEXT,
    labels=LABELS,
    annotations=LABELS,
    keep_firing_for=DURATION,
    **{"for": DURATION},
)
_PROMETHEUS_RULE = closed(
    ("groups",),
    groups=listed(closed(("name", "rules"), name=TEXT, interval=DURATION, rules=listed(_RULE))),
)

CUSTOM_RESOURCES: dict[tuple[str, str], Schema] = dict(
    (
        resource("keda.sh/v1alpha1", "ScaledObject", _SCALED_OBJECT),
        resource("cert-manager.io/v1", "Certificate", _CERTIFICATE),
        resource("gateway.networking.k8s.io/v1", "HTTPRoute", _ROUTE),
        resource("monitoring.coreos.com/v1", "ServiceMonitor", _SERVICE_MONITOR),
        resource("monitoring.coreos.com/v1", "PodMonitor", _POD_MONITOR),
        resource("monitoring.coreos.com/v1", "PrometheusRule", _PROMETHEUS_RULE),
    )
)
"""By apiVersion and kind."""
