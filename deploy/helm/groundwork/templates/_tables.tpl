{{- /* What the system consists of, as tables in YAML: read by the templates, and by whoever wants to know. */}}

{{- /* Our own services: the same image layout, ports, probes and settings. `image` where two share one, `args` what it is told;
`signs`: has a signing key; `store`: has a user of the message store; `user`: knows the user of the bootstrap key; `data`: has files. */}}
{{- define "groundwork.services" -}}
gateway:       {signs: true,  store: true,  user: true,  data: false}
orchestrator:  {signs: true,  store: true,  user: false, data: false}
retriever:     {signs: true,  store: true,  user: false, data: true}
reranker:      {signs: false, store: false, user: false, data: true}
ingest:        {signs: true,  store: true,  user: true,  data: true,  args: [api]}
ingest-worker: {signs: true,  store: true,  user: true,  data: true,  args: [worker], image: ingest}
memory:        {signs: true,  store: true,  user: true,  data: false}
tools:         {signs: true,  store: true,  user: true,  data: false}
{{- end -}}

{{- /* Who may connect to whom: the arrows of docs/architecture.md. Network policies allow exactly these, and an arrow to port 7000
gives its callers the address. */}}
{{- define "groundwork.arrows" -}}
- {to: gateway,       port: 8080, from: [test, evaluation]}
- {to: orchestrator,  port: 7000, from: [gateway]}
- {to: retriever,     port: 7000, from: [gateway, orchestrator, ingest, ingest-worker, memory, tools]}
- {to: reranker,      port: 7000, from: [gateway, orchestrator, retriever, ingest-worker, tools]}
- {to: ingest,        port: 7000, from: [gateway, orchestrator, tools]}
- {to: ingest-worker, port: 7000, from: [gateway, tools]}
- {to: memory,        port: 7000, from: [gateway, orchestrator, tools]}
- {to: tools,         port: 7000, from: [gateway, orchestrator]}
- {to: nats,          port: 4222, from: [gateway, orchestrator, retriever, ingest, ingest-worker, memory, tools, backup, restore]}
- {to: nats,          port: 6222, from: [nats]}
- {to: qdrant,        port: 6333, from: [retriever]}
- {to: qdrant,        port: 6335, from: [qdrant]}
- {to: elasticsearch, port: 9200, from: [retriever]}
- {to: elasticsearch, port: 9300, from: [elasticsearch]}
- {to: vllm,          port: 8000, from: [orchestrator]}
{{- end -}}

{{- /* Where a component tells its metrics to scrapers. */}}
{{- define "groundwork.metricsPorts" -}}
gateway: 9000
orchestrator: 9000
retriever: 9000
reranker: 9000
ingest: 9000
ingest-worker: 9000
memory: 9000
tools: 9000
nats: 8222
qdrant: 6333
vllm: 8000
{{- end -}}
