{{/* The chart's own keys, as JSON: name -> the secret that holds it, empty where the chart makes one. */}}
{{- define "holdfast.ownKeys" -}}
{{- $own := dict "operator" .Values.apiKeys.operator.existingSecret -}}
{{- if .Values.test.enabled -}}{{- $_ := set $own "test" .Values.test.existingSecret -}}{{- end -}}
{{- toJson $own -}}
{{- end -}}

{{/* JSON list of all keys that are registered: [{name, secret, scopes, authority}], authority where the key has one. */}}
{{- define "holdfast.allKeys" -}}
{{- $full := include "holdfast.fullname" . -}}
{{- $scopes := dict "operator" (list "admin" "read") "test" (list "game") -}}
{{- $all := list -}}
{{- range $name, $existing := include "holdfast.ownKeys" . | fromJson -}}
{{- $secret := default (printf "%s-%s-key" $full $name) $existing -}}
{{- $all = append $all (dict "name" $name "secret" $secret "scopes" (index $scopes $name)) -}}
{{- end -}}
{{- range .Values.apiKeys.register -}}
{{- if or (eq .name "operator") (eq .name "test") -}}
{{- fail (printf "apiKeys.register: the name %q is the chart's own" .name) -}}
{{- end -}}
{{- if and .authority (not (has (trimPrefix "system:" .authority) .scopes)) -}}
{{- fail (printf "apiKeys.register: the key %q has the authority %q, and not that scope" .name .authority) -}}
{{- end -}}
{{- $all = append $all . -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* For `holdfast key`: the cluster's etcd, as the processes' configuration files have it. */}}
{{- define "holdfast.etcdEnv" -}}
- name: HOLDFAST_CLUSTER
  value: {{ include "holdfast.cluster" . | quote }}
- name: HOLDFAST_ETCD
  value: {{ include "holdfast.etcdEndpoints" . | fromJsonArray | join "," | quote }}
{{- $directory := "" }}
{{- if .Values.etcd.enabled }}{{ $directory = "/etc/holdfast-tls" }}
{{- else if .Values.externalEtcd.tls.existingSecret }}{{ $directory = "/etc/holdfast-etcd-tls" }}{{ end }}
{{- if $directory }}
- name: HOLDFAST_ETCD_CA
  value: {{ $directory }}/ca.crt
{{- if or .Values.etcd.enabled .Values.externalEtcd.tls.clientCertificate }}
- name: HOLDFAST_ETCD_CERT
  value: {{ $directory }}/tls.crt
- name: HOLDFAST_ETCD_KEY
  value: {{ $directory }}/tls.key
{{- end }}
{{- end }}
{{- end -}}
