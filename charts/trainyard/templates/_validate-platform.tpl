{{/* Validation errors among the values of the platform's own pods and images, one a line. */}}
{{- define "trainyard.validate.platform" -}}
{{- $registry := .Values.global.imageRegistry -}}
{{- if eq $registry "docker.io" }}
global.imageRegistry is docker.io, which doesn't hold every image: leave it empty, or name a mirror that does.
{{- end }}
{{- if not (or $registry .Values.global.ownImageRegistry) }}
global.ownImageRegistry is empty: name the registry, and its path, that holds our own images, such as registry.example.org/gpu, which `bin/trainyard images mirror --own REGISTRY` or `images load` of a release fills; or name a mirror of all images in global.imageRegistry. An installation of 0.3.0 with its default pulled them from docker.io: to keep that, set global.ownImageRegistry=docker.io.
{{- end }}
{{- $webhook := include "trainyard.webhookNamespace" . -}}
{{- if dig "metadata" "deletionTimestamp" "" (lookup "v1" "Namespace" "" $webhook) }}
The namespace {{ $webhook }} of an earlier release is still terminating; wait until `kubectl get namespace {{ $webhook }}` reports NotFound.
{{- end }}
{{- end }}
