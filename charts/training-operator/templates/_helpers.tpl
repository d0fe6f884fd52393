{{- define "training-operator.labels" -}}
app.kubernetes.io/name: training-operator
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}
{{- define "training-operator.name" -}}
{{ .Release.Name }}-training-operator
{{- end }}
{{- define "training-operator.selector" -}}
app.kubernetes.io/name: training-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
{{- define "training-operator.platformImage" -}}
{{ include "trainyard.image" (list . "platform") }}
{{- end }}
