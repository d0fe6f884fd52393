{{/* What the schema can't say of the values, one sentence a line. */}}
{{- define "server.faults" -}}
{{- $m := .Values.model -}}{{- $a := .Values.access -}}{{- $s := .Values.autoscaling -}}{{- $c := .Values.canary -}}
{{- if not $m.name }}
model.name is empty: set the model's name.
{{- end }}
{{- if not $m.version }}
model.version is empty: set the version to serve.
{{- end }}
{{- range $which, $source := dict "model" $m.source "canary" $c.source }}
{{- if or (eq $which "model") $c.version }}
{{- if and $source.bucket $source.claim }}
{{ $which }}.source has a bucket and a claim: remove one of them.
{{- else if not (or $source.bucket $source.claim) }}
{{ $which }}.source has neither bucket nor claim: set one of them.
{{- else if and $source.claim (not $source.path) }}
{{ $which }}.source.claim needs {{ $which }}.source.path: name the version's folder on the claim.
{{- end }}
{{- end }}
{{- end }}
{{- if not .Values.image.reference }}
image.reference is empty: set the server's image.
{{- end }}
{{- if not .Values.fetch.image }}
fetch.image is empty: set the platform's image, which fetches the model.
{{- end }}
{{- if not (dig "limits" "memory" "" .Values.resources) }}
resources has no limits.memory: set it, e.g. to 1Gi.
{{- end }}
{{- if and (ne .Values.runtime "model-server") (not (include "server.gpus" .)) }}
runtime is {{ .Values.runtime }}, which needs GPUs, but resources.limits has none: add one, such as nvidia.com/gpu: 1.
{{- end }}
{{- if and (include "server.gpus" .) (not (and .Values.schedulerName .Values.queue)) }}
resources.limits names a GPU: set schedulerName and queue, since queues allocate GPUs.
{{- end }}
{{- if and (eq .Values.runtime "model-server") .Values.server.args }}
server.args is for triton and vllm only: use server.env for the platform's own server.
{{- end }}
{{- range $name, $_ := .Values.server.env }}
{{- if has $name (list "MODEL_DIR" "MODEL_NAME" "MODEL_VERSION" "KEYS_FILE" "MAX_BATCH" "BATCH_WAIT_MS" "DRAIN_S" "GRACE_S" "PORT" "ADMIN_PORT" "HOST") }}
server.env sets {{ $name }}, which the platform sets: remove it.
{{- end }}
{{- end }}
{{- if eq $a.from "outside" }}
{{- if not $a.keys }}
access.from is outside and access.keys is empty: anyone who finds the address could use it. Add the SHA-256 of a key; `trainyard serve --key` makes one.
{{- end }}
{{- if ne .Values.runtime "model-server" }}
access.from is outside and {{ .Values.runtime }} does not check keys by their digest: set access.from to team or namespaces, and check keys in front of the server.
{{- end }}
{{- if and (has $a.by (list "ingress" "gateway")) (not $a.host) }}
access.by is {{ $a.by }}: set access.host to the public host name.
{{- end }}
{{- if and (eq $a.by "gateway") (not $a.gateway.name) }}
access.by is gateway: set access.gateway.name to the Gateway that the route belongs to.
{{- end }}
{{- if and $a.nodePort (ne $a.by "nodePort") }}
access.nodePort is {{ $a.nodePort }} and access.by is {{ $a.by }}: remove the port, or set access.by to nodePort.
{{- end }}
{{- if .Values.inferenceService.enabled }}
access.from is outside and inferenceService is enabled: KServe's route bypasses the Service that checks keys. Set access.from to namespaces, and include that of KServe's gateway.
{{- end }}
{{- else if and $a.keys (ne .Values.runtime "model-server") }}
access.keys is set and {{ .Values.runtime }} does not check keys by their digest: remove them.
{{- end }}
{{- if ne $s.by "none" }}
{{- if gt (int $s.min) (int $s.max) }}
autoscaling.min is {{ $s.min }} and autoscaling.max {{ $s.max }}: min must not exceed max.
{{- end }}
{{- if and (eq $s.by "cpu") (not (dig "requests" "cpu" "" .Values.resources)) }}
autoscaling.by is cpu and resources has no requests.cpu, which utilization refers to: set it.
{{- end }}
{{- if and (eq (int $s.min) 0) (not .Values.inferenceService.enabled) (or (eq $s.by "cpu") (ne $s.source "keda-http")) }}
autoscaling.min is 0, and nothing would hold a request until a pod is ready: set it to 1, or autoscaling.by to requests or concurrency and autoscaling.source to keda-http.
{{- end }}
{{- if and (ne $s.by "cpu") (eq $s.source "keda") (not $s.prometheus) }}
autoscaling.source is keda: set autoscaling.prometheus to the Prometheus to query, such as http://trainyard-prometheus.trainyard-system.svc:9090.
{{- end }}
{{- if and (ne $s.by "cpu") (eq $s.source "keda-http") (not $a.host) (not .Values.inferenceService.enabled) }}
autoscaling.source is keda-http: set access.host to the host name of requests for this model.
{{- end }}
{{- else if and (eq (int .Values.replicas) 0) }}
replicas is 0 and autoscaling is off: set replicas to 1 or more; `trainyard serve stop` takes the model out of service.
{{- end }}
{{- if $c.version }}
{{- if eq $c.version $m.version }}
canary.version is {{ $c.version }}, which is already served: set another version, or none.
{{- end }}
{{- if .Values.inferenceService.enabled }}
canary.version is set and inferenceService is enabled: KServe shifts traffic by itself, so remove the canary.
{{- end }}
{{- if and (eq $s.by "none") (lt (int .Values.replicas) 2) }}
canary.version is set and replicas is {{ .Values.replicas }}: set replicas to 2 or more, so that both versions have one.
{{- end }}
{{- end }}
{{- end }}

{{/* Refuses values that don't fit together, all of them in one message. */}}
{{- define "server.validate" -}}
{{- $faults := list -}}
{{- range splitList "\n" (include "server.faults" .) }}{{ with trim . }}{{ $faults = append $faults . }}{{ end }}{{ end -}}
{{- if $faults }}{{ fail (printf "\n\nThe values don't fit together:\n  - %s\n" (join "\n  - " $faults)) }}{{ end -}}
{{- end }}
