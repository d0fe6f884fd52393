{{/* Validation errors among the values of Python packages, one a line. */}}
{{- define "trainyard.validate.packages" -}}
{{- $c := .Values.global.contract -}}
{{- $packages := default dict $c.packages -}}
{{- if and $packages.egress (not $packages.index) }}
global.contract.packages.egress opens the network for an index that is not set: set global.contract.packages.index, or remove the rules.
{{- end }}
{{- if and $packages.secret (not $packages.index) }}
global.contract.packages.secret is {{ $packages.secret | quote }}, credentials for an index that is not set: set global.contract.packages.index, or leave it empty.
{{- end }}
{{- if and $packages.ca (not (hasPrefix "https://" (default "" $packages.index))) }}
global.contract.packages.ca is the CA of an index with TLS, but global.contract.packages.index is {{ $packages.index | quote }}: write https://, or leave ca empty.
{{- end }}
{{- if hasSuffix "-root" (default "" $packages.secret) }}
global.contract.packages.secret is {{ $packages.secret | quote }}: pods of teams may not use Secrets whose names end in -root; rename it.
{{- end }}
{{- range $rule := $packages.egress }}
{{- if not $rule.to }}
global.contract.packages.egress has a rule without `to`, which allows runs to reach every address: list those of the index, e.g. {to: [{ipBlock: {cidr: 10.0.0.8/32}}], ports: [{protocol: TCP, port: 443}]}.
{{- end }}
{{- end }}
{{- end }}
