"""The edge."""

from scripts.dashboards.panels import Dashboard, Panel, Row, counts, gauge, quantile, rate, total

GATEWAY = Dashboard(
    "gateway",
    "Gateway",
    "The edge: requests, connections, streams, and who was not let in.",
    [
        Row(
            "Requests",
            [
                counts("By route", "groundwork_gateway_requests_total", "method, route"),
                counts("That failed", "groundwork_gateway_requests_total", "route, status", 'status=~"5.."'),
                counts("That were refused", "groundwork_gateway_requests_total", "route, status", 'status=~"4.."'),
                gauge(
                    "Time, p95",
                    quantile(0.95, "groundwork_gateway_request_seconds", "route"),
                    "{{route}}",
                    "s",
                    "Event streams live long.",
                ),
                Panel("Uploaded", [(rate("groundwork_gateway_uploaded_bytes_total"), "bytes")], "Bps"),
                counts("Callers not let in", "groundwork_gateway_refused_callers_total", "reason"),
            ],
        ),
        Row(
            "Connections",
            [
                gauge("Open", total("groundwork_gateway_connections", "instance"), "{{instance}}"),
                counts("Ended or refused by the gateway", "groundwork_gateway_connections_cut_total", "reason"),
                gauge("Event streams", total("groundwork_gateway_event_streams", "instance"), "{{instance}}"),
                Panel(
                    "Streams of runs taken up again",
                    [(rate("groundwork_gateway_run_streams_reattached_total"), "reattached")],
                    "ops",
                ),
                Panel(
                    "Listeners to documents begun anew",
                    [(rate("groundwork_gateway_document_listeners_restarted_total"), "restarted")],
                    "ops",
                ),
            ],
        ),
    ],
)
