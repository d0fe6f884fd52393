{{/*
The object store: its address, its certificate, and the environment of pods that use it.
*/}}

{{/* URL of the object store. */}}
{{- define "trainyard.s3Endpoint" -}}
{{- $s3 := .Values.global.contract.storage.s3 -}}
{{- if eq $s3.mode "external" -}}{{ $s3.endpoint }}
{{- else -}}http{{ if include "trainyard.s3TLS" . }}s{{ end }}://{{ .Release.Name }}-minio.{{ .Release.Namespace }}.svc:9000
{{- end -}}
{{- end }}

{{/* Not empty when MinIO speaks https, which is the default of its chart; without that chart's values that counts. */}}
{{- define "trainyard.s3TLS" -}}
{{- if dig "enabled" true (default dict .Values.minio.tls) }}yes{{ end -}}
{{- end }}

{{/* Name of the Secret with MinIO's certificate: tls.crt, tls.key, ca.crt. */}}
{{- define "trainyard.s3CertificateSecret" -}}
{{ dig "secret" "" (default dict .Values.minio.tls) | default (printf "%s-minio-tls" .Release.Name) }}
{{- end }}

{{/*
MinIO's certificate as JSON: what the Secret in the cluster holds, or a new one. Every template of one rendering gets the
same; it is kept with the release's values meanwhile. A Secret of the site's own that can't be read here gives {}.
*/}}
{{- define "trainyard.s3Certificate" -}}
{{- if not (hasKey .Release "trainyardS3Certificate") -}}
{{- $secret := include "trainyard.s3CertificateSecret" . -}}
{{- $data := include "trainyard.secretData" (list . $secret) | fromJson -}}
{{- if and (not $data) (not (dig "secret" "" (default dict .Values.minio.tls))) -}}
{{- $service := printf "%s-minio" .Release.Name -}}
{{- $names := list "localhost" $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- $authority := printf "%s-minio-ca" .Release.Name -}}
{{- $data = include "trainyard.newCertificate" (list $authority $service (list "127.0.0.1") $names) | fromJson -}}
{{- end -}}
{{- $_ := set .Release "trainyardS3Certificate" $data -}}
{{- end -}}
{{- toJson .Release.trainyardS3Certificate -}}
{{- end }}

{{/* The authority that signed the certificate of our own store, as PEM; empty without TLS and for an external store. */}}
{{- define "trainyard.s3CA" -}}
{{- if and (eq .Values.global.contract.storage.s3.mode "inCluster") (include "trainyard.s3TLS" .) -}}
{{- get (include "trainyard.s3Certificate" . | fromJson) "ca.crt" -}}
{{- end -}}
{{- end }}

{{/*
Environment of a pod that uses a store with the keys of a Secret: (list context "trainyard-s3" "S3"), in S3_…. A fourth
item: the Secret that has the authority.
*/}}
{{- define "trainyard.s3EnvFrom" -}}
{{- $secret := index . 1 -}}{{- $prefix := index . 2 -}}{{- $authority := $secret -}}
{{- if gt (len .) 3 }}{{ $authority = index . 3 }}{{ end -}}
{{- range $env, $key := dict "ENDPOINT" "endpoint" "ACCESS_KEY" "access-key" "SECRET_KEY" "secret-key" "REGION" "region" -}}
- name: {{ $prefix }}_{{ $env }}
  valueFrom: {secretKeyRef: {name: {{ $secret | quote }}, key: {{ $key }}}}
{{ end -}}
- name: {{ $prefix }}_CA
  valueFrom: {secretKeyRef: {name: {{ $authority | quote }}, key: ca.crt, optional: true}}
{{- end }}

{{/* Environment with the platform's own access to the object store. MinIO's authority is the one that it serves with. */}}
{{- define "trainyard.s3Env" -}}
{{- $s3 := .Values.global.contract.storage.s3 -}}
{{- $authority := $s3.secret -}}
{{- if and (eq $s3.mode "inCluster") (include "trainyard.s3TLS" .) }}{{ $authority = include "trainyard.s3CertificateSecret" . }}{{ end -}}
{{- include "trainyard.s3EnvFrom" (list . $s3.secret "S3" $authority) }}
{{- end }}

{{/* A Secret with a user's keys of the store, made once and found again by an upgrade: (list context name). */}}
{{- define "trainyard.s3Key" -}}
{{- $root := index . 0 -}}
{{- $held := include "trainyard.secretData" . | fromJson -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ index . 1 }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels: {{- include "trainyard.labels" $root | nindent 4 }}
type: Opaque
stringData:
  endpoint: {{ include "trainyard.s3Endpoint" $root | quote }}
  region: {{ $root.Values.global.contract.storage.s3.region | quote }}
  access-key: {{ get $held "access-key" | default (randAlphaNum 20 | upper) | quote }}
  secret-key: {{ get $held "secret-key" | default (randAlphaNum 40) | quote }}
  {{- with include "trainyard.s3CA" $root }}
  ca.crt: {{ . | quote }}
  {{- end }}
{{- end }}

{{/* Not empty where the setup job makes the store's users, and their keys. */}}
{{- define "trainyard.s3Administered" -}}
{{- $s3 := .Values.global.contract.storage.s3 -}}
{{- if or (eq $s3.mode "inCluster") (eq $s3.users "rgw") }}yes{{ end -}}
{{- end }}

{{/* Environment with the keys that administer the store: MinIO's root, or those of an external store's own Secret. */}}
{{- define "trainyard.s3AdminEnv" -}}
{{- $s3 := .Values.global.contract.storage.s3 -}}
{{- include "trainyard.s3RootEnv" . -}}
{{- if and (eq $s3.mode "external") (eq $s3.users "rgw") -}}
{{- include "trainyard.s3EnvFrom" (list . $s3.adminSecret "ADMIN") -}}
{{- end -}}
{{- end }}

{{/*
Since when and until when (seconds since 1970) MinIO also answers without TLS, as JSON: from the upgrade that switches TLS
on to the end of the longest job. The job of s3-keys.yaml ends it when no pod is left that needs it.
*/}}
{{- define "trainyard.s3Transition" -}}
{{- $found := dict "since" "0" "until" "0" -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace .Values.global.contract.storage.s3.secret -}}
{{- $endpoint := dig "data" "endpoint" "" (default dict $secret) | b64dec -}}
{{- $held := dig "data" dict (default dict (lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-minio-transition" .Release.Name))) -}}
{{- if hasPrefix "http://" $endpoint -}}
{{- $now := now | unixEpoch | int64 -}}
{{- $found = dict "since" (toString $now) "until" (add $now (int64 .Values.policies.maxDeadlineSeconds) | toString) -}}
{{- else if and (hasKey $held "since") (hasKey $held "until") -}}
{{- $found = $held -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* Environment with MinIO's root user; nothing for an external store. */}}
{{- define "trainyard.s3RootEnv" -}}
{{- if eq .Values.global.contract.storage.s3.mode "inCluster" -}}
- name: MINIO_ROOT_USER
  valueFrom: {secretKeyRef: {name: {{ .Release.Name }}-minio-root, key: root-user}}
- name: MINIO_ROOT_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .Release.Name }}-minio-root, key: root-password}}
{{- end }}
{{- end }}
