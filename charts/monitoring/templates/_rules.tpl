{{/*
One file of rules as the release has it: files/rules/ is complete and valid for promtool as it is; here a
site's `alerts.rules.<alert>` takes the place of its threshold, `for` and severity, and `enabled: false` takes it out.

Call it with (dict "root" $ "file" "files/rules/jobs.yaml"); it gives YAML, `groups:` and all, for a file of Prometheus as
for the spec of a PrometheusRule.
*/}}
{{- define "monitoring.rulesFile" -}}
{{- $alerts := .root.Values.alerts | default dict -}}
{{- $groups := list -}}
{{- range $group := (.root.Files.Get .file | fromYaml).groups -}}
  {{- $rules := list -}}
  {{- range $rule := $group.rules -}}
    {{- $labels := $rule.labels | default dict -}}
    {{- $set := get ($alerts.rules | default dict) ($rule.alert | default $labels.alert | default "") | default dict -}}
    {{- if $rule.record -}}
      {{- if hasKey $set "threshold" -}}
        {{- $rule = set (deepCopy $rule) "expr" (toString $set.threshold) -}}
      {{- end -}}
      {{- $rules = append $rules $rule -}}
    {{- else if ne (toString $set.enabled) "false" -}}
      {{- $rule = deepCopy $rule -}}
      {{- if $set.for -}}
        {{- $_ := set $rule "for" $set.for -}}
      {{- end -}}
      {{- if $set.severity -}}
        {{- $_ := set $rule.labels "severity" $set.severity -}}
      {{- end -}}
      {{- if $alerts.runbooks -}}
        {{- $page := $rule.annotations.runbook_url | trimPrefix "docs/runbooks/" -}}
        {{- $_ := set $rule.annotations "runbook_url" (printf "%s/%s" (trimSuffix "/" $alerts.runbooks) $page) -}}
      {{- end -}}
      {{- $rules = append $rules $rule -}}
    {{- end -}}
  {{- end -}}
  {{- if $rules -}}
    {{- $groups = append $groups (dict "name" $group.name "rules" $rules) -}}
  {{- end -}}
{{- end -}}
{{- dict "groups" $groups | toYaml -}}
{{- end -}}
