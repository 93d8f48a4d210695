{{- /*
groundwork.pod: the pod template (`metadata` and `spec`) of a workload or a job, from a dict with `root`, `component` and `spec`; see
groundwork.workload for what may stand in `spec`. A job gives `restartPolicy` there, and has neither probes nor an orderly stop.
*/}}

{{- define "groundwork.pod" -}}
{{- $section := (.spec | default dict).valuesOf | default .component -}}
{{- $values := include "groundwork.values" (dict "root" .root "component" $section) | fromYaml -}}
{{- $service := get (include "groundwork.services" . | fromYaml) .component -}}
{{- $context := dict "root" .root "component" .component "values" $values "spec" (.spec | default dict) "service" $service -}}
metadata:
  labels:
    {{- include "groundwork.selector" . | nindent 4 }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "groundwork.podAnnotations" $context | fromYaml }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "groundwork.podSpec" $context | nindent 2 }}
{{- end -}}

{{- /* Whoever goes by annotations reads pages of Prometheus' format that ask for no key: NATS has none, Qdrant asks. */}}
{{- define "groundwork.podAnnotations" -}}
{{- $port := get (include "groundwork.metricsPorts" . | fromYaml) .component }}
{{- if and .root.Values.metrics.annotations $port (not (has .component (list "nats" "qdrant"))) }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ $port | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- with .spec.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- with .values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groundwork.podSpec" -}}
serviceAccountName: {{ include "groundwork.name" . }}
automountServiceAccountToken: {{ .spec.serviceAccountToken | default false }}
# Kubernetes would set GROUNDWORK_GATEWAY_PORT and the like for each Service, which are names of our settings.
enableServiceLinks: false
{{- with .spec.shareProcessNamespace }}
shareProcessNamespace: {{ . }}
{{- end }}
{{- include "groundwork.pullSecrets" . }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .spec.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .spec.restartPolicy }}
restartPolicy: {{ . }}
{{- else }}
terminationGracePeriodSeconds: {{ include "groundwork.stopSeconds" . }}
{{- include "groundwork.spread" . }}
{{- end }}
securityContext: {{- include "groundwork.podSecurity" . | nindent 2 }}
{{- with .spec.initContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - {{- include "groundwork.container" . | nindent 4 }}
  {{- with .spec.sidecars }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes: {{- include "groundwork.volumes" . | nindent 2 }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
  # A pod on a node that has gone is made anew elsewhere after half a minute instead of five.
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
  {{- with concat (.spec.tolerations | default list) (.values.tolerations | default list) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "groundwork.container" -}}
{{- $image := (.service | default dict).image | default .spec.imageName }}
name: {{ .component }}
image: {{ .spec.image | default (include "groundwork.image" (dict "root" .root "component" (.spec.valuesOf | default .component) "image" $image)) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with .spec.command }}
command: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .spec.args | default (.service | default dict).args }}
args: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "groundwork.containerEnv" . | fromYamlArray }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not .spec.restartPolicy }}
ports: {{- include "groundwork.containerPorts" . | nindent 2 }}
{{- include "groundwork.probes" . }}
lifecycle:
  preStop: {{- toYaml (.spec.preStop | default (dict "sleep" (dict "seconds" .root.Values.drain.preStopSeconds))) | nindent 4 }}
{{- end }}
resources: {{- include "groundwork.resources" . | nindent 2 }}
securityContext: {{- include "groundwork.containerSecurity" . | nindent 2 }}
volumeMounts: {{- include "groundwork.mounts" . | nindent 2 }}
{{- end -}}

{{- define "groundwork.containerEnv" -}}
{{- $env := dict -}}
{{- $tables := list (.spec.env | default dict) (.values.env | default dict) -}}
{{- if .service -}}
{{- $own := include (printf "groundwork.env.%s" .component) . | fromYaml -}}
{{- $tables = concat (list (include "groundwork.env.shared" . | fromYaml) $own) $tables -}}
{{- end -}}
{{- range $table := $tables -}}
{{- range $name, $value := $table -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- end -}}
{{- include "groundwork.env" $env -}}
{{- end -}}

{{- define "groundwork.containerPorts" -}}
{{- if .spec.ports -}}
{{ toYaml .spec.ports }}
{{- else -}}
- {name: grpc, containerPort: 7000}
- {name: metrics, containerPort: 9000}
{{- end -}}
{{- end -}}

