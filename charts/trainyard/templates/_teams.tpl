{{/*
Every team of the values with the defaults under it, as a JSON list: {{ include "trainyard.teams" . | fromJsonArray }}.
A key that a team sets replaces the default; in the blocks queue, quota, limits and storage each key by itself.
Beside the keys of the values every team has
  useQueues   the queues that it may use, its own first
*/}}
{{- define "trainyard.teams" -}}
{{- $c := .Values.global.contract -}}
{{- $teams := list -}}
{{- range $own := default list $c.teams -}}
{{- $team := deepCopy $c.teamDefaults -}}
{{- range $key, $value := $own -}}
{{- if and (has $key (list "queue" "quota" "limits" "storage")) (kindIs "map" $value) -}}
{{- $block := deepCopy (default dict (index $team $key)) -}}
{{- range $inner, $amount := $value }}{{ $_ := set $block $inner $amount }}{{ end -}}
{{- $_ := set $team $key $block -}}
{{- else -}}
{{- $_ := set $team $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $team "description" (default "" $team.description) -}}
{{- range $role := list "members" "viewers" -}}
{{- $who := default dict (index $team $role) -}}
{{- $_ := set $team $role (dict "groups" (default list $who.groups) "users" (default list $who.users)) -}}
{{- end -}}
{{- $_ := set $team "useQueues" (concat (list $team.name) (default list $team.queues) | uniq) -}}
{{- $teams = append $teams $team -}}
{{- end -}}
{{- toJson $teams -}}
{{- end }}
