{{/*
Where an image is pulled from: (list context reference). A reference without a host is one of ours. global.imageRegistry, when
set, takes the place of the host; every image of every part, upstream's too, passes through here.
*/}}
{{- define "trainyard.pulled" -}}
{{- $prefix := dig "imageRegistry" "" ((index . 0).Values.global | default dict) -}}
{{- $host := "^([^/]*[.:][^/]*|localhost)/" -}}
{{- if not (regexMatch $host (index . 1)) -}}
{{ include "trainyard.ownRegistry" (index . 0) }}/{{ trimPrefix "/" (index . 1) }}
{{- else if $prefix -}}
{{ trimSuffix "/" $prefix }}/{{ regexReplaceAll $host (index . 1) "" }}
{{- else -}}
{{ index . 1 }}
{{- end -}}
{{- end }}

{{/*
Where our own images are pulled from: a mirror has them below the path, without the host, of the registry that publishes them.
site.invalid is the host that manifests and examples name, and which nobody can own.
*/}}
{{- define "trainyard.ownRegistry" -}}
{{- $own := .Values.global.ownImageRegistry | default "site.invalid" | trimSuffix "/" -}}
{{- with .Values.global.imageRegistry -}}
{{ list (trimSuffix "/" .) (regexReplaceAll "^[^/]*/?" $own "") | compact | join "/" }}
{{- else -}}
{{ $own }}
{{- end -}}
{{- end }}

{{/* Full reference of one of our images, by its name in the contract: (list context "platform"). */}}
{{- define "trainyard.image" -}}
{{ include "trainyard.pulled" (list (index . 0) (index (index . 0).Values.global.contract.images (index . 1))) }}
{{- end }}
