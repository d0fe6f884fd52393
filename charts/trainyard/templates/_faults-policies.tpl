{{/* Faults among the values of policies, one a line. */}}
{{- define "trainyard.faults.policies" -}}
{{- end }}
