{{/*
The objects of one file of manifests/, edited by values and settings, as YAML documents. Input: root, file.
`berth manifests` reads the same files (`webhook-config` is a link to the folder), so the two can't differ in an object.
*/}}
{{- define "berth.objects" -}}
{{- $settings := include "berth.settings" .root | fromJson -}}
{{- $text := .root.Files.Get .file -}}
{{- if not $text -}}{{- fail (printf "the chart has no file %s" .file) -}}{{- end -}}
{{- range $document := replace "berth-system" .root.Release.Namespace $text | splitList "\n---\n" -}}
{{- $object := fromYaml $document -}}
{{- range $object := include "berth.forms" (dict "object" $object "values" $.root.Values) | fromJsonArray -}}
{{- $_ := include "berth.edit" (dict "object" $object "settings" $settings "root" $.root) -}}
{{- $_ := include "berth.values" (dict "object" $object "root" $.root) -}}
{{- if not (include "berth.isOfNoUse" (dict "object" $object "values" $.root.Values)) }}
---
{{ toYaml $object }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Changes an object in place. Input: object, settings, root. */}}
{{- define "berth.edit" -}}
{{- $object := .object -}}
{{- $values := .root.Values -}}
{{- $kind := $object.kind -}}
{{- if eq $kind "ConfigMap" -}}
{{- if .settings.config -}}{{- $_ := set $object.data "berth.yaml" .settings.config -}}{{- end -}}
{{- else if eq $kind "Deployment" -}}
{{- $_ := include "berth.deployment" (dict "object" $object "root" .root) -}}
{{- else if has $kind (list "MutatingWebhookConfiguration" "ValidatingWebhookConfiguration") -}}
{{- if $values.certManager.enabled -}}
{{- $from := printf "%s/berth-webhook" .root.Release.Namespace -}}
{{- $_ := set $object.metadata "annotations" (dict "cert-manager.io/inject-ca-from" $from) -}}
{{- end -}}
{{- range $webhook := $object.webhooks -}}
{{- $_ := include "berth.webhook" (dict "webhook" $webhook "settings" $.settings "url" $values.webhook.url) -}}
{{- end -}}
{{- else if eq $kind "ValidatingAdmissionPolicy" -}}
{{- $_ := include "berth.policy" (dict "spec" $object.spec "settings" .settings) -}}
{{- else if eq $kind "ValidatingAdmissionPolicyBinding" -}}
{{- $name := $object.metadata.name -}}
{{- if eq $name "berth-unmanaged.berth.dev" -}}
{{- $_ := set $object.spec "validationActions" (list .settings.unmanaged) -}}
{{- else if has $name (list "berth-assignments.berth.dev" "berth-nodes.berth.dev") -}}
{{- $_ := set $object.spec "validationActions" .settings.protection -}}
{{- end -}}
{{- else if eq $kind "ClusterRole" -}}
{{- $registers := and (eq $object.metadata.name "berth:webhook") $values.certManager.enabled -}}
{{- $kept := list -}}
{{- range $rule := $object.rules -}}
{{- $group := first ($rule.apiGroups | default (list "")) -}}
{{- $registration := and $registers (eq $group "admissionregistration.k8s.io") -}}
{{- $deletion := and (not $.settings.preempts) (eq (toJson $rule.resources) `["pods"]`) (eq (toJson $rule.verbs) `["delete"]`) -}}
{{- $eviction := and (not $.settings.evicts) (eq (toJson $rule.resources) `["pods/eviction"]`) -}}
{{- $claims := and (not $.settings.claims) (eq $group "resource.k8s.io") -}}
{{- if not (or $registration $deletion $eviction $claims) -}}{{- $kept = append $kept $rule -}}{{- end -}}
{{- end -}}
{{- if and (eq $object.metadata.name "berth:webhook") .settings.checksTokens -}}
{{- range $group, $resource := dict "authentication.k8s.io" "tokenreviews" "authorization.k8s.io" "subjectaccessreviews" -}}
{{- $kept = append $kept (dict "apiGroups" (list $group) "resources" (list $resource) "verbs" (list "create")) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $object "rules" $kept -}}
{{- end -}}
{{- end -}}

