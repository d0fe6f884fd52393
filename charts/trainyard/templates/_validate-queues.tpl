{{/* Validation errors among the queues, those of the teams included, one a line. */}}
{{- define "trainyard.validate.queues" -}}
{{- $c := .Values.global.contract -}}
{{- $all := include "trainyard.queues" . | fromJsonArray -}}
{{- $shared := list -}}{{- range $c.queues }}{{ $shared = append $shared .name }}{{ end -}}
{{- $names := list -}}{{- $parents := list -}}{{- $parentOf := dict -}}
{{- range $all }}{{ $names = append $names .name }}{{ $parents = append $parents .parent }}{{ $_ := set $parentOf .name .parent }}{{ end -}}
{{- if not (has $c.defaultQueue $names) }}
global.contract.defaultQueue is {{ $c.defaultQueue | quote }}, which is not among global.contract.queues ({{ join ", " $shared }}).
{{- else if has $c.defaultQueue $parents }}
global.contract.defaultQueue is {{ $c.defaultQueue | quote }}, which has queues below it; one job in it would stop all scheduling; use a queue below it.
{{- end }}
{{- range $name := uniq $shared }}
{{- if gt (len (regexFindAll (printf "(^| )%s( |$)" $name) (join "  " $shared) -1)) 1 }}
global.contract.queues names the queue {{ $name | quote }} twice; give each its own name.
{{- end }}
{{- if has $name (list "root" "default") }}
global.contract.queues: {{ $name | quote }} is reserved for Volcano; choose another name.
{{- end }}
{{- end }}
{{- $classes := list }}
{{- range $c.priorityClasses }}
{{- if has .name $classes }}
global.contract.priorityClasses names the class {{ .name | quote }} twice; give each its own name.
{{- end }}
{{- if hasPrefix "system-" .name }}
global.contract.priorityClasses: {{ .name | quote }} begins with system-, which is reserved for Kubernetes; choose another name.
{{- end }}
{{- $classes = append $classes .name }}
{{- end }}
{{- range $queue := $c.queues }}
{{- if and .parent (not (has .parent (append $shared "root"))) }}
global.contract.queues: queue {{ .name }} has parent {{ .parent | quote }}, which is not among global.contract.queues; name one of them or root.
{{- end }}
{{- $above := $queue.name }}{{ range $shared }}{{ $above = get $parentOf $above | default "root" }}{{ if eq $above $queue.name }}
global.contract.queues: queue {{ $queue.name }} is its own ancestor; set the parent of one queue in the chain to root.
{{- end }}{{ end }}
{{- end }}
{{- range $all }}
{{- include "trainyard.validate.queue" (list $ .) }}
{{- end }}
{{- range $parent := append $all (dict "name" "root") }}
{{- $children := list }}{{ range $all }}{{ if eq .parent $parent.name }}{{ $children = append $children . }}{{ end }}{{ end }}
{{- range $kind := list "guarantee" "deserved" }}
{{- include "trainyard.validate.sum" (list $ $parent $children $kind) }}
{{- end }}
{{- if ne $parent.name "root" }}
{{- range $child := $children }}
{{- range $resource, $amount := $child.capability }}
{{- $bound := get $parent.capability $resource | default "0" }}
{{- if gt (include "trainyard.quantity" $amount | float64) (include "trainyard.quantity" $bound | float64) }}
{{ $child.where }} may use {{ $amount }} {{ $resource }} (capability), more than the {{ $bound }} of its parent {{ $parent.name }}; lower it or raise the parent's capability.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Validation errors of one queue by itself: (list root queue). */}}
{{- define "trainyard.validate.queue" -}}
{{- $queue := index . 1 -}}
{{- $resources := concat (list "cpu" "memory") (include "trainyard.gpuResources" (index . 0) | fromJsonArray) -}}
{{- $resources = concat $resources (keys $queue.capability) (keys $queue.deserved) (keys $queue.guarantee) | uniq | sortAlpha -}}
{{- $means := dict
      "capability" "so Volcano's admission takes the queue's limit as zero, and the scheduler as none"
      "deserved" "which counts as zero: what the queue uses of it could be taken back at any time"
      "guarantee" "so none of it is kept free" -}}
{{- range $kind, $consequence := $means }}
{{- $missing := list }}
{{- range $resources }}{{ if not (hasKey (get $queue $kind) .) }}{{ $missing = append $missing . }}{{ end }}{{ end }}
{{- if and (get $queue $kind) $missing }}
{{ $queue.where }}: {{ $kind }} leaves out {{ join ", " $missing }}, {{ $consequence }}; list every resource.
{{- end }}
{{- end }}
{{- range $resource, $amount := $queue.guarantee }}
{{- if not $queue.deserved }}
{{ $queue.where }} guarantees {{ $resource }}, so its deserved must have at least as much of it.
{{- else if hasKey $queue.deserved $resource }}
{{- if gt (include "trainyard.quantity" $amount | float64) (include "trainyard.quantity" (get $queue.deserved $resource) | float64) }}
{{ $queue.where }} guarantees {{ $amount }} {{ $resource }}, more than the {{ get $queue.deserved $resource }} that it deserves; raise deserved or lower guarantee.
{{- end }}
{{- end }}
{{- end }}
{{- range $resource, $amount := $queue.deserved }}
{{- if hasKey $queue.capability $resource }}
{{- if gt (include "trainyard.quantity" $amount | float64) (include "trainyard.quantity" (get $queue.capability $resource) | float64) }}
{{ $queue.where }} deserves {{ $amount }} {{ $resource }}, more than the {{ get $queue.capability $resource }} of its capability; raise capability or lower deserved.
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Does what the queues below one promise fit into it? (list root parent children kind) */}}
{{- define "trainyard.validate.sum" -}}
{{- $parent := index . 1 -}}{{- $kind := index . 3 -}}
{{- $bounds := eq $parent.name "root" | ternary (include "trainyard.capacity" (index . 0) | fromJson) (get $parent $kind) -}}
{{- $sums := dict -}}{{- $who := dict -}}
{{- range $child := index . 2 }}
{{- range $resource, $amount := get $child $kind }}
{{- $_ := set $sums $resource (addf (get $sums $resource | default 0.0) (include "trainyard.quantity" $amount | float64)) }}
{{- $_ := set $who $resource (append (get $who $resource | default list) $child.name) }}
{{- end }}
{{- end }}
{{- range $resource, $sum := $sums }}
{{- $bound := include "trainyard.quantity" (get $bounds $resource | default "0") | float64 }}
{{- if and (gt $sum $bound) (or (ne $parent.name "root") (hasKey $bounds $resource)) }}
{{- $is := include "trainyard.amount" (list $resource $sum) }}{{ $has := include "trainyard.amount" (list $resource $bound) }}
{{- if eq $parent.name "root" }}
global.contract.nodePools has {{ $has }} {{ $resource }}, but {{ $is }} are promised as {{ $kind }} (queues: {{ get $who $resource | join ", " }}); lower these or correct count and capacity of the pools.
{{- else }}
{{ $parent.where }} has {{ $has }} {{ $resource }} as its {{ $kind }}, but the queues below it ({{ get $who $resource | join ", " }}) have {{ $is }}; raise it or lower theirs.
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A number of a resource for people: (list resource number). */}}
{{- define "trainyard.amount" -}}
{{- if has (index . 0) (list "memory" "ephemeral-storage") -}}
{{- printf "%.6gGi" (divf (index . 1) 1073741824) -}}
{{- else -}}
{{- printf "%.6g" (index . 1) -}}
{{- end -}}
{{- end }}
