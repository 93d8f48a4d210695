{{- /* The pods of jobs: see groundwork.workload for what stands in a spec. All take $ and run the command `groundwork`. */}}

{{- define "groundwork.prepare.spec" -}}
imageName: cli
restartPolicy: Never
serviceAccountToken: true
args:
  - cluster
  - prepare
  - --namespace={{ .Release.Namespace }}
  - --name={{ include "groundwork.fullname" (dict "root" .) }}
  - --release={{ .Release.Name }}
  {{- if or .Values.auth.bootstrapKey .Values.auth.existingSecret }}
  - --no-bootstrap-key
  {{- end }}
  {{- if .Values.qdrant.enabled }}
  - --qdrant-key
  {{- end }}
  {{- if and .Values.backup.enabled (not .Values.backup.existingClaim) }}
  - --backup-claim={{ .Values.backup.persistence.size }}
  {{- with .Values.backup.persistence.storageClassName }}
  - --backup-storage-class={{ . }}
  {{- end }}
  {{- end }}
{{- end -}}

{{- define "groundwork.test.spec" -}}
imageName: cli
restartPolicy: Never
args: [cluster, test, --timeout={{ .Values.test.deadlineSeconds }}]
env:
  GROUNDWORK_URL: http://{{ include "groundwork.name" (dict "root" . "component" "gateway") }}
  GROUNDWORK_API_KEY: {secretKeyRef: {name: {{ include "groundwork.bootstrapKeySecret" (dict "root" .) }}, key: key}}
{{- end -}}

{{- /* Measures the search on questions whose documents are known; fails below a bound. */}}
{{- define "groundwork.evaluation.spec" -}}
{{- $values := .Values.evaluation -}}
imageName: cli
restartPolicy: Never
args:
  - evaluate
  - /questions/questions.jsonl
  {{- range $values.collections }}
  - --collection={{ . }}
  {{- end }}
  {{- range $metric, $least := $values.failUnder }}
  - --fail-under={{ $metric }}={{ $least }}
  {{- end }}
volumes:
  - {name: questions, configMap: {name: {{ $values.existingConfigMap | default (include "groundwork.name" (dict "root" . "component" "evaluation")) }}}}
volumeMounts:
  - {name: questions, mountPath: /questions, readOnly: true}
env:
  GROUNDWORK_URL: http://{{ include "groundwork.name" (dict "root" . "component" "gateway") }}
  GROUNDWORK_API_KEY: {secretKeyRef: {name: {{ include "groundwork.bootstrapKeySecret" (dict "root" .) }}, key: key}}
{{- end -}}

{{- define "groundwork.backup.spec" -}}
imageName: cli
restartPolicy: Never
# Further arguments of a job that is made by hand (groundwork cluster backup) come behind these.
args: [backup, /backups, --keep={{ .Values.backup.keep }}, --keys=/etc/groundwork/public-keys/public.json]
{{ include "groundwork.ofMessageStore" . }}
{{- end -}}

{{- /* Which backup: BACKUP, in the folder the newest. Its public keys are trusted first, so that jobs which wait in it are done
as soon as anything runs. */}}
{{- define "groundwork.restore.spec" -}}
{{- $fullname := include "groundwork.fullname" (dict "root" .) -}}
imageName: cli
valuesOf: backup
restartPolicy: Never
serviceAccountToken: true
command: [sh, -ec]
args:
  - |
    groundwork cluster signing-keys trust "$BACKUP" --namespace={{ .Release.Namespace }} --name={{ $fullname }} --release={{ .Release.Name }}
    exec groundwork restore "$BACKUP" --replace
{{ include "groundwork.ofMessageStore" . }}
  BACKUP: /backups
{{- end -}}

{{- /* What backup and restore have in common: the volume of backups, and the administrator of the message store. `env` comes last, for
more of it. */}}
{{- define "groundwork.ofMessageStore" -}}
volumes:
  - {name: backups, persistentVolumeClaim: {claimName: {{ .Values.backup.existingClaim | default (include "groundwork.name" (dict "root" . "component" "backup")) }}}}
  - {name: public-keys, configMap: {name: {{ include "groundwork.fullname" (dict "root" .) }}-public-keys}}
  {{- include "groundwork.natsAuthorityVolume" (dict "root" .) | nindent 2 }}
volumeMounts:
  - {name: backups, mountPath: /backups}
  - {name: public-keys, mountPath: /etc/groundwork/public-keys, readOnly: true}
  {{- include "groundwork.natsAuthorityMount" (dict "root" .) | nindent 2 }}
env:
  GROUNDWORK_DATA_DIR: /tmp
  {{- include "groundwork.env.store" (dict "root" . "component" "backup" "user" "groundwork") | nindent 2 }}
{{- end -}}

{{- /* What `groundwork cluster prepare` does: it reads and makes its own Secrets, keeps the list of public keys up to date, and makes the claim of backups. Making
cannot be limited to names in Kubernetes; no other Secret of the namespace can be read. */}}
{{- define "groundwork.keeperRules" -}}
{{- $fullname := include "groundwork.fullname" (dict "root" .) -}}
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames:
    - {{ $fullname }}-bootstrap-key
    - {{ $fullname }}-qdrant
    {{- range include "groundwork.nats.users" . | fromYamlArray }}
    - {{ $fullname }}-nats-{{ . }}
    {{- end }}
    {{- range $service, $has := include "groundwork.services" (dict "root" .) | fromYaml }}
    {{- if $has.signs }}
    - {{ $fullname }}-signing-{{ $service }}
    {{- end }}
    {{- end }}
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ $fullname }}-public-keys]
  verbs: [get, patch]
{{- if and .Values.backup.enabled (not .Values.backup.existingClaim) }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [create]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  resourceNames: [{{ $fullname }}-backup]
  verbs: [get]
{{- end }}
{{- end -}}

{{- /* Restoring adds the public keys of the backup to those that the services trust. */}}
{{- define "groundwork.trustRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "groundwork.fullname" . }}-public-keys]
  verbs: [get, patch]
{{- end -}}

{{- /* ServiceAccount, Role and RoleBinding of a job: `rules` say what it may; `hook` annotations, with a weight for each, where it runs as one. */}}
{{- define "groundwork.jobAccount" -}}
{{- $metadata := include "groundwork.metadata" . | fromYaml -}}
{{- $name := include "groundwork.name" . -}}
{{- $kinds := list "ServiceAccount" "Role" "RoleBinding" -}}
{{- range $index, $kind := $kinds }}
{{- $own := deepCopy $metadata }}
{{- with $.hook }}
{{- $weight := dict "helm.sh/hook-weight" (printf "%d" (sub $index 10)) }}
{{- $_ := set $own.metadata "annotations" (merge $weight .) }}
{{- end }}
---
apiVersion: {{ ternary "v1" "rbac.authorization.k8s.io/v1" (eq $kind "ServiceAccount") }}
kind: {{ $kind }}
{{ toYaml $own }}
{{- if eq $kind "ServiceAccount" }}
automountServiceAccountToken: false
{{- else if eq $kind "Role" }}
rules: {{- $.rules | nindent 2 }}
{{- else }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $name }}, namespace: {{ $.root.Release.Namespace | quote }}}
{{- end }}
{{- end }}
{{- end -}}