{{/*
Not empty: the object is of no use. cert-manager keeps the certificate, so the right to the Secret is not needed; another issuer signs it; a disruption
budget of one replica would keep its node from being drained. Input: object, values.
*/}}
{{- define "berth.isOfNoUse" -}}
{{- if and (eq .object.kind "PodDisruptionBudget") (or (eq (int .values.replicas) 1) (not .values.podDisruptionBudget.enabled)) -}}true{{- end -}}
{{- if and .values.certManager.issuerRef (has .object.kind (list "Issuer" "Certificate")) (ne .object.metadata.name "berth-webhook") -}}true{{- end -}}
{{- if and .values.certManager.enabled (has .object.kind (list "Role" "RoleBinding")) -}}
{{- if eq .object.metadata.name "berth:webhook" -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Changes one webhook in place. Input: webhook, settings, url. */}}
{{- define "berth.webhook" -}}
{{- $webhook := .webhook -}}
{{- if .url -}}
{{- $url := printf "%s%s" (regexReplaceAll "/+$" .url "") $webhook.clientConfig.service.path -}}
{{- $_ := set $webhook "clientConfig" (dict "url" $url) -}}
{{- end -}}
{{- if eq $webhook.name "custom-workload.berth.dev" -}}
{{- range .settings.workloads -}}
{{- $plural := .plural | default (printf "%ss" (lower .kind)) -}}
{{- $rule := dict "apiGroups" (list (.apiGroup | default "")) "apiVersions" (list "*")
  "operations" (list "CREATE" "UPDATE") "resources" (list $plural) "scope" "Namespaced" -}}
{{- $_ := set $webhook "rules" (append $webhook.rules $rule) -}}
{{- end -}}
{{- end -}}
{{- $_ := include "berth.scope" (dict "selector" $webhook.namespaceSelector "settings" .settings) -}}
{{- range $condition := $webhook.matchConditions -}}
{{- $_ := set $condition "expression" (include "berth.expression" (dict "text" .expression "settings" $.settings)) -}}
{{- end -}}
{{- end -}}

{{/* Changes the spec of a policy in place. Input: spec, settings. */}}
{{- define "berth.policy" -}}
{{- $spec := .spec -}}
{{- with $spec.matchConstraints.namespaceSelector -}}
{{- $_ := include "berth.scope" (dict "selector" . "settings" $.settings) -}}
{{- end -}}
{{- range $one := concat ($spec.matchConditions | default list) ($spec.variables | default list) $spec.validations -}}
{{- $expression := include "berth.expression" (dict "text" .expression "settings" $.settings) -}}
{{- if has (get $one "name") (list "schedulers" "agents") -}}{{- $expression = get $.settings $one.name -}}{{- end -}}
{{- $_ := set $one "expression" $expression -}}
{{- end -}}
{{- end -}}

{{/* Lets in all namespaces that are not labelled otherwise, where the settings say so. Input: selector, settings. */}}
{{- define "berth.scope" -}}
{{- if .settings.optOut -}}
{{- range $requirement := .selector.matchExpressions -}}
{{- if eq .key "berth.dev/admission" -}}
{{- $_ := set $requirement "operator" "NotIn" -}}
{{- $_ := set $requirement "values" (list "ignore") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A CEL expression with each string literal in its new name. Input: text, settings. */}}
{{- define "berth.expression" -}}
{{- $parts := list -}}
{{- range $at, $part := splitList "'" .text -}}
{{- if and (eq (mod $at 2) 1) (hasKey $.settings.literals $part) -}}
{{- $parts = append $parts (get $.settings.literals $part) -}}
{{- else -}}
{{- $parts = append $parts $part -}}
{{- end -}}
{{- end -}}
{{- join "'" $parts -}}
{{- end -}}
