{{/* Labels of a part: (list context "hub"). */}}
{{- define "notebooks.selector" -}}
app.kubernetes.io/name: notebook-{{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
{{- end }}
{{- define "notebooks.labels" -}}
{{ include "notebooks.selector" . }}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service | quote }}
{{- end }}

{{/* A whole reference: (list context image). */}}
{{- define "notebooks.image" -}}
{{- $image := index . 1 -}}
{{ include "trainyard.pulled" (list (index . 0) (printf "%s/%s:%s" $image.registry $image.repository $image.tag)) }}
{{- end }}

{{/* Teams whose namespaces have notebooks, as trainyard.teams has them: a JSON list. */}}
{{- define "notebooks.teams" -}}
{{- $found := list -}}
{{- range include "trainyard.teams" . | fromJsonArray -}}
{{- if or (has "*" $.Values.teams) (has .name $.Values.teams) }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* Address of a part within the cluster: (list context "hub" port). */}}
{{- define "notebooks.address" -}}
http://{{ (index . 0).Release.Name }}-notebook-{{ index . 1 }}.{{ include "trainyard.notebookNamespace" (index . 0) }}.svc:{{ index . 2 }}
{{- end }}

{{/* The first pool of a kind on which a team's pods may be, as JSON; {} where there is none: (list context team kind). */}}
{{- define "notebooks.pool" -}}
{{- $team := index . 1 -}}{{- $kind := index . 2 -}}{{- $pool := dict -}}
{{- range (index . 0).Values.global.contract.nodePools -}}
{{- if and (not $pool) (eq .kind $kind) (or (not $team.pools) (has .name $team.pools)) (or (eq $kind "gpu") (not .taint)) -}}
{{- $pool = . -}}
{{- end -}}
{{- end -}}
{{- toJson $pool -}}
{{- end }}

{{/* By whom people log in, as JSON; the umbrella knows it by its own values. */}}
{{- define "notebooks.oidc" -}}
{{- include "trainyard.notebookOidc" (dict "Values" (dict "notebooks" .Values "global" .Values.global)) -}}
{{- end }}

{{/* What the hub is told, as JSON; charts/notebooks/images/notebook-hub/notebook_hub/settings.py reads it. */}}
{{- define "notebooks.settings" -}}
{{- $c := .Values.global.contract -}}
{{- $teams := list -}}
{{- range $team := include "notebooks.teams" . | fromJsonArray -}}
{{- $one := dict "name" $team.name "users" (default list $team.members.users) "groups" (default list $team.members.groups) "queue" $team.name -}}
{{- if has $.Values.priorityClass $team.priorityClasses }}{{ $_ := set $one "priority" $.Values.priorityClass }}{{ end -}}
{{- $_ := set $one "cpu_labels" ((include "notebooks.pool" (list $ $team "cpu") | fromJson).labels | default dict) -}}
{{- with include "notebooks.pool" (list $ $team "gpu") | fromJson -}}
{{- $_ := set $one "gpu_labels" (.labels | default dict) -}}
{{- $_ := set $one "gpu_resource" (dig "gpu" "resource" "nvidia.com/gpu" .) -}}
{{- with .taint -}}
{{- $toleration := dict "key" .key "effect" .effect "operator" (.value | empty | ternary "Exists" "Equal") -}}
{{- with .value }}{{ $_ := set $toleration "value" . }}{{ end -}}
{{- $_ := set $one "gpu_tolerations" (list $toleration) -}}
{{- end -}}
{{- end -}}
{{- $teams = append $teams $one -}}
{{- end -}}
{{- $profiles := list -}}
{{- range .Values.profiles -}}
{{- $one := dict "name" .name "title" .title "cpu" .cpu "memory" .memory -}}
{{- with .image }}{{ $_ := set $one "image" (include "trainyard.pulled" (list $ .)) }}{{ end -}}
{{- with .cpuLimit }}{{ $_ := set $one "cpu_limit" . }}{{ end -}}
{{- with .memoryLimit }}{{ $_ := set $one "memory_limit" . }}{{ end -}}
{{- with .gpus }}{{ $_ := set $one "gpus" (int .) }}{{ end -}}
{{- with .deadlineSeconds }}{{ $_ := set $one "deadline" (int64 .) }}{{ end -}}
{{- $profiles = append $profiles $one -}}
{{- end -}}
{{- $o := include "notebooks.oidc" . | fromJson -}}
{{- $oidc := dict "issuer" $o.issuer "client_id" $o.clientId "callback" (printf "%s/hub/oauth_callback" .Values.url) "scopes" $o.scopes
      "username_claim" $o.usernameClaim "username_prefix" $o.usernamePrefix "groups_claim" $o.groupsClaim "groups_prefix" $o.groupsPrefix
      "authorize_url" $o.authorizeUrl "token_url" $o.tokenUrl "ca_file" (empty $o.ca | ternary "/etc/notebook-issuer/ca.crt" "/etc/notebook-hub/issuer.crt") -}}
{{- $storage := dict "workspace" .Values.workspace "shared" .Values.shared "home_size" .Values.home.size "home_class" (.Values.home.class | default (dig "sharedClass" "" $c.storage)) -}}
{{- $secrets := list -}}{{- range .Values.global.imagePullSecrets }}{{ $secrets = append $secrets .name }}{{ end -}}
{{- dict "url" .Values.url "api_url" (printf "%s" (include "notebooks.address" (list . "hub" 8081))) "proxy_api_url" (include "notebooks.address" (list . "proxy-api" 8001))
      "oidc" $oidc "storage" $storage "teams" $teams "profiles" $profiles "scheduler" $c.scheduler.name
      "pull_policy" .Values.notebook.image.pullPolicy "pull_secrets" $secrets "subdomains" .Values.subdomains
      "blocked" (dig "login" "blocked" list $c) "idle" (int64 .Values.culling.idleSeconds) "cull_every" (int64 .Values.culling.everySeconds) "start" (int64 .Values.startSeconds)
    | toPrettyJson -}}
{{- end }}

{{/* What pods of hub and proxy share. */}}
{{- define "notebooks.pod" -}}
priorityClassName: {{ .Values.global.contract.platformPriorityClass.name | quote }}
enableServiceLinks: false
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "notebooks.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
