{{/* How each server is started, where it answers, and when it is ready: (list context version). */}}

{{/* Ours: ready once the model is loaded and has answered a request of its own. */}}
{{- define "server.runtime.model-server" -}}
{{- $v := (index . 0).Values -}}{{- $of := index . 1 -}}
env:
  - {name: HOME, value: /tmp}
  - {name: MODEL_DIR, value: /model}
  - {name: MODEL_NAME, value: {{ $v.model.name | quote }}}
  - {name: MODEL_VERSION, value: {{ $of.version | quote }}}
  - {name: MAX_BATCH, value: {{ $v.server.maxBatch | quote }}}
  - {name: BATCH_WAIT_MS, value: {{ $v.server.batchWaitMs | quote }}}
  # Nodes have heard of its end before it does, so it waits no longer than for what it has begun.
  - {name: DRAIN_S, value: "1"}
  - {name: GRACE_S, value: {{ $v.rollout.drainSeconds | quote }}}
  {{- if $v.access.keys }}
  - {name: KEYS_FILE, value: /etc/model-server/keys.json}
  {{- end }}
  {{- include "server.env" (index . 0) | trim | nindent 2 }}
ports:
  - {name: http, containerPort: 8080}
  - {name: status, containerPort: 8081}
{{- include "server.probes" (list "/readyz" "/healthz" "status" $v.rollout.deadlineSeconds) }}
{{- end }}

{{- define "server.runtime.triton" -}}
{{- $v := (index . 0).Values -}}
command: [tritonserver]
args:
  - --model-repository=/model
  - --http-port=8080
  - --metrics-port=8081
  - --allow-grpc=false
  - --strict-readiness=true
  {{- range $v.server.args }}
  - {{ . | quote }}
  {{- end }}
env:
  - {name: HOME, value: /tmp}
  {{- include "server.env" (index . 0) | trim | nindent 2 }}
ports:
  - {name: http, containerPort: 8080}
  - {name: status, containerPort: 8081}
{{- include "server.probes" (list "/v2/health/ready" "/v2/health/live" "http" $v.rollout.deadlineSeconds) }}
{{- end }}

{{- define "server.runtime.vllm" -}}
{{- $v := (index . 0).Values -}}
command: [python3, -m, vllm.entrypoints.openai.api_server]
args:
  - --model=/model
  - --served-model-name={{ $v.model.name }}
  - --host=0.0.0.0
  - --port=8080
  {{- range $v.server.args }}
  - {{ . | quote }}
  {{- end }}
env:
  - {name: HOME, value: /tmp}
  - {name: HF_HUB_OFFLINE, value: "1"}
  {{- include "server.env" (index . 0) | trim | nindent 2 }}
ports:
  - {name: http, containerPort: 8080}
{{- include "server.probes" (list "/health" "/health" "http" $v.rollout.deadlineSeconds) }}
{{- end }}

{{- define "server.env" -}}
{{- if not (include "server.gpus" .) }}
- {name: NVIDIA_VISIBLE_DEVICES, value: void}
{{- end }}
{{- range $name, $value := .Values.server.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{/* (list ready live port seconds): nothing is sent to it before it is warm, and it may take that long once. */}}
{{- define "server.probes" }}
startupProbe:
  httpGet: {path: {{ index . 0 }}, port: {{ index . 2 }}}
  periodSeconds: 2
  failureThreshold: {{ div (index . 3) 2 }}
readinessProbe:
  httpGet: {path: {{ index . 0 }}, port: {{ index . 2 }}}
  periodSeconds: 2
  failureThreshold: 2
livenessProbe:
  httpGet: {path: {{ index . 1 }}, port: {{ index . 2 }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
