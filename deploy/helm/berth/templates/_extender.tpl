{{/*
What an extender of kube-scheduler has of an object of a half, as a JSON list: the binder is one replica that asks for a
certificate, has its own Service and no disruption budget, and the webhook for pods without a share is left out. It follows src/cli/manifests/extender.rs. Input: the object.
*/}}
{{- define "berth.extender" -}}
{{- $object := . -}}
{{- $isBinder := eq $object.metadata.name "berth-binder" -}}
{{- if and $isBinder (eq $object.kind "PodDisruptionBudget") -}}
[]
{{- else if and $isBinder (eq $object.kind "Deployment") -}}
{{- $_ := include "berth.extender.deployment" $object.spec -}}
{{- list $object | toJson -}}
{{- else if eq $object.kind "MutatingWebhookConfiguration" -}}
{{- $kept := list -}}
{{- range $webhook := $object.webhooks -}}
{{- if ne $webhook.name "adopt.berth.dev" -}}{{- $kept = append $kept $webhook -}}{{- end -}}
{{- end -}}
{{- $_ := set $object "webhooks" $kept -}}
{{- list $object | toJson -}}
{{- else if and (eq $object.kind "Service") (eq $object.metadata.name "berth") -}}
{{- $own := deepCopy $object -}}
{{- $_ := set $own.metadata "name" "berth-extender" -}}
{{- $_ := set $own.metadata.labels "app.kubernetes.io/component" "binder" -}}
{{- $_ := set $own.spec.selector "app.kubernetes.io/component" "binder" -}}
{{- list $object $own | toJson -}}
{{- else -}}
{{- list $object | toJson -}}
{{- end -}}
{{- end -}}

{{/* Makes the spec of the binder's Deployment that of an extender, in place. Input: the spec. */}}
{{- define "berth.extender.deployment" -}}
{{- $folder := "/etc/berth-extender" -}}
{{- $pod := .template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set . "replicas" 1 -}}
{{- $_ := set . "strategy" (dict "type" "Recreate") -}}
{{- $_ := unset $pod "affinity" -}}
{{- $args := append $container.args "--extender" -}}
{{- $args = concat $args (list "--tls-cert-file" (printf "%s/tls.crt" $folder)) -}}
{{- $args = concat $args (list "--tls-private-key-file" (printf "%s/tls.key" $folder)) -}}
{{- $args = concat $args (list "--client-ca-file" (printf "%s/ca.crt" $folder)) -}}
{{- $_ := set $container "args" $args -}}
{{- $mount := dict "name" "extender" "mountPath" $folder "readOnly" true -}}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts $mount) -}}
{{- $items := list -}}
{{- range $key := list "ca.crt" "tls.crt" "tls.key" -}}
{{- $items = append $items (dict "key" $key "path" $key) -}}
{{- end -}}
{{- $secret := dict "secretName" "berth-extender-tls" "items" $items -}}
{{- $_ := set $pod "volumes" (append $pod.volumes (dict "name" "extender" "secret" $secret)) -}}
{{- end -}}
