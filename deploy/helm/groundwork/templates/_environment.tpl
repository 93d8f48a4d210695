{{- /* The environment of each service, as tables in YAML of NAME: value, or NAME: {secretKeyRef: …} and the like. What the values say
under `env` wins. Names and meanings: docs/settings.md. All take the context of groundwork.pod. */}}

{{- define "groundwork.env.shared" -}}
GROUNDWORK_GRPC_ADDRESS: 0.0.0.0:7000
GROUNDWORK_OPS_HOST: 0.0.0.0
GROUNDWORK_OPS_PORT: 9000
GROUNDWORK_LOG_LEVEL: {{ .root.Values.telemetry.logLevel }}
GROUNDWORK_DRAIN_DELAY_S: {{ .root.Values.drain.delaySeconds }}
GROUNDWORK_DRAIN_GRACE_S: {{ .root.Values.drain.graceSeconds }}
GROUNDWORK_AUTH_PUBLIC_KEYS_FILE: /etc/groundwork/public-keys/public.json
POD_NAME: {fieldRef: {fieldPath: metadata.name}}
OTEL_RESOURCE_ATTRIBUTES: service.instance.id=$(POD_NAME),k8s.pod.name=$(POD_NAME),k8s.namespace.name={{ .root.Release.Namespace }}
{{- with .root.Values.telemetry.otlpEndpoint }}
GROUNDWORK_OTLP_ENDPOINT: {{ . }}
{{- end }}
{{- if .root.Values.tls.enabled }}
GROUNDWORK_TLS_CERT_FILE: /etc/groundwork/tls/tls.crt
GROUNDWORK_TLS_KEY_FILE: /etc/groundwork/tls/tls.key
GROUNDWORK_TLS_CA_FILE: /etc/groundwork/tls/ca.crt
{{- end }}
{{- if .service.data }}
GROUNDWORK_DATA_DIR: /data
{{- end }}
{{- if .service.signs }}
GROUNDWORK_AUTH_SIGNING_KEY_FILE: /etc/groundwork/signing-key/signing-key.json
{{- end }}
{{- if .service.store }}
{{ include "groundwork.env.store" . }}
{{- end }}
{{- if .service.user }}
GROUNDWORK_LOCAL_TENANT_ID: {{ .root.Values.auth.tenantId | quote }}
GROUNDWORK_LOCAL_SUBJECT: {{ .root.Values.auth.subject | quote }}
{{- end }}
{{- range $arrow := include "groundwork.arrows" . | fromYamlArray }}
{{- if and (eq (int $arrow.port) 7000) (has $.component $arrow.from) }}
GROUNDWORK_{{ $arrow.to | upper | replace "-" "_" }}_ADDRESS: {{ include "groundwork.name" (dict "root" $.root "component" $arrow.to) }}:7000
{{- end }}
{{- end }}
{{- if include "groundwork.embedded" .root }}
# The one retriever is away for a while when its pod is replaced: whoever asks it waits for that long.
GROUNDWORK_CONNECTION_PATIENCE_S: 60
{{- end }}
{{- end -}}

