{{/* Labels of everything that the umbrella itself renders. */}}
{{- define "trainyard.labels" -}}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: trainyard-{{ .Chart.Version }}
{{- end }}

{{/* The first pool of kind gpu, as JSON ({} when there is none). */}}
{{- define "trainyard.gpuPool" -}}
{{- $found := dict -}}
{{- range .Values.global.contract.nodePools -}}
{{- if and (eq .kind "gpu") (not $found.name) -}}{{- $found = . -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* Resource name of a GPU. */}}
{{- define "trainyard.gpuResource" -}}
{{- $pool := include "trainyard.gpuPool" . | fromJson -}}
{{- dig "gpu" "resource" "nvidia.com/gpu" $pool -}}
{{- end }}

{{/* URL of the object store. */}}
{{- define "trainyard.s3Endpoint" -}}
{{- $s3 := .Values.global.contract.storage.s3 -}}
{{- if eq $s3.mode "external" -}}{{ $s3.endpoint }}
{{- else -}}http://{{ .Release.Name }}-minio.{{ .Release.Namespace }}.svc:9000
{{- end -}}
{{- end }}

{{/* The tuned scheduler configuration: pack by GPUs, search order by priority, gangs whole or not at all. */}}
{{- define "trainyard.schedulerConfig" -}}
actions: "allocate, backfill"
configurations:
# A node that once refused a pod of a gang is asked again for the gang's next pod: with the cache of refusals, on by
# default, topology spread constraints leave a gang pending that fits.
- name: allocate
  arguments:
    predicateErrorCacheEnable: false
- name: backfill
  arguments:
    predicateErrorCacheEnable: false
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: capacity
  - name: nodeorder
    arguments:
      leastrequested.weight: 0
      balancedresource.weight: 0
      mostrequested.weight: 0
      tainttoleration.weight: 100
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 1
      binpack.memory: 1
      binpack.resources: {{ include "trainyard.gpuResource" . }}
      binpack.resources.{{ include "trainyard.gpuResource" . }}: 10
{{- end }}

{{/* Security settings of our pods and containers, as Pod Security's level "restricted" asks. */}}
{{- define "trainyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "trainyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Environment with the platform's own access to the object store. */}}
{{- define "trainyard.s3Env" -}}
{{- $secret := .Values.global.contract.storage.s3.secret -}}
{{- range $env, $key := dict "S3_ENDPOINT" "endpoint" "S3_ACCESS_KEY" "access-key" "S3_SECRET_KEY" "secret-key" "S3_REGION" "region" }}
- name: {{ $env }}
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $key }}}}
{{- end }}
{{- end }}
