{{- /* Labels by component: (list context component). */}}
{{- define "nfs.selector" -}}
app.kubernetes.io/name: nfs
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 | quote }}
{{- end }}
{{- define "nfs.labels" -}}
{{ include "nfs.selector" . }}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service | quote }}
{{- end }}
{{- define "nfs.name" -}}
{{ .Release.Name }}-nfs
{{- end }}
{{- define "nfs.className" -}}
{{- $storage := dig "contract" "storage" dict (.Values.global | default dict) -}}
{{- .Values.storageClass.name | default $storage.sharedClass | default "trainyard-shared" -}}
{{- end }}
{{- define "nfs.workspaceClassName" -}}
{{- $storage := dig "contract" "storage" dict (.Values.global | default dict) -}}
{{- .Values.workspaceClass.name | default $storage.workspaceClass | default "trainyard-workspace" -}}
{{- end }}
{{- /* How a class makes volumes: (list context subDir onDelete adopts). csi-driver-nfs takes what exists, always.
       A class can't be changed once it is there: what trainyard-shared has must stay. */}}
{{- define "nfs.class" -}}
{{- $root := index . 0 }}
volumeBindingMode: Immediate
mountOptions: {{- toYaml $root.Values.mountOptions | nindent 2 }}
{{- if eq $root.Values.provisioner "csi" }}
provisioner: nfs.csi.k8s.io
parameters:
  server: {{ include "nfs.address" $root | quote }}
  share: {{ $root.Values.path }}
  subDir: {{ index . 1 }}
  onDelete: {{ index . 2 }}
{{- else }}
provisioner: trainyard.io/nfs
{{- /* A team may hold only so much in larger claims. Those of the chart have the size of the values, or upgrades would fail. */}}
allowVolumeExpansion: {{ not (index . 3) }}
parameters:
  subDir: {{ index . 1 }}
  onDelete: {{ index . 2 }}
  {{- if index . 3 }}
  existing: adopt
  {{- end }}
  gid: {{ $root.Values.storageClass.gid | int64 | quote }}
{{- end }}
{{- end }}
{{- /* The server as the nodes reach it. */}}
{{- define "nfs.address" -}}
{{- if eq .Values.mode "inCluster" }}{{ .Values.clusterIP }}{{ else }}{{ .Values.server }}{{ end -}}
{{- end }}
{{- /* An image: (list context valueKey contractKey). A full reference in the values takes the contract's place. */}}
{{- define "nfs.image" -}}
{{- $root := index . 0 -}}
{{- with get $root.Values.images (index . 1) -}}
{{ include "trainyard.pulled" (list $root .) }}
{{- else -}}
{{ include "trainyard.image" (list $root (index . 2)) }}
{{- end -}}
{{- end }}
{{- /* Where both pods may run, and with what they pull. */}}
{{- define "nfs.placement" -}}
{{- with (.Values.global | default dict).imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- /* One EXPORT of ganesha: (dict id directory path clients access squash uid gid). */}}
{{- define "nfs.export" -}}
EXPORT {
  Export_Id = {{ .id }};
  Path = /export/{{ .directory }};
  Pseudo = {{ .path }};
  FSAL { Name = VFS; }
  {{- if ne .access "None" }}
  CLIENT {
    Clients = {{ join ", " .clients }};
    Access_Type = {{ .access }};
    Squash = {{ .squash }};
    Anonymous_Uid = {{ .uid | int64 }};
    Anonymous_Gid = {{ .gid | int64 }};
  }
  {{- end }}
}
{{- end }}