{{- define "groundwork.env.gateway" -}}
GROUNDWORK_HOST: 0.0.0.0
GROUNDWORK_PORT: 8080
GROUNDWORK_AUTH: api_keys
GROUNDWORK_ALLOWED_HOSTS: {{ include "groundwork.allowedHosts" .root | quote }}
{{- with include "groundwork.publicUrl" .root }}
GROUNDWORK_PUBLIC_URL: {{ . | quote }}
{{- end }}
GROUNDWORK_BOOTSTRAP_KEY_FILE: /etc/groundwork/bootstrap-key/key
{{- with .root.Values.auth.issuersSecret }}
GROUNDWORK_OIDC_ISSUERS_FILE: /etc/groundwork/oidc/issuers.json
{{- end }}
{{- with .root.Values.auth.guests }}
{{- if .enabled }}
GROUNDWORK_GUESTS: "true"
GROUNDWORK_GUESTS_TENANT: {{ .tenantId | quote }}
GROUNDWORK_GUESTS_MAX: {{ .max | quote }}
{{- with .limits }}
GROUNDWORK_GUESTS_LIMITS: {{ . | quote }}
{{- end }}
{{- with .limitsTogether }}
GROUNDWORK_GUESTS_LIMITS_TOGETHER: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- with .root.Values.auth.scimSubject }}
GROUNDWORK_SCIM_SUBJECT: {{ . | quote }}
{{- end }}
{{- with .values.proxies }}
GROUNDWORK_PROXIES: {{ join "," . | quote }}
{{- end }}
{{- $speech := .root.Values.speech }}
{{- with $speech.baseUrl }}
GROUNDWORK_SPEECH_BASE_URL: {{ . }}
GROUNDWORK_SPEECH_TRANSCRIPTION_MODEL: {{ $speech.transcriptionModel | quote }}
{{- end }}
{{- if or $speech.baseUrl $speech.outputBaseUrl }}
GROUNDWORK_SPEECH_OUTPUT_BASE_URL: {{ $speech.outputBaseUrl | quote }}
GROUNDWORK_SPEECH_MODEL: {{ $speech.model | quote }}
GROUNDWORK_SPEECH_VOICE: {{ $speech.voice | quote }}
{{- with $speech.existingSecret }}
GROUNDWORK_SPEECH_API_KEY: {secretKeyRef: {name: {{ . }}, key: api-key}}
{{- end }}
{{- with $speech.outputExistingSecret }}
GROUNDWORK_SPEECH_OUTPUT_API_KEY: {secretKeyRef: {name: {{ . }}, key: api-key}}
{{- end }}
{{- end }}
{{- if include "groundwork.embedded" .root }}
GROUNDWORK_SEARCH_TIMEOUT_S: 60
{{- end }}
{{- if or .root.Values.ingress.enabled .root.Values.route.enabled }}
# Longer than a proxy keeps an idle connection: one that the gateway closed while a request was on its way would fail that request.
GROUNDWORK_CONNECTION_IDLE_TIMEOUT_S: {{ ternary 3660 75 .root.Values.route.enabled }}
{{- end }}
{{- end -}}

{{- define "groundwork.env.orchestrator" -}}
{{- $llm := .root.Values.llm }}
{{- with include "groundwork.llmUrl" .root }}
GROUNDWORK_LLM_BASE_URL: {{ . }}
GROUNDWORK_LLM_MODEL: {{ ternary (include "groundwork.vllmModel" $.root) $llm.model $.root.Values.vllm.enabled | quote }}
GROUNDWORK_LLM_TOOL_CALLS: {{ $llm.toolCalls }}
GROUNDWORK_LLM_CONTEXT_TOKENS: {{ $llm.contextTokens }}
{{- end }}
{{- with ternary "vllm" $llm.preset .root.Values.vllm.enabled }}
GROUNDWORK_LLM_PRESET: {{ . }}
{{- end }}
{{- with $llm.existingSecret }}
GROUNDWORK_LLM_API_KEY: {secretKeyRef: {name: {{ . }}, key: api-key}}
{{- end }}
{{- with $llm.providersSecret }}
GROUNDWORK_LLM_PROVIDERS_FILE: /etc/groundwork/llm-providers/providers.json
{{- end }}
{{- with $llm.operations }}
GROUNDWORK_LLM_OPERATIONS: {{ toJson . | quote }}
{{- end }}
# Outlasts the election of a leader in the message store: a turn that is not kept in time is missing in its thread.
GROUNDWORK_RUN_MEMORY_TIMEOUT_S: 15
{{- if include "groundwork.embedded" .root }}
GROUNDWORK_RUN_SEARCH_TIMEOUT_S: 60
{{- end }}
{{- end -}}

