{{/*
The way of teams' pods to the MLflow server, as a JSON list of egress rules: to its namespace where its name says one, else to
its address, else to what global.contract.network.mlflow names. A Service's port is not its pods', so its namespace is open.
*/}}
{{- define "trainyard.mlflowEgress" -}}
{{- $c := .Values.global.contract -}}
{{- $rules := list -}}
{{- with $c.mlflow.trackingUri -}}
{{- $place := urlParse . -}}
{{- $host := $place.host | splitList ":" | first -}}
{{- $namespace := include "trainyard.mlflowNamespace" $ -}}
{{- if $namespace -}}
{{- $rules = list (dict "to" (list (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $namespace))))) -}}
{{- else if regexMatch "^[0-9]+([.][0-9]+){3}$" $host -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $place.host) | default (eq $place.scheme "https" | ternary "443" "80") | int -}}
{{- $rules = list (dict "to" (list (dict "ipBlock" (dict "cidr" (printf "%s/32" $host)))) "ports" (list (dict "protocol" "TCP" "port" $port))) -}}
{{- else -}}
{{- range $c.network.mlflow -}}
{{- $rules = append $rules (dict "to" (list (dict "ipBlock" (dict "cidr" .cidr))) "ports" (list (dict "protocol" "TCP" "port" .port))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $rules -}}
{{- end }}
{{/* The namespace that the MLflow server's name says it is in; nothing for any other address. */}}
{{- define "trainyard.mlflowNamespace" -}}
{{- $place := urlParse (.Values.global.contract.mlflow.trackingUri | default "") -}}
{{- $parts := $place.host | splitList ":" | first | splitList "." -}}
{{- if and (ge (len $parts) 3) (eq (index $parts 2) "svc") }}{{ index $parts 1 }}{{ end -}}
{{- end }}
