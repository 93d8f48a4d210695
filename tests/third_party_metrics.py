"""Metrics that dashboards and alerts take from others than Groundwork, by whom they come from. Where nobody exports them the panels
are empty and the alerts silent."""

METRICS = {
    "prometheus-nats-exporter": {
        "gnatsd_varz_mem": {"server_id"},
        "gnatsd_varz_slow_consumers": {"server_id"},
        "jetstream_stream_total_bytes": {"stream_name"},
    },
    "kube-state-metrics": {
        "kube_cronjob_created": {"cronjob", "namespace"},
        "kube_cronjob_status_last_successful_time": {"cronjob", "namespace"},
        "kube_pod_container_status_restarts_total": {"pod"},
    },
    "kubelet": {
        "kubelet_volume_stats_available_bytes": {"persistentvolumeclaim"},
        "kubelet_volume_stats_capacity_bytes": {"persistentvolumeclaim"},
    },
    "vLLM": {
        "vllm:num_requests_running": {"model_name"},
        "vllm:num_requests_waiting": {"model_name"},
        "vllm:kv_cache_usage_perc": {"model_name"},
        "vllm:time_to_first_token_seconds_bucket": {"model_name", "le"},
    },
    "dcgm-exporter": {"DCGM_FI_DEV_GPU_UTIL": {"Hostname", "gpu"}},
}
"""By exporter: name and the labels that are used."""
ALL = {name: labels for metrics in METRICS.values() for name, labels in metrics.items()}
