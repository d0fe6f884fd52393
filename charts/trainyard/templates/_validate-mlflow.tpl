{{/* Validation errors of the MLflow server, one a line. */}}
{{- define "trainyard.validate.mlflow" -}}
{{- with .Values.global.contract.mlflow.trackingUri -}}
{{- if not (include "trainyard.mlflowEgress" $ | fromJsonArray) }}
global.contract.mlflow.trackingUri is {{ . }}, but network policies can't match host names: list its addresses in global.contract.network.mlflow, as {cidr: 203.0.113.7/32, port: 443}.
{{- end }}
{{- $namespace := include "trainyard.mlflowNamespace" $ }}
{{- if has $namespace (list $.Release.Namespace (include "trainyard.webhookNamespace" $ | trim) "kube-system") }}
global.contract.mlflow.trackingUri is {{ . }}: pods of all teams would reach every pod of {{ $namespace }}, which is the platform's or the cluster's own. Run the server in a namespace of its own.
{{- end }}
{{- end }}
{{- end }}
