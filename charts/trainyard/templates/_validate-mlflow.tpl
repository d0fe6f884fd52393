{{/* Validation errors of the MLflow server, one a line. */}}
{{- define "trainyard.validate.mlflow" -}}
{{- with .Values.global.contract.mlflow.trackingUri -}}
{{- if not (include "trainyard.mlflowEgress" $ | fromJsonArray) }}
global.contract.mlflow.trackingUri is {{ . }}, a name that network policies can't hold: name its addresses in global.contract.network.mlflow, as {cidr: 203.0.113.7/32, port: 443}.
{{- end }}
{{- end }}
{{- end }}