{{- define "groundwork.env.retriever" -}}
{{- with .root.Values.qdrant }}
{{- if or .enabled .external.url }}
GROUNDWORK_QDRANT_URL: {{ .external.url | default (printf "http://%s:6333" (include "groundwork.name" (dict "root" $.root "component" "qdrant"))) }}
{{- end }}
{{- with ternary (include "groundwork.name" (dict "root" $.root "component" "qdrant")) .external.existingSecret .enabled }}
GROUNDWORK_QDRANT_API_KEY: {secretKeyRef: {name: {{ . }}, key: api-key}}
{{- end }}
{{- if .external.caSecret }}
GROUNDWORK_QDRANT_CA_FILE: /etc/groundwork/qdrant-ca/ca.crt
{{- end }}
{{- end }}
{{- with .root.Values.elasticsearch }}
{{- if or .enabled .external.url }}
GROUNDWORK_ELASTICSEARCH_URL: {{ .external.url | default (printf "http://%s:9200" (include "groundwork.name" (dict "root" $.root "component" "elasticsearch"))) }}
{{- end }}
{{- with .external.existingSecret }}
{{- if $.root.Values.elasticsearch.external.username }}
GROUNDWORK_ELASTICSEARCH_USERNAME: {{ $.root.Values.elasticsearch.external.username | quote }}
GROUNDWORK_ELASTICSEARCH_PASSWORD: {secretKeyRef: {name: {{ . }}, key: password}}
{{- else }}
GROUNDWORK_ELASTICSEARCH_API_KEY: {secretKeyRef: {name: {{ . }}, key: api-key}}
{{- end }}
{{- end }}
{{- if .external.caSecret }}
GROUNDWORK_ELASTICSEARCH_CA_FILE: /etc/groundwork/elasticsearch-ca/ca.crt
{{- end }}
{{- end }}
{{- end -}}

{{- define "groundwork.env.reranker" -}}
{{- with .values.gpu }}
{{- if .enabled }}
# By name: without a usable GPU the server then says so instead of going on with the processor.
GROUNDWORK_RERANKER_RERANK_PROVIDER: gpu
GROUNDWORK_RERANKER_GPU_RERANK_MODEL: {{ .rerankModel }}
{{- with .embeddingModel }}
GROUNDWORK_RERANKER_EMBEDDING_PROVIDER: gpu
GROUNDWORK_RERANKER_GPU_EMBEDDING_MODEL: {{ . }}
{{- end }}
{{- with .judgeModel }}
GROUNDWORK_RERANKER_GPU_JUDGE_MODEL: {{ . }}
{{- end }}
GROUNDWORK_RERANKER_GPU_DOWNLOAD: {{ .download }}
HF_HOME: /data/models
{{- end }}
{{- end }}
{{- end -}}

{{- define "groundwork.env.ingest" -}}
{{- with .values.scanner.address }}
GROUNDWORK_SCANNER: {{ . | quote }}
GROUNDWORK_SCANNER_AWAY: {{ $.values.scanner.away }}
{{- end }}
{{- with .values.storageQuotaBytes }}
GROUNDWORK_STORAGE_QUOTA_BYTES: {{ int64 . | quote }}
{{- end }}
{{- with .values.watchedFolders }}
{{- $folders := dict }}
{{- range $number, $folder := . }}
{{- $_ := set $folders $folder.name (printf "/watched/%d" $number) }}
{{- end }}
GROUNDWORK_WATCHED_FOLDERS: {{ $folders | toJson | quote }}
{{- end }}
{{- end -}}

{{- define "groundwork.env.ingest-worker" -}}
{{- end -}}

{{- define "groundwork.env.memory" -}}
{{- end -}}

{{- define "groundwork.env.tools" -}}
{{- end -}}

