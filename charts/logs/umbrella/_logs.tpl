{{/*
What the contract says of kept logs, as JSON: the bucket and its days; empty where none are kept.
*/}}
{{- define "trainyard.logs" -}}
{{- with .Values.logs -}}
{{- if .enabled }}{{ dict "bucket" .bucket "retentionDays" (int .retentionDays) | toJson }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Environment of the setup job with the key that logs are written with; nothing where it makes no users. */}}
{{- define "trainyard.logsEnv" -}}
{{- if and (include "trainyard.logs" .) (include "trainyard.s3Administered" .) -}}
{{- include "trainyard.s3EnvFrom" (list . "trainyard-logs-s3" "LOGS") }}
{{- end -}}
{{- end }}
