{{- /* Names, labels and images: what every object of the chart has. Each takes a dict with `root` ($) and, where it is about one
component, `component`. */}}

{{- /* What all names begin with. A long one is cut, and its hash tells it from its like: 38 characters, `-elasticsearch` and the hash of a
StatefulSet's revision are 63, the most that a label of its pods may have. */}}
{{- define "groundwork.fullname" -}}
{{- $name := .root.Release.Name -}}
{{- $name = ternary $name (printf "%s-groundwork" $name) (contains "groundwork" $name) -}}
{{- $name = .root.Values.fullnameOverride | default $name -}}
{{- if gt (len $name) 38 -}}
{{- printf "%s-%s" ($name | trunc 29 | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end -}}

{{- define "groundwork.name" -}}
{{- printf "%s-%s" (include "groundwork.fullname" .) .component -}}
{{- end -}}

{{- /* What selects all pods of the release. */}}
{{- define "groundwork.release" -}}
app.kubernetes.io/name: groundwork
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- end -}}

{{- /* What selects the pods of a component. Kubernetes does not let it change: nothing about versions belongs here. */}}
{{- define "groundwork.selector" -}}
{{ include "groundwork.release" . }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "groundwork.labels" -}}
{{ include "groundwork.selector" . }}
app.kubernetes.io/part-of: groundwork
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | splitList "@" | first | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- /* `metadata` of an object that belongs to a component. */}}
{{- define "groundwork.metadata" -}}
metadata:
  name: {{ include "groundwork.name" . }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "groundwork.labels" . | nindent 4 }}
{{- end -}}

{{- /* The component's section of the values, as YAML: `ingest-worker` has `ingestWorker`. */}}
{{- define "groundwork.values" -}}
{{ get .root.Values (.component | camelcase | untitle) | default dict | toYaml }}
{{- end -}}

{{- /* The image of one of our services: REGISTRY/groundwork-IMAGE:TAG. `image` where it is not named after the component. */}}
{{- define "groundwork.image" -}}
{{- $own := (include "groundwork.values" . | fromYaml).image | default dict -}}
{{- $registry := $own.registry | default .root.Values.image.registry -}}
{{- $name := $own.name | default (printf "groundwork-%s" (.image | default .component)) -}}
{{- printf "%s/%s:%s" $registry $name ($own.tag | default .root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{- define "groundwork.pullSecrets" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* The names under which a component's Service is known, from short to long. */}}
{{- define "groundwork.dnsNames" -}}
{{- $name := include "groundwork.name" . -}}
- {{ $name }}
- {{ $name }}.{{ .root.Release.Namespace }}
- {{ $name }}.{{ .root.Release.Namespace }}.svc
- {{ $name }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- if eq .component "nats" }}
# Services and the other servers call each by its own name.
{{- range $number := until (int .root.Values.nats.replicas) }}
- {{ $name }}-{{ $number }}.{{ $name }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The port of `url`: `default` where it names none, and without that its scheme's. */}}
{{- define "groundwork.portOf" -}}
{{- $url := urlParse .url -}}
{{- $usual := .default | default (ternary 443 80 (eq $url.scheme "https")) -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default $usual -}}
{{- end -}}
