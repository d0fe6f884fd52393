{{/* Faults among the queues, one a line. */}}
{{- define "trainyard.faults.queues" -}}
{{- $c := .Values.global.contract -}}
{{- $names := list -}}{{- range $c.queues }}{{ $names = append $names .name }}{{ end -}}
{{- if not (has $c.defaultQueue $names) }}
global.contract.defaultQueue is {{ $c.defaultQueue | quote }}, which is not among global.contract.queues ({{ join ", " $names }}).
{{- end }}
{{- if ne (len $names) (len (uniq $names)) }}
global.contract.queues names a queue twice.
{{- end }}
{{- range list "root" "default" }}
{{- if has . $names }}
global.contract.queues: {{ . | quote }} belongs to Volcano itself; choose another name.
{{- end }}
{{- end }}
{{- range $queue := $c.queues }}
{{- range $resource, $_ := $queue.guarantee }}
{{- if not (hasKey (default dict $queue.deserved) $resource) }}
global.contract.queues: queue {{ $queue.name | quote }} guarantees {{ $resource }}, so its deserved must have at least as much of it.
{{- end }}
{{- end }}
{{- range $resource, $_ := $queue.deserved }}
{{- if and $queue.capability (not (hasKey $queue.capability $resource)) }}
global.contract.queues: queue {{ $queue.name | quote }} deserves {{ $resource }}, but its capability leaves it out, which counts as zero.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
