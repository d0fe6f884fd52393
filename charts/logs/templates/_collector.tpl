{{- define "logs.labels" -}}
{{ include "logs.selector" . }}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}
{{- define "logs.selector" -}}
app.kubernetes.io/name: logs
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}
{{- /*
What the collector is told. A line counts as read once it lies in the queue on the node's disk, and leaves the queue once
the store has it: whatever is stopped in between, it comes again.
*/ -}}
{{- define "logs.configuration" -}}
extensions:
  health_check: {endpoint: "0.0.0.0:13133"}
  file_storage:
    directory: /state
    fsync: true
    recreate: true
    compaction:
      directory: /state
      on_start: true
      on_rebound: true
      cleanup_on_start: true
      rebound_needed_threshold_mib: 64
      rebound_trigger_threshold_mib: 8
receivers:
  file_log:
    # The files that are written to, and those that kubelet has put aside and not compressed yet.
    include: [/pods/*/*/*.log, "/pods/*/*/*.log.????????-??????"]
    {{- with .Values.excludeNamespaces }}
    exclude:
      {{- range . }}
      - /pods/{{ . }}_*/*/*
      {{- end }}
    {{- end }}
    start_at: beginning
    include_file_path: true
    include_file_name: false
    include_file_record_offset: true
    poll_interval: 500ms
    max_concurrent_files: 512
    storage: file_storage
    retry_on_failure: {enabled: true, max_interval: 10s, max_elapsed_time: 0s}
    operators:
      # Whose a line is says the file's path, which kubelet makes: nobody has to be asked.
      - {type: container, add_metadata_from_filepath: true}
exporters:
  pod_store:
    bucket: {{ .Values.bucket | quote }}
    keys: /key
    timeout: 60s
    retry_on_failure: {enabled: true, initial_interval: 1s, max_interval: 10s, max_elapsed_time: 0s}
    sending_queue:
      enabled: true
      storage: file_storage
      block_on_overflow: true
      sizer: bytes
      queue_size: {{ mul .Values.queue.sizeMiB 1048576 }}
      num_consumers: 2
      batch: {flush_timeout: {{ .Values.flushEvery }}, sizer: bytes, min_size: 1000000, max_size: 4000000}
service:
  extensions: [file_storage, health_check]
  pipelines:
    logs: {receivers: [file_log], exporters: [pod_store]}
  telemetry:
    logs: {level: info, encoding: console}
    metrics:
      level: normal
      readers:
        - pull: {exporter: {prometheus: {host: 0.0.0.0, port: 8888}}}
{{- end -}}
