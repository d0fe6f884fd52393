{{/* Labels of everything that the umbrella itself renders. */}}
{{- define "trainyard.labels" -}}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: trainyard-{{ .Chart.Version }}
{{- end }}

{{/* Security settings of our pods and containers, as Pod Security's level "restricted" asks. */}}
{{- define "trainyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "trainyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
