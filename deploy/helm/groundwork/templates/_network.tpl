{{- /* A component's NetworkPolicy: exactly the arrows that lead to it and from it, name resolution, the servers outside that it is told
of, and what the values add. For jobs too: (dict "root" . "component" "backup"), with `hook` annotations where it is to be there before a
job that runs as a hook. */}}
{{- define "groundwork.networkPolicy" -}}
{{- if .root.Values.networkPolicy.enabled -}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "groundwork.metadata" . }}
  {{- with .hook }}
  annotations: {{- toYaml (merge (dict "helm.sh/hook-weight" "-10") .) | nindent 4 }}
  {{- end }}
spec:
  podSelector:
    matchLabels: {{- include "groundwork.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- with include "groundwork.ingressRules" . | fromYamlArray }}
  ingress: {{- toYaml . | nindent 4 }}
  {{- end }}
  egress: {{- include "groundwork.egressRules" . | nindent 4 }}
{{- end -}}
{{- end -}}

{{- define "groundwork.ingressRules" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{- range include "groundwork.arrows" . | fromYamlArray }}
{{- if eq .to $.component }}
- from: {{- include "groundwork.peers" (dict "root" $.root "components" .from) | nindent 4 }}
  ports: [{port: {{ .port }}, protocol: TCP}]
{{- end }}
{{- end }}
{{- if eq .component "gateway" }}
- ports: [{port: 8080, protocol: TCP}]
  {{- with $policy.clients }}
  from: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- with get (include "groundwork.metricsPorts" . | fromYaml) .component }}
{{- with $policy.scrapers }}
- from: {{- toYaml . | nindent 4 }}
  ports: [{port: {{ get (include "groundwork.metricsPorts" $ | fromYaml) $.component }}, protocol: TCP}]
{{- end }}
{{- end }}
{{- $scaling := .root.Values.ingestWorker.autoscaling }}
{{- if and (eq .component "ingest-worker") $scaling.enabled $scaling.keda.enabled }}
- from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ $scaling.keda.namespace }}}}}]
  ports: [{port: 9000, protocol: TCP}]
{{- end }}
{{- with get $policy.ingress .component }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groundwork.egressRules" -}}
{{- $policy := .root.Values.networkPolicy -}}
- to: {{- toYaml $policy.dns.to | nindent 4 }}
  ports:
    {{- range $policy.dns.ports }}
    - {port: {{ . }}, protocol: UDP}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- range $port, $components := include "groundwork.reached" . | fromYaml }}
- to: {{- include "groundwork.peers" (dict "root" $.root "components" $components) | nindent 4 }}
  ports: [{port: {{ $port }}, protocol: TCP}]
{{- end }}
{{- range $port := include "groundwork.outsidePorts" . | fromYamlArray | uniq }}
- ports: [{port: {{ $port }}, protocol: TCP}]
  to: {{- with $policy.servers }}{{ toYaml . | nindent 4 }}{{ else }}{{ include "groundwork.anywhere" $ | nindent 4 }}{{ end }}
{{- end }}
{{- if has .component (list "prepare" "restore") }}
# The API server, which no selector names.
- to: {{- include "groundwork.anywhere" . | nindent 4 }}
  ports:
    {{- range $policy.apiServerPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end }}
{{- with get $policy.egress .component }}
{{ toYaml . }}
{{- end }}
{{- if has .component $policy.internet.from }}
{{ include "groundwork.internet" . }}
{{- end }}
{{- end -}}

{{- /* Peers of a rule: the pods of these components of this release. */}}
{{- define "groundwork.peers" -}}
- podSelector:
    matchLabels: {{- include "groundwork.release" . | nindent 6 }}
    matchExpressions: [{key: app.kubernetes.io/component, operator: In, values: [{{ join ", " .components }}]}]
{{- end -}}

{{- /* Which components of this release one connects to, by port. */}}
{{- define "groundwork.reached" -}}
{{- $present := keys (include "groundwork.services" . | fromYaml) -}}
{{- range list "nats" "qdrant" "elasticsearch" "vllm" -}}
{{- if (get $.root.Values .).enabled -}}{{- $present = append $present . -}}{{- end -}}
{{- end -}}
{{- $reached := dict -}}
{{- range include "groundwork.arrows" . | fromYamlArray -}}
{{- if and (has $.component .from) (has .to $present) -}}
{{- $_ := set $reached (toString .port) (append (get $reached (toString .port) | default list) .to) -}}
{{- end -}}
{{- end -}}
{{- toYaml $reached -}}
{{- end -}}

{{- /* Ports of the servers outside of the release that a component is told of by the values. */}}
{{- define "groundwork.outsidePorts" -}}
{{- $values := .root.Values }}
{{- $service := get (include "groundwork.services" . | fromYaml) .component | default dict }}
{{- if and $service $values.telemetry.otlpEndpoint }}
- {{ include "groundwork.portOf" (dict "url" $values.telemetry.otlpEndpoint "default" 4317) }}
{{- end }}
{{- if or $service.store (has .component (list "backup" "restore")) }}
{{- range $values.nats.external.servers }}
- {{ regexFind "[0-9]+$" . }}
{{- end }}
{{- end }}
{{- if eq .component "gateway" }}
{{- if $values.auth.issuersSecret }}
- 443
{{- end }}
{{- range compact (list $values.speech.baseUrl $values.speech.outputBaseUrl) }}
- {{ include "groundwork.portOf" (dict "url" .) }}
{{- end }}
{{- end }}
{{- if and (eq .component "orchestrator") $values.llm.baseUrl }}
- {{ include "groundwork.portOf" (dict "url" $values.llm.baseUrl) }}
{{- end }}
{{- if eq .component "retriever" }}
{{- with $values.qdrant.external.url }}
- {{ include "groundwork.portOf" (dict "url" . "default" 6333) }}
{{- end }}
{{- range compact (splitList "," $values.elasticsearch.external.url) }}
- {{ include "groundwork.portOf" (dict "url" (trim .) "default" 9200) }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Peers of a rule: everything but link-local addresses, where clouds hand out credentials. */}}
{{- define "groundwork.anywhere" -}}
- ipBlock: {cidr: 0.0.0.0/0, except: [169.254.0.0/16]}
- ipBlock: {cidr: "::/0", except: ["fe80::/10", "fd00:ec2::/32"]}
- namespaceSelector: {}
{{- end -}}

{{- /* Public addresses, and none of a private network, of a node or of a cloud's metadata service. */}}
{{- define "groundwork.internet" -}}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          - 0.0.0.0/8
          - 10.0.0.0/8
          - 100.64.0.0/10
          - 127.0.0.0/8
          - 169.254.0.0/16
          - 172.16.0.0/12
          - 192.0.0.0/24
          - 192.168.0.0/16
          - 198.18.0.0/15
          - 224.0.0.0/3
    - ipBlock:
        cidr: 2000::/3
  ports:
    {{- $internet := .root.Values.networkPolicy.internet }}
    {{- range ternary (concat $internet.ports $internet.sourcePorts) $internet.ports (eq .component "ingest") | uniq }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end -}}
