{{- /*
How an API server takes members' tokens: the file of its flag --authentication-config, of the issuer's authority as PEM: (list
context ca). Names and groups have a prefix, so that no issuer makes anybody a `system:` one; a token counts a day at most.
*/ -}}
{{- define "trainyard.login.authentication" -}}
{{- $root := index . 0 -}}{{- $login := $root.Values.global.contract.login -}}
{{- $issuer := dict "url" $login.issuer "audiences" (list $login.clientId $login.notebooksClientId) "audienceMatchPolicy" "MatchAny" -}}
{{- with index . 1 }}{{ $_ := set $issuer "certificateAuthority" . }}{{ end -}}
{{- $day := dict "expression" "claims.exp - claims.iat <= 86400" "message" "the token is valid for more than a day" -}}
{{- $rules := list (dict "expression" "!user.username.startsWith('system:') && user.groups.all(group, !group.startsWith('system:'))" "message" "names that begin with system: are reserved") -}}
{{- with $login.blocked -}}
{{- $names := list }}{{ range . }}{{ $name := printf "%s%s" $login.prefix . }}{{ $names = append (append $names $name) (lower $name) }}{{ end -}}
{{- /* Issuers differ in whether Ada@ is ada@; who is blocked is so in any letters. */ -}}
{{- $rules = append $rules (dict "expression" (printf "![user.username, user.username.lowerAscii()].exists(name, name in %s)" (uniq $names | toJson)) "message" "this member is blocked") -}}
{{- end -}}
{{- $jwt := dict
      "issuer" $issuer
      "claimValidationRules" (list $day)
      "claimMappings" (dict "username" (dict "claim" $login.userClaim "prefix" $login.prefix) "groups" (dict "claim" $login.groupsClaim "prefix" $login.prefix))
      "userValidationRules" $rules -}}
{{- $version := semverCompare ">=1.34.0-0" $root.Capabilities.KubeVersion.Version | ternary "v1" "v1beta1" -}}
{{- toYaml (dict "apiVersion" (printf "apiserver.config.k8s.io/%s" $version) "kind" "AuthenticationConfiguration" "jwt" (list $jwt)) -}}
{{- end -}}
{{- /* What administrators of the API server and of kubeconfigs take from here: (list context ca labels). No secret. */ -}}
{{- define "trainyard.login.published" -}}
{{- $root := index . 0 -}}{{- $login := $root.Values.global.contract.login -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: trainyard-login
  namespace: {{ $root.Release.Namespace | quote }}
  labels: {{- index . 2 | nindent 4 }}
data:
  issuer: {{ $login.issuer | quote }}
  client-id: {{ $login.clientId | quote }}
  {{- with index . 1 }}
  ca.crt: {{ . | quote }}
  {{- end }}
  authentication.yaml: |
    {{- include "trainyard.login.authentication" (list $root (index . 1)) | nindent 4 }}
{{- end -}}
