{{/* Faults among the values of policies, one a line. */}}
{{- define "trainyard.faults.policies" -}}
{{- $p := .Values.policies -}}
{{- range $account := list "default" "training" }}
{{- if has $account $p.tokenServiceAccounts }}
policies.tokenServiceAccounts names {{ $account }}, the account of all pods that name none or of all jobs: make an account for the purpose, and name that one.
{{- end }}
{{- end }}
{{- range $prefix := $p.allowedImages }}
{{- if not (contains "/" (trimSuffix "/" $prefix)) }}
policies.allowedImages: {{ $prefix }} allows every image of a whole registry; name a folder in it, such as {{ $prefix }}team/.
{{- end }}
{{- end }}
{{- end }}
