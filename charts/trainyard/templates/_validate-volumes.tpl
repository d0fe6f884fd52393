{{/* Validation errors among the values of static volumes, one a line. */}}
{{- define "trainyard.validate.volumes" -}}
{{- $c := .Values.global.contract -}}
{{- $teams := list -}}{{- range $c.teams }}{{ $teams = append $teams .name }}{{ end -}}
{{- $names := list -}}
{{- range $c.storage.volumes }}
{{- $name := .name }}
{{- if has $name (list "shared" "workspace") }}
global.contract.storage.volumes: every team has a claim {{ $name | quote }} already; give the volume another name.
{{- end }}
{{- if has $name $names }}
global.contract.storage.volumes names {{ $name | quote }} twice; give each volume a name of its own.
{{- end }}
{{- $names = append $names $name }}
{{- range .teams }}
{{- if and (ne . "*") (not (has . $teams)) }}
global.contract.storage.volumes: {{ $name | quote }} is for the team {{ . | quote }}, which is not among global.contract.teams; add the team or remove it here.
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.nfs.enabled (eq $c.storage.workspaceClass $c.storage.sharedClass) }}
global.contract.storage.workspaceClass and sharedClass are both {{ $c.storage.sharedClass | quote }}; the classes treat files differently on deletion, so use different names.
{{- end }}
{{- end }}
