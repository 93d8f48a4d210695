"""Language models, the model server, and GPUs."""

from scripts.dashboards.panels import (
    NS,
    Dashboard,
    Panel,
    Row,
    counts,
    gauge,
    largest,
    mean,
    quantile,
    quantiles,
    rate,
    total,
)

MODELS = Dashboard(
    "models",
    "Models and GPU",
    "Language models, the model server, and the hardware below.",
    [
        Row(
            "Language models",
            [
                counts("Requests", "groundwork_llm_calls_total", "provider, outcome"),
                quantiles("Until the first word", "groundwork_llm_first_delta_seconds", "provider"),
                quantiles("Whole answers", "groundwork_llm_seconds", "provider"),
                counts("Tokens", "groundwork_llm_tokens_total", "model, kind", unit="cps"),
                gauge(
                    "Dollars an hour",
                    f"3600 * {rate('groundwork_llm_cost_usd_total', 'model, operation')}",
                    "{{model}} {{operation}}",
                    "currencyUSD",
                ),
                gauge(
                    "Breakers",
                    largest("groundwork_llm_breaker", "provider"),
                    "{{provider}}",
                    about="0 closed, 1 half open, 2 open: the provider kept failing and is left alone.",
                ),
            ],
        ),
        Row(
            "Model server",
            [
                quantiles("A batch", "groundwork_reranker_inference_seconds", "lane"),
                quantiles("Waiting", "groundwork_reranker_queue_seconds", "lane"),
                gauge("Tokens that wait", total("groundwork_reranker_queued_tokens", "lane"), "{{lane}}"),
                counts("Tokens read", "groundwork_reranker_tokens_total", "lane", unit="cps"),
                counts("Not served", "groundwork_reranker_unserved_requests_total", "lane, reason"),
                gauge("Texts in a batch", mean("groundwork_reranker_batch_texts", "lane"), "{{lane}}"),
                counts("Token vectors in memory", "groundwork_reranker_passage_cache_total", "outcome"),
                counts("Token vectors on disk", "groundwork_reranker_passage_store_total", "outcome"),
                counts("Remote model APIs", "groundwork_reranker_provider_requests_total", "provider, outcome"),
            ],
        ),
        Row(
            "GPU",
            [
                gauge(
                    "Memory of the model server's GPU",
                    largest("groundwork_reranker_device_memory_bytes", "instance, kind"),
                    "{{instance}} {{kind}}",
                    "bytes",
                ),
                gauge(
                    "Batches halved for want of memory",
                    rate("groundwork_reranker_memory_retries_total", "lane"),
                    "{{lane}}",
                    "ops",
                ),
                gauge(
                    "Use of GPUs",
                    "avg by (Hostname, gpu) (DCGM_FI_DEV_GPU_UTIL)",
                    "{{Hostname}} {{gpu}}",
                    "percent",
                    "From dcgm-exporter.",
                ),
            ],
        ),
        Row(
            "vLLM",
            [
                Panel(
                    "Requests",
                    [
                        (f"sum by (model_name) (vllm:num_requests_running{{{NS}}})", "{{model_name}} running"),
                        (f"sum by (model_name) (vllm:num_requests_waiting{{{NS}}})", "{{model_name}} waiting"),
                    ],
                    about="From vLLM's own /metrics.",
                ),
                gauge(
                    "Cache of keys and values",
                    f"max by (model_name) (vllm:kv_cache_usage_perc{{{NS}}})",
                    "{{model_name}}",
                    "percentunit",
                ),
                gauge(
                    "Until the first token, p95",
                    quantile(0.95, "vllm:time_to_first_token_seconds", "model_name"),
                    "{{model_name}}",
                    "s",
                ),
            ],
        ),
    ],
)
