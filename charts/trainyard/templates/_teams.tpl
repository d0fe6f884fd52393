{{/*
Every team of the values with the defaults under it, as a JSON list: {{ include "trainyard.teams" . | fromJsonArray }}.
A key that a team sets replaces the default; in a block that is a map each key by itself (x-merge in the schema).
Beside the keys of the values every team has
  useQueues  the queues that it may use, its own first
  ownFill    what its own block `fill` says; left out where it has none
*/}}
{{- define "trainyard.teams" -}}
{{- $c := .Values.global.contract -}}
{{- $teams := list -}}
{{- range $own := default list $c.teams -}}
{{- $team := deepCopy $c.teamDefaults -}}
{{- range $key, $value := $own -}}
{{- if and (kindIs "map" $value) (hasKey $team $key) -}}
{{- range $inner, $one := $value }}{{ $_ := set (index $team $key) $inner $one }}{{ end -}}
{{- else -}}
{{- $_ := set $team $key $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $team "description" (default "" $team.description) -}}
{{- range $role := list "members" "viewers" -}}
{{- $who := default dict (index $team $role) -}}
{{- $_ := set $team $role (dict "groups" (default list $who.groups) "users" (default list $who.users)) -}}
{{- end -}}
{{- $_ := set $team "useQueues" (concat (list $team.name) (default list $team.queues) | uniq) -}}
{{- $_ := set $team.fill "priorityClass" (include "trainyard.team.class" (list $c $team)) -}}
{{- with $own.fill }}{{ $_ := set $team "ownFill" . }}{{ end -}}
{{- $teams = append $teams $team -}}
{{- end -}}
{{- toJson $teams -}}
{{- end }}

{{/* Labels of the pools that a team stays on, of a pool as key=value key=value, pools joined by commas: (list contract team). */}}
{{- define "trainyard.team.pools" -}}
{{- $team := index . 1 -}}{{- $found := list -}}
{{- range $pool := (index . 0).nodePools -}}
{{- if and (has .name (default list $team.pools)) .labels -}}
{{- $labels := list -}}
{{- range $key, $value := .labels }}{{ $labels = append $labels (printf "%s=%v" $key $value) }}{{ end -}}
{{- $found = append $found (join " " $labels) -}}
{{- end -}}
{{- end -}}
{{- join "," $found -}}
{{- end }}

{{/* The priority class that is filled in for a team, or "": (list contract team). */}}
{{- define "trainyard.team.class" -}}
{{- $c := index . 0 -}}{{- $team := index . 1 -}}
{{- $class := default "" $team.fill.priorityClass -}}
{{- $counted := false -}}{{- range $name, $hard := $team.quota }}{{ if and $hard (ne $name "all") }}{{ $counted = true }}{{ end }}{{ end -}}
{{- if and $counted (not $class) -}}
{{- $sorted := list -}}
{{- range $c.priorityClasses }}{{ if has .name $team.priorityClasses }}{{ $sorted = append $sorted (printf "%012d %s" (add 3000000000 (int64 .value)) .name) }}{{ end }}{{ end -}}
{{- with sortAlpha $sorted }}{{ $class = index (splitList " " (index . (min 1 (sub (len .) 1)))) 1 }}{{ end -}}
{{- end -}}
{{- $class -}}
{{- end }}

{{/* Who is bound to a role: (list members viewers …), each {groups, users}; a list of subjects, without doubles. */}}
{{- define "trainyard.team.subjects" -}}
{{- $groups := list -}}{{- $users := list -}}
{{- range . }}{{ $groups = concat $groups .groups }}{{ $users = concat $users .users }}{{ end -}}
{{- $subjects := list -}}
{{- range uniq $groups }}{{ $subjects = append $subjects (dict "apiGroup" "rbac.authorization.k8s.io" "kind" "Group" "name" .) }}{{ end -}}
{{- range uniq $users }}{{ $subjects = append $subjects (dict "apiGroup" "rbac.authorization.k8s.io" "kind" "User" "name" .) }}{{ end -}}
{{- toYaml $subjects -}}
{{- end }}

{{/* Hard limits for a ResourceQuota, with gpus written as the contract's GPU resource: (list context limits). */}}
{{- define "trainyard.team.hard" -}}
{{- $root := index . 0 -}}{{- $hard := dict -}}
{{- range $resource, $amount := index . 1 -}}
{{- $name := eq $resource "gpus" | ternary (printf "requests.%s" (include "trainyard.gpuResource" $root)) $resource -}}
{{- $_ := set $hard $name (toString (toJson $amount | trimAll "\"")) -}}
{{- end -}}
{{- toYaml $hard -}}
{{- end }}

