{{/*
What becomes of a pod that was found, as JSON in Prometheus' words: (list endpoint). Its address is the pod's with the port
of the entry, declared or not; equal targets, one for each container, fall together. Series that name the pod they are about
keep these labels, and the pod that was asked is noted in `up` only.
*/}}
{{- define "monitoring.relabel" -}}
{{- $one := index . 0 -}}
{{- $rules := list -}}
{{- range $label, $value := $one.pods -}}
{{- $rules = append $rules (dict "action" "keep" "source_labels" (list (printf "__meta_kubernetes_pod_label_%s" (regexReplaceAll "[^a-zA-Z0-9_]" $label "_"))) "regex" (replace "." "\\." $value)) -}}
{{- end -}}
{{- $rules = append $rules (dict "action" "drop" "source_labels" (list "__meta_kubernetes_pod_phase") "regex" "Succeeded|Failed") -}}
{{- $rules = append $rules (dict "action" "keep" "source_labels" (list "__meta_kubernetes_pod_ip") "regex" ".+") -}}
{{- range $regex, $address := dict "([0-9.]+)" "$1" "(.*:.*)" "[$1]" -}}
{{- $rules = append $rules (dict "source_labels" (list "__meta_kubernetes_pod_ip") "regex" $regex "target_label" "__address__" "replacement" (printf "%s:%d" $address (int $one.port))) -}}
{{- end -}}
{{- $rules = append $rules (dict "target_label" "job" "replacement" $one.name) -}}
{{- $rules = append $rules (dict "source_labels" (list "__meta_kubernetes_pod_name") "target_label" "instance") -}}
{{- if not $one.honor -}}
{{- range $label, $from := dict "namespace" "namespace" "pod" "pod_name" "node" "pod_node_name" -}}
{{- $rules = append $rules (dict "source_labels" (list (printf "__meta_kubernetes_%s" $from)) "target_label" $label) -}}
{{- end -}}
{{- range $label, $from := $one.labels -}}
{{- $rules = append $rules (dict "source_labels" (list (printf "__meta_kubernetes_pod_label_%s" (regexReplaceAll "[^a-zA-Z0-9_]" $from "_"))) "target_label" $label) -}}
{{- end -}}
{{- end -}}
{{- toJson $rules -}}
{{- end }}

{{/* Prometheus' configuration. */}}
{{- define "monitoring.config" -}}
{{- $account := "/var/run/secrets/kubernetes.io/serviceaccount" -}}
{{- $unnamed := list (dict "action" "labeldrop" "regex" "instance") -}}
{{- $jobs := list -}}
{{- range include "monitoring.endpoints" . | fromJsonArray -}}
{{- $found := list (dict "role" "pod" "namespaces" (dict "names" (list (.namespace | default $.Release.Namespace)))) -}}
{{- $job := dict "job_name" .name "metrics_path" .path "scheme" .scheme "kubernetes_sd_configs" $found "relabel_configs" (include "monitoring.relabel" (list .) | fromJsonArray) -}}
{{- /* Its certificate is for the API server, which asks it by a name; nothing secret is sent here. */ -}}
{{- if eq .scheme "https" }}{{ $_ := set $job "tls_config" (dict "insecure_skip_verify" true) }}{{ end -}}
{{- if .honor }}{{ $_ := set $job "honor_labels" true }}{{ $_ := set $job "metric_relabel_configs" $unnamed }}{{ end -}}
{{- if .series }}{{ $_ := set $job "metric_relabel_configs" (append $unnamed (dict "action" "keep" "source_labels" (list "__name__") "regex" .series)) }}{{ end -}}
{{- $jobs = append $jobs $job -}}
{{- end -}}
global:
  scrape_interval: {{ .Values.prometheus.scrapeEvery }}
  scrape_timeout: {{ regexMatch "^[5-9]s$" .Values.prometheus.scrapeEvery | ternary "5s" "10s" }}
  evaluation_interval: {{ .Values.prometheus.scrapeEvery }}
