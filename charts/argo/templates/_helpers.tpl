{{- define "argo.labels" -}}
app.kubernetes.io/name: workflow-controller
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}
{{- define "argo.name" -}}
{{ .Release.Name }}-workflow-controller
{{- end }}
{{/* Deployment and account of a team's own controller: (list context team). Rules know the account by this name, see
     trainyard.policyParameters. */}}
{{- define "argo.teamName" -}}
{{ include "argo.name" (index . 0) }}-{{ (index . 1).name }}
{{- end }}
{{/* By which a team's controller is told from the others': (list context team). */}}
{{- define "argo.selector" -}}
app.kubernetes.io/name: workflow-controller
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
trainyard.io/serves: {{ (index . 1).name | quote }}
{{- end }}
{{/*
The configuration of all controllers. What a workflow leaves out comes from here: the scheduler, a closed security context, and
the label by which pods reach the API server, where the executor notes a step's results. It is no rule: a workflow's own
value wins, and admission looks at each pod.
*/}}
{{- define "argo.config" -}}
metricsConfig: {enabled: true, path: /metrics, port: 9090, secure: false}
# One event a workflow, not one a step.
nodeEvents: {enabled: false}
{{- with .Values.workflowsPerTeam }}
namespaceParallelism: {{ . }}
{{- end }}
executor:
  securityContext: &closed
    runAsNonRoot: true
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  {{- with .Values.executor.resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  env:
    # These containers are beside the step's own, on a node with GPUs as well; none is for them.
    - {name: NVIDIA_VISIBLE_DEVICES, value: void}
    # Evenly spaced, each time after three to four and a half seconds.
    - {name: EXECUTOR_RETRY_BACKOFF_DURATION, value: 3s}
    - {name: EXECUTOR_RETRY_BACKOFF_FACTOR, value: "1.0"}
    - {name: EXECUTOR_RETRY_BACKOFF_STEPS, value: {{ add1 (div (int64 .Values.executor.storeOutageSeconds) 3) | quote }}}
    # What else a store says that is about to come back: MinIO knows no bucket for a moment after its start.
    - name: TRANSIENT_ERROR_PATTERN
      value: no route to host|no such host|network is unreachable|server misbehaving|not initialized|XMinio|SlowDown|try again|specified bucket does not exist
mainContainer:
  securityContext: *closed
workflowDefaults:
  spec:
    schedulerName: {{ .Values.global.contract.scheduler.name | quote }}
    securityContext:
      runAsNonRoot: true
      runAsUser: 1000
      runAsGroup: 1000
      seccompProfile: {type: RuntimeDefault}
    podMetadata:
      labels: {trainyard.io/api-access: "true"}
{{- end }}
