{{- define "training-operator.labels" -}}
app.kubernetes.io/name: training-operator
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "training-operator.name" -}}
{{ .Release.Name }}-training-operator
{{- end }}
{{- define "training-operator.selector" -}}
app.kubernetes.io/name: training-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "training-operator.platformImage" -}}
{{ include "trainyard.image" (list . "platform") }}
{{- end }}
