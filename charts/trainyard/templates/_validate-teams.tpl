{{/* Validation errors among the values of teams, one a line. */}}
{{- define "trainyard.validate.teams" -}}
{{- $root := . -}}
{{- $c := .Values.global.contract -}}
{{- $teams := include "trainyard.teams" . | fromJsonArray -}}
{{- $gpu := include "trainyard.gpuResource" . -}}
{{- $classes := list -}}{{- range $c.priorityClasses }}{{ $classes = append $classes .name }}{{ end -}}
{{- $platform := $c.platformPriorityClass -}}{{- $jobs := $c.platformJobPriorityClass -}}
{{- if eq $jobs.name $platform.name }}
global.contract.platformJobPriorityClass has the name of platformPriorityClass, {{ $jobs.name | quote }}; choose another name.
{{- else if ge ($jobs.value | int64) ($platform.value | int64) }}
global.contract.platformJobPriorityClass has the value {{ $jobs.value | int64 }}, which is not below platformPriorityClass, {{ $platform.value | int64 }}; choose a lower one.
{{- end }}
{{- range $c.priorityClasses }}
{{- if has .name (list $platform.name $jobs.name) }}
global.contract.priorityClasses has {{ .name | quote }}, the class of the platform's own pods; choose another name.
{{- else if and (ge (.value | int64) ($jobs.value | int64)) (lt (.value | int64) ($platform.value | int64)) }}
global.contract.priorityClasses: {{ .name | quote }} has the value {{ .value | int64 }}, and its pods would precede the platform's jobs; choose one below {{ $jobs.value | int64 }}, or raise platformJobPriorityClass.value.
{{- else if ge (.value | int64) ($platform.value | int64) }}
global.contract.priorityClasses: {{ .name | quote }} has the value {{ .value | int64 }}, and its pods could displace the platform's; choose one below {{ $platform.value | int64 }}, or raise platformPriorityClass.value.
{{- end }}
{{- end -}}
{{- $shared := list -}}{{- $parents := list -}}
{{- range $c.queues }}{{ $shared = append $shared .name }}{{ with .parent }}{{ $parents = append $parents . }}{{ end }}{{ end -}}
{{- range $teams }}{{ $parents = append $parents .queue.parent }}{{ end -}}
{{- $names := dict -}}{{- $gids := dict -}}
{{- range $team := $teams }}
{{- $where := printf "global.contract.teams: team %q" $team.name }}
{{- $gid := $team.gid | int64 | toString }}
{{- if hasKey $names $team.name }}
{{ $where }} is listed twice; give each team its own name.
{{- else if hasKey $gids $gid }}
{{ $where }} has the gid {{ $gid }} of team {{ index $gids $gid | quote }}, so each would own the other's files; choose another gid.
{{- end }}
{{- $_ := set $names $team.name true }}{{ $_ := set $gids $gid $team.name }}
{{- if has $team.name $shared }}
{{ $where }} has the name of a queue of global.contract.queues; rename one of them.
{{- end }}
{{- if or (has $team.name (list "default" "root" "shared" $root.Release.Namespace (include "trainyard.webhookNamespace" $root) (include "trainyard.notebookNamespace" $root))) (hasPrefix "kube-" $team.name) }}
{{ $where }} has a reserved name; choose another one.
{{- end }}
{{- if dig "metadata" "deletionTimestamp" "" (lookup "v1" "Namespace" "" $team.name) }}
{{ $where }} was just removed and its namespace is still terminating; wait until `kubectl get namespace {{ $team.name }}` reports NotFound.
{{- end }}
{{- if not (has $team.queue.parent (append $shared "root")) }}
{{ $where }} has queue.parent {{ $team.queue.parent | quote }}, which is not among global.contract.queues; name one of them or root.
{{- end }}
{{- if has $team.name $parents }}
{{ $where }}: its queue runs its jobs and can't be the parent of others; add a queue to global.contract.queues for that.
{{- end }}
{{- range $team.queues }}
{{- if not (has . $shared) }}
{{ $where }} may use queue {{ . | quote }}, which is not among global.contract.queues; add it there or remove it.
{{- else if has . $parents }}
{{ $where }} may use queue {{ . | quote }}, which has queues below it; one job in it would stop all scheduling; use a queue below it.
{{- end }}
{{- end }}
{{- range $team.priorityClasses }}
{{- if not (has . $classes) }}
{{ $where }} may use priority class {{ . | quote }}, which is not among global.contract.priorityClasses ({{ join ", " $classes }}).
{{- end }}
{{- end }}
{{- if $team.pools }}
{{- $plain := false }}
{{- range $name := $team.pools }}
{{- $pool := dict }}{{ range $c.nodePools }}{{ if eq .name $name }}{{ $pool = . }}{{ end }}{{ end }}
{{- if not $pool }}
{{ $where }} is restricted to pool {{ $name | quote }}, which is not among global.contract.nodePools ({{ range $i, $one := $c.nodePools }}{{ if $i }}, {{ end }}{{ $one.name }}{{ end }}); name one of them.
{{- else if not $pool.labels }}
{{ $where }} is restricted to pool {{ $name | quote }}, which has no labels to keep its pods there; add labels.
{{- else if not $pool.selector }}
{{ $where }} is restricted to pool {{ $name | quote }}, which has no selector, so node preparation would add every other node to it, including nodes for services; add a selector.
{{- end }}
{{- if eq (dig "kind" "" $pool) "cpu" }}{{ $plain = true }}{{ end }}
{{- end }}
{{- if not $plain }}
{{ $where }} is restricted to pools of kind gpu ({{ join ", " $team.pools }}), so none of its pods without GPUs could start, and no step of a pipeline; add a pool of kind cpu.
{{- end }}
{{- end }}
{{- range $class, $limits := $team.quota }}
{{- if and $limits (ne $class "all") (not (has $class $team.priorityClasses)) }}
{{ $where }} has a quota for {{ $class | quote }}, which is not among its priorityClasses ({{ join ", " $team.priorityClasses }}); "all" is the whole namespace.
{{- end }}
{{- range $resource, $amount := $limits }}
{{- if has $resource (list $gpu (printf "limits.%s" $gpu)) }}
{{ $where }}: quota.{{ $class }}.{{ $resource }} is never counted; write gpus or requests.{{ $gpu }}.
{{- end }}
{{- if and (eq $resource "gpus") (hasKey $limits (printf "requests.%s" $gpu)) }}
{{ $where }}: quota.{{ $class }} sets both gpus and requests.{{ $gpu }}, which are the same; keep one.
{{- end }}
{{- end }}
{{- end }}
{{- $running := get (default dict $team.quota.all) "pods" }}
{{- if and (hasKey $team.counts "pods") (ne (toString $running) "") (gt (include "trainyard.quantity" $running | float64) ($team.counts.pods | float64)) }}
{{ $where }}: quota.all allows {{ $running }} running pods, but counts.pods allows {{ $team.counts.pods | int64 }}, including finished ones; raise counts.pods.
{{- end }}
{{- $gpus := $team.maxGpusPerJob | int64 }}
{{- $bounds := dict "queue.capability" (get (default dict $team.queue.capability) $gpu) "quota.all" (include "trainyard.team.gpus" (list $gpu $team.quota.all)) }}
{{- range $bound, $amount := $bounds }}
{{- if and (ne (toString $amount) "") (gt ($gpus | float64) (include "trainyard.quantity" $amount | float64)) }}
{{ $where }}: maxGpusPerJob is {{ $gpus }}, but {{ $bound }} allows the whole team {{ $amount }} GPUs; set maxGpusPerJob to at most that.
{{- end }}
{{- end }}
{{- range $resource, $request := $team.limits.requests }}
{{- $limit := get (default dict $team.limits.limits) $resource }}
{{- if and (ne (toString $limit) "") (gt (include "trainyard.quantity" $request | float64) (include "trainyard.quantity" $limit | float64)) }}
{{ $where }}: limits.requests.{{ $resource }} ({{ $request }}) is more than limits.limits.{{ $resource }} ({{ $limit }}); lower the request.
{{- end }}
{{- end }}
{{- range $resource, $limit := $team.limits.limits }}
{{- $most := get (default dict $team.limits.max) $resource }}
{{- if and (ne (toString $most) "") (gt (include "trainyard.quantity" $limit | float64) (include "trainyard.quantity" $most | float64)) }}
{{ $where }}: limits.limits.{{ $resource }} ({{ $limit }}) is more than limits.max.{{ $resource }} ({{ $most }}); lower the limit or raise the maximum.
{{- end }}
{{- end }}
{{- range $pair := list (list "workspace" "maxClaim") (list "maxClaim" "total") }}
{{- $less := get $team.storage (index $pair 0) }}{{ $more := get $team.storage (index $pair 1) }}
{{- if gt (include "trainyard.quantity" $less | float64) (include "trainyard.quantity" $more | float64) }}
{{ $where }}: storage.{{ index $pair 0 }} ({{ $less }}) is more than storage.{{ index $pair 1 }} ({{ $more }}); lower one or raise the other.
{{- end }}
{{- end }}
{{- end }}
{{- if and $teams (has $c.defaultQueue $parents) }}
global.contract.defaultQueue is {{ $c.defaultQueue | quote }}, which has queues below it; one job in it would stop all scheduling; use a queue below it.
{{- end }}
{{- if and $teams (eq $c.storage.s3.mode "external") (not $c.network.s3) }}
global.contract.storage.s3.mode is external: name the store's addresses in global.contract.network.s3, or the network policies of teams block it.
{{- end }}
{{- end }}

{{/* The GPUs that a quota allows, or nothing where it does not say: (list resource limits). */}}
{{- define "trainyard.team.gpus" -}}
{{- $limits := default dict (index . 1) -}}
{{- $amount := get $limits "gpus" -}}
{{- if eq (toString $amount) "" }}{{ $amount = get $limits (printf "requests.%s" (index . 0)) }}{{ end -}}
{{- $amount -}}
{{- end }}
