{{- /* What values.schema.json cannot say: values that do not go together. Each ends the rendering with a sentence that says what to
do. Takes $. */}}

{{- define "groundwork.check" -}}
{{- if not (regexMatch "^[a-z]" .Release.Name) -}}
{{- fail (printf "The release's name is %q: it must begin with a letter, as names of Services do." .Release.Name) -}}
{{- end -}}
{{- include "groundwork.check.auth" . -}}
{{- include "groundwork.check.tls" . -}}
{{- include "groundwork.check.addresses" . -}}
{{- include "groundwork.check.engines" . -}}
{{- include "groundwork.check.models" . -}}
{{- include "groundwork.check.edge" . -}}
{{- include "groundwork.check.servers" . -}}
{{- include "groundwork.check.volumes" . -}}
{{- with .Values.evaluation -}}
{{- if and .enabled (not .questions) (not .existingConfigMap) -}}
{{- fail "evaluation.enabled needs evaluation.questions, or evaluation.existingConfigMap: the questions whose documents are known." -}}
{{- end -}}
{{- end -}}
{{- range $component, $_ := include "groundwork.services" . | fromYaml -}}
{{- include "groundwork.check.service" (dict "root" $ "component" $component) -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.auth" -}}
{{- with .Values.auth -}}
{{- if and .bootstrapKey .existingSecret -}}
{{- fail "auth.bootstrapKey and auth.existingSecret are both set: give the key itself, or the name of the Secret that holds it." -}}
{{- end -}}
{{- if and .bootstrapKey (not (regexMatch "^[!-~]{12,}$" .bootstrapKey)) -}}
{{- fail "auth.bootstrapKey must be at least 12 characters of letters, digits and punctuation, without spaces." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.tls" -}}
{{- with .Values.tls -}}
{{- if and .certManager.enabled (not .enabled) -}}
{{- fail "tls.certManager.enabled needs tls.enabled=true: else certificates would be made and not used." -}}
{{- end -}}
{{- if and .certManager.enabled (not .certManager.issuerRef.name) -}}
{{- fail "tls.certManager.enabled needs tls.certManager.issuerRef.name: the Issuer or ClusterIssuer that signs for the services." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.addresses" -}}
{{- $given := dict "llm.baseUrl" .Values.llm.baseUrl "telemetry.otlpEndpoint" .Values.telemetry.otlpEndpoint
  "qdrant.external.url" .Values.qdrant.external.url
  "speech.baseUrl" .Values.speech.baseUrl "speech.outputBaseUrl" .Values.speech.outputBaseUrl -}}
{{- range $name, $url := $given -}}
{{- if and $url (not (regexMatch "^https?://[^\\s/?#,]+(/[^\\s?#]*)?$" $url)) -}}
{{- fail (printf "%s is %q: it must be an address such as http://name:8000, with http:// or https:// in front." $name $url) -}}
{{- end -}}
{{- end -}}
{{- range compact (splitList "," .Values.elasticsearch.external.url) -}}
{{- if not (regexMatch "^https?://[^\\s/?#]+/?$" (trim .)) -}}
{{- fail (printf "elasticsearch.external.url has %q: it must be addresses such as https://es-1:9200, with commas between them." .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.nats.external.servers -}}
{{- if not (regexMatch "^[^\\s/@,]+:[0-9]+$" .) -}}
{{- fail (printf "nats.external.servers has %q: write host:port, without scheme or user; users are the chart's." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.engines" -}}
{{- range list "qdrant" "elasticsearch" -}}
{{- $engine := get $.Values . -}}
{{- if and $engine.enabled $engine.external.url -}}
{{- fail (printf "%s.enabled and %s.external.url are both set: use the chart's own server, or the one outside." . .) -}}
{{- end -}}
{{- if and (or $engine.external.existingSecret $engine.external.caSecret) (not $engine.external.url) -}}
{{- fail (printf "%s.external names a Secret and no server: set %s.external.url, or leave the Secret out." . .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.elasticsearch.external.username (not .Values.elasticsearch.external.existingSecret) -}}
{{- fail "elasticsearch.external.username needs elasticsearch.external.existingSecret: the Secret that holds its password." -}}
{{- end -}}
{{- if and (include "groundwork.embedded" .) (or (gt (int .Values.retriever.replicas) 1) .Values.retriever.autoscaling.enabled) -}}
{{- fail "There can be only one retriever as long as it has an index of its own in a folder: leave retriever.replicas at 1 and retriever.autoscaling off, or put both indexes on servers (qdrant.enabled or qdrant.external.url, and elasticsearch.enabled or elasticsearch.external.url)." -}}
{{- end -}}
{{- with .Values.nats -}}
{{- if and .enabled .external.servers -}}
{{- fail "nats.enabled and nats.external.servers are both set: for servers outside set nats.enabled=false." -}}
{{- end -}}
{{- if not (or .enabled .external.servers) -}}
{{- fail "There is no message store: set nats.enabled=true, or name servers in nats.external.servers." -}}
{{- end -}}
{{- if and .external.caSecret (not .external.tls) -}}
{{- fail "nats.external.caSecret is for certificates, and nats.external.tls is false: set it, or leave the Secret out." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.models" -}}
{{- if and .Values.vllm.enabled .Values.llm.baseUrl -}}
{{- fail "vllm.enabled and llm.baseUrl are both set: the chart's vLLM is the language model then. Name others in the Secret llm.providersSecret." -}}
{{- end -}}
{{- with .Values.speech -}}
{{- if and .existingSecret (not (or .baseUrl .outputBaseUrl)) -}}
{{- fail "speech.existingSecret holds the key of speech.baseUrl, which is not set." -}}
{{- end -}}
{{- if and .outputExistingSecret (not .outputBaseUrl) -}}
{{- fail "speech.outputExistingSecret holds the key of speech.outputBaseUrl, which is not set." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.llm.existingSecret (not (include "groundwork.llmUrl" .)) -}}
{{- fail "llm.existingSecret holds the key of llm.baseUrl, which is not set." -}}
{{- end -}}
{{- if and .Values.llm.operations (not (or (include "groundwork.llmUrl" .) .Values.llm.providersSecret)) -}}
{{- fail "llm.operations names models, and there is none: set llm.baseUrl, llm.providersSecret or vllm.enabled." -}}
{{- end -}}
{{- include "groundwork.check.vllm" . -}}
{{- with .Values.reranker.gpu -}}
{{- if and .download (not .enabled) -}}
{{- fail "reranker.gpu.download needs reranker.gpu.enabled=true: models for the processor are in the image." -}}
{{- end -}}
{{- if and .download $.Values.networkPolicy.enabled (not (has "reranker" $.Values.networkPolicy.internet.from)) (not (get $.Values.networkPolicy.egress "reranker")) -}}
{{- fail "reranker.gpu.download needs a way to the hub: add reranker to networkPolicy.internet.from, or a rule to networkPolicy.egress.reranker." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.vllm" -}}
{{- $vllm := .Values.vllm -}}
{{- if $vllm.enabled -}}
{{- if not $vllm.model -}}
{{- fail "vllm.enabled needs vllm.model: a name on the Hugging Face hub, or a folder below /models." -}}
{{- end -}}
{{- if and (not $vllm.toolCallParser) (eq .Values.llm.toolCalls "native") -}}
{{- fail "vllm.toolCallParser is empty, so that the model calls no tools: set llm.toolCalls=schema too." -}}
{{- end -}}
{{- $policy := .Values.networkPolicy -}}
{{- $fetches := not (or (hasPrefix "/" $vllm.model) $vllm.modelVolume.existingClaim (hasKey $vllm.env "HF_HUB_OFFLINE")) -}}
{{- if and $fetches $policy.enabled (not (has "vllm" $policy.internet.from)) (not (get $policy.egress "vllm")) -}}
{{- fail (printf "vllm.model is %s, of the hub, to which there is no way: add vllm to networkPolicy.internet.from, or a rule to networkPolicy.egress.vllm." $vllm.model) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.edge" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.enabled needs ingress.hosts: the gateway answers only under names that it knows." -}}
{{- end -}}
{{- if and .Values.route.enabled (not .Values.route.parentRefs) -}}
{{- fail "route.enabled needs route.parentRefs: the Gateways that the route belongs to." -}}
{{- end -}}
{{- if and .Values.route.enabled (not .Values.route.hostnames) -}}
{{- fail "route.enabled needs route.hostnames: the gateway answers only under names that it knows." -}}
{{- end -}}
{{- end -}}

{{- /* Servers that share what they hold, of which a cluster has so many already. Only an install or upgrade asks the cluster. */}}
{{- define "groundwork.check.servers" -}}
{{- range $component := list "nats" "elasticsearch" -}}
{{- $wanted := int (get $.Values $component).replicas -}}
{{- $there := lookup "apps/v1" "StatefulSet" $.Release.Namespace (include "groundwork.name" (dict "root" $ "component" $component)) -}}
{{- $running := int (dig "spec" "replicas" 0 $there) -}}
{{- if and (get $.Values $component).enabled $running (or (gt $running $wanted) (and (eq $running 1) (gt $wanted 1))) -}}
{{- fail (printf "%s.replicas is %d, and %d run: a single server cannot become one of several, and none can be taken away, without the loss of what they hold. docs/kubernetes.md#the-number-of-servers says what to do instead." $component $wanted $running) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Volumes of StatefulSets, whose size Kubernetes lets nobody change there. It would say so without a word of what to do. */}}
{{- define "groundwork.check.volumes" -}}
{{- $kept := dict "nats" .Values.nats.enabled "qdrant" .Values.qdrant.enabled "elasticsearch" .Values.elasticsearch.enabled
  "retriever" (not (empty (include "groundwork.embedded" .))) "reranker" .Values.reranker.persistence.enabled
  "vllm" (and .Values.vllm.enabled .Values.vllm.persistence.enabled) -}}
{{- range $component, $is := $kept -}}
{{- $wanted := (get $.Values $component).persistence.size -}}
{{- $there := lookup "apps/v1" "StatefulSet" $.Release.Namespace (include "groundwork.name" (dict "root" $ "component" $component)) -}}
{{- range $is | ternary (dig "spec" "volumeClaimTemplates" list $there) list -}}
{{- $size := .spec.resources.requests.storage -}}
{{- if ne (include "groundwork.bytes" (dict "quantity" $size "share" 1)) (include "groundwork.bytes" (dict "quantity" $wanted "share" 1)) -}}
{{- fail (printf "%s.persistence.size is %v, and the volumes that run have %s, which no upgrade can change. docs/kubernetes.md#upgrade-and-roll-back says how they are enlarged." $component $wanted $size) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.check.service" -}}
{{- $values := include "groundwork.values" . | fromYaml -}}
{{- $name := .component | camelcase | untitle -}}
{{- with $values.autoscaling -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail (printf "%s.autoscaling.minReplicas is %v and maxReplicas %v: the smaller one comes first." $name .minReplicas .maxReplicas) -}}
{{- end -}}
{{- $keda := (.keda | default dict).enabled -}}
{{- if and $keda (not .enabled) -}}
{{- fail (printf "%s.autoscaling.keda.enabled needs %s.autoscaling.enabled=true." $name $name) -}}
{{- end -}}
{{- if and .enabled (not $keda) (not (dig "requests" "cpu" "" ($values.resources | default dict))) -}}
{{- fail (printf "%s.autoscaling goes by the share of the processor that was requested: set %s.resources.requests.cpu." $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
