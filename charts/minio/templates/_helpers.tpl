{{- define "minio.labels" -}}
{{ include "minio.selector" . }}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}
{{- define "minio.selector" -}}
app.kubernetes.io/name: minio
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
{{- /* Not empty when this chart runs the object store. */}}
{{- define "minio.wanted" -}}
{{- if eq .Values.global.contract.storage.s3.mode "inCluster" }}yes{{ end -}}
{{- end }}
{{- /* A value of a Secret that already exists in the cluster, or a new one: (list context secret key fresh). */}}
{{- define "minio.kept" -}}
{{- $root := index . 0 -}}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace (index . 1) -}}
{{- if and $found $found.data (hasKey $found.data (index . 2)) -}}
{{- index $found.data (index . 2) | b64dec -}}
{{- else -}}
{{- index . 3 -}}
{{- end -}}
{{- end }}
