{{/* Validation errors of notebooks, one a line. */}}
{{- define "trainyard.validate.notebooks" -}}
{{- $values := default dict .Values.notebooks -}}
{{- if and $values.enabled $values.oidc -}}
{{- $root := . -}}
{{- $c := .Values.global.contract -}}
{{- $teams := include "trainyard.teams" . | fromJsonArray -}}
{{- $names := list -}}{{- range $teams }}{{ $names = append $names .name }}{{ end -}}
{{- range $key, $value := dict "url" $values.url "oidc.issuer" (get (include "trainyard.notebookOidc" . | fromJson) "issuer") }}
{{- if not $value }}
notebooks.enabled is true and notebooks.{{ $key }} is empty: write {{ eq $key "url" | ternary "the hub's URL, e.g. https://notebooks.example.org" "the issuer that people log in with, whose tokens the API server also accepts" }}.
{{- end }}
{{- end }}
{{- if not $values.teams }}
notebooks.enabled is true and notebooks.teams is empty, so nobody could have a notebook: list teams of global.contract.teams, or "*" for all.
{{- end }}
{{- /* The chart's own issuer knows the hub by values of its own. */ -}}
{{- $login := dig "login" dict .Values.AsMap }}
{{- if and $login.enabled (not $values.oidc.issuer) $values.url }}
{{- $back := printf "%s/hub/oauth_callback" $values.url }}
{{- if not (has $back (default list $login.notebooks.redirectURIs)) }}
login.notebooks.redirectURIs has no {{ $back }}, so the issuer would not redirect to the hub at notebooks.url: add it.
{{- end }}
{{- $space := include "trainyard.notebookNamespace" . }}
{{- if and (ne $login.notebooks.namespace $space) (eq $values.oidc.secret "trainyard-notebooks-oidc") }}
login.notebooks.namespace is {{ $login.notebooks.namespace | quote }}, but the hub expects its secret in {{ $space }}: write {{ $space }}.
{{- end }}
{{- end }}
{{- $o := $values.oidc }}{{ $known := $c.login }}
{{- if and $o.issuer (eq $o.issuer $known.issuer) (ne (list $o.usernamePrefix $o.usernameClaim $o.groupsPrefix $o.groupsClaim | join " ") (list $known.prefix $known.userClaim $known.prefix $known.groupsClaim | join " ")) }}
notebooks.oidc names the issuer of global.contract.login with other claims or prefixes than the API server's, so the hub could not find a person's teams: leave notebooks.oidc.issuer empty.
{{- end }}
{{- if and $values.service.nodePort (ne $values.service.type "NodePort") }}
notebooks.service.nodePort is {{ $values.service.nodePort }} and notebooks.service.type {{ $values.service.type }}: set the type to NodePort, or remove nodePort.
{{- end }}
{{- range $values.teams }}
{{- if and (ne . "*") (not (has . $names)) }}
notebooks.teams has {{ . | quote }}, which is not among global.contract.teams ({{ join ", " $names | default "there are none" }}); name one of them, or "*" for all.
{{- end }}
{{- end }}
{{- $classes := list -}}{{- range $c.priorityClasses }}{{ $classes = append $classes .name }}{{ end }}
{{- if and $values.priorityClass (not (has $values.priorityClass $classes)) }}
notebooks.priorityClass is {{ $values.priorityClass | quote }}, which is not among global.contract.priorityClasses ({{ join ", " $classes }}); name one of them.
{{- end }}
{{- $seen := list }}
{{- range $values.profiles }}
{{- if has .name $seen }}
notebooks.profiles has {{ .name | quote }} twice; give each its own name.
{{- end }}
{{- $seen = append $seen .name }}
{{- if and .gpus (not .deadlineSeconds) }}
notebooks.profiles: {{ .name | quote }} has GPUs but no deadlineSeconds, and would hold them forever; set it to at most policies.maxDeadlineSeconds, {{ $root.Values.policies.maxDeadlineSeconds | int64 }}.
{{- else if gt (int64 (default 0 .deadlineSeconds)) (int64 $root.Values.policies.maxDeadlineSeconds) }}
notebooks.profiles: {{ .name | quote }} has deadlineSeconds {{ .deadlineSeconds | int64 }}, more than policies.maxDeadlineSeconds, {{ $root.Values.policies.maxDeadlineSeconds | int64 }}; lower it.
{{- end }}
{{- if and .gpus (not $values.priorityClass) }}
notebooks.priorityClass is empty and the profile {{ .name | quote }} has GPUs: set a class, ideally the lowest, so that jobs go first.
{{- end }}
{{- end }}
{{- range $team := $teams }}
{{- if or (has "*" $values.teams) (has .name $values.teams) }}
{{- if and $values.priorityClass (not (has $values.priorityClass .priorityClasses)) }}
notebooks.priorityClass is {{ $values.priorityClass | quote }}, which team {{ .name | quote }} may not use ({{ join ", " .priorityClasses }}); add it to the team's priorityClasses, or name another.
{{- end }}
{{- if and $values.home.size (gt (include "trainyard.quantity" $values.home.size | float64) (include "trainyard.quantity" .storage.maxClaim | float64)) }}
notebooks.home.size is {{ $values.home.size }}, more than team {{ .name | quote }} may claim, storage.maxClaim {{ .storage.maxClaim }}; lower one or raise the other.
{{- end }}
{{- end }}
{{- end }}
{{- if not $root.Values.nfs.enabled }}
{{- range $key := list "workspace" "shared" }}
{{- if eq (get $values $key) $key }}
nfs.enabled is false, so teams have no claim {{ $key | quote }}: set notebooks.{{ $key }} to a claim of yours, or leave it empty.
{{- end }}
{{- end }}
{{- if and $values.home.size (not $values.home.class) }}
nfs.enabled is false, so class {{ $c.storage.sharedClass | quote }} does not exist: set notebooks.home.class to a class with ReadWriteMany, or leave notebooks.home.size empty.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
