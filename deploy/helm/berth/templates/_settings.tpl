{{/*
What the settings (berth.yaml, the value `config`) change in the objects, as JSON:
  literals    a name that the manifests have in CEL expressions, and the text that takes its place
  schedulers  the schedulers of shares, as a CEL list
  agents      the users that may write assignments by name, as a CEL list
  optOut      whether namespaces come in unasked
  preempts    whether pods are preempted
  evicts      whether pods are evicted: those of gangs, and those of a revocable zone that closes
  claims      whether claims of devices are served
  unmanaged, protection  the actions of the policies
  workloads   further kinds, as in the settings
  config      the text, where there is one
It follows src/cli/manifests/settings.rs. The program checks the settings; the chart reads what it needs of them.
*/}}
{{- define "berth.settings" -}}
{{- $names := .Files.Get "names.yaml" | fromYaml -}}
{{- $config := .Values.config | fromYaml -}}
{{- if hasKey $config "Error" -}}
{{- fail (printf "the value `config` is not the text of a berth.yaml: %s" $config.Error) -}}
{{- end -}}
{{- $schedulers := concat (list ($config.schedulerName | default "berth")) $names.schedulers -}}
{{- range $config.adoptSchedulers -}}
{{- if ne . $names.withoutShares -}}{{- $schedulers = append $schedulers . -}}{{- end -}}
{{- end -}}
{{- $agents := list -}}
{{- range .Values.agents -}}
{{- $agents = append $agents (printf "'system:serviceaccount:%s'" (replace "/" ":" .)) -}}
{{- end -}}
{{- $unmanaged := get (dict "warn" "Warn" "deny" "Deny" "allow" "Audit") ($config.unmanagedPods | default "warn") -}}
{{- if not $unmanaged -}}
{{- fail "config: unmanagedPods: must be `warn` or `deny` or `allow`" -}}
{{- end -}}
{{- $warn := list "Warn" "Audit" -}}
{{- $deny := list "Deny" -}}
{{- $auto := ternary $deny $warn (not (empty .Values.agents)) -}}
{{- $protection := get (dict "auto" $auto "warn" $warn "deny" $deny) ($config.protection | default "auto") -}}
{{- if not $protection -}}
{{- fail "config: protection: must be `auto` or `warn` or `deny`" -}}
{{- end -}}
{{- $optOut := get (dict "opt-in" "false" "opt-out" "true") ($config.scope | default "opt-in") -}}
{{- if not $optOut -}}
{{- fail "config: scope: must be `opt-in` or `opt-out`" -}}
{{- end -}}
{{- $preemption := get (get $config "scheduling" | default dict) "preemption" | default dict -}}
{{- $gangs := get (get $config "scheduling" | default dict) "gangs" | default dict -}}
{{- $claims := get (get $config "scheduling" | default dict) "claims" | default dict -}}
{{- $evicts := ne (get $gangs "enabled" | toString) "false" -}}
{{- $volcano := get (get $config "dialects" | default dict) "volcano" | default dict -}}
{{- if ne (get $volcano "enabled" | toString) "false" -}}
{{- range $key, $_ := get $volcano "arguments" | default dict -}}
{{- if hasPrefix "tdm.revocable-zone." $key -}}{{- $evicts = true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- dict
  "literals" (include "berth.literals" (dict "names" $names "config" $config) | fromJson)
  "schedulers" (printf "['%s']" (uniq $schedulers | join "', '"))
  "agents" (printf "[%s]" (join ", " $agents))
  "optOut" (eq $optOut "true")
  "checksTokens" (eq (get (get $config "metrics" | default dict) "authentication" | toString) "token")
  "evicts" $evicts
  "claims" (ne (get $claims "enabled" | toString) "false")
  "preempts" (ne (get $preemption "enabled" | toString) "false")
  "unmanaged" $unmanaged
  "protection" $protection
  "workloads" ($config.workloads | default list)
  "config" .Values.config
| toJson -}}
{{- end -}}

{{/* The names that the settings give resources and the scheduler, and the names that further vendors add, as JSON. */}}
{{- define "berth.literals" -}}
{{- $hami := get (get .config "dialects" | default dict) "hami" | default dict -}}
{{- $nvidia := get $hami "nvidia" | default $hami -}}
{{- $hygon := get $hami "hygon" | default dict -}}
{{- $literals := dict "berth" (.config.schedulerName | default "berth") -}}
{{- range .names.nvidia -}}
{{- $_ := set $literals .name (get $nvidia .key | default .name) -}}
{{- end -}}
{{- range .names.hygon -}}
{{- $_ := set $literals .name (get $hygon .key | default .name) -}}
{{- end -}}
{{- $added := include "berth.vendors" (dict "names" .names "hami" $hami) | fromJson -}}
{{- $count := (first .names.hygon).name -}}
{{- $resources := prepend $added.resources (get $literals $count) -}}
{{- $koordinator := get (get .config "dialects" | default dict) "koordinator" | default dict -}}
{{- if and (ne (get $koordinator "enabled" | toString) "false") (eq (get $koordinator "wholeCards" | toString) "true") -}}
{{- $shares := get $literals (first .names.nvidia).name -}}
{{- range .names.wholeCards -}}
{{- if not (or (eq . $shares) (has . $resources)) -}}{{- $resources = append $resources . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $literals $count ($resources | join "', '") -}}
{{- $_ := set $literals .names.lastHint (prepend $added.hints .names.lastHint | join "', '") -}}
{{- $koordinator := get (get .config "dialects" | default dict) "koordinator" | default dict -}}
{{- if eq (get $koordinator "enabled" | toString) "false" -}}
{{- $_ := set $literals "koordinator.sh/" "-" -}}
{{- end -}}
{{- toJson $literals -}}
{{- end -}}

{{/* Resources and hints of the vendors that are not served by default, as JSON. */}}
{{- define "berth.vendors" -}}
{{- $hami := .hami -}}
{{- $resources := list -}}
{{- $hints := list -}}
{{- if ne (get $hami "enabled" | toString) "false" -}}
{{- range $family := .names.families -}}
{{- if hasKey $hami $family.section -}}
{{- $stated := get $hami $family.section | default dict -}}
{{- if ne (get $stated "enabled" | toString) "false" -}}
{{- range $family.resources -}}{{- $resources = append $resources (get $stated .key | default .name) -}}{{- end -}}
{{- $hints = concat $hints $family.hints -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $chips := .names.chips -}}
{{- if has (get $hami $chips.flag | toString) (list "true" "True" "TRUE" "t" "T" "1") -}}
{{- $listed := get $hami $chips.section -}}
{{- if kindIs "map" $listed -}}{{- $listed = get $listed "configs" -}}{{- end -}}
{{- if not (hasKey $hami $chips.section) -}}
{{- $listed = list -}}
{{- range $chips.words -}}{{- $listed = append $listed (dict "commonWord" .) -}}{{- end -}}
{{- end -}}
{{- range $chip := $listed -}}
{{- $pairs := has (get $chip "superPod" | toString) (list "true" "True" "TRUE" "t" "T" "1") -}}
{{- if not (or $pairs (has $chip.commonWord $chips.inPairs)) -}}
{{- range $chips.resources -}}
{{- $resources = append $resources (get $chip .key | default (replace "WORD" $chip.commonWord .name)) -}}
{{- end -}}
{{- range $chips.hints -}}{{- $hints = append $hints (replace "WORD" $chip.commonWord .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "resources" $resources "hints" $hints | toJson -}}
{{- end -}}
