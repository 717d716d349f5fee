{{/* The configuration file of each process: what the chart decides, then the user's options. */}}

{{- define "holdfast.sharedConfig" -}}
cluster: {{ include "holdfast.cluster" .root | quote }}
metrics_host: 0.0.0.0
metrics_port: 7409
etcd: {{ include "holdfast.etcdEndpoints" .root }}
{{- if .root.Values.etcd.enabled }}
etcd_ca: /etc/holdfast-tls/ca.crt
etcd_cert: /etc/holdfast-tls/tls.crt
etcd_key: /etc/holdfast-tls/tls.key
{{- else if .root.Values.externalEtcd.tls.existingSecret }}
etcd_ca: /etc/holdfast-etcd-tls/ca.crt
{{- if .root.Values.externalEtcd.tls.clientCertificate }}
etcd_cert: /etc/holdfast-etcd-tls/tls.crt
etcd_key: /etc/holdfast-etcd-tls/tls.key
{{- end }}
{{- end }}
tls_ca: /etc/holdfast-tls/ca.crt
tls_cert: /etc/holdfast-tls/tls.crt
tls_key: /etc/holdfast-tls/tls.key
tls_names: {{ .root.Values.certificates.names }}
log_level: {{ .root.Values.log.level }}
log_format: {{ .root.Values.log.format }}
{{- range $key, $value := .values.config }}
{{ $key }}: {{ if kindIs "float64" $value }}{{ int64 $value }}{{ else }}{{ toJson $value }}{{ end }}
{{- end }}
{{- end -}}

{{/* dict root, component, values */}}
{{- define "holdfast.configOf" -}}
{{ include "holdfast.sharedConfig" . }}
{{- if eq .component "node" }}
listen: 0.0.0.0:7401
peer_listen: 0.0.0.0:7402
data_dir: /var/lib/holdfast/data
{{- else if eq .component "router" }}
listen: 0.0.0.0:7400
access: {{ .root.Values.apiKeys.access }}
drain_timeout: {{ .values.drainTimeoutSeconds }}s
{{- if .values.tls.enabled }}
public_tls_cert: /etc/holdfast-public-tls/tls.crt
public_tls_key: /etc/holdfast-public-tls/tls.key
{{- end }}
{{- with .values.playerTokens }}
{{- if or .url .existingSecret }}
player_keys: {{ default "/etc/holdfast-player-keys/jwks.json" .url | quote }}
{{- if and .url .existingSecret }}
player_keys_ca: /etc/holdfast-player-keys/ca.crt
{{- end }}
player_audience: {{ required "router.playerTokens.audience: what a token has to name in aud" .audience | quote }}
player_issuer: {{ .issuer | quote }}
{{- end }}
{{- end }}
{{- else }}
listen: 0.0.0.0:7301
shard_count: {{ int .root.Values.cluster.shardCount }}
replication_factor: {{ int .root.Values.cluster.replicationFactor }}
currencies: {{ toJson .root.Values.cluster.currencies }}
{{- end }}
{{- end -}}
