{{/*
Every queue of the contract, those of the teams included, as a JSON list, parents before their children. Each has name,
parent (root where none is named), weight, reclaimable, owner, capability, deserved, guarantee, and where: what a message calls it.
*/}}
{{- define "trainyard.queues" -}}
{{- $all := list -}}
{{- range .Values.global.contract.queues -}}
{{- $all = append $all (merge (dict "where" (printf "global.contract.queues: queue %s" .name)) .) -}}
{{- end -}}
{{- range include "trainyard.teams" . | fromJsonArray -}}
{{- $team := dict "name" .name "owner" .name "where" (printf "global.contract.teams: the queue of team %s" .name) -}}
{{- $all = append $all (merge $team .queue) -}}
{{- end -}}
{{- $whole := list -}}
{{- range $all -}}
{{- $rest := dict "capability" (default dict .capability) "deserved" (default dict .deserved) "guarantee" (default dict .guarantee) "owner" (default "" .owner) -}}
{{- $whole = append $whole (merge (dict "parent" (default "root" .parent)) $rest .) -}}
{{- end -}}
{{- /* Level by level; what hangs on no root (a validation error, reported elsewhere) comes last. */ -}}
{{- $sorted := list -}}
{{- $above := list "root" -}}
{{- range $whole -}}
{{- $level := list -}}
{{- range $queue := $whole -}}
{{- if has $queue.parent $above -}}{{- $level = append $level $queue -}}{{- end -}}
{{- end -}}
{{- $above = list -}}
{{- range $level }}{{ $sorted = append $sorted . }}{{ $above = append $above .name }}{{ end -}}
{{- end -}}
{{- range $whole -}}{{- if not (has . $sorted) -}}{{- $sorted = append $sorted . -}}{{- end -}}{{- end -}}
{{- toJson ($sorted | uniq) -}}
{{- end }}

{{/* "true" when some queue stands below another than root; then the scheduler must know the tree. */}}
{{- define "trainyard.hierarchy" -}}
{{- $found := false -}}
{{- range include "trainyard.queues" . | fromJsonArray }}{{ if ne .parent "root" }}{{ $found = true }}{{ end }}{{ end -}}
{{- ternary "true" "" $found -}}
{{- end }}
