{{/* Name of everything. */}}
{{- define "server.name" -}}
model-{{ .Values.model.name }}
{{- end }}

{{- define "server.labels" -}}
app.kubernetes.io/name: {{ .Values.model.name | quote }}
app.kubernetes.io/component: model-server
app.kubernetes.io/managed-by: trainyard
trainyard.io/model: {{ .Values.model.name | quote }}
{{- end }}

{{/* "true" where a pod asks for GPUs. */}}
{{- define "server.gpus" -}}
{{- range $resource, $amount := dig "limits" dict .Values.resources -}}
{{- if and (contains "/" $resource) (ne (toString $amount) "0") }}true{{ end -}}
{{- end -}}
{{- end }}

{{/* Pods of each track, as JSON. The canary has its share of all, and at least one; so has the version in service. */}}
{{- define "server.counts" -}}
{{- $all := int .Values.replicas -}}{{- $canary := 0 -}}
{{- if .Values.canary.version -}}
{{- $canary = max 1 (round (divf (mulf $all .Values.canary.share) 100.0) 0 | int) | int -}}
{{- if ge $canary $all }}{{ $canary = max 1 (sub $all 1) | int }}{{ end -}}
{{- end -}}
{{- dict "stable" (max (eq $all 0 | ternary 0 1) (sub $all $canary) | int) "canary" $canary | toJson -}}
{{- end }}

{{/* What one pod should have at most. */}}
{{- define "server.target" -}}
{{- $s := .Values.autoscaling -}}
{{- if int $s.target }}{{ int $s.target }}{{ else }}{{ get (dict "cpu" 70 "requests" 50 "concurrency" 4) $s.by }}{{ end -}}
{{- end }}

{{/* The keys' file as it is mounted. */}}
{{- define "server.keys" -}}
{{- sortAlpha .Values.access.keys | toJson -}}
{{- end }}
