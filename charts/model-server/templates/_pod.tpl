{{/*
Spec of a pod that serves one version: (list context version). version has version, source, digest and image. The model is brought by
an init container, which compares its digest; the server then only reads it.
*/}}
{{- define "server.pod" -}}
{{- $root := index . 0 -}}{{- $v := $root.Values -}}{{- $of := index . 1 -}}
{{- $into := eq $v.runtime "triton" | ternary (printf "/model/%s" $v.model.name) "/model" -}}
automountServiceAccountToken: false
serviceAccountName: {{ $v.serviceAccountName | quote }}
enableServiceLinks: false
{{- with $v.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $v.schedulerName }}
schedulerName: {{ . | quote }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
# Replicas apart, where there is room.
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {trainyard.io/model: {{ $v.model.name | quote }}}
terminationGracePeriodSeconds: {{ add $v.rollout.preStopSeconds $v.rollout.drainSeconds 10 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
initContainers:
  - name: model
    image: {{ $v.fetch.image | quote }}
    imagePullPolicy: {{ $v.image.pullPolicy }}
    args:
      - model
      {{- if $of.source.bucket }}
      - --from=s3://{{ $of.source.bucket }}
      {{- else }}
      - --from=/claim/{{ $of.source.path }}
      {{- end }}
      - --into={{ $into }}
      - --name={{ $v.model.name }}
      - --version={{ $of.version }}
      {{- with $of.digest }}
      - --digest={{ . }}
      {{- end }}
    env:
      - {name: HOME, value: /tmp}
      - {name: NVIDIA_VISIBLE_DEVICES, value: void}
      {{- if $of.source.bucket }}
      {{- range $name, $key := dict "S3_ENDPOINT" "endpoint" "S3_ACCESS_KEY" "access-key" "S3_SECRET_KEY" "secret-key" }}
      - name: {{ $name }}
        valueFrom: {secretKeyRef: {name: {{ $v.storeSecret }}, key: {{ $key }}}}
      {{- end }}
      {{- range $name, $key := dict "S3_REGION" "region" "S3_CA" "ca.crt" }}
      - name: {{ $name }}
        valueFrom: {secretKeyRef: {name: {{ $v.storeSecret }}, key: {{ $key }}, optional: true}}
      {{- end }}
      {{- end }}
    resources:
      requests: {cpu: 20m, memory: 64Mi}
      limits: {memory: 256Mi}
    securityContext: &closed
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: model, mountPath: /model}
      - {name: tmp, mountPath: /tmp}
      {{- if $of.source.claim }}
      - {name: claim, mountPath: /claim, readOnly: true}
      {{- end }}
containers:
  - name: server
    image: {{ $of.image | default $v.image.reference | quote }}
    imagePullPolicy: {{ $v.image.pullPolicy }}
    {{- include (printf "server.runtime.%s" $v.runtime) (list $root $of) | nindent 4 }}
    resources: {{- toYaml $v.resources | nindent 6 }}
    securityContext: *closed
    # Nothing is sent here any more when the signal comes: nodes have heard by then that the pod is going.
    lifecycle:
      preStop:
        sleep: {seconds: {{ $v.rollout.preStopSeconds }}}
    volumeMounts:
      - {name: model, mountPath: /model, readOnly: true}
      - {name: tmp, mountPath: /tmp}
      {{- if $v.access.keys }}
      - {name: keys, mountPath: /etc/model-server, readOnly: true}
      {{- end }}
volumes:
  - name: model
    emptyDir: {}
  - name: tmp
    emptyDir: {}
  {{- if $of.source.claim }}
  - name: claim
    persistentVolumeClaim: {claimName: {{ $of.source.claim | quote }}, readOnly: true}
  {{- end }}
  {{- if $v.access.keys }}
  - name: keys
    configMap: {name: {{ include "server.name" $root }}-keys}
  {{- end }}
{{- end }}

{{/* Labels and annotations of such a pod: (list context version track). */}}
{{- define "server.podMeta" -}}
{{- $root := index . 0 -}}{{- $v := $root.Values -}}{{- $of := index . 1 -}}
labels:
  {{- include "server.labels" $root | nindent 2 }}
  trainyard.io/track: {{ index . 2 }}
  trainyard.io/access: {{ $v.access.from }}
annotations:
  trainyard.io/model-version: {{ $of.version | quote }}
  trainyard.io/model-digest: {{ $of.digest | quote }}
  trainyard.io/model-source: {{ not $of.source.bucket | ternary (printf "%s:%s" (default "" $of.source.claim) (default "" $of.source.path)) (printf "s3://%s" (default "" $of.source.bucket)) | quote }}
  prometheus.io/scrape: "true"
  prometheus.io/port: {{ eq $v.runtime "vllm" | ternary "8080" "8081" | quote }}
  {{- with $v.queue }}
  scheduling.volcano.sh/queue-name: {{ . | quote }}
  {{- end }}
{{- end }}
