{{/* Validation errors of log-in, one a line. */}}
{{- define "trainyard.validate.login" -}}
{{- $login := .Values.global.contract.login }}
{{- $ours := dig "login" dict .Values.AsMap }}
{{- if $ours.enabled }}
{{- if not $login.issuer }}
login.enabled is true and global.contract.login.issuer is empty: set the https address at which browsers, pods and the API server reach the issuer.
{{- end }}
{{- if not (or $ours.people $ours.connectors) }}
login.enabled is true, but nobody could log in: set login.people or login.connectors.
{{- end }}
{{- $seen := dict }}
{{- range $ours.people }}
{{- if hasKey $seen .email }}
login.people names {{ .email }} twice: write each once.
{{- end }}
{{- $_ := set $seen .email true }}
{{- end }}
{{- if and $ours.service.nodePort (ne $ours.service.type "NodePort") }}
login.service.nodePort is {{ $ours.service.nodePort }} and login.service.type {{ $ours.service.type }}: set the type to NodePort, or remove nodePort.
{{- end }}
{{- end }}
{{- if and $login.issuer (eq $login.clientId $login.notebooksClientId) }}
global.contract.login.clientId and notebooksClientId are both {{ $login.clientId }}: give the hub, which has a secret, its own client ID.
{{- end }}
{{- range $login.blocked }}
{{- if hasPrefix $login.prefix . }}
global.contract.login.blocked names {{ . }} with the prefix, which would block nobody: write {{ trimPrefix $login.prefix . }}.
{{- end }}
{{- end }}
{{- if not $login.issuer }}
{{- with $login.blocked }}
global.contract.login.blocked names {{ first . }}, but no issuer is set: set the issuer, or empty the list.
{{- end }}
{{- end }}
{{- end }}
