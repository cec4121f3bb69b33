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

{{/* (dict "image" .Values.image "name" "operator" "root" .) → repository:tag or repository@digest; empty if nobody said */}}
{{- define "rocketfleet.image" -}}
{{- $registry := .root.Values.imageRegistry -}}
{{- $repository := .image.repository | default (ternary (printf "%s/%s" $registry .name) "" (ne $registry "")) -}}
{{- if and $repository .image.digest -}}
{{- printf "%s@%s" $repository .image.digest -}}
{{- else if $repository -}}
{{- printf "%s:%s" $repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "rocketfleet.operatorImage" -}}
{{- include "rocketfleet.image" (dict "image" .Values.image "name" "operator" "root" .) | required "Where is the operator's image? Build it from the Dockerfile (docs/install.md), push it, and set imageRegistry, as in --set imageRegistry=registry.example/rocketfleet, or image.repository" -}}
{{- end -}}

{{- define "rocketfleet.workerImage" -}}
{{- include "rocketfleet.image" (dict "image" .Values.workerImage "name" "worker" "root" .) | required "Where is the worker's image? Set imageRegistry, as in --set imageRegistry=registry.example/rocketfleet, or workerImage.repository" -}}
{{- end -}}

{{/* `helm upgrade --reuse-values` takes the last release's values for all there are: what the chart has added since is not
among them, and would be rendered as nothing. */}}
{{- define "rocketfleet.allValues" -}}
{{- range list "workers" "leaseDurationSeconds" "renewDeadlineSeconds" "retryPeriodSeconds" "maxRollingGroups" "kubeApiQps" "kubeApiBurst" "logLevel" "logFormat" -}}
{{- if not (hasKey $.Values.operator .) -}}
{{- fail (printf "operator.%s is missing. If this is an upgrade with --reuse-values: that leaves out what the chart has added since. Use --reset-then-reuse-values instead" .) -}}
{{- end -}}
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
# The code of handlers and pipelines (codeConfigMap): read by name, to notice an edit and to roll it out.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
