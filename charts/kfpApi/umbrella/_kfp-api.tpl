{{/* What the contract says of the service behind kfp.Client, as JSON: its URL, and its address in the cluster; empty where it is off. */}}
{{- define "trainyard.kfpApi" -}}
{{- with .Values.kfpApi -}}
{{- if .enabled }}{{ dict "url" .url "service" (printf "http://%s-kfp-api.%s.svc:8888" $.Release.Name $.Release.Namespace) | toJson }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Environment of the setup job with the key that the service reads the store with; nothing where it makes no users. */}}
{{- define "trainyard.kfpApiEnv" -}}
{{- if and (include "trainyard.kfpApi" .) (include "trainyard.s3Administered" .) -}}
{{- include "trainyard.s3EnvFrom" (list . "trainyard-kfp-s3" "KFP") }}
{{- end -}}
{{- end }}

{{/* Validation errors of the service, one a line. */}}
{{- define "trainyard.validate.kfpApi" -}}
{{- if include "trainyard.kfpApi" . }}
{{- $values := .Values.kfpApi }}
{{- $c := .Values.global.contract }}
{{- $isCluster := lookup "v1" "Namespace" "" "kube-system" }}
{{- if and $values.service.nodePort (ne $values.service.type "NodePort") }}
kfpApi.service.nodePort is {{ $values.service.nodePort }} and kfpApi.service.type {{ $values.service.type }}: set the type to NodePort, or remove nodePort.
{{- end }}
{{- if and $values.ingress.enabled (not $values.url) }}
kfpApi.ingress.enabled is true and kfpApi.url is empty: write the URL, e.g. https://runs.example.org.
{{- end }}
{{- if and (eq $c.storage.s3.mode "external") (not $c.network.s3) }}
kfpApi.enabled is true and the store is external: name its addresses in global.contract.network.s3, or the service's network policy blocks them.
{{- end }}
{{- if and (not (include "trainyard.s3Administered" .)) $isCluster (not (lookup "v1" "Secret" .Release.Namespace "trainyard-kfp-s3")) }}
kfpApi.enabled is true and you create the store's users: create the Secret trainyard-kfp-s3 in namespace {{ .Release.Namespace }} with endpoint, region, access-key and secret-key of a user that may read {{ $c.pipelines.bucket }}/*/pipelines/*.
{{- end }}
{{- end }}
{{- end }}
