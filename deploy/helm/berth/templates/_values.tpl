{{/*
What only the chart offers: values that change an object beside the options of `berth manifests`, in place. Without values nothing changes.
Input: object, root.
*/}}
{{- define "berth.values" -}}
{{- $object := .object -}}
{{- $values := .root.Values -}}
{{- $account := $values.serviceAccount -}}
{{- with $values.commonLabels -}}{{- $_ := set $object.metadata "labels" (merge $object.metadata.labels .) -}}{{- end -}}
{{- if eq $object.kind "ServiceAccount" -}}
{{- $_ := include "berth.account" (dict "fields" $object.metadata "key" "name" "values" $values) -}}
{{- with $account.annotations -}}{{- $_ := set $object.metadata "annotations" . -}}{{- end -}}
{{- else if has $object.kind (list "ClusterRoleBinding" "RoleBinding") -}}
{{- $_ := include "berth.account" (dict "fields" (first $object.subjects) "key" "name" "values" $values) -}}
{{- else if eq $object.kind "FlowSchema" -}}
{{- $subject := first (first $object.spec.rules).subjects -}}
{{- $_ := include "berth.account" (dict "fields" $subject.serviceAccount "key" "name" "values" $values) -}}
{{- else if eq $object.kind "Deployment" -}}
{{- $_ := include "berth.pods" (dict "object" $object "values" $values) -}}
{{- else if eq $object.kind "Certificate" -}}
{{- with $values.certManager.issuerRef -}}{{- $_ := set $object.spec "issuerRef" . -}}{{- end -}}
{{- else if has $object.kind (list "MutatingWebhookConfiguration" "ValidatingWebhookConfiguration") -}}
{{- range $webhook := $object.webhooks -}}
{{- $_ := include "berth.excluded" (dict "selector" $webhook.namespaceSelector "values" $values) -}}
{{- range $key, $value := get $values.webhook.overrides $webhook.name | default dict -}}{{- $_ := set $webhook $key $value -}}{{- end -}}
{{- end -}}
{{- else if eq $object.kind "ValidatingAdmissionPolicy" -}}
{{- with $object.spec.matchConstraints.namespaceSelector -}}
{{- $_ := include "berth.excluded" (dict "selector" . "values" $values) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Gives an account its name from the values: `berth` and what begins with `berth-` is renamed. Input: fields, key, values. */}}
{{- define "berth.account" -}}
{{- with .values.serviceAccount.name -}}
{{- $old := get $.fields $.key -}}
{{- if or (eq $old "berth") (hasPrefix "berth-" $old) -}}
{{- $_ := set $.fields $.key (printf "%s%s" . (trimPrefix "berth" $old)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Leaves further namespaces alone. Input: selector, values. */}}
{{- define "berth.excluded" -}}
{{- range $requirement := .selector.matchExpressions -}}
{{- if and $.values.webhook.excludedNamespaces (eq .key "kubernetes.io/metadata.name") -}}
{{- $_ := set $requirement "values" (concat .values $.values.webhook.excludedNamespaces | uniq) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Changes the pods of a Deployment. Input: object, values. */}}
{{- define "berth.pods" -}}
{{- $values := .values -}}
{{- $template := .object.spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels $values.podLabels $values.commonLabels) -}}
{{- $_ := include "berth.account" (dict "fields" $pod "key" "serviceAccountName" "values" $values) -}}
{{- with $values.priorityClassName -}}{{- $_ := set $pod "priorityClassName" . -}}{{- end -}}
{{- if $values.hostNetwork -}}
{{- $_ := set $pod "hostNetwork" true -}}
{{- $_ := set $pod "dnsPolicy" "ClusterFirstWithHostNet" -}}
{{- end -}}
{{- range $name := list "startup" "liveness" "readiness" -}}
{{- $key := printf "%sProbe" $name -}}
{{- with get $values.probes $name -}}{{- $_ := set $container $key (mergeOverwrite (get $container $key) .) -}}{{- end -}}
{{- end -}}
{{- end -}}
