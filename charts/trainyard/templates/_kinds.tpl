{{/*
Every kind of training job as a JSON list, as the packaged registry of kinds has it; see scripts/trainyard/kinds/registry.py.
*/}}
{{- define "trainyard.kinds" -}}
{{- .Files.Get "files/kinds.json" -}}
{{- end }}

{{/*
The kinds whose part of the chart is enabled, Kubernetes' own left out, as a JSON list.
*/}}
{{- define "trainyard.installedKinds" -}}
{{- $found := list -}}
{{- range include "trainyard.kinds" . | fromJsonArray -}}
{{- if and .part (index $.Values .part).enabled }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/*
Rights on jobs as RBAC rules, one for each API group: (list root verbs).
*/}}
{{- define "trainyard.jobRules" -}}
{{- $groups := list -}}{{- $resources := dict -}}
{{- range include "trainyard.kinds" (index . 0) | fromJsonArray -}}
{{- $groups = append $groups .group | uniq -}}
{{- $_ := set $resources .group (append (get $resources .group | default list) .plural) -}}
{{- end -}}
{{- range $groups }}
- apiGroups: [{{ . }}]
  resources: {{ get $resources . | toJson }}
  verbs: {{ index $ 1 | toJson }}
{{- end }}
{{- end }}
