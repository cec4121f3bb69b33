{{- define "rocketfleet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "rocketfleet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "rocketfleet.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "rocketfleet.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "rocketfleet.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "rocketfleet.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "rocketfleet.selector" -}}
app.kubernetes.io/name: {{ include "rocketfleet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "rocketfleet.labels" -}}
{{ include "rocketfleet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* (dict "image" .Values.image "chart" .Chart) → repository:tag or repository@digest */}}
{{- define "rocketfleet.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The rights in a namespace with ConsumerGroups. One list, for the ClusterRole and for the Roles. */}}
{{- define "rocketfleet.rules" -}}
- apiGroups: [rocketfleet.io]
  resources: [consumergroups]
  verbs: [get, list, watch, patch]
- apiGroups: [rocketfleet.io]
  resources: [consumergroups/status]
  verbs: [patch]
# Pods are owned with blockOwnerDeletion, which needs this where the cluster checks it.
- apiGroups: [rocketfleet.io]
  resources: [consumergroups/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# The control port's token, made by the operator, and the credentials that a ConsumerGroup names. Their names are not
# known beforehand, so the rule cannot list them; there is no list and no watch, so that Secrets are read by name only.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
