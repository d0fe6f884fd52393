{{/* The first pool of kind gpu, as JSON ({} when there is none). */}}
{{- define "trainyard.gpuPool" -}}
{{- $found := dict -}}
{{- range .Values.global.contract.nodePools -}}
{{- if and (eq .kind "gpu") (not $found.name) -}}{{- $found = . -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* Resource name of a GPU: that of the first GPU pool. */}}
{{- define "trainyard.gpuResource" -}}
{{- $pool := include "trainyard.gpuPool" . | fromJson -}}
{{- dig "gpu" "resource" "nvidia.com/gpu" $pool -}}
{{- end }}

{{/* Every GPU resource of the contract, as a JSON list, that of the first GPU pool first. */}}
{{- define "trainyard.gpuResources" -}}
{{- $found := list -}}
{{- range .Values.global.contract.nodePools -}}
{{- if and (eq .kind "gpu") .gpu -}}{{- $found = append $found .gpu.resource -}}{{- end -}}
{{- end -}}
{{- toJson (default (list "nvidia.com/gpu") $found | uniq) -}}
{{- end }}

{{/*
What all pools offer together, as JSON: {resource: number}. A resource is left out where a pool that has it names no
count or no capacity.
*/}}
{{- define "trainyard.capacity" -}}
{{- $sums := dict -}}
{{- $unknown := dict -}}
{{- range $pool := .Values.global.contract.nodePools -}}
{{- $node := dict "cpu" (dig "capacity" "cpu" "" $pool) "memory" (dig "capacity" "memory" "" $pool) -}}
{{- with $pool.gpu }}{{ $_ := set $node .resource (default "" .count) }}{{ end -}}
{{- range $resource, $amount := $node -}}
{{- if or (eq (toString $amount) "") (not (hasKey $pool "count")) -}}
{{- $_ := set $unknown $resource true -}}
{{- else -}}
{{- $all := mulf (include "trainyard.quantity" $amount | float64) (float64 $pool.count) -}}
{{- $_ := set $sums $resource (addf (default 0 (get $sums $resource)) $all) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range keys $unknown }}{{ $_ := unset $sums . }}{{ end -}}
{{- toJson $sums -}}
{{- end }}

{{/* Tolerations of what runs on every node of the NVIDIA pools: exactly these pools' taints, each once. */}}
{{- define "trainyard.gpuTolerations" -}}
{{- $found := list -}}
{{- range .Values.global.contract.nodePools -}}
{{- if and (eq .kind "gpu") (hasPrefix "nvidia.com/" (dig "gpu" "resource" "" .)) .taint -}}
{{- $toleration := dict "key" .taint.key "operator" "Equal" "value" (default "" .taint.value) "effect" .taint.effect -}}
{{- $found = append $found $toleration -}}
{{- end -}}
{{- end -}}
{{- toYaml ($found | uniq) -}}
{{- end }}

{{/* Affinity to the nodes of the NVIDIA pools: nodes that have shown GPUs and have all labels of one pool. */}}
{{- define "trainyard.gpuAffinity" -}}
{{- $terms := list -}}
{{- range .Values.global.contract.nodePools -}}
{{- if and (eq .kind "gpu") (hasPrefix "nvidia.com/" (dig "gpu" "resource" "" .)) -}}
{{- $expressions := list (dict "key" "nvidia.com/gpu.present" "operator" "In" "values" (list "true")) -}}
{{- range $key, $value := .labels -}}
{{- $expressions = append $expressions (dict "key" $key "operator" "In" "values" (list $value)) -}}
{{- end -}}
{{- $terms = append $terms (dict "matchExpressions" $expressions) -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" ($terms | uniq)))) -}}
{{- end }}
