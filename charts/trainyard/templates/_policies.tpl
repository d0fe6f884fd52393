{{/*
What the rules compare with, as a JSON object of strings. Lists are joined by commas. Images of the contract are allowed
with all that lies beside them, since operators put them into teams' pods. teamWorkflowController is the account of a
team's controller of Argo but for the team's name, at its end.
*/}}
{{- define "trainyard.policyParameters" -}}
{{- $c := .Values.global.contract -}}
{{- $p := .Values.policies -}}
{{- $account := printf "system:serviceaccount:%s:%s" .Release.Namespace .Release.Name -}}
{{- $resources := list -}}{{- $taints := list -}}{{- $open := false -}}
{{- range $c.nodePools -}}
{{- if eq .kind "gpu" -}}
{{- with .gpu }}{{ $resources = append $resources .resource }}{{ end -}}
{{- with .taint }}{{ $taints = append $taints .key }}{{ end -}}
{{- if not (has (dig "taint" "effect" "" .) (list "NoSchedule" "NoExecute")) }}{{ $open = true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $images := list -}}
{{- range $name, $_ := $c.images }}{{ $images = append $images (printf "%s/" (dir (include "trainyard.image" (list $ $name)))) }}{{ end -}}
{{- $teamClasses := list -}}{{- range $c.priorityClasses }}{{ $teamClasses = append $teamClasses .name }}{{ end -}}
{{- $classes := list $c.storage.sharedClass (dig "workspaceClass" "" $c.storage) -}}
{{- $operators := list "training-operator" "controllers" -}}
{{- $users := list -}}{{- range $operators }}{{ $users = append $users (printf "%s-%s" $account .) }}{{ end -}}
{{- $teams := list -}}{{- $groups := list -}}
{{- range include "trainyard.teams" . | fromJsonArray -}}
{{- $teams = append $teams .name }}{{ $groups = append $groups (printf "%d:%s" (int64 .gid) .name) -}}
{{- end -}}
{{- range $c.storage.volumes -}}
{{- if .gid }}{{ $groups = append $groups (printf "%d:%s" (int64 .gid) (join "+" (has "*" .teams | ternary $teams .teams))) }}{{ end -}}
{{- end -}}
{{- $of := include "trainyard.serving" . | default "{}" | fromJson -}}
{{- with $of }}{{ $teamClasses = append $teamClasses .priorityClass.name }}{{ end -}}
{{- $made := dict
      "gpuResources" (join "," (uniq $resources | default (list (include "trainyard.gpuResource" .))))
      "gpuTaints" (join "," (uniq $taints))
      "openGpuNodes" (toString $open)
      "schedulerName" $c.scheduler.name
      "allowedImages" (join "," (concat $images $p.allowedImages | uniq | sortAlpha))
      "maxDeadlineSeconds" ($p.maxDeadlineSeconds | int64 | toString)
      "maxGraceSeconds" ($p.maxGraceSeconds | int64 | toString)
      "maxKeepSeconds" ($p.maxKeepSeconds | int64 | toString)
      "maxReplicas" ($p.maxReplicas | int64 | toString)
      "maxLoopItems" ($p.maxLoopItems | int64 | toString)
      "allowedResources" (join "," $p.allowedResources)
      "platformClasses" (printf "%s,%s" $c.platformPriorityClass.name $c.platformJobPriorityClass.name)
      "platformNamespaces" .Release.Namespace
      "teamClasses" (join "," $teamClasses)
      "operatorNamespaces" (join "," (default list .Values.platform.operatorNamespaces))
      "storageClasses" (join "," (concat $classes $p.storageClasses | compact | uniq))
      "maxClaim" $c.teamDefaults.storage.maxClaim
      "teamNamespaces" (join "," $teams)
      "groupOwners" (join "," $groups)
      "tokenServiceAccounts" (join "," (prepend $p.tokenServiceAccounts $c.pipelines.serviceAccount | uniq))
      "pipelineServiceAccount" $c.pipelines.serviceAccount
      "operators" (join "," (concat $users $p.operators))
      "teamWorkflowController" (printf "%s-workflow-controller-" $account)
      "workflowControllers" (join "," $p.workflowControllers)
      "standIns" (include "trainyard.standIns" .)
      "provisioners" (join "," (concat (list (printf "%s-nfs-provisioner" $account)) $p.provisioners)) -}}
{{- with $of -}}
{{- $servers := list -}}{{- range .images }}{{ $servers = append $servers (include "trainyard.pulled" (list $ .)) }}{{ end -}}
{{- $hosts := list -}}{{- range $team, $names := $.Values.serving.hosts }}{{ range $names }}{{ $hosts = append $hosts (printf "%s/%s" $team .) }}{{ end }}{{ end -}}
{{- $made = merge (dict "servingHosts" (join "," $hosts) "servingAnnotations" (join "," $.Values.serving.annotations) "serverImages" (join "," (uniq $servers | sortAlpha)) "servingClass" .priorityClass.name "modelsBucket" .bucket "servingGpus" (toString .gpus) "servingPrometheus" .prometheus) $made -}}
{{- end -}}
{{- if dig "enabled" false (default dict .Values.notebooks) -}}
{{- $made = merge (dict
      "platformNamespaces" (printf "%s,%s" .Release.Namespace (include "trainyard.notebookNamespace" .))
      "notebookHub" (include "trainyard.notebookHub" .)
      "notebookUserPrefix" (get (include "trainyard.notebookOidc" . | fromJson) "usernamePrefix" | default "")) $made -}}
{{- end -}}
{{- toJson $made -}}
{{- end }}

