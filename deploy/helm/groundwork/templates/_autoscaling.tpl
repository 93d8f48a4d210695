{{- /* How a component follows its load: by processor use, or the ingest worker by its queue where KEDA is there. */}}
{{- define "groundwork.autoscaler" -}}
{{- $scaling := .values.autoscaling | default dict -}}
{{- if and $scaling.enabled ($scaling.keda | default dict).enabled -}}
{{ include "groundwork.scaledObject" . }}
{{- else if $scaling.enabled -}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
{{ include "groundwork.metadata" . }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: {{ .spec.kind | default "Deployment" }}, name: {{ include "groundwork.name" . }}}
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ $scaling.targetCPUPercent }}}}
    {{- with $scaling.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  behavior: {{- toYaml ($scaling.behavior | default .root.Values.autoscaling.behavior) | nindent 4 }}
{{- end -}}
{{- end -}}

{{- /* The leading worker tells the queue's depth, the others tell 0: hence the largest of all. Jobs have a consumer for each tenant,
so KEDA's own scaler for JetStream, which follows one consumer, cannot see them. */}}
{{- define "groundwork.scaledObject" -}}
{{- $scaling := .values.autoscaling -}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
{{ include "groundwork.metadata" . }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: {{ .spec.kind | default "Deployment" }}, name: {{ include "groundwork.name" . }}}
  minReplicaCount: {{ $scaling.minReplicas }}
  maxReplicaCount: {{ $scaling.maxReplicas }}
  pollingInterval: {{ $scaling.keda.pollingSeconds }}
  # While nobody tells the depth, the number of workers stays.
  fallback: {failureThreshold: 3, replicas: {{ $scaling.minReplicas }}, behavior: currentReplicasIfHigher}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {{- toYaml ($scaling.behavior | default .root.Values.autoscaling.behavior) | nindent 8 }}
  triggers:
    - type: metrics-api
      metricType: AverageValue
      metadata:
        url: http://{{ include "groundwork.name" . }}.{{ .root.Release.Namespace }}.svc:9000/metrics
        format: prometheus
        valueLocation: groundwork_ingest_queue_depth
        aggregateFromKubeServiceEndpoints: "true"
        aggregationType: max
        targetValue: {{ $scaling.keda.jobsPerWorker | quote }}
{{- end -}}
