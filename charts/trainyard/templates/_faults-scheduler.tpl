{{/* Faults among the scheduler's settings, one a line. */}}
{{- define "trainyard.faults.scheduler" -}}
{{- end }}