{{- /* The message store: all its servers, and the component's own user there, or another `user`. */}}
{{- define "groundwork.env.store" -}}
{{- $nats := .root.Values.nats }}
{{- $user := .user | default .component }}
{{- $scheme := ternary "tls" "nats" (or $nats.external.tls (and $nats.enabled .root.Values.tls.enabled)) }}
{{- $name := include "groundwork.name" (dict "root" .root "component" "nats") }}
{{- $urls := list }}
{{- range $nats.external.servers }}
{{- $urls = append $urls (printf "%s://%s:$(NATS_PASSWORD)@%s" $scheme $user .) }}
{{- else }}
{{- range $number := until (int $nats.replicas) }}
{{- $urls = append $urls (printf "%s://%s:$(NATS_PASSWORD)@%s-%d.%s:4222" $scheme $user $name $number $name) }}
{{- end }}
{{- end }}
NATS_PASSWORD: {secretKeyRef: {name: {{ $name }}-{{ $user }}, key: password}}
GROUNDWORK_NATS_URL: {{ join "," $urls }}
{{- if include "groundwork.natsAuthority" .root }}
GROUNDWORK_NATS_CA_FILE: /etc/groundwork/nats-ca/ca.crt
{{- end }}
GROUNDWORK_NATS_REPLICAS: {{ ternary 3 1 (ge (int (ternary $nats.external.replicas $nats.replicas (not (empty $nats.external.servers)))) 3) }}
{{- end -}}

{{- /* The Secret in whose `ca.crt` is who signed the certificates of the NATS servers. Empty: a public authority, or there are none. */}}
{{- define "groundwork.natsAuthority" -}}
{{- if and .Values.nats.enabled .Values.tls.enabled -}}
{{- include "groundwork.tlsSecret" (dict "root" . "component" "nats") -}}
{{- else if .Values.nats.external.tls -}}
{{- .Values.nats.external.caSecret -}}
{{- end -}}
{{- end -}}

{{- /* Names under which the gateway answers: its Service's, those of ingress and route, and `gateway.allowedHosts`. */}}
{{- define "groundwork.allowedHosts" -}}
{{- $hosts := include "groundwork.dnsNames" (dict "root" . "component" "gateway") | fromYamlArray -}}
{{- if .Values.ingress.enabled -}}{{- $hosts = concat $hosts .Values.ingress.hosts -}}{{- end -}}
{{- if .Values.route.enabled -}}{{- $hosts = concat $hosts .Values.route.hostnames -}}{{- end -}}
{{- join "," (concat $hosts .Values.gateway.allowedHosts | uniq) -}}
{{- end -}}

{{- /* Where people reach the gateway. Empty where it is not known: with several hosts each is reached under its own name. */}}
{{- define "groundwork.publicUrl" -}}
{{- with .Values.gateway.publicUrl -}}
{{- . -}}
{{- else -}}
{{- with .Values.ingress -}}
{{- if and .enabled .tlsSecret (eq (len .hosts) 1) (not $.Values.route.enabled) -}}https://{{ first .hosts }}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The language model's address: the given one, or that of the chart's vLLM. */}}
{{- define "groundwork.llmUrl" -}}
{{- if .Values.vllm.enabled -}}
http://{{ include "groundwork.name" (dict "root" . "component" "vllm") }}:8000/v1
{{- else -}}
{{- .Values.llm.baseUrl -}}
{{- end -}}
{{- end -}}

{{- /* The name under which the chart's vLLM serves its model. */}}
{{- define "groundwork.vllmModel" -}}
{{- .Values.vllm.servedName | default .Values.vllm.model -}}
{{- end -}}

{{- /* `env` of a container from a dict: what comes from elsewhere first, so that $(NAME) finds it. */}}
{{- define "groundwork.env" -}}
{{- range $name, $value := . }}
{{- if kindIs "map" $value }}
- name: {{ $name }}
  valueFrom: {{- toYaml $value | nindent 4 }}
{{- end }}
{{- end }}
{{- range $name, $value := . }}
{{- if not (kindIs "map" $value) }}
- name: {{ $name }}
  value: {{ include "groundwork.text" $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* A value as text: numbers of values files are floats, and large ones would print as 1e+06. */}}
{{- define "groundwork.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end -}}
