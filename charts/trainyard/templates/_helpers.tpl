{{/* Labels of everything that the umbrella itself renders. */}}
{{- define "trainyard.labels" -}}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: trainyard-{{ .Chart.Version }}
{{- end }}

{{/* Where training-operator's certificate lies, and nothing else: the operator reads every Secret of that namespace. */}}
{{- define "trainyard.webhookNamespace" -}}
{{ .Release.Namespace }}-webhook
{{- end }}

{{/* Where the hub of notebooks is, and nothing else: it sees who is logged in. Then its account, by its user name. */}}
{{- define "trainyard.notebookNamespace" -}}
{{ .Release.Namespace }}-notebooks
{{- end }}
{{- /* By whom people log in to notebooks, as JSON: notebooks.oidc, or where that names no issuer what global.contract.login says. */ -}}
{{- define "trainyard.notebookOidc" -}}
{{- $oidc := deepCopy (default dict (default dict .Values.notebooks).oidc) -}}
{{- $login := dig "login" dict .Values.global.contract -}}
{{- if and (not $oidc.issuer) $login.issuer -}}
{{- $oidc = merge (dict "issuer" $login.issuer "clientId" $login.notebooksClientId "ca" (default "" $login.ca)
      "usernameClaim" $login.userClaim "groupsClaim" $login.groupsClaim "usernamePrefix" $login.prefix "groupsPrefix" $login.prefix) $oidc -}}
{{- end -}}
{{- toJson $oidc -}}
{{- end }}
{{- define "trainyard.notebookHub" -}}
system:serviceaccount:{{ include "trainyard.notebookNamespace" . }}:{{ .Release.Name }}-notebook-hub
{{- end }}

{{/* What a Secret of the release's namespace holds, decoded, as JSON; {} for one that isn't there: (list context name). */}}
{{- define "trainyard.secretData" -}}
{{- $data := dict -}}
{{- with lookup "v1" "Secret" (index . 0).Release.Namespace (index . 1) -}}
{{- range $key, $value := default dict .data }}{{ $_ := set $data $key (b64dec $value) }}{{ end -}}
{{- end -}}
{{- toJson $data -}}
{{- end }}

{{/*
A certificate for ten years as JSON, from an authority of its own, whose key is forgotten at once: (list authority subject
addresses names).
*/}}
{{- define "trainyard.newCertificate" -}}
{{- $ca := genCAWithKey (index . 0) 3650 (genPrivateKey "ecdsa") -}}
{{- $made := genSignedCertWithKey (index . 1) (index . 2) (index . 3) 3650 $ca (genPrivateKey "ecdsa") -}}
{{- toJson (dict "tls.crt" $made.Cert "tls.key" $made.Key "ca.crt" $ca.Cert) -}}
{{- end }}

{{/* Security settings of our pods and containers, as Pod Security's level "restricted" asks. */}}
{{- define "trainyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "trainyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Values as JSON, for hashes: without those that are null, which Helm 4 leaves out and Helm 3 keeps. */}}
{{- define "trainyard.heldValues" -}}
{{- $held := dict -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $held $key (include "trainyard.heldValues" $value | fromJson) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $held $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $held -}}
{{- end -}}
