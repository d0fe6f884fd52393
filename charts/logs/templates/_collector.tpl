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
Whose logs are read apart: each team's, and last everybody else's, as a JSON list of {name, include, exclude}. A receiver is
done with a look at its files when it has read all to their ends, which a pod that writes all the time puts off; and a full
queue blocks its senders. With receiver, queue and sender of its own, a team that floods its logs is late with
its own alone.
*/ -}}
{{- define "logs.groups" -}}
{{- $files := list "*/*/*.log" "*/*/*.log.????????-??????" -}}
{{- $groups := list -}}
{{- $others := list -}}
{{- range include "trainyard.teams" . | fromJsonArray -}}
{{- $others = append $others (printf "/pods/%s_*/*/*" .name) -}}
{{- if not (has .name $.Values.excludeNamespaces) -}}
{{- $include := list -}}
{{- $name := .name -}}
{{- range $files }}{{ $include = append $include (printf "/pods/%s_%s" $name .) }}{{ end -}}
{{- $groups = append $groups (dict "name" (printf "/%s" .name) "include" $include "exclude" list) -}}
{{- end -}}
{{- end -}}
{{- range .Values.excludeNamespaces }}{{ $others = append $others (printf "/pods/%s_*/*/*" .) }}{{ end -}}
{{- $include := list -}}
{{- range $files }}{{ $include = append $include (printf "/pods/%s" .) }}{{ end -}}
{{- append $groups (dict "name" "" "include" $include "exclude" (uniq $others)) | toJson -}}
{{- end -}}
{{- /*
What the collector is told. A line counts as read once it lies in the queue on the node's disk, and leaves the queue once
the store has it: whatever is stopped in between, it comes again.
*/ -}}
{{- define "logs.configuration" -}}
{{- $groups := include "logs.groups" . | fromJsonArray -}}
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
  {{- range $groups }}
  file_log{{ .name }}:
    # The files that are written to, and those that kubelet has put aside and not compressed yet.
    include: {{- toYaml .include | nindent 6 }}
    {{- with .exclude }}
    exclude: {{- toYaml . | nindent 6 }}
    {{- end }}
    start_at: beginning
    include_file_path: true
    include_file_name: false
    include_file_record_offset: true
    poll_interval: 500ms
    # Half of them are read at a time, a hundred lines of each in memory.
    max_concurrent_files: 16
    storage: file_storage
    retry_on_failure: {enabled: true, max_interval: 10s, max_elapsed_time: 0s}
    operators:
      # Whose a line is says the file's path, which kubelet makes: nobody has to be asked. A line without an end is cut, since
      # as much of it is held in memory, for each file.
      - {type: container, add_metadata_from_filepath: true, max_log_size: 128KiB}
  {{- end }}
exporters:
  {{- range $groups }}
  pod_store{{ .name }}:
    bucket: {{ $.Values.bucket | quote }}
    keys: /key
    timeout: 60s
    retry_on_failure: {enabled: true, initial_interval: 1s, max_interval: 10s, max_elapsed_time: 0s}
    sending_queue:
      enabled: true
      storage: file_storage
      block_on_overflow: true
      sizer: bytes
      # Its part of `queue.sizeMiB`.
      queue_size: {{ max (div (mul $.Values.queue.sizeMiB 1048576) (len $groups)) 4194304 }}
      num_consumers: 1
      batch: {flush_timeout: {{ $.Values.flushEvery }}, sizer: bytes, min_size: 1000000, max_size: 2000000}
  {{- end }}
service:
  extensions: [file_storage, health_check]
  pipelines:
    {{- range $groups }}
    logs{{ .name }}: {receivers: [file_log{{ .name }}], exporters: [pod_store{{ .name }}]}
    {{- end }}
  telemetry:
    logs: {level: info, encoding: console}
    metrics:
      level: normal
      readers:
        - pull: {exporter: {prometheus: {host: 0.0.0.0, port: 8888}}}
{{- end -}}
