{{- /* The message store: nats-server with JetStream, which keeps everything that cannot be made again. */}}

{{- define "groundwork.nats.spec" -}}
{{- $nats := .Values.nats -}}
{{- $fullname := include "groundwork.fullname" (dict "root" .) -}}
kind: StatefulSet
# All at once: none of them is ready before most of them are there.
podManagementPolicy: Parallel
publishNotReadyAddresses: true
args: [--config, /etc/nats/nats.conf]
ports:
  - {name: client, containerPort: 4222}
  - {name: routes, containerPort: 6222}
  - {name: monitor, containerPort: 8222}
env:
  POD_NAME: {fieldRef: {fieldPath: metadata.name}}
  {{- with ($nats.resources.limits | default dict).memory }}
  # Go's heap; what is left is for the rest of the process.
  GOMEMLIMIT: {{ include "groundwork.bytes" (dict "quantity" . "share" 0.8) | quote }}
  {{- end }}
  {{- range include "groundwork.nats.users" . | fromYamlArray }}
  GROUNDWORK_NATS_PASSWORD_{{ . | upper | replace "-" "_" }}: {secretKeyRef: {name: {{ $fullname }}-nats-{{ . }}, key: password}}
  {{- end }}
  {{- range $number := until (int $nats.replicas) }}
  GROUNDWORK_NATS_ROUTE_{{ $number }}: nats-route://routes:$(GROUNDWORK_NATS_PASSWORD_ROUTES)@{{ include "groundwork.nats.host" (dict "root" $ "number" $number) }}:6222
  {{- end }}
  GROUNDWORK_NATS_ADVERTISE: $(POD_NAME).{{ $fullname }}-nats:6222
# Ready is who has caught up with the others: a roll-out and a drain go on to the next one only then, so that a majority that has
# everything is always there. Who is not keeps its address: services and the other servers choose by themselves.
probes:
  startup:
    httpGet: {path: "/healthz?js-enabled-only=true", port: monitor}
    periodSeconds: 2
    timeoutSeconds: 5
    failureThreshold: {{ div $nats.startupSeconds 2 }}
  readiness:
    httpGet: {path: /healthz, port: monitor}
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: 3
  # A server that could not write to its copy of a stream takes nothing for it until it is started anew: it catches up then. One
  # that is only slow to catch up loses little by that, since it goes on from where it was. After ten minutes, so that the kubelet
  # does not wait longer with each start while a majority is away.
  liveness:
    httpGet: {path: /healthz, port: monitor}
    periodSeconds: 10
    timeoutSeconds: 10
    failureThreshold: 60
# Its own streams are current then, but elections of others may still be going on, each 4 to 9 s long: the next one waits for them too.
minReadySeconds: 15
# Lame duck: it hands what it leads to the others, then sends its clients there one after the other, and ends by itself.
preStop:
  exec: {command: [nats-server, --signal, ldm=/tmp/nats.pid]}
stopSeconds: {{ add 30 $nats.lameDuckSeconds }}
storage: {name: data, mountPath: /data}
{{- if .Values.tls.enabled }}
# nats-server reads certificates when it starts and when it is told to: somebody must notice that they were renewed.
shareProcessNamespace: true
sidecars:
  - name: reload
    image: {{ include "groundwork.image" (dict "root" . "component" "prepare" "image" "cli") }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [cluster, reload, --pid-file=/tmp/nats.pid, /etc/nats-tls/tls.crt, /etc/nats-tls/tls.key, /etc/nats-tls/ca.crt]
    resources: {requests: {cpu: 10m, memory: 64Mi}, limits: {memory: 128Mi}}
    securityContext: {{- include "groundwork.containerSecurity" dict | nindent 6 }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      - {name: tls, mountPath: /etc/nats-tls, readOnly: true}
{{- end }}
volumes:
  - {name: config, configMap: {name: {{ $fullname }}-nats}}
  {{- if .Values.tls.enabled }}
  - {name: tls, secret: {secretName: {{ include "groundwork.tlsSecret" (dict "root" . "component" "nats") }}, defaultMode: 0440}}
  {{- end }}
volumeMounts:
  - {name: config, mountPath: /etc/nats, readOnly: true}
  {{- if .Values.tls.enabled }}
  - {name: tls, mountPath: /etc/nats-tls, readOnly: true}
  {{- end }}
podAnnotations:
  checksum/config: {{ printf "%s%s" (include "groundwork.nats.conf" .) (.Files.Get "files/nats-users.conf") | sha256sum }}
{{- end -}}

{{- /* Whose passwords its servers know: the administrator, the services, and the servers among themselves. */}}
{{- define "groundwork.nats.users" -}}
- groundwork
- routes
{{- range $service, $has := include "groundwork.services" (dict "root" .) | fromYaml }}
{{- if $has.store }}
- {{ $service }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "groundwork.nats.host" -}}
{{- $name := include "groundwork.name" (dict "root" .root "component" "nats") -}}
{{ printf "%s-%d.%s" $name .number $name }}
{{- end -}}

{{- define "groundwork.nats.conf" -}}
{{- $nats := .Values.nats -}}
server_name: $POD_NAME
listen: "0.0.0.0:4222"
http: "0.0.0.0:8222"
pid_file: "/tmp/nats.pid"
lame_duck_duration: "{{ $nats.lameDuckSeconds }}s"
lame_duck_grace_period: "5s"

jetstream {
  store_dir: "/data"
  # Refused with words before the disk is full: a write that fails there would stop its stream until the next start.
  max_file_store: {{ include "groundwork.bytes" (dict "quantity" $nats.persistence.size "share" 0.9) }}
  max_memory_store: 67108864
  sync_interval: {{ $nats.syncInterval }}
}
{{- if gt (int $nats.replicas) 1 }}

cluster {
  name: {{ include "groundwork.fullname" (dict "root" .) }}
  listen: "0.0.0.0:6222"
  cluster_advertise: $GROUNDWORK_NATS_ADVERTISE
  # Clients go by the names that they are given: the addresses of pods change.
  no_advertise: true
  authorization {user: routes, password: $GROUNDWORK_NATS_PASSWORD_ROUTES, timeout: 5}
  routes: [
    {{- range $number := until (int $nats.replicas) }}
    $GROUNDWORK_NATS_ROUTE_{{ $number }}
    {{- end }}
  ]
  {{- if .Values.tls.enabled }}
  {{- include "groundwork.nats.tls" (dict "verify" true) | nindent 2 }}
  {{- end }}
}
{{- end }}
{{- if .Values.tls.enabled }}

{{ include "groundwork.nats.tls" (dict "verify" false) }}
{{- end }}

include "users.conf"
{{- end -}}

{{- /* Servers among themselves show each other certificates of one authority. Clients prove who they are by their passwords: people and
backups have no certificate. */}}
{{- define "groundwork.nats.tls" -}}
tls {
  cert_file: "/etc/nats-tls/tls.crt"
  key_file: "/etc/nats-tls/tls.key"
  ca_file: "/etc/nats-tls/ca.crt"
  verify: {{ .verify }}
  timeout: 5
}
{{- end -}}
