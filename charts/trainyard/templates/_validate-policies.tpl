{{/* Validation errors among the values of policies, one a line. */}}
{{- define "trainyard.validate.policies" -}}
{{- $p := .Values.policies -}}
{{- range $account := list "default" "training" }}
{{- if has $account $p.tokenServiceAccounts }}
policies.tokenServiceAccounts names {{ $account }}, which all jobs, or all pods without an account, use: create a dedicated account, and name that.
{{- end }}
{{- end }}
{{- $pipelines := .Values.global.contract.pipelines -}}
{{- if has $pipelines.serviceAccount (list "default" "training") }}
global.contract.pipelines.serviceAccount is {{ $pipelines.serviceAccount }}, which all jobs, or all pods without an account, use: create a dedicated account.
{{- end }}
{{- range $rule := $pipelines.objects }}
{{- range $resource := $rule.resources }}
{{- if or (has $resource (list "secrets" "serviceaccounts" "pods" "workflows" "cronworkflows")) (has "rbac.authorization.k8s.io" $rule.apiGroups) }}
global.contract.pipelines.objects names {{ $resource }}, which would give steps permissions beyond their own: remove it.
{{- else if has $resource (list "networkpolicies" "resourcequotas" "limitranges") }}
global.contract.pipelines.objects names {{ $resource }}, which would let steps remove the team's limits: remove it.
{{- else if has "monitoring.coreos.com" $rule.apiGroups }}
global.contract.pipelines.objects names {{ $resource }} of monitoring.coreos.com, which would let steps make Prometheus scrape any target, in any team's name: remove it.
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.argo.enabled }}
{{- $buckets := dict }}{{- range .Values.global.contract.storage.buckets }}{{ $_ := set $buckets .name .teams }}{{ end }}
{{- if ne (get $buckets $pipelines.bucket) "own" }}
global.contract.pipelines.bucket is {{ $pipelines.bucket }}, {{ hasKey $buckets $pipelines.bucket | ternary "where teams may not write" "which is not among global.contract.storage.buckets" }}: name a bucket with teams: own.
{{- end }}
{{- end }}
{{- if and (eq (dig "fill" "mode" "auto" $p) "always") (not (include "trainyard.fills" .)) }}
policies.fill.mode is always, and this cluster ({{ .Capabilities.KubeVersion.Version }}) does not serve MutatingAdmissionPolicy of admissionregistration.k8s.io/v1, new in Kubernetes 1.36: set auto, and have members use trainyard adopt.
{{- end }}
{{- range $name, $image := dig "fill" "images" (dict) $p }}
{{- if and (not (hasKey $.Values.global.contract.images $image)) (not (contains "/" $image)) }}
policies.fill.images: {{ $image }}, the stand-in for {{ $name }}, is not a key of global.contract.images: name one of {{ keys $.Values.global.contract.images | sortAlpha | join ", " }}, or a whole reference.
{{- else if not (hasKey $.Values.global.contract.images $image) }}
{{- $allowed := regexMatch "@sha256:[0-9a-f]{64}$" $image }}
{{- range splitList "," (include "trainyard.policyParameters" $ | fromJson).allowedImages }}{{ if and . (hasPrefix . $image) }}{{ $allowed = true }}{{ end }}{{ end }}
{{- if not $allowed }}
policies.fill.images: {{ $image }}, the stand-in for {{ $name }}, would be refused itself: pin it by digest, or add its folder to policies.allowedImages.
{{- end }}
{{- end }}
{{- end }}
{{- range include "trainyard.teams" . | fromJsonArray }}
{{- $class := dig "fill" "priorityClass" "" . }}
{{- if and $class (not (has $class .priorityClasses)) }}
global.contract.teams: team {{ .name }} would be given priority class {{ $class }} (fill.priorityClass), which is not one of its priorityClasses: name one of {{ join ", " .priorityClasses }}.
{{- end }}
{{- end }}
{{- range $prefix := $p.allowedImages }}
{{- if not (contains "/" (trimSuffix "/" $prefix)) }}
policies.allowedImages: {{ $prefix }} allows every image of a whole registry; name a folder in it, such as {{ $prefix }}team/.
{{- end }}
{{- end }}
{{- end }}
