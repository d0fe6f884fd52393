{{/* Faults among the values of teams, one a line. */}}
{{- define "trainyard.faults.teams" -}}
{{- end }}
