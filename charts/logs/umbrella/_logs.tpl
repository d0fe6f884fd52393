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

{{/* Validation errors of kept logs, one a line. */}}
{{- define "trainyard.validate.logs" -}}
{{- with include "trainyard.logs" . }}
{{- $bucket := get (fromJson .) "bucket" }}
{{- $s3 := $.Values.global.contract.storage.s3 }}
{{- range $.Values.global.contract.storage.buckets }}
{{- if eq .name $bucket }}
logs.bucket is {{ $bucket | quote }}, which global.contract.storage.buckets uses for something else: give the logs their own bucket.
{{- end }}
{{- end }}
{{- if not (dig "limits" "memory" "" $.Values.logs.resources) }}
logs.resources has no limits.memory: set it, such as 256Mi; a collector keeps itself below four fifths of it.
{{- end }}
{{- if and (eq $s3.mode "external") (not $.Values.global.contract.network.s3) (eq $.Values.logs.collector "ours") }}
logs.enabled is true and the store is external: name its addresses in global.contract.network.s3, or the collector's network policy blocks them.
{{- end }}
{{- if and (not (include "trainyard.s3Administered" $)) (lookup "v1" "Namespace" "" "kube-system") (not (lookup "v1" "Secret" $.Release.Namespace "trainyard-logs-s3")) }}
logs.enabled is true and you create the store's users: create the Secret trainyard-logs-s3 in namespace {{ $.Release.Namespace }} with endpoint, region, access-key and secret-key of a user that may write to bucket {{ $bucket | quote }}.
{{- end }}
{{- end }}
{{- end }}