{{/*
How many objects a team may have: (list context team), as a JSON object of hard limits. core: of Kubernetes' own kinds;
custom: of those of CRDs, which Kubernetes counts only once its controller knows them. What is not installed is left out.
*/}}
{{- define "trainyard.team.counts" -}}
{{- $root := index . 0 -}}{{- $counts := (index . 1).counts -}}
{{- $all := omit $counts "jobs" -}}
{{- $installed := dict "jobs.batch" true -}}
{{- range include "trainyard.installedKinds" $root | fromJsonArray }}{{ $_ := set $installed (printf "%s.%s" .plural .group) true }}{{ end -}}
{{- range $name, $_ := $installed }}{{ if not (hasKey $all $name) }}{{ $all = merge (dict $name $counts.jobs) $all }}{{ end }}{{ end -}}
{{- $parts := dict "kubeflow.org" "training-operator" "scheduling.volcano.sh" "volcano" "batch.volcano.sh" "volcano" "argoproj.io" "argo" -}}
{{- $core := dict -}}{{- $custom := dict -}}
{{- range $name, $amount := $all -}}
{{- $group := regexReplaceAll "^[^.]*[.]?" $name "" -}}
{{- $part := get $parts $group -}}
{{- $hard := toString (toJson $amount | trimAll "\"") -}}
{{- if and (not (contains ".x-k8s.io" $group)) (or (not (contains "." $group)) (hasSuffix ".k8s.io" $group)) -}}
{{- $_ := set $core (printf "count/%s" $name) $hard -}}
{{- else if or (not $part) (index $root.Values $part).enabled -}}
{{- if or (ne $part "training-operator") (hasKey $installed $name) }}{{ $_ := set $custom (printf "count/%s" $name) $hard }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson (dict "core" $core "custom" $custom) -}}
{{- end }}

{{/* Where pods reach the API server behind its Service, as a JSON list of {cidr, port}; [] when nothing says. */}}
{{- define "trainyard.apiServer" -}}
{{- $ends := default list .Values.global.contract.network.apiServer -}}
{{- if not $ends -}}
{{- $slice := lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" -}}
{{- if $slice -}}
{{- $bits := eq $slice.addressType "IPv6" | ternary "128" "32" -}}
{{- range $endpoint := $slice.endpoints }}{{ range $address := $endpoint.addresses }}{{ range $port := $slice.ports -}}
{{- $ends = append $ends (dict "cidr" (printf "%s/%s" $address $bits) "port" $port.port) -}}
{{- end }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $ends -}}
{{- end }}

{{/* A Volcano queue as JSON: (list context values name owner). */}}
{{- define "trainyard.queue" -}}
{{- $root := index . 0 -}}{{- $values := index . 1 -}}
{{- $spec := dict "weight" $values.weight "reclaimable" $values.reclaimable "parent" (default "root" $values.parent) -}}
{{- with $values.capability }}{{ $_ := set $spec "capability" . }}{{ end -}}
{{- with $values.deserved }}{{ $_ := set $spec "deserved" . }}{{ end -}}
{{- with $values.guarantee }}{{ $_ := set $spec "guarantee" (dict "resource" .) }}{{ end -}}
{{- $meta := dict "name" (index . 2) "labels" (dict "trainyard.io/applied-by" $root.Release.Name) "annotations" (dict "trainyard.io/owner" (index . 3)) -}}
{{- toJson (dict "apiVersion" "scheduling.volcano.sh/v1beta1" "kind" "Queue" "metadata" $meta "spec" $spec) -}}
{{- end }}

{{/* What teams that are gone from the values have left, one a line; asks the cluster, and is empty without one. */}}
{{- define "trainyard.team.left" -}}
{{- $root := . -}}
{{- $names := list .Release.Namespace -}}{{- range include "trainyard.teams" . | fromJsonArray }}{{ $names = append $names .name }}{{ end -}}
{{- $gone := list -}}
{{- range (lookup "v1" "Namespace" "" "").items -}}
{{- $labels := default dict .metadata.labels -}}
{{- if and (hasKey $labels "trainyard.io/team") (eq (get $labels "trainyard.io/applied-by") $root.Release.Name) (not (has .metadata.name $names)) -}}
{{- $gone = append $gone .metadata.name -}}
{{- end -}}
{{- end -}}
{{- $lines := list -}}
{{- range (lookup "v1" "PersistentVolume" "" "").items -}}
{{- $ref := default dict .spec.claimRef -}}
{{- if and (eq (default "" .spec.storageClassName) $root.Values.global.contract.storage.workspaceClass) (not (has (get $ref "namespace") $names)) -}}
{{- if or (has $ref.namespace $gone) (eq (dig "status" "phase" "" .) "Released") -}}
{{- $gone = append $gone $ref.namespace -}}
{{- $place := hasKey .spec "nfs" | ternary (printf ", %s on %s" (dig "nfs" "path" "" .spec) (dig "nfs" "server" "" .spec)) "" -}}
{{- $lines = append $lines (printf "%s/%s: volume %s%s" $ref.namespace $ref.name .metadata.name $place) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $team := uniq $gone }}{{ range $root.Values.global.contract.storage.buckets -}}
{{- if eq .teams "own" }}{{ $lines = append $lines (printf "%s: s3://%s/%s/" $team .name $team) }}{{ end -}}
{{- end }}{{ end -}}
{{- join "\n" (sortAlpha (uniq $lines)) -}}
{{- end }}
