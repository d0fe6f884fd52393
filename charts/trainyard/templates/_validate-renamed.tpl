{{/* Values under a name that they no longer have, one a line; files/renamed.yaml has both names. */}}
{{- define "trainyard.validate.renamed" -}}
{{- range .Files.Get "files/renamed.yaml" | fromYamlArray }}
{{- $place := $.Values -}}
{{- range initial (splitList "." .from) }}{{ $place = kindIs "map" $place | ternary (get $place .) dict }}{{ end -}}
{{- $old := splitList "." .from | last }}
{{- if and (kindIs "map" $place) (hasKey $place $old) (not (kindIs "invalid" (get $place $old))) }}
{{- $value := get $place $old | toString }}
{{ .from }} was renamed to {{ .to }}{{ with get (default dict .values) $value }}, and {{ $value }} to {{ . }}{{ end }}; write {{ splitList "." .to | last }}: {{ get (default dict .values) $value | default $value }}, or let `trainyard values migrate FILE` rewrite your values.
{{- end }}
{{- end }}
{{- end }}