{{/*
Our image for what an image's name tells of it, as word=reference, joined by commas; the last one is for all others.
*/}}
{{- define "trainyard.standIns" -}}
{{- $root := . -}}{{- $images := .Values.global.contract.images -}}{{- $pairs := list -}}
{{- $words := list -}}
{{- range $key, $_ := $images }}{{ if hasPrefix "trainer" $key }}{{ $words = append $words (printf "%s=%s" (trimPrefix "trainer" $key | lower) $key) }}{{ end }}{{ end -}}
{{- range concat $words (list "keras=trainerTensorflow" "mpi=trainerHorovod" "cuda=trainerTorch" "=pipeline") -}}
{{- $pair := splitList "=" . -}}
{{- if hasKey $images (last $pair) }}{{ $pairs = append $pairs (printf "%s=%s" (first $pair) (include "trainyard.image" (list $root (last $pair)))) }}{{ end -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end }}

{{/*
What is filled in and is no text, as JSON: pools with GPUs, those whose nodes stay before spot ones, images that stand in for
others, longer names first, since they say more, and the classes that the cluster gives to claims which name none. Each list
holds things of one type, as CEL wants it.
*/}}
{{- define "trainyard.fillLists" -}}
{{- $root := . -}}{{- $c := .Values.global.contract -}}{{- $fill := default dict .Values.policies.fill -}}
{{- $resources := list -}}{{- $labels := list -}}{{- $tolerations := list -}}{{- $cuda := list -}}{{- $plain := list -}}
{{- range $c.nodePools }}{{ if and (eq .kind "cpu") .labels (not .taint) }}{{ $plain = append $plain .labels }}{{ end }}{{ end -}}
{{- range $spot := list false true -}}
{{- range $c.nodePools -}}
{{- if and (eq .kind "gpu") (eq (default false .spot) $spot) -}}
{{- $resources = append $resources (dig "gpu" "resource" "nvidia.com/gpu" .) -}}
{{- $labels = append $labels (default dict .labels) -}}
{{- $cuda = append $cuda (and (eq (dig "gpu" "images" $c.gpuImages .) "cuda") (hasPrefix "nvidia.com/" (dig "gpu" "resource" "nvidia.com/gpu" .))) -}}
{{- $own := list -}}
{{- with .taint -}}
{{- $one := dict "key" .key "effect" .effect "operator" "Exists" -}}
{{- with .value }}{{ $one = merge (dict "operator" "Equal" "value" .) $one }}{{ end -}}
{{- $own = list $one -}}
{{- end -}}
{{- $tolerations = append $tolerations $own -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* Names of ours are the shortest; a longer one of the same image is the site's. */ -}}
{{- $sorted := list -}}{{- $stands := dict -}}
{{- range $long := list false true -}}
{{- range $key, $image := default dict $fill.images -}}
{{- $name := trimPrefix "docker.io/" $key | trimPrefix "library/" -}}
{{- if eq $long (ne $key $name) }}{{ $_ := set $stands $name $image }}{{ end -}}
{{- end -}}
{{- end -}}
{{- /* Ours as manifests and examples name them; where that is their registry, there is nothing to replace. */ -}}
{{- if ne (include "trainyard.ownRegistry" $root) "site.invalid" -}}
{{- range $key, $_ := $c.images -}}
{{- if or (hasPrefix "trainer" $key) (has $key (list "pipeline" "python311")) }}{{ $_ := set $stands (printf "site.invalid/trainyard/%s" (regexReplaceAll "([a-z])([0-9])" (kebabcase $key) "${1}-${2}")) $key }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $name, $image := $stands -}}
{{- $sorted = append $sorted (printf "%05d %s %s" (sub 99999 (len $name)) $name $image) -}}
{{- end -}}
{{- $names := list -}}{{- $references := list -}}{{- $onGpus := list -}}
{{- range sortAlpha $sorted -}}
{{- $parts := splitList " " . -}}{{- $image := index $parts 2 -}}
{{- $reference := $image -}}
{{- if hasKey $c.images $image }}{{ $reference = include "trainyard.image" (list $root $image) }}{{ end -}}
{{- $names = append $names (index $parts 1) -}}
{{- $references = append $references $reference -}}
{{- $onGpus = append $onGpus (hasKey $c.cudaImages $image | ternary (include "trainyard.pulled" (list $root (get $c.cudaImages $image))) $reference) -}}
{{- end -}}
{{- $classes := default list $fill.clusterStorageClasses -}}
{{- if not $classes -}}
{{- range (lookup "storage.k8s.io/v1" "StorageClass" "" "").items -}}
{{- if eq (get (default dict .metadata.annotations) "storageclass.kubernetes.io/is-default-class") "true" }}{{ $classes = append $classes .metadata.name }}{{ end -}}
{{- end -}}
{{- end -}}
{{- dict "poolResources" $resources "poolLabels" $labels "poolTolerations" $tolerations "poolCuda" $cuda "plainLabels" $plain "imageNames" $names "imageReferences" $references "cudaReferences" $onGpus "clusterClasses" $classes | toJson -}}
{{- end }}

{{/*
Whether manifests are filled in here: "true", or "" where policies.fill.mode or the API server says otherwise.
*/}}
{{- define "trainyard.fills" -}}
{{- $mode := dig "fill" "mode" "auto" .Values.policies -}}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- if and (ne $mode "never") $served }}true{{ end -}}
{{- end }}

