{{/* Validation errors among the values of storage, one a line. */}}
{{- define "trainyard.validate.storage" -}}
{{- $c := .Values.global.contract -}}
{{- if and (eq $c.storage.s3.mode "external") (not $c.storage.s3.endpoint) }}
global.contract.storage.s3.mode is external: set global.contract.storage.s3.endpoint to the store's URL, or, for a trial, the mode to inCluster for MinIO in the cluster.
{{- end }}
{{- if and (eq $c.storage.s3.mode "inCluster") (not .Values.minio.enabled) }}
global.contract.storage.s3.mode is inCluster, but minio.enabled is false: enable it or set the mode to external.
{{- end }}
{{- if and (eq $c.storage.s3.mode "inCluster") (ne $c.storage.s3.users "manual") }}
global.contract.storage.s3.users is {{ $c.storage.s3.users }}, which is for an external store only: set manual, or set the mode to external.
{{- end }}
{{- if and (eq $c.storage.s3.users "rgw") (eq $c.storage.s3.adminSecret $c.storage.s3.secret) }}
global.contract.storage.s3.adminSecret is {{ $c.storage.s3.secret | quote }}, the platform's own user: name a Secret of the user that creates users.
{{- end }}
{{- if and .Values.nfs.enabled (eq (default "subdir" .Values.nfs.provisioner) "csi") }}
{{- $packaged := .Files.Get "files/packaged.yaml" | fromYaml }}
{{- if and (hasKey $packaged "components") (not (hasKey $packaged.components "csi-driver-nfs")) }}
nfs.provisioner is csi, but this package was made without the csi-driver-nfs chart (its repository was unreachable): set nfs.provisioner to subdir, or package again when the repository is reachable.
{{- else if not (index .Values "csi-driver-nfs").enabled }}
nfs.provisioner is csi: set csi-driver-nfs.enabled to true.
{{- end }}
{{- end }}
{{- $buckets := list }}
{{- $own := false }}
{{- range $c.storage.buckets }}
{{- if has .name $buckets }}
global.contract.storage.buckets names {{ .name | quote }} twice; give each bucket a name of its own.
{{- end }}
{{- if and .noncurrentDays (not .versioning) }}
global.contract.storage.buckets: {{ .name | quote }} has noncurrentDays but no versions; set versioning to true, or noncurrentDays to 0.
{{- end }}
{{- if eq .teams "own" }}{{ $own = true }}{{ end }}
{{- $buckets = append $buckets .name }}
{{- end }}
{{- range $c.teams }}
{{- if and $own (eq .name "shared") }}
global.contract.teams: no team can be named "shared", because shared/ is the common prefix in buckets with a prefix per team; choose another name.
{{- end }}
{{- end }}
{{- $names := list }}
{{- range $c.storage.caches }}
{{- if not (has .bucket $buckets) }}
global.contract.storage.caches: {{ .name | quote }} is copied from {{ .bucket | quote }}, which is not among global.contract.storage.buckets ({{ join ", " $buckets }}).
{{- end }}
{{- if has .name $names }}
global.contract.storage.caches names {{ .name | quote }} twice; give each data set a name of its own.
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- if and $c.storage.caches (not .Values.nfs.enabled) }}
global.contract.storage.caches are copied to the shared volume, but nfs.enabled is false: enable it or empty the list.
{{- end }}
{{- range .Values.backup.buckets }}
{{- if not (has . $buckets) }}
backup.buckets names {{ . | quote }}, which is not among global.contract.storage.buckets ({{ join ", " $buckets }}).
{{- end }}
{{- end }}
{{- $target := .Values.backup.target }}
{{- if .Values.backup.enabled }}
{{- if and (eq $target.kind "s3") (not $target.s3.bucket) }}
backup.target.kind is s3: set backup.target.s3.bucket to a bucket that exists.
{{- end }}
{{- if and (eq $target.kind "s3") (eq $target.s3.secret $c.storage.s3.secret) }}
backup.target.s3.secret is {{ $target.s3.secret | quote }}, the store that is backed up: name a Secret of another store.
{{- end }}
{{- if not (or .Values.backup.buckets (and .Values.backup.workspaces .Values.nfs.enabled)) }}
backup.enabled is true, but there is nothing to back up: list backup.buckets, or set backup.workspaces with nfs.enabled.
{{- end }}
{{- end }}
{{- with (default dict .Values.minio.tls).secret }}
{{- if and $.Values.minio.tls.enabled (lookup "v1" "Namespace" "" "kube-system") (not (lookup "v1" "Secret" $.Release.Namespace .)) }}
minio.tls.secret names {{ . | quote }}, which is not in namespace {{ $.Release.Namespace }}: create it with tls.crt, tls.key and ca.crt, or leave the value empty.
{{- end }}
{{- end }}
{{- end }}
