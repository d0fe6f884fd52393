{{/*
The init container that writes how MinIO is asked, where the store is in the cluster: the key that it has never reaches Prometheus,
which gets a token that opens the store's series alone.
*/}}
{{- define "monitoring.storeInit" -}}
{{- if eq .Values.global.contract.storage.s3.mode "inCluster" -}}
initContainers:
  - name: store
    image: {{ include "trainyard.image" (list . "platform") }}
    imagePullPolicy: {{ .Values.exporter.imagePullPolicy }}
    terminationMessagePolicy: FallbackToLogsOnError
    args: [store-metrics, --to, /store]
    env:
      {{- range $variable, $key := dict "ENDPOINT" "endpoint" "ACCESS_KEY" "access-key" "SECRET_KEY" "secret-key" "REGION" "region" "CA" "ca.crt" }}
      - name: METRICS_{{ $variable }}
        valueFrom: {secretKeyRef: {name: {{ include "monitoring.name" (list $ "prometheus-store") }}, key: {{ $key }}, optional: true}}
      {{- end }}
    securityContext: {{- include "monitoring.containerSecurity" . | nindent 6 }}
    resources:
      requests: {cpu: 10m, memory: 32Mi}
      limits: {memory: 128Mi}
    volumeMounts:
      - {name: store, mountPath: /store}
{{- end -}}
{{- end }}
