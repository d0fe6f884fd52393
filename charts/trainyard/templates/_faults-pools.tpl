{{/* Faults among the node pools and what follows them, one a line. */}}
{{- define "trainyard.faults.pools" -}}
{{- $plugin := index .Values "nvidia-device-plugin" -}}
{{- $names := list -}}
{{- range .Values.global.contract.nodePools }}{{ $names = append $names .name }}
{{- if and (eq .kind "gpu") (not .gpu) }}
global.contract.nodePools: pool {{ .name | quote }} is of kind gpu and needs a gpu block (at least gpu.resource).
{{- end }}
{{- if and (eq .kind "cpu") .gpu }}
global.contract.nodePools: pool {{ .name | quote }} is of kind cpu and must not have a gpu block.
{{- end }}
{{- if and (eq .kind "gpu") (ne (dig "labels" "trainyard.io/pool" "" .) "gpu") }}
global.contract.nodePools: the GPU pool {{ .name }} needs the label trainyard.io/pool: gpu, by which the device plugin finds its nodes.
{{- end }}
{{- if and $plugin.enabled (eq .kind "gpu") .taint }}
{{- $taint := .taint }}
{{- $tolerated := false }}
{{- range $plugin.tolerations }}
{{- if and (eq (default "" .key) $taint.key) (or (eq (default "Equal" .operator) "Exists") (eq (default "" .value) (default "" $taint.value))) }}
{{- $tolerated = true }}
{{- end }}
{{- end }}
{{- if not $tolerated }}
nvidia-device-plugin.tolerations must tolerate the taint {{ $taint.key }}={{ default "" $taint.value }}:{{ $taint.effect }} of the GPU pool {{ .name }}, or no GPU is ever advertised.
{{- end }}
{{- end }}
{{- end }}
{{- if ne (len $names) (len (uniq $names)) }}
global.contract.nodePools names a pool twice.
{{- end }}
{{- if and $plugin.enabled .Values.nodePrep.enabled (ne (default "" $plugin.nvidiaDriverRoot) .Values.nodePrep.driverRoot) }}
nvidia-device-plugin.nvidiaDriverRoot ({{ default "unset" $plugin.nvidiaDriverRoot }}) and nodePrep.driverRoot ({{ .Values.nodePrep.driverRoot }}) must be the same folder.
{{- end }}
{{- end }}
