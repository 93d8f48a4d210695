"""What is wrong with that which the values choose: TLS, the way in, GPUs."""

from tests.mutations.breaks import GATEWAY, MAIN, MEMORY, POD, REMOVED, Break, env

TLS = "TLS by cert-manager"
CERTIFICATE = "Certificate/groundwork-memory"
EDGE = "an ingress and a route"
NGINX = {"nginx.ingress.kubernetes.io/proxy-buffering": "on"}

ENCRYPTION = (
    Break("all_services_speak_tls_or_none", MEMORY, f"{MAIN}.env", [], ("GROUNDWORK_TLS_KEY_FILE",), case=TLS),
    Break(
        "all_services_speak_tls_or_none",
        MEMORY,
        f"{MAIN}.env[0]",
        env("GROUNDWORK_TLS_KEY_FILE", "/x"),
        ("should not be set",),
    ),
    Break(
        "every_certificate_is_good_for_the_names_that_are_called", CERTIFICATE, "spec.dnsNames", ["memory"], case=TLS
    ),
    Break(
        "every_certificate_is_good_for_the_names_that_are_called",
        "Certificate/groundwork-nats",
        "spec.dnsNames",
        ["groundwork-nats"],
        case=TLS,
    ),
    Break("every_certificate_is_for_servers_and_clients_alike", CERTIFICATE, "spec.usages", ["server auth"], case=TLS),
    Break(
        "every_certificate_is_for_servers_and_clients_alike",
        CERTIFICATE,
        "spec.privateKey.rotationPolicy",
        REMOVED,
        case=TLS,
    ),
    Break(
        "every_service_has_the_secret_that_is_made_for_it",
        CERTIFICATE,
        "spec.secretName",
        "x",
        (MEMORY, "Secret x"),
        case=TLS,
    ),
)

EDGES = (
    Break(
        "an_ingress_passes_streams_on_as_they_come_and_uploads_of_any_size",
        "Ingress/groundwork-gateway",
        "metadata.annotations",
        NGINX,
        ("proxy-buffering",),
        case=EDGE,
    ),
    Break(
        "an_ingress_passes_streams_on_as_they_come_and_uploads_of_any_size",
        "Ingress/groundwork-gateway",
        "metadata.annotations",
        {},
        ("proxy-read-timeout",),
        case=EDGE,
    ),
    Break(
        "a_route_cuts_no_stream_off",
        "HTTPRoute/groundwork-gateway",
        "spec.rules[0].timeouts",
        {"request": "60s"},
        ("timeouts.request",),
        case=EDGE,
    ),
    Break(
        "the_gateways_service_is_of_the_given_type_and_keeps_addresses_as_it_is_told",
        "Service/groundwork-gateway",
        "spec.externalTrafficPolicy",
        "Cluster",
        case="an address of its own",
    ),
    Break(
        "the_gateway_keeps_idle_connections_longer_than_the_proxy_in_front",
        GATEWAY,
        f"{MAIN}.env[GROUNDWORK_CONNECTION_IDLE_TIMEOUT_S]",
        env("GROUNDWORK_CONNECTION_IDLE_TIMEOUT_S", "5"),
        ("IDLE_TIMEOUT",),
        case=EDGE,
    ),
)

RERANKER, VLLM = "StatefulSet/groundwork-reranker", "Deployment/groundwork-vllm"
GPUS = (
    Break("who_has_a_gpu_may_go_where_they_are", VLLM, f"{POD}.tolerations", [], case="gpu"),
    Break(
        "who_is_to_use_a_gpu_gets_one_and_uses_it",
        VLLM,
        f"{MAIN}.resources.limits",
        {},
        ("vllm: resources.limits has no",),
        case="gpu",
    ),
    Break(
        "who_is_to_use_a_gpu_gets_one_and_uses_it",
        RERANKER,
        f"{MAIN}.env[GROUNDWORK_RERANKER_RERANK_PROVIDER]",
        env("GROUNDWORK_RERANKER_RERANK_PROVIDER", "cpu"),
        ("should be gpu",),
        case="gpu",
    ),
    Break("who_has_a_gpu_gets_it_as_the_nodes_give_it", VLLM, f"{POD}.runtimeClassName", "x", case="gpu"),
    Break(
        "a_language_model_ends_its_answers_before_it_is_killed", VLLM, f"{MAIN}.args", [], ("--shutdown",), case="gpu"
    ),
    Break(
        "a_model_is_divided_among_as_many_gpus_as_the_pod_has",
        VLLM,
        f"{MAIN}.args",
        ["--tensor-parallel-size=4"],
        ("does not fit",),
        case="gpu",
    ),
    Break(
        "models_are_kept_in_a_writable_volume_and_may_take_their_time",
        VLLM,
        f"{MAIN}.env[HF_HOME]",
        env("HF_HOME", "/root"),
        ("HF_HOME",),
        case="gpu",
    ),
    Break(
        "models_are_kept_in_a_writable_volume_and_may_take_their_time",
        VLLM,
        f"{MAIN}.startupProbe.failureThreshold",
        30,
        ("startupProbe",),
        case="gpu",
    ),
    Break(
        "a_language_model_is_ready_when_it_completes_and_calls_tools",
        VLLM,
        f"{MAIN}.readinessProbe",
        {"httpGet": {"path": "/health", "port": "http"}},
        case="gpu",
    ),
    Break("a_language_model_is_ready_when_it_completes_and_calls_tools", VLLM, f"{MAIN}.args", [], case="gpu"),
)

BREAKS = (*ENCRYPTION, *EDGES, *GPUS)
