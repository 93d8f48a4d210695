{{- /*
groundwork.workload: all objects of one workload: ServiceAccount, headless Service, Deployment or StatefulSet, PodDisruptionBudget,
autoscaler, NetworkPolicy and, with tls.certManager, its Certificate.

  {{ include "groundwork.workload" (dict "root" . "component" "memory") }}
  {{ include "groundwork.workload" (dict "root" . "component" "nats" "spec" (include "groundwork.nats.spec" . | fromYaml)) }}

The component's section of the values says how many, how large and where: replicas, resources, autoscaling, pdb, env, envFrom, volumes,
volumeMounts, image, nodeSelector, tolerations, affinity, topologySpreadConstraints, podAnnotations, podLabels, priorityClassName,
persistence, dataSize, tmpSize. `spec` says what runs. Our own services (the table groundwork.services) need none; a third party's server gives what it needs:

  kind                  Deployment (default) or StatefulSet
  image                 whole reference; default: our image of that component, or of `imageName` (`cli`)
  command, args         of the container
  ports                 list as in a container: [{name, containerPort}]; also the ports of the Service. Default: grpc 7000, metrics 9000
  servicePorts          ports of the Service, which then is not headless but has an address of its own
  env                   NAME: value, or NAME: {secretKeyRef: {…}}, {fieldRef: {…}} …; values.env wins
  probes                {startup, readiness, liveness}: as in a container. Default for our services, none for others
  startupSeconds        how long a start may take; default 300. Our services' startup probe goes by it, and when a roll-out counts as stuck
  preStop               a lifecycle handler; default: sleep drain.preStopSeconds
  stopSeconds           terminationGracePeriodSeconds; default from `drain`
  storage               {name, mountPath}: a volume for each pod of a StatefulSet, by values.persistence {size, storageClassName}
  volumes, volumeMounts further ones; /tmp is there, and /data where the table says so
  initContainers, sidecars          as in a pod
  shareProcessNamespace  true: containers of the pod see each other's processes
  limits                resource limits besides values.resources, as {nvidia.com/gpu: 1}
  runtimeClassName      as in a pod
  tolerations           besides values.tolerations
  podAnnotations        such as checksums of configuration: a change rolls the pods
  podSecurityContext, securityContext  over ours: non-root 65532, read-only root, no capabilities, seccomp RuntimeDefault
  publishNotReadyAddresses  true: peers find each other before they are ready
  podManagementPolicy, updateStrategy, minReadySeconds  of the StatefulSet or Deployment
  serviceAccountToken   true: the pod may talk to the API server
  valuesOf              of jobs: the component whose section of the values is meant, if not its own
  restartPolicy         for the pods of jobs, which use groundwork.pod: no probes, no preStop
*/}}

{{- define "groundwork.workload" -}}
{{- $values := include "groundwork.values" . | fromYaml -}}
{{- $context := dict "root" .root "component" .component "values" $values "spec" (.spec | default dict) -}}
{{- with $context.spec.Error }}{{ fail (printf "The spec of %s is not YAML: %s" $.component .) }}{{ end -}}
{{ include "groundwork.serviceAccount" $context }}
{{ include "groundwork.service" $context }}
{{ include "groundwork.controller" $context }}
{{ include "groundwork.disruptionBudget" $context }}
{{ include "groundwork.autoscaler" $context }}
{{ include "groundwork.networkPolicy" $context }}
{{ include "groundwork.certificate" $context }}
{{- end -}}

{{- define "groundwork.serviceAccount" -}}
---
apiVersion: v1
kind: ServiceAccount
{{ include "groundwork.metadata" . }}
automountServiceAccountToken: false
{{- end -}}

