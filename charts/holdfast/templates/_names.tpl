{{/* Names, labels and images. Every template here takes the root, or a dict with `root`. */}}

{{- define "holdfast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.cluster" -}}
{{- $name := default (include "holdfast.fullname" .) .Values.cluster.name -}}
{{- if not (regexMatch "^[a-z0-9-]{1,63}$" $name) -}}
{{- fail (printf "cluster.name %q: 1 to 63 of a-z, 0-9 and dash; set cluster.name" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* What selects pods; never changes. dict root, component */}}
{{- define "holdfast.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* dict root, component */}}
{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: holdfast
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "holdfast.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "holdfast.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* dict image, tag */}}
{{- define "holdfast.imageOf" -}}
{{- printf "%s:%s" .image.repository .tag -}}{{- with .image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "holdfast.image" -}}
{{- include "holdfast.imageOf" (dict "image" .Values.image "tag" (default .Chart.AppVersion .Values.image.tag)) -}}
{{- end -}}

{{/* The etcd image, if its version is one that Holdfast may trust. */}}
{{- define "holdfast.etcdImage" -}}
{{- $tag := .Values.etcd.image.tag -}}
{{- $version := regexFind "[0-9]+\\.[0-9]+\\.[0-9]+" $tag -}}
{{- if not $version -}}
{{- fail (printf "etcd.image.tag %q does not tell a version" $tag) -}}
{{- else if not (semverCompare ">=3.5.28 <3.6.0 || >=3.6.9" $version) -}}
{{- fail (printf "etcd.image.tag %q: at least 3.5.28 or 3.6.9 is needed; older ones revoke leases from a deposed leader" $tag) -}}
{{- end -}}
{{- include "holdfast.imageOf" (dict "image" .Values.etcd.image "tag" $tag) -}}
{{- end -}}

{{/* DNS suffix of the pods behind a headless service. dict root, component */}}
{{- define "holdfast.headless" -}}
{{- printf "%s-%s.%s.svc.%s" (include "holdfast.fullname" .root) .component .root.Release.Namespace .root.Values.clusterDomain -}}
{{- end -}}

{{/* JSON list of etcd's URLs. */}}
{{- define "holdfast.etcdEndpoints" -}}
{{- if .Values.etcd.enabled -}}
{{- $urls := list -}}
{{- $domain := include "holdfast.headless" (dict "root" . "component" "etcd") -}}
{{- range $i := until (int .Values.etcd.replicas) -}}
{{- $urls = append $urls (printf "https://%s-etcd-%d.%s:2379" (include "holdfast.fullname" $) $i $domain) -}}
{{- end -}}
{{- toJson $urls -}}
{{- else -}}
{{- if not .Values.externalEtcd.endpoints -}}
{{- fail "etcd.enabled is false: set externalEtcd.endpoints" -}}
{{- end -}}
{{- toJson .Values.externalEtcd.endpoints -}}
{{- end -}}
{{- end -}}
