{{/*
Every component of the release as a JSON list, as the packaged registry has it; see charts/<name>/component.yaml of the repository.
*/}}
{{- define "trainyard.components" -}}
{{- .Files.Get "files/components.json" -}}
{{- end }}

{{/*
Those that are switched on, as a JSON list.
*/}}
{{- define "trainyard.enabledComponents" -}}
{{- $found := list -}}
{{- range include "trainyard.components" . | fromJsonArray -}}
{{- if (index $.Values .name | default dict).enabled }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/*
What people of teams may ask of components, as RBAC rules: (list root "viewers") or (list root "members"). Of those that
are switched off, too: a site may have its own.
*/}}
{{- define "trainyard.componentRules" -}}
{{- range include "trainyard.components" (index . 0) | fromJsonArray -}}
{{- range index . (index $ 1) }}
- apiGroups: {{ toJson .apiGroups }}
  resources: {{ toJson .resources }}
  verbs: {{ toJson .verbs }}
{{- end }}
{{- end }}
{{- end }}
