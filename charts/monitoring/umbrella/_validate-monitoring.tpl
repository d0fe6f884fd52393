{{/* Validation errors among the values of monitoring, one a line. */}}
{{- define "trainyard.validate.monitoring" -}}
{{- $values := default dict .Values.monitoring -}}
{{- if and $values.enabled $values.prometheus -}}
{{- $prometheus := $values.prometheus -}}
{{- $alertmanager := $values.alertmanager -}}
{{- $size := include "trainyard.quantity" $prometheus.storage.size | float64 -}}
{{- with $prometheus.retentionSize }}
{{- if gt (include "trainyard.quantity" . | float64) (mulf $size 0.95) }}
monitoring.prometheus.retentionSize is {{ . }}, but the volume has {{ $prometheus.storage.size }}: the volume would fill up first; make storage.size larger, or leave retentionSize empty.
{{- end }}
{{- end }}
{{- if and $alertmanager.enabled (not $prometheus.enabled) (not $values.operator.enabled) }}
monitoring.alertmanager.enabled is true and monitoring.prometheus.enabled is false: nothing would send alerts to it; set alertmanager.enabled to false as well.
{{- end }}
{{- if and $prometheus.enabled (not $values.operator.enabled) (not $values.kubeStateMetrics.enabled) }}
monitoring.kubeStateMetrics.enabled is false: the bundled Prometheus has no other source, so alerts on nodes, controllers and backups could not fire; leave it true.
{{- end }}
{{- range $alert, $set := dig "rules" dict (default dict $values.alerts) }}
{{- if and (hasKey (default dict $set) "threshold") (has $alert (list "TrainyardNodeLost" "TrainyardGpuLost" "TrainyardControllerDown" "TrainyardQueueStarved" "TrainyardTargetDown")) }}
monitoring.alerts.rules.{{ $alert }}.threshold is {{ $set.threshold }}, but this alert has no threshold: remove it, or set `for`.
{{- end }}
{{- end }}
{{- range include "trainyard.teams" $ | fromJsonArray }}
{{- if eq .name $values.dcgm.namespace }}
monitoring.dcgm.namespace is {{ .name }}, a team's: its members could run pods that publish metrics in the name of others; run the DCGM exporter in a namespace that belongs to no team.
{{- end }}
{{- end }}
{{- if and $values.mockGpus.enabled $values.dcgm.namespace }}
monitoring.mockGpus.enabled is true and monitoring.dcgm.namespace is {{ $values.dcgm.namespace }}: mock GPUs have no DCGM exporter; disable mockGpus if the GPUs are real.
{{- end }}
{{- if and $alertmanager.enabled (not $alertmanager.secret) }}
{{- $config := $alertmanager.config -}}
{{- $names := list -}}
{{- range $i, $receiver := $config.receivers }}
{{- if not $receiver.name }}
monitoring.alertmanager.config.receivers[{{ $i }}] has no name: routes refer to receivers by name, so give it one.
{{- end }}
{{- $names = append $names (toString $receiver.name) -}}
{{- end }}
{{- if not (dig "receiver" "" (default dict $config.route)) }}
monitoring.alertmanager.config.route has no receiver: name the receiver of alerts that no other route matches.
{{- end }}
{{- range include "trainyard.alertReceivers" $config.route | fromJsonArray }}
{{- if not (has . $names) }}
monitoring.alertmanager.config has a route to {{ . }}, which is not among its receivers ({{ join ", " $names | default "there are none" }}): add it, or name one of these.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Names of the receivers that a route and those below it have, as a JSON list. */}}
{{- define "trainyard.alertReceivers" -}}
{{- $found := list -}}
{{- with .receiver }}{{ $found = append $found (toString .) }}{{ end -}}
{{- range .routes }}{{ $found = concat $found (include "trainyard.alertReceivers" . | fromJsonArray) }}{{ end -}}
{{- toJson (uniq $found) -}}
{{- end }}
