{{/*
What a shadow has of an object, as a JSON list: the object under its own name, with rights to read alone, or nothing. It
follows src/cli/manifests/shadow.rs. Input: the object.
*/}}
{{- define "berth.shadow" -}}
{{- $object := . -}}
{{- $name := "berth-shadow" -}}
{{- $bound := dig "roleRef" "name" "" $object -}}
{{- $role := "" -}}
{{- if eq $object.metadata.name "berth-api" -}}
{{- else if has $object.kind (list "ServiceAccount" "ConfigMap" "Service" "Deployment") -}}
{{- $role = $name -}}
{{- else if and (eq $object.kind "ClusterRole") (eq $object.metadata.name "berth:binder") -}}
{{- $role = "berth:shadow" -}}
{{- else if and (eq $object.kind "ClusterRoleBinding") (eq $bound "berth:binder") -}}
{{- $role = "berth:shadow" -}}
{{- end -}}
{{- if $role -}}
{{- $_ := set $object.metadata "name" $role -}}
{{- $_ := set $object.metadata.labels "app.kubernetes.io/name" $name -}}
{{- if eq $object.kind "ClusterRole" -}}
{{- $_ := include "berth.shadow.rules" $object -}}
{{- else if eq $object.kind "ClusterRoleBinding" -}}
{{- $_ := set $object.roleRef "name" $role -}}
{{- $_ := set (first $object.subjects) "name" $name -}}
{{- else if eq $object.kind "Service" -}}
{{- $_ := set $object.spec.selector "app.kubernetes.io/name" $name -}}
{{- $port := first $object.spec.ports -}}
{{- $_ := set $port "name" "https" -}}
{{- $_ := set $port "targetPort" "https" -}}
{{- else if eq $object.kind "Deployment" -}}
{{- $_ := include "berth.shadow.deployment" (dict "spec" $object.spec "name" $name) -}}
{{- end -}}
{{- list $object | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* Leaves the verbs that read, and the rules that have some, in place. Input: the ClusterRole. */}}
{{- define "berth.shadow.rules" -}}
{{- $kept := list -}}
{{- range $rule := .rules -}}
{{- $verbs := list -}}
{{- range $rule.verbs -}}{{- if has . (list "get" "list" "watch") -}}{{- $verbs = append $verbs . -}}{{- end -}}{{- end -}}
{{- if $verbs -}}{{- $kept = append $kept (set $rule "verbs" $verbs) -}}{{- end -}}
{{- end -}}
{{- $_ := set . "rules" $kept -}}
{{- end -}}

{{/* Makes the spec of a Deployment that of a shadow, in place. Input: spec, name. */}}
{{- define "berth.shadow.deployment" -}}
{{- $template := .spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set .spec "replicas" 1 -}}
{{- $_ := set .spec.selector.matchLabels "app.kubernetes.io/name" .name -}}
{{- $_ := set $template.metadata.labels "app.kubernetes.io/name" .name -}}
{{- $_ := set $pod "serviceAccountName" .name -}}
{{- $_ := unset $pod "affinity" -}}
{{- $_ := unset $pod "priorityClassName" -}}
{{- range $volume := $pod.volumes -}}
{{- with $volume.configMap -}}{{- $_ := set . "name" $.name -}}{{- end -}}
{{- end -}}
{{- $_ := set $container "args" (append $container.args "--shadow") -}}
{{- $_ := set (first $container.ports) "name" "https" -}}
{{- range $probe := list "startupProbe" "livenessProbe" "readinessProbe" -}}
{{- $_ := set (get $container $probe).httpGet "port" "https" -}}
{{- end -}}
{{- end -}}
