{{/* With StrictFIFO: the gate, the container beside the scheduler that keeps the order of queues; see scripts/trainyard_agent/install/gate.py. */}}
{{- define "trainyard.schedulerGate" -}}
{{- if eq .Values.global.contract.scheduler.queueingStrategy "StrictFIFO" -}}
- name: queue-gate
  image: {{ include "trainyard.image" (list . "platform") }}
  imagePullPolicy: {{ .Values.basic.image_pull_policy }}
  args: [queue-gate, --port=10260]
  terminationMessagePolicy: FallbackToLogsOnError
  securityContext:
    {{- toYaml .Values.custom.scheduler_main_csc | nindent 4 }}
    readOnlyRootFilesystem: true
  resources:
    requests: {cpu: 10m, memory: 24Mi}
    limits: {memory: 128Mi}
{{- end -}}
{{- end }}
