{{/* Secret of a component's certificate. dict root, component */}}
{{- define "holdfast.certificateSecret" -}}
{{- if eq .root.Values.certificates.mode "existing" -}}
{{- $name := index .root.Values.certificates.existing .component -}}
{{- if not $name -}}
{{- fail (printf "certificates.mode is existing: set certificates.existing.%s" .component) -}}
{{- end -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s-tls" (include "holdfast.fullname" .root) .component -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.tlsComponents" -}}
{{- $all := list "node" "router" "coordinator" -}}
{{- if .Values.etcd.enabled -}}{{- $all = append $all "etcd" -}}{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/*
JSON list of the names in a certificate. Holdfast's processes prove their role by an identity
(docs/security.md); all pods of a component share one certificate, so its name is "any". Helm writes no
URIs, so here it is the DNS name that says the same. Host names are not compared; etcd's clients and members do compare, each name in full,
since members look a certificate's names up and want the caller's address among them.
dict root, component
*/}}
{{- define "holdfast.certificateNames" -}}
{{- $full := include "holdfast.fullname" .root -}}
{{- $names := list (printf "%s-%s" $full .component) -}}
{{- if and (ne .component "etcd") (eq .root.Values.certificates.mode "chart") -}}
{{- $names = append $names (printf "*.%s.%s.id.holdfast.internal" .component (include "holdfast.cluster" .root)) -}}
{{- end -}}
{{- if eq .component "etcd" -}}
{{- $domain := include "holdfast.headless" . -}}
{{- range $i := until (int .root.Values.etcd.replicas) -}}
{{- $names = append $names (printf "%s-etcd-%d.%s" $full $i $domain) -}}
{{- end -}}
{{- $names = append $names "localhost" -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/*
mode chart: fills .Values.certificatesMade once a rendering, so that secrets and checksums agree:
{ca: {cert, key}, node: {cert, key}, ...}, all base64. What the cluster has already is kept.
*/}}
{{- define "holdfast.makeCertificates" -}}
{{- if not (hasKey .Values "certificatesMade") -}}
{{- $full := include "holdfast.fullname" . -}}
{{- $days := int .Values.certificates.validityDays -}}
{{- $made := dict -}}
{{- $ca := dict -}}
{{- $old := lookup "v1" "Secret" .Release.Namespace (printf "%s-ca" $full) -}}
{{- if $old -}}
{{- $ca = buildCustomCert (index $old.data "tls.crt") (index $old.data "tls.key") -}}
{{- else -}}
{{- $ca = genCA (printf "%s CA" $full) $days -}}
{{- end -}}
{{- $_ := set $made "ca" (dict "cert" (b64enc $ca.Cert) "key" (b64enc $ca.Key)) -}}
{{- range $component := include "holdfast.tlsComponents" . | fromJsonArray -}}
{{- $secret := lookup "v1" "Secret" $.Release.Namespace (printf "%s-%s-tls" $full $component) -}}
{{- $identity := printf "holdfast://%s/%s/*" (include "holdfast.cluster" $) $component -}}
{{- $named := or (eq $component "etcd") (eq (dig "metadata" "annotations" "holdfast/identity" "" $secret) $identity) -}}
{{- if and $old $secret $named -}}
{{- $_ := set $made $component (dict "cert" (index $secret.data "tls.crt") "key" (index $secret.data "tls.key")) -}}
{{- else -}}
{{- $names := include "holdfast.certificateNames" (dict "root" $ "component" $component) | fromJsonArray -}}
{{- $leaf := genSignedCert (printf "%s-%s" $full $component) nil $names $days $ca -}}
{{- $_ := set $made $component (dict "cert" (b64enc $leaf.Cert) "key" (b64enc $leaf.Key)) -}}
{{- end -}}
{{- end -}}
{{- $_ := set .Values "certificatesMade" $made -}}
{{- end -}}
{{- end -}}

{{/* dict root, component */}}
{{- define "holdfast.certificateSum" -}}
{{- include "holdfast.makeCertificates" .root -}}
{{- $made := .root.Values.certificatesMade -}}
{{- printf "%s%s" $made.ca.cert (index $made .component).cert | sha256sum -}}
{{- end -}}
