{{- /* Qdrant and Elasticsearch for those who have none: both hold only what can be made again from the uploaded files. */}}

{{- define "groundwork.qdrant.spec" -}}
{{- $qdrant := .Values.qdrant -}}
{{- $name := include "groundwork.name" (dict "root" . "component" "qdrant") -}}
kind: StatefulSet
image: {{ include "groundwork.thirdPartyImage" $qdrant.image }}
publishNotReadyAddresses: true
# The first of a new cluster asks nobody, the others join it. Who has been a member knows the others from its own disk.
command: [bash, -c]
args:
  - |
    self=http://$POD_NAME.{{ $name }}:6335
    first=http://{{ $name }}-0.{{ $name }}:6335
    if [ "$POD_NAME" = {{ $name }}-0 ]; then
      exec ./entrypoint.sh --uri "$self"
    fi
    exec ./entrypoint.sh --bootstrap "$first" --uri "$self"
ports:
  - {name: http, containerPort: 6333}
  - {name: grpc, containerPort: 6334}
  - {name: peers, containerPort: 6335}
env:
  POD_NAME: {fieldRef: {fieldPath: metadata.name}}
  QDRANT__SERVICE__API_KEY: {secretKeyRef: {name: {{ $name }}, key: api-key}}
  QDRANT__CLUSTER__ENABLED: true
  QDRANT__STORAGE__STORAGE_PATH: /data/storage
  QDRANT__STORAGE__SNAPSHOTS_PATH: /data/snapshots
  QDRANT__STORAGE__TEMP_PATH: /data/temporary
  QDRANT_INIT_FILE_PATH: /tmp/initialized
  QDRANT__TELEMETRY_DISABLED: true
# Ready is who has caught up with the others.
probes:
  startup:
    httpGet: {path: /livez, port: http}
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: {{ div $qdrant.startupSeconds 5 }}
  readiness:
    httpGet: {path: /readyz, port: http}
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: 3
  liveness:
    httpGet: {path: /livez, port: http}
    periodSeconds: 10
    timeoutSeconds: 10
    failureThreshold: 6
stopSeconds: 60
storage: {name: data, mountPath: /data}
{{- end -}}

{{- define "groundwork.elasticsearch.spec" -}}
{{- $search := .Values.elasticsearch -}}
{{- $name := include "groundwork.name" (dict "root" . "component" "elasticsearch") -}}
{{- $image := include "groundwork.thirdPartyImage" $search.image -}}
{{- $home := "/usr/share/elasticsearch" -}}
kind: StatefulSet
image: {{ $image }}
# All at once: a cluster begins with a majority.
podManagementPolicy: Parallel
publishNotReadyAddresses: true
ports:
  - {name: http, containerPort: 9200}
  - {name: peers, containerPort: 9300}
env:
  POD_NAME: {fieldRef: {fieldPath: metadata.name}}
  ES_TMPDIR: /tmp
podSecurityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000}
# Its folder of settings must be writable (it keeps a keystore there), and the rest must not.
initContainers:
  - name: settings
    image: {{ $image }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [bash, -c, "cp -r {{ $home }}/config/. /settings/ && cp /given/elasticsearch.yml /settings/"]
    resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 256Mi}}
    securityContext: {{- include "groundwork.containerSecurity" dict | nindent 6 }}
    volumeMounts:
      - {name: settings, mountPath: /settings}
      - {name: given, mountPath: /given, readOnly: true}
# Ready is who has its copies of what the others hold, so that a roll-out takes away no last copy.
probes:
  startup:
    httpGet: {path: /, port: http}
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: {{ div $search.startupSeconds 5 }}
  readiness:
    httpGet: {path: "/_cluster/health?wait_for_status=yellow&wait_for_no_initializing_shards=true&timeout=4s", port: http}
    periodSeconds: 10
    timeoutSeconds: 8
    failureThreshold: 3
  liveness:
    tcpSocket: {port: http}
    periodSeconds: 20
    timeoutSeconds: 10
    failureThreshold: 6
stopSeconds: 120
storage: {name: data, mountPath: /data}
volumes:
  - {name: settings, emptyDir: {sizeLimit: 64Mi}}
  - {name: given, configMap: {name: {{ $name }}}}
  - {name: logs, emptyDir: {sizeLimit: 1Gi}}
volumeMounts:
  - {name: settings, mountPath: {{ $home }}/config}
  - {name: logs, mountPath: {{ $home }}/logs}
podAnnotations:
  checksum/config: {{ include "groundwork.elasticsearch.settings" . | sha256sum }}
{{- end -}}

{{- define "groundwork.elasticsearch.settings" -}}
{{- $search := .Values.elasticsearch -}}
{{- $name := include "groundwork.name" (dict "root" . "component" "elasticsearch") -}}
cluster.name: {{ $name }}
node.name: ${POD_NAME}
network.host: 0.0.0.0
path.data: /data
{{- if gt (int $search.replicas) 1 }}
discovery.seed_hosts: [{{ $name }}]
# Only for the very first start.
cluster.initial_master_nodes:
  {{- range $number := until (int $search.replicas) }}
  - {{ $name }}-{{ $number }}
  {{- end }}
{{- else }}
discovery.type: single-node
{{- end }}
# Mapping files into memory needs vm.max_map_count=1048576 on each node.
node.store.allow_mmap: {{ $search.memoryMapping }}
# The network policy protects it: only the retriever reaches it. Its own security needs certificates for each node, which the chart
# does not make; for a server with passwords and TLS use elasticsearch.external.
xpack.security.enabled: false
xpack.ml.enabled: false
ingest.geoip.downloader.enabled: false
{{- end -}}

{{- /* REGISTRY/NAME:TAG of an image that is not ours, all of which stand in the values. */}}
{{- define "groundwork.thirdPartyImage" -}}
{{ .registry }}/{{ .name }}:{{ .tag }}
{{- end -}}
