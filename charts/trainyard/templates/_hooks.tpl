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

{{/* "true" where the cluster has a CRD as this release packages it and nobody has changed it since: (the CRD).
     Without a cluster, as under `helm template`, it never is. */}}
{{- define "trainyard.crdIsCurrent" -}}
{{- $held := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .metadata.name -}}
{{- $notes := dig "metadata" "annotations" (dict) $held -}}
{{- $digest := index .metadata.annotations "trainyard.io/crd-digest" -}}
{{- $generation := dig "trainyard.io/crd-generation" "1" $notes -}}
{{- if and (eq (dig "trainyard.io/crd-digest" "" $notes) $digest) (eq (int (dig "metadata" "generation" 0 $held)) (int $generation)) -}}
true
{{- end -}}
{{- end }}
