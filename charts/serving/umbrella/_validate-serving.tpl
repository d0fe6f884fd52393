{{/* Validation errors of models in service, one a line. */}}
{{- define "trainyard.validate.serving" -}}
{{- with include "trainyard.serving" . }}
{{- $serving := fromJson . }}
{{- $c := $.Values.global.contract }}
{{- $own := list }}{{ range $c.storage.buckets }}{{ if eq .teams "own" }}{{ $own = append $own .name }}{{ end }}{{ end }}
{{- if not (has $serving.bucket $own) }}
serving.bucket is {{ $serving.bucket | quote }}, where teams have no folder of their own: name one of global.contract.storage.buckets with teams: own{{ with $own }}, such as {{ first . }}{{ end }}.
{{- end }}
{{- $teams := list }}{{ range include "trainyard.teams" $ | fromJsonArray }}{{ $teams = append $teams .name }}{{ end }}
{{- range $key := list "allowedNamespaces" "hosts" "teamQuotas" }}
{{- range $team, $_ := index $.Values.serving $key }}
{{- if not (has $team $teams) }}
serving.{{ $key }} names {{ $team | quote }}, which is not among global.contract.teams: correct it, or remove it.
{{- end }}
{{- end }}
{{- end }}
{{- range $team, $names := $serving.allowedNamespaces }}
{{- if has $team $names }}
serving.allowedNamespaces.{{ $team }} names {{ $team | quote }} itself, whose pods reach its servers anyway: remove it.
{{- end }}
{{- end }}
{{- $class := $serving.priorityClass }}
{{- range append $c.priorityClasses $c.platformPriorityClass }}
{{- if eq .name $class.name }}
serving.priorityClass.name is {{ $class.name | quote }}, which is already the name of another class: choose another name.
{{- end }}
{{- end }}
{{- if ge (int64 $class.value) (int64 $c.platformPriorityClass.value) }}
serving.priorityClass.value is {{ int64 $class.value }}, not below the platform's own class: set it below {{ int64 $c.platformPriorityClass.value }}.
{{- end }}
{{- end }}
{{- end }}
