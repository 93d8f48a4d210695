{{- /* The `spec` of those of our services that differ from the rule: see groundwork.workload. All take $. */}}

{{- define "groundwork.gateway.spec" -}}
ports:
  - {name: http, containerPort: 8080}
  - {name: metrics, containerPort: 9000}
servicePorts:
  - {name: http, port: 80, targetPort: http}
volumes:
  - {name: bootstrap-key, secret: {secretName: {{ include "groundwork.bootstrapKeySecret" (dict "root" .) }}, defaultMode: 0440}}
  {{- with .Values.auth.issuersSecret }}
  - {name: oidc, secret: {secretName: {{ . }}, defaultMode: 0440}}
  {{- end }}
volumeMounts:
  - {name: bootstrap-key, mountPath: /etc/groundwork/bootstrap-key, readOnly: true}
  {{- if .Values.auth.issuersSecret }}
  - {name: oidc, mountPath: /etc/groundwork/oidc, readOnly: true}
  {{- end }}
{{- end -}}

{{- define "groundwork.orchestrator.spec" -}}
{{- with .Values.llm.providersSecret }}
volumes:
  - {name: llm-providers, secret: {secretName: {{ . }}, defaultMode: 0440}}
volumeMounts:
  - {name: llm-providers, mountPath: /etc/groundwork/llm-providers, readOnly: true}
{{- end }}
{{- end -}}

{{- define "groundwork.ingest.spec" -}}
{{- with .Values.ingest.watchedFolders }}
volumes:
  {{- range $number, $folder := . }}
  - {{ merge (dict "name" (printf "watched-%d" $number)) $folder.volume | toJson }}
  {{- end }}
volumeMounts:
  {{- range $number, $folder := . }}
  - {name: watched-{{ $number }}, mountPath: /watched/{{ $number }}, readOnly: true}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* With an index of its own in a folder there is one retriever, with a volume. */}}
{{- define "groundwork.retriever.spec" -}}
{{- if include "groundwork.embedded" . }}
kind: StatefulSet
storage: {name: data, mountPath: /data}
{{- end }}
{{- $authorities := dict "qdrant" .Values.qdrant.external.caSecret "elasticsearch" .Values.elasticsearch.external.caSecret }}
volumes:
  {{- range $engine, $secret := $authorities }}
  {{- if $secret }}
  - {name: {{ $engine }}-ca, secret: {secretName: {{ $secret }}, defaultMode: 0440}}
  {{- end }}
  {{- end }}
volumeMounts:
  {{- range $engine, $secret := $authorities }}
  {{- if $secret }}
  - {name: {{ $engine }}-ca, mountPath: /etc/groundwork/{{ $engine }}-ca, readOnly: true}
  {{- end }}
  {{- end }}
{{- end -}}

{{- /* Not empty where an index, of vectors or of text, lies with the retriever. */}}
{{- define "groundwork.embedded" -}}
{{- $vectors := or .Values.qdrant.enabled .Values.qdrant.external.url -}}
{{- $text := or .Values.elasticsearch.enabled .Values.elasticsearch.external.url -}}
{{- if not (and $vectors $text) -}}embedded{{- end -}}
{{- end -}}

{{- /* With a volume for each pod it keeps downloaded models and token vectors over restarts. */}}
{{- define "groundwork.reranker.spec" -}}
{{- $own := .Values.reranker }}
{{- if $own.persistence.enabled }}
kind: StatefulSet
podManagementPolicy: Parallel
storage: {name: data, mountPath: /data}
{{- end }}
# Reading models from a cold disk takes minutes, fetching them from a hub longer.
startupSeconds: {{ $own.startupSeconds }}
{{- if $own.gpu.enabled }}
imageName: reranker-gpu
runtimeClassName: {{ $own.gpu.runtimeClassName | quote }}
limits: { {{- $own.gpu.resource | quote }}: {{ $own.gpu.count }} }
tolerations:
  - {key: {{ $own.gpu.resource }}, operator: Exists, effect: NoSchedule}
{{- end }}
{{- end -}}

{{- define "groundwork.tools.spec" -}}
{{- if .Values.tools.browser.enabled }}
imageName: tools-browser
{{- end }}
{{- end -}}

{{- define "groundwork.bootstrapKeySecret" -}}
{{- .root.Values.auth.existingSecret | default (printf "%s-bootstrap-key" (include "groundwork.fullname" .)) -}}
{{- end -}}
