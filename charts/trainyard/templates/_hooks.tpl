{{/* Annotations of an object that lives only while a hook runs: (list hook weight). */}}
{{- define "trainyard.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* What the pods of hook jobs share: (list context serviceAccount). */}}
{{- define "trainyard.hookPod" -}}
{{- $root := index . 0 -}}
serviceAccountName: {{ index . 1 | quote }}
automountServiceAccountToken: true
restartPolicy: Never
{{- with $root.Values.platform.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.global.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- include "trainyard.podSecurity" $root | nindent 2 }}
{{- end }}

{{/* What their containers share: the platform image, closed down. */}}
{{- define "trainyard.hookContainer" -}}
image: {{ include "trainyard.image" (list . "platform") }}
imagePullPolicy: {{ .Values.platform.imagePullPolicy }}
terminationMessagePolicy: FallbackToLogsOnError
securityContext: {{- include "trainyard.containerSecurity" . | nindent 2 }}
resources: {{- toYaml .Values.setup.resources | nindent 2 }}
{{- end }}
