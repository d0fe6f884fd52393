{{/*
The packaged rules as a JSON object from name to policy. Their files are plain, see policies/ in the repository.
*/}}
{{- define "trainyard.policies" -}}
{{- $rules := dict -}}
{{- range $path, $_ := .Files.Glob "files/policies/*.yaml" -}}
{{- $_ := set $rules (base $path | trimSuffix ".yaml") ($.Files.Get $path | fromYaml) -}}
{{- end -}}
{{- toJson $rules -}}
{{- end }}

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
{{- $classes := list $c.storage.sharedClass (dig "workspaceClass" "" $c.storage) -}}
{{- $operators := list "training-operator" "controllers" -}}
{{- $users := list -}}{{- range $operators }}{{ $users = append $users (printf "%s-%s" $account .) }}{{ end -}}
{{- $teams := list -}}{{- range include "trainyard.teams" . | fromJsonArray }}{{ $teams = append $teams .name }}{{ end -}}
{{- $groups := list -}}
{{- range include "trainyard.teams" . | fromJsonArray }}{{ $groups = append $groups (printf "%d:%s" (int64 .gid) .name) }}{{ end -}}
{{- range $c.storage.volumes -}}
{{- if .gid }}{{ $groups = append $groups (printf "%d:%s" (int64 .gid) (join "+" (has "*" .teams | ternary $teams .teams))) }}{{ end -}}
{{- end -}}
{{- dict
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
      "storageClasses" (join "," (concat $classes $p.storageClasses | compact | uniq))
      "maxClaim" $c.teamDefaults.storage.maxClaim
      "teamNamespaces" (join "," $teams)
      "groupOwners" (join "," $groups)
      "tokenServiceAccounts" (join "," (prepend $p.tokenServiceAccounts $c.pipelines.serviceAccount | uniq))
      "pipelineServiceAccount" $c.pipelines.serviceAccount
      "operators" (join "," (concat $users $p.operators))
      "teamWorkflowController" (printf "%s-workflow-controller-" $account)
      "workflowControllers" (join "," $p.workflowControllers)
      "provisioners" (join "," (concat (list (printf "%s-nfs-provisioner" $account)) $p.provisioners))
    | toJson -}}
{{- end }}

{{/*
The spec of a rule with this release's parameters: (list context spec). They stand in its variable "params" as a literal,
since an API server loses a policy's parameter objects for good when its last binding goes (kubernetes#133827).
*/}}
{{- define "trainyard.policySpec" -}}
{{- $parameters := include "trainyard.policyParameters" (index . 0) | fromJson -}}
{{- $spec := deepCopy (index . 1) -}}
{{- $variables := list -}}
{{- range $spec.variables -}}
{{- $variable := . -}}
{{- if eq .name "params" -}}
{{- $mine := dict -}}
{{- range $key, $_ := fromJson .expression }}{{ $_ := set $mine $key (get $parameters $key) }}{{ end -}}
{{- $variable = dict "name" .name "expression" (toJson $mine) -}}
{{- end -}}
{{- $variables = append $variables $variable -}}
{{- end -}}
{{- merge (dict "variables" $variables) $spec | toYaml -}}
{{- end }}
