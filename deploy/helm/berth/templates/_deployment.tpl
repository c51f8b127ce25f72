{{/*
The objects that are made of one, as a JSON list: those of a shadow, of an extender, of two halves, or the object alone.
Input: object, values.
*/}}
{{- define "berth.forms" -}}
{{- if .values.shadow -}}
{{- include "berth.shadow" .object -}}
{{- else if .values.extender -}}
{{- $objects := list -}}
{{- range $object := include "berth.halves" (dict "object" .object "split" true) | fromJsonArray -}}
{{- $objects = concat $objects (include "berth.extender" $object | fromJsonArray) -}}
{{- end -}}
{{- toJson $objects -}}
{{- else -}}
{{- include "berth.halves" (dict "object" .object "split" .values.split) -}}
{{- end -}}
{{- end -}}

{{/*
An object as a JSON list: alone, or once for the webhook and once for the binder where they are split. It follows
src/cli/manifests/split.rs. Input: object, split.
*/}}
{{- define "berth.halves" -}}
{{- $object := .object -}}
{{- $webhook := dict "name" "berth-webhook" "component" "webhook" "flag" "--webhook-only" -}}
{{- $binder := dict "name" "berth-binder" "component" "binder" "flag" "--scheduler-only" -}}
{{- $objects := list $object -}}
{{- if .split -}}
{{- if has $object.kind (list "ServiceAccount" "PodDisruptionBudget" "Deployment") -}}
{{- $objects = list -}}
{{- range $half := list $webhook $binder -}}
{{- $own := deepCopy $object -}}
{{- $_ := include "berth.half" (dict "object" $own "half" $half) -}}
{{- $objects = append $objects $own -}}
{{- end -}}
{{- else if has $object.kind (list "ClusterRoleBinding" "RoleBinding") -}}
{{- $half := ternary $webhook $binder (eq $object.roleRef.name "berth:webhook") -}}
{{- $_ := set (first $object.subjects) "name" $half.name -}}
{{- else if eq $object.kind "Service" -}}
{{- $half := ternary $binder $webhook (eq $object.metadata.name "berth-api") -}}
{{- $_ := set $object.spec.selector "app.kubernetes.io/component" $half.component -}}
{{- else if eq $object.kind "FlowSchema" -}}
{{- $subject := first (first $object.spec.rules).subjects -}}
{{- $_ := set $subject.serviceAccount "name" $binder.name -}}
{{- end -}}
{{- end -}}
{{- toJson $objects -}}
{{- end -}}

{{/* Makes an object that of one half, in place. Input: object, half. */}}
{{- define "berth.half" -}}
{{- $object := .object -}}
{{- $component := dict "app.kubernetes.io/component" .half.component -}}
{{- $_ := set $object.metadata "name" .half.name -}}
{{- $_ := merge $object.metadata.labels $component -}}
{{- if $object.spec -}}{{- $_ := merge $object.spec.selector.matchLabels $component -}}{{- end -}}
{{- if eq $object.kind "Deployment" -}}
{{- $template := $object.spec.template -}}
{{- $_ := merge $template.metadata.labels $component -}}
{{- $_ := set $template.spec "serviceAccountName" .half.name -}}
{{- $others := first $template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution -}}
{{- $_ := merge $others.podAffinityTerm.labelSelector.matchLabels $component -}}
{{- $container := first $template.spec.containers -}}
{{- $_ := set $container "args" (append $container.args .half.flag) -}}
{{- end -}}
{{- end -}}

{{/* Changes a Deployment in place. Input: object, root. */}}
{{- define "berth.deployment" -}}
{{- $values := .root.Values -}}
{{- $template := .object.spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $isOne := or $values.shadow (eq (dig "strategy" "type" "" .object.spec) "Recreate") -}}
{{- if not $isOne -}}{{- $_ := set .object.spec "replicas" $values.replicas -}}{{- end -}}
{{- $image := printf "%s:%s" $values.image.repository ($values.image.tag | default .root.Chart.AppVersion) -}}
{{- with $values.image.digest -}}{{- $image = printf "%s@%s" $values.image.repository . -}}{{- end -}}
{{- $_ := set $container "image" $image -}}
{{- with $values.image.pullPolicy -}}{{- $_ := set $container "imagePullPolicy" . -}}{{- end -}}
{{- with $values.resources -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- with $values.podAnnotations -}}{{- $_ := set $template.metadata "annotations" . -}}{{- end -}}
{{- range $key := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" -}}
{{- with get $values $key -}}{{- $_ := set $pod $key . -}}{{- end -}}
{{- end -}}
{{- if and $values.certManager.enabled (not (has "--scheduler-only" $container.args)) -}}
{{- $files := list "--tls-cert-file" "/etc/berth-tls/tls.crt" "--tls-private-key-file" "/etc/berth-tls/tls.key" -}}
{{- $_ := set $container "args" (concat $container.args $files) -}}
{{- $mount := dict "name" "tls" "mountPath" "/etc/berth-tls" "readOnly" true -}}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts $mount) -}}
{{- $volume := dict "name" "tls" "secret" (dict "secretName" "berth-webhook-tls") -}}
{{- $_ := set $pod "volumes" (append $pod.volumes $volume) -}}
{{- end -}}
{{- if and (eq (toString $values.moves) "advise") (not (has "--webhook-only" $container.args)) -}}
{{- $_ := set $container "args" (append $container.args "--moves=advise") -}}
{{- end -}}
{{- $_ := set $container "args" (concat $container.args $values.extraArgs) -}}
{{- $_ := set $container "volumeMounts" (concat $container.volumeMounts $values.extraVolumeMounts) -}}
{{- $_ := set $pod "volumes" (concat $pod.volumes $values.extraVolumes) -}}
{{- end -}}
