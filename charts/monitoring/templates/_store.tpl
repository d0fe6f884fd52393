{{/* The init container that writes how the store in the cluster is asked; nothing where there is none. */}}
{{- define "monitoring.storeInit" -}}
{{- end }}
