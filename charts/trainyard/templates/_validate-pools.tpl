{{/* Validation errors among the node pools and what follows them, one a line. */}}
{{- define "trainyard.validate.pools" -}}
{{- $plugin := index .Values "nvidia-device-plugin" -}}
{{- $pools := .Values.global.contract.nodePools -}}
{{- $where := "global.contract.nodePools" -}}
{{- $names := list -}}{{- $whole := dict -}}{{- $reserves := dict -}}{{- $open := list -}}{{- $closed := list -}}
{{- range $pool := $pools }}
{{- include "trainyard.validate.pool" (list $where .) }}
{{- if has .name $names }}
{{ $where }} names the pool {{ .name }} twice; give each its own name.
{{- end }}
{{- $names = append $names .name }}
{{- if not .selector }}
{{- with get $whole .kind }}
{{ $where }}: the pools {{ . }} and {{ $pool.name }} are both of kind {{ $pool.kind }} without a selector, so every such node would belong to {{ . }}; give one a selector.
{{- end }}
{{- $_ := set $whole .kind .name }}
{{- end }}
{{- if and .gpu .gpu.reserve }}
{{- $same := get $reserves .gpu.resource }}
{{- if and $same (ne (toJson $same) (toJson .gpu.reserve)) }}
{{ $where }}: pool {{ .name }} has a different gpu.reserve than another pool with {{ .gpu.resource }}, but the scheduler supports one per resource; make them equal.
{{- end }}
{{- $_ := set $reserves .gpu.resource .gpu.reserve }}
{{- end }}
{{- if eq .kind "cpu" }}
{{- if and .taint (ne .taint.effect "PreferNoSchedule") }}{{ $closed = append $closed .name }}{{ else }}{{ $open = append $open .name }}{{ end }}
{{- end }}
{{- range $other := $pools }}
{{- if and $pool.spot (not $other.spot) (eq (toJson $pool.taint) (toJson $other.taint)) }}
{{ $where }}: the spot pool {{ $pool.name }} needs its own taint, but has that of pool {{ $other.name }}; jobs that can't be interrupted would run there.
{{- end }}
{{- if and $pool.gpu $other.gpu (gt $other.gpu.resource $pool.gpu.resource) (eq (toJson $pool.labels) (toJson $other.labels)) }}
{{ $where }}: the pools {{ $pool.name }} and {{ $other.name }} have the same labels but the resources {{ $pool.gpu.resource }} and {{ $other.gpu.resource }}; give each a label of its own.
{{- end }}
{{- end }}
{{- if and $plugin.enabled $plugin.tolerations (eq .kind "gpu") .taint (hasPrefix "nvidia.com/" (dig "gpu" "resource" "" .)) }}
{{- $tolerated := false }}
{{- range $plugin.tolerations }}
{{- $key := or (eq (default "" .key) $pool.taint.key) (and (not .key) (eq (default "Equal" .operator) "Exists")) }}
{{- $value := or (eq (default "Equal" .operator) "Exists") (eq (default "" .value) (default "" $pool.taint.value)) }}
{{- if and $key $value (or (not .effect) (eq .effect $pool.taint.effect)) }}{{ $tolerated = true }}{{ end }}
{{- end }}
{{- if not $tolerated }}
nvidia-device-plugin.tolerations must tolerate the taint {{ .taint.key }}={{ default "" .taint.value }}:{{ .taint.effect }} of the GPU pool {{ .name }}, or no GPU is ever advertised; leave it empty to follow the contract.
{{- end }}
{{- end }}
{{- end }}
{{- if and $closed (not $open) }}
{{ $where }}: every pool of kind cpu has a taint ({{ join ", " $closed }}), so no pod of the platform could start; remove the taint from one.
{{- end }}
{{- if and $plugin.enabled .Values.nodePrep.enabled (ne (default "" $plugin.nvidiaDriverRoot) .Values.nodePrep.driverRoot) }}
nvidia-device-plugin.nvidiaDriverRoot ({{ default "unset" $plugin.nvidiaDriverRoot }}) and nodePrep.driverRoot ({{ .Values.nodePrep.driverRoot }}) must be the same folder.
{{- end }}
{{- end }}

{{/* Validation errors of one pool by itself: (list where pool). */}}
{{- define "trainyard.validate.pool" -}}
{{- $where := index . 0 -}}
{{- with index . 1 }}
{{- $label := dig "labels" "trainyard.io/pool" "" . }}
{{- if and (eq .kind "gpu") (not .gpu) }}
{{ $where }}: pool {{ .name | quote }} is of kind gpu and needs a gpu block (at least gpu.resource).
{{- end }}
{{- if and (eq .kind "cpu") .gpu }}
{{ $where }}: pool {{ .name | quote }} is of kind cpu and must not have a gpu block.
{{- end }}
{{- if and (eq .kind "gpu") (ne $label "gpu") }}
{{ $where }}: the GPU pool {{ .name }} needs the label trainyard.io/pool: gpu, which keeps platform pods off its nodes.
{{- end }}
{{- if and (eq .kind "cpu") (eq $label "gpu") }}
{{ $where }}: the CPU pool {{ .name }} must not have the label trainyard.io/pool: gpu, which keeps platform pods off; use cpu.
{{- end }}
{{- if and .gpu (not .gpu.reserve) (or (not .taint) (eq .taint.effect "PreferNoSchedule")) }}
{{ $where }}: pool {{ .name }} admits pods without GPUs, which could use the CPUs that its GPUs need; give it a taint with NoSchedule, or set gpu.reserve ({cpu: 0, memory: 0} for none).
{{- end }}
{{- if and .gpu .gpu.reserve .gpu.count .capacity }}
{{- $pool := . }}
{{- range $resource, $amount := .capacity }}
{{- $kept := mulf (include "trainyard.quantity" (get $pool.gpu.reserve $resource) | float64) (float64 $pool.gpu.count) }}
{{- if gt $kept (include "trainyard.quantity" $amount | float64) }}
{{ $where }}: pool {{ $pool.name }} keeps {{ get $pool.gpu.reserve $resource }} {{ $resource }} for each of its {{ $pool.gpu.count }} GPUs (gpu.reserve), more than the {{ $amount }} of a node (capacity); lower one or correct the other.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
