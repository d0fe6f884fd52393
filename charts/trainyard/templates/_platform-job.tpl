{{/*
A CronJob of the platform: (dict "root" $ "name" "janitor" "schedule" … "suspend" … "deadline" seconds "job" <pod>), its
pod as YAML. One at a time, a short history.
*/}}
{{- define "trainyard.cronJob" -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: trainyard-{{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "trainyard.labels" .root | nindent 4 }}
    app.kubernetes.io/name: {{ .name | quote }}
spec:
  schedule: {{ .schedule | quote }}
  suspend: {{ .suspend }}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 3600
  successfulJobsHistoryLimit: 2
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec: {{- include "trainyard.platformJob" . | nindent 6 }}
{{- end }}

{{/* The spec of one run of it. */}}
{{- define "trainyard.platformJob" -}}
backoffLimit: {{ hasKey . "retries" | ternary .retries 2 }}
activeDeadlineSeconds: {{ .deadline }}
ttlSecondsAfterFinished: 604800
template:
  metadata:
    labels:
      app.kubernetes.io/name: {{ .name | quote }}
      app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
      app.kubernetes.io/part-of: trainyard
  spec:
    restartPolicy: Never
    enableServiceLinks: false
    priorityClassName: {{ .root.Values.global.contract.platformJobPriorityClass.name | quote }}
    {{- with .root.Values.platform.affinity }}
    affinity: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .root.Values.global.imagePullSecrets }}
    imagePullSecrets: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- .pod | nindent 4 }}
{{- end }}

{{/* What the containers of these pods share. */}}
{{- define "trainyard.platformContainer" -}}
image: {{ include "trainyard.image" (list . "platform") }}
imagePullPolicy: {{ .Values.platform.imagePullPolicy }}
terminationMessagePolicy: FallbackToLogsOnError
{{- end }}
