{{/* Name of a part's objects: (list context "prometheus"). */}}
{{- define "monitoring.name" -}}
{{ (index . 0).Release.Name }}-{{ index . 1 }}
{{- end }}
{{- define "monitoring.selector" -}}
app.kubernetes.io/name: {{ index . 1 | quote }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
{{- end }}
{{- define "monitoring.labels" -}}
{{ include "monitoring.selector" . }}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service | quote }}
{{- end }}

{{/* Image of a part out of its block of values: (list context values). */}}
{{- define "monitoring.image" -}}
{{- $image := (index . 1).image -}}
image: {{ include "trainyard.pulled" (list (index . 0) (printf "%s/%s:%s" $image.registry $image.repository $image.tag)) }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{/* What the pods of all parts share, placement aside: (list context "account", or "" for a pod without an account). */}}
{{- define "monitoring.pod" -}}
{{- $root := index . 0 -}}
priorityClassName: {{ $root.Values.global.contract.platformPriorityClass.name | quote }}
{{- with index . 1 }}
serviceAccountName: {{ . | quote }}
{{- end }}
automountServiceAccountToken: {{ not (empty (index . 1)) }}
enableServiceLinks: false
{{- with $root.Values.global.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "monitoring.placement" -}}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- define "monitoring.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Not empty when the server of this name is ours to run. */}}
{{- define "monitoring.runs.prometheus" -}}
{{- if and .Values.prometheus.enabled (not .Values.operator.enabled) }}yes{{ end -}}
{{- end }}
{{- define "monitoring.runs.alertmanager" -}}
{{- if and .Values.alertmanager.enabled (include "monitoring.runs.prometheus" .) }}yes{{ end -}}
{{- end }}
{{- define "monitoring.runs.kube-state-metrics" -}}
{{- if .Values.kubeStateMetrics.enabled }}yes{{ end -}}
{{- end }}
{{- define "monitoring.runs.node-exporter" -}}
{{- if .Values.nodeExporter.enabled }}yes{{ end -}}
{{- end }}
{{- define "monitoring.runs.exporter" -}}yes{{- end }}
{{- define "monitoring.runs.dcgm" -}}
{{- if .Values.mockGpus.enabled }}yes{{ end -}}
{{- end }}

{{/*
Endpoints of all components as a JSON list, as charts/<name>/component.yaml have them, of our own parts those that run; and the site's DCGM
exporter, which is in another namespace and of whose series some are taken.
*/}}
{{- define "monitoring.endpoints" -}}
{{- $found := list -}}
{{- range .Files.Get "files/endpoints.json" | default "[]" | fromJsonArray -}}
{{- if or (ne .component "monitoring") (include (printf "monitoring.runs.%s" .name) $) }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- with .Values.dcgm -}}
{{- if .namespace -}}
{{- $pods := .podLabels | default (dict "app" "nvidia-dcgm-exporter") -}}
{{- $found = append $found (dict "name" "dcgm" "pods" $pods "port" .port "path" "/metrics" "scheme" "http" "honor" true
      "labels" dict "namespace" .namespace "series" "DCGM_FI_.*") -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* Bytes that series may take. */}}
{{- define "monitoring.retentionBytes" -}}
{{- $p := .Values.prometheus -}}
{{- if $p.retentionSize }}{{ include "trainyard.quantity" $p.retentionSize }}
{{- else }}{{ mulf (include "trainyard.quantity" $p.storage.size) 0.8 | int64 }}{{ end -}}
{{- end }}

{{/* The rules as the site's values make them: a JSON object of file name and text. */}}
{{- define "monitoring.rules" -}}
{{- $found := dict -}}
{{- range $path, $_ := .Files.Glob "files/rules/*.yaml" -}}
{{- $_ := set $found (base $path) (include "monitoring.rulesFile" (dict "root" $ "file" $path)) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* The volume claim of a server: (list context name storage). */}}
{{- define "monitoring.claim" -}}
# Uninstalling keeps the data.
persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
volumeClaimTemplates:
  - metadata:
      name: data
      labels: {{- include "monitoring.selector" (list (index . 0) (index . 1)) | nindent 8 }}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with (index . 2).class }}
      storageClassName: {{ . | quote }}
      {{- end }}
      resources:
        requests: {storage: {{ (index . 2).size }}}
{{- end }}
