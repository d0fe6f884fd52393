{{/* Faults among the values of storage, one a line. */}}
{{- define "trainyard.faults.storage" -}}
{{- $c := .Values.global.contract -}}
{{- if and (eq $c.storage.s3.mode "external") (not $c.storage.s3.endpoint) }}
global.contract.storage.s3.mode is external: set global.contract.storage.s3.endpoint to the store's URL.
{{- end }}
{{- if and (eq $c.storage.s3.mode "inCluster") (not .Values.minio.enabled) }}
global.contract.storage.s3.mode is inCluster, but minio.enabled is false: enable it or set the mode to external.
{{- end }}
{{- if and .Values.nfs.enabled (eq (default "subdir" .Values.nfs.provisioner) "csi") }}
{{- $packaged := .Files.Get "files/packaged.yaml" | fromYaml }}
{{- if and (hasKey $packaged "components") (not (hasKey $packaged.components "csi-driver-nfs")) }}
nfs.provisioner is csi, but this package was made without the csi-driver-nfs chart (its repository did not answer then): set nfs.provisioner to subdir or package again where it answers.
{{- else if not (index .Values "csi-driver-nfs").enabled }}
nfs.provisioner is csi: set csi-driver-nfs.enabled to true.
{{- end }}
{{- end }}
{{- end }}