rule_files: [/etc/prometheus/rules/*.yaml]
# Of the store in the cluster; the init container writes it.
scrape_config_files: [/store/*.yaml]
{{- if include "monitoring.runs.alertmanager" . }}
alerting:
  alertmanagers:
    - static_configs:
        - targets: ["{{ include "monitoring.name" (list . "alertmanager") }}.{{ .Release.Namespace }}.svc:9093"]
{{- end }}
scrape_configs:
  {{- toYaml $jobs | nindent 2 }}
  {{- if .Values.modelServers }}
  {{- $teams := list }}{{ range include "trainyard.teams" . | fromJsonArray }}{{ $teams = append $teams .name }}{{ end }}
  {{- with $teams }}
  # Pods of teams, which say what they like: how much of it is taken is bounded, and whose it is they can't say.
  - job_name: models
    sample_limit: 2000
    body_size_limit: 1MB
    label_limit: 30
    kubernetes_sd_configs:
      - role: pod
        namespaces: {names: {{ toJson . }}}
    relabel_configs:
      - {action: keep, source_labels: [__meta_kubernetes_pod_label_trainyard_io_model], regex: ".+"}
      - {action: keep, source_labels: [__meta_kubernetes_pod_phase], regex: Running}
      - {action: keep, source_labels: [__meta_kubernetes_pod_container_name], regex: server}
      - {source_labels: [__meta_kubernetes_pod_ip], regex: "([0-9.]+)", target_label: __address__, replacement: "$1:8081"}
      - {source_labels: [__meta_kubernetes_pod_ip], regex: "(.*:.*)", target_label: __address__, replacement: "[$1]:8081"}
      - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: instance}
    metric_relabel_configs:
      - {action: keep, source_labels: [__name__], regex: "trainyard_model_.*|process_.*"}
  {{- end }}
  {{- end }}
  - job_name: apiserver
    scheme: https
    authorization: {credentials_file: {{ $account }}/token}
    tls_config: {ca_file: {{ $account }}/ca.crt, server_name: kubernetes}
    kubernetes_sd_configs:
      - role: endpointslice
        namespaces: {names: [default]}
    relabel_configs:
      - {action: keep, source_labels: [__meta_kubernetes_service_name, __meta_kubernetes_endpointslice_port_name], regex: kubernetes;https}
    metric_relabel_configs:
      # By far the most of its series, for questions that nobody asks here.
      - {action: drop, source_labels: [__name__], regex: "apiserver_(request_sli|request_body_size|response_sizes|watch_(cache|events|list)|flowcontrol|admission_(step|controller|webhook)).*_bucket|etcd_request_duration_seconds_bucket"}
  {{- /* Asked directly: by way of the API server that takes the right nodes/proxy, which runs commands in every pod. */}}
  {{- range $name, $path := dict "kubelet" "/metrics" "cadvisor" "/metrics/cadvisor" }}
  - job_name: {{ $name }}
    scheme: https
    metrics_path: {{ $path }}
    honor_timestamps: {{ ne $name "cadvisor" }}
    authorization: {credentials_file: {{ $account }}/token}
    tls_config: {{ $.Values.kubelet.insecureTLS | ternary "{insecure_skip_verify: true}" (printf "{ca_file: %s/ca.crt}" $account) }}
    kubernetes_sd_configs:
      - role: node
    relabel_configs:
      - {source_labels: [__meta_kubernetes_node_name], target_label: instance}
      - {source_labels: [__meta_kubernetes_node_name], target_label: node}
    metric_relabel_configs:
      {{- if eq $name "cadvisor" }}
      - {action: drop, source_labels: [__name__], regex: "container_(tasks_state|memory_failures_total|blkio_.*|pressure_.*|file_descriptors|sockets|threads_max|ulimits_soft|last_seen)"}
      # Sums over slices of the node; the node's own (/) stays.
      - {action: drop, source_labels: [pod, id], regex: ";/.+"}
      - {action: labeldrop, regex: name|image}
      {{- else }}
      - {action: keep, source_labels: [__name__], regex: "up|kubelet_(volume_stats|running|node_name|pleg|pod_worker|evictions|started|certificate|server_expiration|runtime_operations_errors).*|kubernetes_build_info|process_.*|go_goroutines"}
      - {action: drop, source_labels: [__name__], regex: ".*_bucket"}
      {{- end }}
  {{- end }}
{{- end }}