{{/*
The spec of a rule with this release's parameters: (list context spec parameters). They are in its variable "params"
as a literal, since an API server loses a policy's parameter objects for good when its last binding goes (kubernetes#133827).
*/}}
{{- define "trainyard.policySpec" -}}
{{- $parameters := index . 2 -}}
{{- $spec := deepCopy (index . 1) -}}
{{- $variables := list -}}
{{- range $spec.variables -}}
{{- $variable := . -}}
{{- if eq .name "params" -}}
{{- $mine := dict -}}
{{- range $key, $_ := fromJson .expression }}{{ $_ := set $mine $key (get $parameters $key) }}{{ end -}}
{{- $variable = dict "name" .name "expression" (toJson $mine) -}}
{{- else if eq .name "site" -}}
{{- $mine := list -}}
{{- range $key, $list := include "trainyard.fillLists" (index $ 0) | fromJson }}{{ $mine = append $mine (printf "%s: dyn(%s)" (toJson $key) (toJson $list)) }}{{ end -}}
{{- $variable = dict "name" .name "expression" (printf "{%s}" (join ", " $mine)) -}}
{{- end -}}
{{- $variables = append $variables $variable -}}
{{- end -}}
{{- merge (dict "variables" $variables) $spec | toYaml -}}
{{- end }}
