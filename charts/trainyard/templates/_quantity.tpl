{{/* A Kubernetes quantity (4, "500m", "1.5", "16Gi", "2e3") as a plain number. */}}
{{- define "trainyard.quantity" -}}
{{- $text := toString . -}}
{{- $unit := regexFind "(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)$" $text -}}
{{- $powers := dict "k" 3 "M" 6 "G" 9 "T" 12 "P" 15 "E" 18 "Ki" 1 "Mi" 2 "Gi" 3 "Ti" 4 "Pi" 5 "Ei" 6 -}}
{{- $number := float64 (trimSuffix $unit $text) -}}
{{- if eq $unit "m" -}}
{{- $number = divf $number 1000 -}}
{{- else if $unit -}}
{{- $base := hasSuffix "i" $unit | ternary 1024.0 1000.0 -}}
{{- range until (int (div (int (index $powers $unit)) (hasSuffix "i" $unit | ternary 1 3))) -}}
{{- $number = mulf $number $base -}}
{{- end -}}
{{- end -}}
{{- $number -}}
{{- end }}