{{- /* Readiness asks the gRPC health service, which the kubelet cannot do under TLS: then /readyz, which says the same. A process that
waits for the message store is alive, so a start is over once /livez answers. */}}
{{- define "groundwork.probes" -}}
{{- $probes := .spec.probes | default dict -}}
{{- if and .service (not .spec.probes) -}}
{{- $alive := dict "path" "/livez" "port" 9000 -}}
{{- $attempts := div (.spec.startupSeconds | default 300) 2 -}}
{{- $ready := dict "periodSeconds" 3 "timeoutSeconds" 5 "failureThreshold" 3 -}}
{{- if or .spec.ports .root.Values.tls.enabled -}}
{{- $_ := set $ready "httpGet" (dict "path" "/readyz" "port" 9000) -}}
{{- else -}}
{{- $_ := set $ready "grpc" (dict "port" 7000) -}}
{{- end -}}
{{- $probes = dict
  "startup" (dict "httpGet" $alive "periodSeconds" 2 "timeoutSeconds" 5 "failureThreshold" $attempts)
  "readiness" $ready
  "liveness" (dict "httpGet" $alive "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6) -}}
{{- end -}}
{{- range $kind, $probe := $probes }}
{{ $kind }}Probe: {{- toYaml $probe | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "groundwork.resources" -}}
{{- $resources := .values.resources | default dict | deepCopy -}}
{{- range $name, $value := .spec.limits -}}
{{- $_ := set $resources "limits" (set ($resources.limits | default dict) $name $value) -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{- define "groundwork.podSecurity" -}}
{{- $context := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532
  "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- range $name, $value := .spec.podSecurityContext -}}
{{- $_ := set $context $name $value -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{- define "groundwork.containerSecurity" -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true
  "capabilities" (dict "drop" (list "ALL")) -}}
{{- range $name, $value := (.spec | default dict).securityContext -}}
{{- $_ := set $context $name $value -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{- define "groundwork.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- with .spec.storage }}
- {name: {{ .name }}, mountPath: {{ .mountPath }}}
{{- else }}
{{- if (.service | default dict).data }}
- {name: data, mountPath: /data}
{{- end }}
{{- end }}
{{- if .service }}
- {name: public-keys, mountPath: /etc/groundwork/public-keys, readOnly: true}
{{- if .service.signs }}
- {name: signing-key, mountPath: /etc/groundwork/signing-key, readOnly: true}
{{- end }}
{{- if .root.Values.tls.enabled }}
- {name: tls, mountPath: /etc/groundwork/tls, readOnly: true}
{{- end }}
{{- if .service.store }}
{{- include "groundwork.natsAuthorityMount" . }}
{{- end }}
{{- end }}
{{- with concat (.spec.volumeMounts | default list) (.values.volumeMounts | default list) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groundwork.volumes" -}}
{{- $fullname := include "groundwork.fullname" . -}}
- {name: tmp, emptyDir: {sizeLimit: {{ .values.tmpSize | default "1Gi" }}}}
{{- if .service }}
{{- if and .service.data (not .spec.storage) }}
- {name: data, emptyDir: {sizeLimit: {{ .values.dataSize }}}}
{{- end }}
- {name: public-keys, configMap: {name: {{ $fullname }}-public-keys}}
{{- if .service.signs }}
- {name: signing-key, secret: {secretName: {{ $fullname }}-signing-{{ .component }}, defaultMode: 0440}}
{{- end }}
{{- if .root.Values.tls.enabled }}
- {name: tls, secret: {secretName: {{ include "groundwork.tlsSecret" . }}, defaultMode: 0440}}
{{- end }}
{{- if .service.store }}
{{- include "groundwork.natsAuthorityVolume" . }}
{{- end }}
{{- end }}
{{- with concat (.spec.volumes | default list) (.values.volumes | default list) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* For who connects to NATS: by whom its certificates must be signed. Not the Secret's private key. */}}
{{- define "groundwork.natsAuthorityVolume" }}
{{- with include "groundwork.natsAuthority" .root }}
- {name: nats-ca, secret: {secretName: {{ . }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}}
{{- end }}
{{- end -}}

{{- define "groundwork.natsAuthorityMount" }}
{{- if include "groundwork.natsAuthority" .root }}
- {name: nats-ca, mountPath: /etc/groundwork/nats-ca, readOnly: true}
{{- end }}
{{- end -}}

{{- define "groundwork.tlsSecret" -}}
{{- get .root.Values.tls.existingSecrets .component | default (printf "%s-tls" (include "groundwork.name" .)) -}}
{{- end -}}

{{- /* preStop, the delay in which everything is still served, the grace of requests in hand, and time to close connections. */}}
{{- define "groundwork.stopSeconds" -}}
{{- $drain := .root.Values.drain -}}
{{- .spec.stopSeconds | default (add $drain.preStopSeconds $drain.delaySeconds $drain.graceSeconds 5) -}}
{{- end -}}

{{- define "groundwork.spread" }}
topologySpreadConstraints:
  {{- range .values.topologySpreadConstraints }}
  # Without a selector it would count no pods, and so do nothing.
  - {{- toYaml (merge dict . (dict "labelSelector" (dict "matchLabels" (include "groundwork.selector" $ | fromYaml)))) | nindent 4 }}
  {{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    # Of what keeps data, two on one node would be lost together.
    whenUnsatisfiable: {{ ternary "DoNotSchedule" .root.Values.topologySpread (not (empty .spec.storage)) }}
    # A node that takes no pods, being drained or lost, does not count as one with room.
    nodeTaintsPolicy: Honor
    labelSelector:
      matchLabels: {{- include "groundwork.selector" . | nindent 8 }}
    {{- if ne (.spec.kind | default "Deployment") "StatefulSet" }}
    # Each version by itself: else a roll-out would put new pods where old ones are few, and leave them there.
    matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
{{- end -}}