{{- define "groundwork.service" -}}
---
apiVersion: v1
kind: Service
{{ include "groundwork.metadata" . }}
  {{- with (.values.service | default dict).annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if .spec.servicePorts }}
  type: {{ .values.service.type }}
  {{- if ne .values.service.type "ClusterIP" }}
  externalTrafficPolicy: {{ .values.service.externalTrafficPolicy }}
  {{- end }}
  {{- else }}
  # Headless: a name stands for all pods, and who calls divides its calls among them. A Service with an address of its own would
  # bind each gRPC connection to one pod for ever.
  clusterIP: None
  {{- end }}
  {{- if .spec.publishNotReadyAddresses }}
  publishNotReadyAddresses: true
  {{- end }}
  selector: {{- include "groundwork.selector" . | nindent 4 }}
  ports:
    {{- with .spec.servicePorts }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- range include "groundwork.containerPorts" . | fromYamlArray }}
    - {name: {{ .name }}, port: {{ .containerPort }}, targetPort: {{ .name }}}
    {{- end }}
    {{- end }}
{{- end -}}

{{- define "groundwork.controller" -}}
{{- $kind := .spec.kind | default "Deployment" -}}
{{- $surge := dict "type" "RollingUpdate" "rollingUpdate" (dict "maxSurge" "25%" "maxUnavailable" 0) -}}
---
apiVersion: apps/v1
kind: {{ $kind }}
{{ include "groundwork.metadata" . }}
spec:
  {{- if not (.values.autoscaling | default dict).enabled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  {{- with .spec.minReadySeconds }}
  minReadySeconds: {{ . }}
  {{- end }}
  selector:
    matchLabels: {{- include "groundwork.selector" . | nindent 6 }}
  {{- if eq $kind "StatefulSet" }}
  serviceName: {{ include "groundwork.name" . }}
  podManagementPolicy: {{ .spec.podManagementPolicy | default "OrderedReady" }}
  updateStrategy: {{- toYaml (.spec.updateStrategy | default (dict "type" "RollingUpdate")) | nindent 4 }}
  {{- else }}
  strategy: {{- toYaml (.spec.updateStrategy | default $surge) | nindent 4 }}
  progressDeadlineSeconds: {{ add (.spec.startupSeconds | default 300) 300 }}
  {{- end }}
  template: {{- include "groundwork.pod" . | nindent 4 }}
  {{- with .spec.storage }}
  volumeClaimTemplates:
    - metadata:
        name: {{ .name }}
        labels: {{- include "groundwork.selector" $ | nindent 10 }}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $.values.persistence.storageClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources: {requests: {storage: {{ $.values.persistence.size }}}}
  {{- end }}
{{- end -}}

{{- /* One pod at a time goes by a drain. One that is not well does not hold a drain up, but of servers that decide by majority: there one
that is catching up may be the second that a majority needs. */}}
{{- define "groundwork.disruptionBudget" -}}
{{- $pdb := .values.pdb | default dict -}}
{{- if ne (toString $pdb.enabled) "false" -}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "groundwork.metadata" . }}
spec:
  maxUnavailable: {{ $pdb.maxUnavailable | default 1 }}
  unhealthyPodEvictionPolicy: {{ ternary "IfHealthyBudget" "AlwaysAllow" (has .component (list "nats" "qdrant" "elasticsearch")) }}
  selector:
    matchLabels: {{- include "groundwork.selector" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{- define "groundwork.certificate" -}}
{{- $tls := .root.Values.tls -}}
{{- if and $tls.enabled $tls.certManager.enabled (or (eq .component "nats") (hasKey (include "groundwork.services" . | fromYaml) .component)) -}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
{{ include "groundwork.metadata" . }}
spec:
  secretName: {{ include "groundwork.tlsSecret" . }}
  issuerRef: {{- toYaml $tls.certManager.issuerRef | nindent 4 }}
  duration: {{ $tls.certManager.duration }}
  renewBefore: {{ $tls.certManager.renewBefore }}
  usages: [server auth, client auth]
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
  dnsNames: {{- include "groundwork.dnsNames" . | nindent 4 }}
{{- end -}}
{{- end -}}
