{{/* What all pods have in common. */}}

{{- define "holdfast.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "holdfast.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Where pods run. dict root, component, values */}}
{{- define "holdfast.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if or .values.topologySpread.zones .values.topologySpread.hosts }}
topologySpreadConstraints:
  {{- with .values.topologySpread.zones }}
  - topologyKey: topology.kubernetes.io/zone
    maxSkew: 1
    whenUnsatisfiable: {{ . }}
    labelSelector:
      matchLabels:
        {{- include "holdfast.selector" $ | nindent 8 }}
  {{- end }}
  {{- with .values.topologySpread.hosts }}
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: {{ . }}
    labelSelector:
      matchLabels:
        {{- include "holdfast.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* dict root, component, values. `holdfast/scrape` selects what the metrics Service looks at. */}}
{{- define "holdfast.podMetadata" -}}
labels:
  {{- include "holdfast.selector" . | nindent 2 }}
  {{- with .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if ne .component "etcd" }}
  holdfast/scrape: "true"
  {{- end }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $chartMade := eq .root.Values.certificates.mode "chart" }}
{{- if or (ne .component "etcd") $chartMade .values.podAnnotations }}
annotations:
  {{- if ne .component "etcd" }}
  checksum/config: {{ include "holdfast.configOf" . | sha256sum }}
  {{- end }}
  {{- if $chartMade }}
  checksum/certificates: {{ include "holdfast.certificateSum" . }}
  {{- end }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Environment of every process: its name is its pod's. dict values */}}
{{- define "holdfast.env" -}}
- name: HOLDFAST_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "holdfast.mounts" -}}
- name: config
  mountPath: /etc/holdfast
  readOnly: true
- name: tls
  mountPath: /etc/holdfast-tls
  readOnly: true
{{- if and (not .Values.etcd.enabled) .Values.externalEtcd.tls.existingSecret }}
- name: etcd-tls
  mountPath: /etc/holdfast-etcd-tls
  readOnly: true
{{- end }}
{{- end -}}

{{/* dict root, component */}}
{{- define "holdfast.volumes" -}}
- name: config
  configMap:
    name: {{ include "holdfast.fullname" .root }}-config
- name: tls
  secret:
    secretName: {{ include "holdfast.certificateSecret" . }}
    defaultMode: 0440
{{- if and (not .root.Values.etcd.enabled) .root.Values.externalEtcd.tls.existingSecret }}
- name: etcd-tls
  secret:
    secretName: {{ .root.Values.externalEtcd.tls.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/*
Startup: the process answers at all. Readiness: /readyz, which asks for etcd, the cluster's record, and that replicas have caught up.
Liveness: /healthz, which says that the loop turns and nothing else: who waits for etcd lives.
dict liveness (failures, 10 s apart), startup (failures, 2 s apart; 60 unless given)
*/}}
{{- define "holdfast.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: {{ default 60 .startup }}
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: {{ .liveness }}
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}
