{{- /* A quantity of Kubernetes, such as 10Gi or 512M, in bytes, times a share: (dict "quantity" "10Gi" "share" 0.9). */}}
{{- define "groundwork.bytes" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000
  "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $quantity := toString .quantity -}}
{{- $unit := regexFind "[A-Za-z]*$" $quantity -}}
{{- if not (hasKey $units $unit) -}}
{{- fail (printf "%s is no quantity that this chart can reckon with: write it as 512Mi, 10Gi or 1Ti." $quantity) -}}
{{- end -}}
{{- mulf (float64 (trimSuffix $unit $quantity)) (get $units $unit) .share | int64 -}}
{{- end -}}
