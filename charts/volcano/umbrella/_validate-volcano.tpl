{{/* Validation errors among the scheduler's settings and between them and the queues, one a line. Read from the configuration that is in force. */}}
{{- define "trainyard.validate.volcano" -}}
{{- if .Values.volcano.enabled -}}
{{- $switches := .Values.global.contract.scheduler -}}
{{- $set := .Values.volcano.custom.scheduler_config_override -}}
{{- $conf := dict -}}
{{- if $set }}{{ $conf = tpl $set . | fromYaml }}{{ end -}}
{{- $own := "volcano.custom.scheduler_config_override" -}}
{{- $actions := list -}}{{- $bounds := list -}}
{{- range splitList "," (toString (default "" $conf.actions)) }}{{ with trim . }}{{ $actions = append $actions . }}{{ end }}{{ end -}}
{{- $plugins := list -}}{{- $capacityTree := false -}}{{- $sla := false -}}{{- $deciders := list -}}
{{- range $tier := default list $conf.tiers }}
{{- $victims := list }}
{{- range $plugin := default list $tier.plugins }}
{{- if and (eq .name "gang") (has "sla" $plugins) }}{{ $sla = true }}{{ end }}
{{- if and (has .name (list "gang" "conformance" "capacity" "proportion" "pdb" "cdp")) (ne (toString .enableReclaimable) "false") }}{{ $victims = append $victims .name }}{{ end }}
{{- if eq .name "capacity" }}{{ $capacityTree = eq (toString .enableHierarchy) "true" }}{{ end }}
{{- if and (eq .name "proportion") (or (ne (toString .enabledOverused) "false") (ne (toString .enabledAllocatable) "false")) }}{{ $bounds = append $bounds .name }}{{ end }}
{{- end }}
{{- range default list $tier.plugins }}{{ $plugins = append $plugins .name }}{{ end }}
{{- if and $victims (not $deciders) }}{{ $deciders = $victims }}{{ end }}
{{- end }}
{{- if or (not $set) (hasKey $conf "Error") (not $actions) (not $plugins) }}
{{ $own }} is not a scheduler configuration with actions and tiers: correct it, or remove it to use the one generated from the contract.
{{- else }}
{{- range $actions }}
{{- if not (has . (list "allocate" "backfill" "enqueue" "preempt" "reclaim" "shuffle")) }}
{{ $own }}: Volcano has no action {{ . | quote }} and would refuse the whole configuration; remove it.
{{- end }}
{{- end }}
{{- range uniq $plugins }}
{{- if not (has . (include "trainyard.schedulerPlugins" $ | splitList " ")) }}
{{ $own }}: Volcano has no plugin {{ . | quote }} and would ignore it; correct the name or remove it.
{{- end }}
{{- end }}
{{- if and $bounds (has "capacity" $plugins) }}
{{ $own }}: the plugins proportion and capacity both decide what a queue may have; keep capacity, which the contract's queues need, and set enabledOverused and enabledAllocatable of proportion to false.
{{- end }}
{{- range $action := list "preempt" "reclaim" }}
{{- $both := and (eq $switches.queueingStrategy "ReservingFIFO") (get $switches $action) }}
{{- if and (has $action $actions) $sla (not $both) }}
{{ $own }}: the action {{ $action }} conflicts with sla before gang (queueingStrategy: ReservingFIFO), since it would evict pods for a gang that doesn't fit yet; use one of them.
{{- end }}
{{- if $both }}
global.contract.scheduler: {{ $action }} conflicts with queueingStrategy: ReservingFIFO, since it would evict pods for a gang that doesn't fit yet; set {{ $action }} to false or queueingStrategy to BestEffortFIFO.
{{- end }}
{{- if and (get $switches $action) (not (has $action $actions)) }}
global.contract.scheduler.{{ $action }} is true, but {{ $own }} lacks the action {{ $action }}; add it or remove the configuration.
{{- end }}
{{- if and (has $action $actions) (not (get $switches $action)) }}
{{ $own }} has the action {{ $action }}, but global.contract.scheduler.{{ $action }} is false; set it to true to match.
{{- end }}
{{- end }}
{{- if and (eq $switches.queueingStrategy "ReservingFIFO") (not $sla) }}
global.contract.scheduler.queueingStrategy is ReservingFIFO, but {{ $own }} has no plugin sla in a tier before gang; add it or remove the configuration.
{{- end }}
{{- if and (eq $switches.queueingStrategy "StrictFIFO") (not (has "extender" $plugins)) }}
global.contract.scheduler.queueingStrategy is StrictFIFO, but {{ $own }} has no plugin extender that asks the program beside the scheduler; add it or remove the configuration.
{{- end }}
{{- if and (eq $switches.queueingStrategy "StrictFIFO") $switches.reclaim }}
global.contract.scheduler: reclaim conflicts with queueingStrategy: StrictFIFO, since a queue whose first job waits could not take its share back; set reclaim to false or queueingStrategy to BestEffortFIFO.
{{- end }}
{{- if and (eq $switches.queueingStrategy "StrictFIFO") $switches.preempt }}
global.contract.scheduler: preempt conflicts with queueingStrategy: StrictFIFO, since it would evict pods for jobs that may not start before the first; set preempt to false or queueingStrategy to BestEffortFIFO.
{{- end }}
{{- if and (eq $switches.queueingStrategy "ReservingFIFO") (has "enqueue" $actions) }}
global.contract.scheduler.queueingStrategy is ReservingFIFO, but {{ $own }} has the action enqueue, which lets later jobs pass; remove it.
{{- end }}
{{- if and (has "reclaim" $actions) (has "capacity" $plugins) (not (has "capacity" $deciders)) }}
{{ $own }}: reclaim would take pods from queues within their share, since {{ join ", " $deciders }} decides in a tier before capacity; put capacity into that tier.
{{- end }}
{{- include "trainyard.validate.promises" (list . (has "capacity" $plugins) $capacityTree) }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the queues promise and the scheduler doesn't keep: (list root hasCapacity knowsTree). */}}
{{- define "trainyard.validate.promises" -}}
{{- $root := index . 0 -}}{{- $capacity := index . 1 -}}{{- $tree := index . 2 -}}
{{- range $queue := include "trainyard.queues" $root | fromJsonArray }}
{{- if and (not $capacity) (or .capability .deserved .guarantee) }}
{{ .where }} has shares, but volcano.custom.scheduler_config_override has no plugin capacity, which enforces them; add it.
{{- end }}
{{- if and (ne .parent "root") (not $tree) }}
{{ .where }} has the parent {{ .parent }}, but volcano.custom.scheduler_config_override doesn't set enableHierarchy: true at the plugin capacity; set it.
{{- end }}
{{- if not $root.Values.global.contract.scheduler.reclaim }}
{{- range $resource, $amount := .deserved }}
{{- if gt (include "trainyard.quantity" $amount | float64) (include "trainyard.quantity" (get $queue.guarantee $resource | default "0") | float64) }}
{{ $queue.where }} deserves {{ $amount }} {{ $resource }}, but only what it guarantees ({{ get $queue.guarantee $resource | default "0" }}) is kept for it while global.contract.scheduler.reclaim is false; set reclaim to true or guarantee as much.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The plugins of the Volcano release that this chart installs. */}}
{{- define "trainyard.schedulerPlugins" -}}
binpack capacity cdp conformance deviceshare drf extender gang network-topology-aware nodegroup nodeorder numa-aware overcommit pdb predicates priority proportion rescheduling resource-strategy-fit resourcequota sla task-topology tdm usage
{{- end }}
