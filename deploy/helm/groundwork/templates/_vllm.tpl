{{- /* A language model by vLLM, on GPUs of the cluster or, with an image for it, on processors. */}}

{{- define "groundwork.vllm.spec" -}}
{{- $vllm := .Values.vllm -}}
{{- $fullname := include "groundwork.fullname" (dict "root" .) -}}
{{- $count := mul (int $vllm.tensorParallelSize) (int $vllm.pipelineParallelSize) -}}
kind: {{ ternary "StatefulSet" "Deployment" $vllm.persistence.enabled }}
image: {{ include "groundwork.thirdPartyImage" $vllm.image }}
{{- if $vllm.persistence.enabled }}
podManagementPolicy: Parallel
storage: {name: data, mountPath: /data}
{{- else }}
updateStrategy:
  type: RollingUpdate
  rollingUpdate: {{ ternary "{maxSurge: 1, maxUnavailable: 0}" "{maxSurge: 0, maxUnavailable: 1}" $vllm.surge }}
{{- end }}
command: [vllm, serve]
args:
  - {{ $vllm.model | quote }}
  - --host=0.0.0.0
  - --port=8000
  - --served-model-name
  {{- range uniq (list (include "groundwork.vllmModel" .) $vllm.model) }}
  - {{ . | quote }}
  {{- end }}
  - --tensor-parallel-size={{ $vllm.tensorParallelSize }}
  {{- if gt (int $vllm.pipelineParallelSize) 1 }}
  - --pipeline-parallel-size={{ $vllm.pipelineParallelSize }}
  {{- end }}
  # Without, it breaks answers off at SIGTERM.
  - --shutdown-timeout={{ max 0 (sub (int $vllm.stopSeconds) (add 5 .Values.drain.preStopSeconds)) }}
  {{- with $vllm.maxModelLen }}
  - --max-model-len={{ int64 . }}
  {{- end }}
  {{- with $vllm.toolCallParser }}
  - --enable-auto-tool-choice
  - --tool-call-parser={{ . }}
  {{- end }}
  {{- with $vllm.reasoningParser }}
  - --reasoning-parser={{ . }}
  {{- end }}
  {{- range $vllm.extraArgs }}
  - {{ . | quote }}
  {{- end }}
ports:
  - {name: http, containerPort: 8000}
env:
  HOME: /tmp
  # Programs that ask who they are find no entry for the user in the image.
  USER: vllm
  HF_HOME: /data/huggingface
  {{- if $vllm.modelVolume.existingClaim }}
  HF_HUB_OFFLINE: 1
  {{- end }}
  {{- with $vllm.huggingFaceSecret }}
  HF_TOKEN: {secretKeyRef: {name: {{ . }}, key: token}}
  {{- end }}
  VLLM_CACHE_ROOT: /data/vllm
  TORCHINDUCTOR_CACHE_DIR: /data/torch
  TRITON_CACHE_DIR: /data/triton
  XDG_CACHE_HOME: /data/cache
  XDG_CONFIG_HOME: /tmp/config
  VLLM_NO_USAGE_STATS: 1
  READY_MODEL: {{ include "groundwork.vllmModel" . | quote }}
  # Less than the probe has, so that progress can be looked at before it is over.
  READY_TIMEOUT_S: {{ sub (int $vllm.readiness.timeoutSeconds) 8 }}
# A start reads, fetches or compiles for minutes. Ready is who answers a completion.
startupSeconds: {{ $vllm.startupSeconds }}
probes:
  startup:
    httpGet: {path: /health, port: http}
    periodSeconds: 5
    timeoutSeconds: 5
    failureThreshold: {{ div $vllm.startupSeconds 5 }}
  readiness:
    exec: {command: [python3, /probes/vllm_ready.py]}
    periodSeconds: {{ $vllm.readiness.periodSeconds }}
    timeoutSeconds: {{ $vllm.readiness.timeoutSeconds }}
    failureThreshold: 3
  liveness:
    httpGet: {path: /health, port: http}
    periodSeconds: 20
    timeoutSeconds: 10
    failureThreshold: 6
# Answers that are being written get this long.
stopSeconds: {{ $vllm.stopSeconds }}
{{- if $vllm.gpu.enabled }}
runtimeClassName: {{ $vllm.gpu.runtimeClassName | quote }}
limits: { {{- $vllm.gpu.resource | quote }}: {{ $count }} }
tolerations:
  - {key: {{ $vllm.gpu.resource }}, operator: Exists, effect: NoSchedule}
{{- end }}
volumes:
  - {name: probes, configMap: {name: {{ $fullname }}-vllm}}
  # Processes of one model pass tensors through it.
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ $vllm.sharedMemorySize }}}}
  {{- if not $vllm.persistence.enabled }}
  - {name: data, emptyDir: {sizeLimit: {{ $vllm.dataSize }}}}
  {{- end }}
  {{- with $vllm.modelVolume.existingClaim }}
  - {name: models, persistentVolumeClaim: {claimName: {{ . }}, readOnly: true}}
  {{- end }}
volumeMounts:
  - {name: probes, mountPath: /probes, readOnly: true}
  - {name: shm, mountPath: /dev/shm}
  {{- if not $vllm.persistence.enabled }}
  - {name: data, mountPath: /data}
  {{- end }}
  {{- with $vllm.modelVolume }}
  {{- if .existingClaim }}
  - {name: models, mountPath: /models, readOnly: true{{ with .subPath }}, subPath: {{ . }}{{ end }}}
  {{- end }}
  {{- end }}
podAnnotations:
  checksum/config: {{ .Files.Get "files/vllm_ready.py" | sha256sum }}
{{- end -}}
