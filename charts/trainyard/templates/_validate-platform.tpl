{{/* Validation errors among the values of the platform's own pods and images, one a line. */}}
{{- define "trainyard.validate.platform" -}}
{{- $registry := .Values.global.imageRegistry -}}
{{- if eq $registry "docker.io" }}
global.imageRegistry is docker.io, which doesn't hold every image: leave it empty, or name a mirror that does.
{{- end }}
{{- $webhook := include "trainyard.webhookNamespace" . -}}
{{- if dig "metadata" "deletionTimestamp" "" (lookup "v1" "Namespace" "" $webhook) }}
The namespace {{ $webhook }} of an earlier release is still terminating; wait until `kubectl get namespace {{ $webhook }}` reports NotFound.
{{- end }}
{{- end }}
