{{/* The tuned scheduler configuration: pack by GPUs, search order by priority, gangs whole or not at all. */}}
{{- define "trainyard.schedulerConfig" -}}
{{- $switches := .Values.global.contract.scheduler -}}
{{- $actions := list "allocate" "backfill" -}}
{{- if $switches.reclaim }}{{ $actions = append $actions "reclaim" }}{{ end -}}
{{- if $switches.preempt }}{{ $actions = append $actions "preempt" }}{{ end -}}
{{- $resources := include "trainyard.gpuResources" . | fromJsonArray -}}
actions: "{{ join ", " $actions }}"
configurations:
# A node that once refused a pod of a gang is asked again for the gang's next pod: with the cache of refusals, on by
# default, topology spread constraints leave a gang pending that fits.
{{- range $actions }}
- name: {{ . }}
  arguments:
    predicateErrorCacheEnable: false
{{- if eq . "preempt" }}
    # Up to a hundred nodes are compared and the one with the fewest victims is taken, not the first that would do.
    enableTopologyAwarePreemption: true
    minCandidateNodesPercentage: 100
{{- end }}
{{- end }}
tiers:
{{- if eq $switches.queueingStrategy "ReservingFIFO" }}
# Before gang: a job that has waited a second keeps what it was given in a round, though it is not whole yet.
- plugins:
  - name: priority
  - name: sla
    arguments:
      sla-waiting-time: 1s
- plugins:
{{- else }}
- plugins:
  - name: priority
{{- end }}
  - name: gang
    enablePreemptable: false
{{- if $switches.reclaim }}
    enableReclaimable: false
{{- end }}
  - name: conformance
{{- if $switches.reclaim }}
  # In the tier of conformance: the first tier that names victims decides, so capacity would never be asked below.
  {{- include "trainyard.capacityPlugin" . | nindent 2 }}
{{- end }}
{{- if eq $switches.queueingStrategy "StrictFIFO" }}
  # Before each job the program beside the scheduler is asked: a queue has had enough when its job before didn't fit.
  - name: extender
    arguments:
      extender.urlPrefix: http://127.0.0.1:10260
      extender.httpTimeout: 10s
      extender.queueOverusedVerb: overused
      extender.allocateFuncVerb: allocate
      extender.deallocateFuncVerb: deallocate
      extender.onSessionCloseVerb: close
{{- end }}
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
{{- if not $switches.reclaim }}
  {{- include "trainyard.capacityPlugin" . | nindent 2 }}
{{- end }}
  # Capacity knows no weights: queues that deserve nothing would go by age, the oldest always first. Proportion only says
  # which queue has the least for its weight; its bounds would keep a gang larger than its queue's part out forever.
  - name: proportion
    enableReclaimable: false
    enablePreemptable: false
    enablePreemptive: false
    enablePredicate: false
    enableJobEnqueued: false
    enabledOverused: false
    enabledAllocatable: false
  # Balance beside packing: a pod with many cores for a GPU goes where cores are plenty, so that the last GPUs of a node
  # are not left without any.
  - name: nodeorder
    arguments:
      leastrequested.weight: 0
      balancedresource.weight: 17
      mostrequested.weight: 0
      tainttoleration.weight: 100
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 1
      binpack.memory: 1
      binpack.resources: {{ join "," $resources }}
      {{- range $resources }}
      binpack.resources.{{ . }}: 40
      {{- end }}
{{- with include "trainyard.gpuReserve" . | fromJson }}
  # CPU and memory (in GB) that stay free for each free GPU of a node.
  - name: resource-strategy-fit
    arguments:
      resourceStrategyFitWeight: 0
      proportional:
        enable: true
        resources: {{ keys . | sortAlpha | join "," }}
        resourceProportion:
          {{- range $resource, $reserve := . }}
          {{ $resource }}.cpu: {{ include "trainyard.quantity" $reserve.cpu }}
          {{ $resource }}.memory: {{ divf (include "trainyard.quantity" $reserve.memory | float64) 1e9 }}
          {{- end }}
{{- end }}
{{- end }}

{{- define "trainyard.capacityPlugin" -}}
- name: capacity
{{- if include "trainyard.hierarchy" . }}
  enableHierarchy: true
{{- end }}
{{- end }}

{{/* What stays free for each GPU, by GPU resource, as JSON; the first pool of a resource speaks for it. */}}
{{- define "trainyard.gpuReserve" -}}
{{- $found := dict -}}
{{- range .Values.global.contract.nodePools -}}
{{- if and .gpu .gpu.reserve (not (hasKey $found .gpu.resource)) -}}{{- $_ := set $found .gpu.resource .gpu.reserve -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}
