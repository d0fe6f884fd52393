{{/* Annotations of an object that lives only while a hook runs: (list hook weight). */}}
{{- define "trainyard.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* How an object begins that lives only while a hook runs: (list context hook apiVersion kind); hook has name, on and weight. */}}
{{- define "trainyard.hookObject" -}}
{{- $root := index . 0 -}}{{- $hook := index . 1 -}}
apiVersion: {{ index . 2 }}
kind: {{ index . 3 }}
metadata:
  name: {{ $hook.name | quote }}
  {{- if not (hasPrefix "Cluster" (index . 3)) }}
  namespace: {{ $root.Release.Namespace | quote }}
  {{- end }}
  labels: {{- include "trainyard.labels" $root | nindent 4 }}
  annotations: {{- include "trainyard.hook" (list $hook.on $hook.weight) | nindent 4 }}
{{- end }}

{{/* The account of a hook: (list context hook). */}}
{{- define "trainyard.hookAccount" -}}
{{ include "trainyard.hookObject" (list (index . 0) (index . 1) "v1" "ServiceAccount") }}
automountServiceAccountToken: false
{{- end }}

{{/* Gives the account of a hook the role of its name: (list context hook kind), of kind Role or ClusterRole. */}}
{{- define "trainyard.hookBinding" -}}
{{- $kind := index . 2 -}}{{- $name := (index . 1).name | quote -}}
{{ include "trainyard.hookObject" (list (index . 0) (index . 1) "rbac.authorization.k8s.io/v1" (printf "%sBinding" $kind)) }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ (index . 0).Release.Namespace | quote }}
{{- end }}

{{/* The job of a hook up to its container's arguments: (list context hook app weight retries). */}}
{{- define "trainyard.hookJob" -}}
{{- $root := index . 0 -}}{{- $hook := index . 1 -}}{{- $app := index . 2 -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $hook.name | quote }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels:
    {{- include "trainyard.labels" $root | nindent 4 }}
    app.kubernetes.io/name: {{ $app }}
  annotations:
    {{- include "trainyard.hook" (list $hook.on (index . 3)) | nindent 4 }}
    helm.sh/hook-output-log-policy: hook-succeeded,hook-failed
spec:
  backoffLimit: {{ index . 4 }}
  activeDeadlineSeconds: {{ add $root.Values.setup.timeoutSeconds 30 }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ $app }}
        app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
        app.kubernetes.io/part-of: trainyard
    spec:
      {{- include "trainyard.hookPod" (list $root $hook.name) | nindent 6 }}
      containers:
        - name: {{ $app }}
          {{- include "trainyard.hookContainer" $root | nindent 10 }}
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
