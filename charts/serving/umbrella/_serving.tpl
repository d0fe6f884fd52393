{{/*
What the contract says of models in service, as JSON: bucket, images by framework, the pods' priority class, where Prometheus is; empty where the option is off.
*/}}
{{- define "trainyard.serving" -}}
{{- with .Values.serving -}}
{{- if .enabled -}}
{{- $prometheus := .prometheus -}}
{{- if and (not $prometheus) (dig "enabled" false (default dict $.Values.monitoring)) }}{{ $prometheus = printf "http://%s-prometheus.%s.svc:9090" $.Release.Name $.Release.Namespace }}{{ end -}}
{{- dict "bucket" .bucket "gpus" .gpus "images" .images "priorityClass" .priorityClass "prometheus" $prometheus "allowedNamespaces" .allowedNamespaces | toJson -}}
{{- end -}}
{{- end -}}
{{- end }}
