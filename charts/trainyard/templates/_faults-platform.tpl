{{/* Faults among the values of the platform's own pods and images, one a line. */}}
{{- define "trainyard.faults.platform" -}}
{{- $registry := .Values.global.imageRegistry -}}
{{- $plugin := index .Values "nvidia-device-plugin" -}}
{{- if ne $registry "docker.io" }}
{{- if and .Values.volcano.enabled (ne .Values.volcano.basic.image_registry $registry) }}
global.imageRegistry is {{ $registry }}: set volcano.basic.image_registry to it as well.
{{- end }}
{{- if and $plugin.enabled (not (hasPrefix (printf "%s/" $registry) $plugin.image.repository)) }}
global.imageRegistry is {{ $registry }}: nvidia-device-plugin.image.repository must begin with it.
{{- end }}
{{- end }}
{{- end }}
