{{- define "login.labels" -}}
{{ include "login.selector" . }}
app.kubernetes.io/part-of: trainyard
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}
{{- define "login.selector" -}}
app.kubernetes.io/name: login
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}
{{- define "login.name" -}}
{{ .Release.Name }}-login
{{- end -}}
{{- /* Everyone with a password of ours, by email, as JSON {password, hash, id}: made once and found again, so that an upgrade
       changes nobody's. Who leaves the values and comes back is another person: the id is new with the password, and old log-ins
       end. */ -}}
{{- define "login.people" -}}
{{- $held := get (include "trainyard.secretData" (list . "trainyard-login-people") | fromJson) "people.json" | default "{}" | fromJson -}}
{{- $people := dict -}}
{{- range .Values.people -}}
{{- $one := get $held .email | default dict -}}
{{- if .hash -}}
{{- $one = dict "hash" .hash "id" (printf "%s %s" .email .hash | sha256sum | trunc 32) -}}
{{- else if not (get $one "password") -}}
{{- $password := randAlphaNum 24 -}}
{{- $one = dict "password" $password "hash" (bcrypt $password) "id" (get $one "id" | default uuidv4) -}}
{{- end -}}
{{- $_ := set $people .email $one -}}
{{- end -}}
{{- toJson $people -}}
{{- end -}}
{{- /* Dex's configuration: (list context people). The hub's secret is in the environment. */ -}}
{{- define "login.configuration" -}}
{{- $root := index . 0 -}}{{- $people := index . 1 -}}
{{- $v := $root.Values -}}{{- $login := $v.global.contract.login -}}
{{- $passwords := list -}}
{{- range $v.people -}}
{{- $one := get $people .email -}}
{{- $name := default (index (splitList "@" .email) 0) .name -}}
{{- $passwords = append $passwords (dict "email" .email "username" $name "preferredUsername" $name "userID" $one.id "hash" $one.hash "groups" (default list .groups)) -}}
{{- end -}}
{{- /* A program on a laptop keeps no secret: PKCE instead, and no way back but to the laptop itself. */ -}}
{{- $clients := list (dict "id" $login.clientId "name" "trainyard" "public" true) -}}
{{- with $v.notebooks.redirectURIs -}}
{{- $clients = append $clients (dict "id" $login.notebooksClientId "name" "Notebooks" "secretEnv" "NOTEBOOKS_SECRET" "redirectURIs" .) -}}
{{- end -}}
{{- $storage := dict "type" "memory" -}}
{{- if eq $v.storage "kubernetes" -}}
{{- $storage = dict "type" "kubernetes" "config" (dict "inCluster" true "crdHandling" "check") -}}
{{- end -}}
{{- $headers := dict "X-Frame-Options" "DENY" "X-Content-Type-Options" "nosniff" "Content-Security-Policy" "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'" -}}
{{- $made := dict
      "issuer" $login.issuer
      "storage" $storage
      "web" (dict "https" "0.0.0.0:5556" "tlsCert" "/etc/dex-tls/tls.crt" "tlsKey" "/etc/dex-tls/tls.key" "tlsMinVersion" "1.2" "headers" $headers)
      "telemetry" (dict "http" "0.0.0.0:5558")
      "frontend" (dict "issuer" "trainyard")
      "logger" (dict "level" "info" "format" "json")
      "oauth2" (dict "grantTypes" (list "authorization_code" "refresh_token" "urn:ietf:params:oauth:grant-type:device_code") "responseTypes" (list "code") "skipApprovalScreen" true)
      "expiry" (dict "idTokens" $v.lifetimes.token "signingKeys" "6h" "authRequests" "10m" "deviceRequests" "5m" "refreshTokens" (dict "reuseInterval" "3s" "validIfNotUsedFor" $v.lifetimes.idle "absoluteLifetime" $v.lifetimes.session))
      "enablePasswordDB" (not (empty $v.people))
      "staticClients" $clients -}}
{{- with $passwords }}{{ $_ := set $made "staticPasswords" . }}{{ end -}}
{{- with $v.connectors }}{{ $_ := set $made "connectors" . }}{{ end -}}
{{- toYaml $made -}}
{{- end -}}
