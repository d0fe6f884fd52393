{{/*
Where an image is pulled from: (list context reference). global.imageRegistry, when set, takes
the place of the reference's host; every image of every part, upstream's too, passes through here.
*/}}
{{- define "trainyard.pulled" -}}
{{- $prefix := dig "imageRegistry" "" ((index . 0).Values.global | default dict) -}}
{{- if $prefix -}}
{{ trimSuffix "/" $prefix }}/{{ regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" (index . 1) "" }}
{{- else -}}
{{ index . 1 }}
{{- end -}}
{{- end }}

{{/* Where our own images are pulled from. */}}
{{- define "trainyard.ownRegistry" -}}
{{ .Values.global.imageRegistry | default "docker.io" | trimSuffix "/" }}
{{- end }}

{{/* Full reference of one of our images, by its name in the contract: (list context "platform"). */}}
{{- define "trainyard.image" -}}
{{- $root := index . 0 -}}
{{ include "trainyard.ownRegistry" $root }}/{{ index $root.Values.global.contract.images (index . 1) }}
{{- end }}
