{{- define "kfpApi.selector" -}}
app.kubernetes.io/name: kfp-api
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}
{{- define "kfpApi.meta" -}}
name: {{ .Release.Name }}-kfp-api
namespace: {{ .Release.Namespace | quote }}
labels:
  {{- include "kfpApi.selector" . | nindent 2 }}
  app.kubernetes.io/part-of: trainyard
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}
