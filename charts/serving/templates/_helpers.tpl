{{- define "serving.labels" -}}
app.kubernetes.io/name: serving
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: serving-{{ .Chart.Version }}
{{- end }}

{{/* What servers consist of beside pods, Services and ConfigMaps, as RBAC rules: (list verbs). The last four are there where a site has them. */}}
{{- define "serving.rules" -}}
{{- $verbs := index . 0 -}}
{{- range $group, $resources := dict
      "apps" (list "deployments") "autoscaling" (list "horizontalpodautoscalers") "policy" (list "poddisruptionbudgets")
      "networking.k8s.io" (list "ingresses") "gateway.networking.k8s.io" (list "httproutes") "keda.sh" (list "scaledobjects")
      "http.keda.sh" (list "httpscaledobjects") "serving.kserve.io" (list "inferenceservices") }}
- apiGroups: [{{ $group }}]
  resources: {{ toJson $resources }}
  verbs: {{ toJson $verbs }}
{{- end }}
{{- end }}
