{{/*
Every static NFS volume that the values give to teams, as a JSON list, one entry for each team:
name (of the PersistentVolume), claim, team, server, path, readOnly, size, gid (0: none), mountOptions.
*/}}
{{- define "trainyard.staticVolumes" -}}
{{- $root := . -}}
{{- $storage := .Values.global.contract.storage -}}
{{- $options := list "nfsvers=4.1" "hard" -}}
{{- if .Values.nfs.enabled }}{{ $options = .Values.nfs.mountOptions }}{{ end -}}
{{- $volumes := list -}}
{{- range $team := include "trainyard.teams" . | fromJsonArray -}}
{{- if $root.Values.nfs.enabled -}}
{{- $volumes = append $volumes (dict "name" (printf "trainyard-shared-%s" $team.name) "claim" "shared" "team" $team.name
      "server" (include "nfs.address" $root.Subcharts.nfs) "path" (printf "%s/%s/shared" $root.Values.nfs.path $root.Release.Namespace)
      "readOnly" true "size" $storage.sharedVolume.size "gid" $root.Values.nfs.storageClass.gid "mountOptions" $options) -}}
{{- end -}}
{{- range $storage.volumes -}}
{{- if or (has "*" .teams) (has $team.name .teams) -}}
{{- $volumes = append $volumes (dict "name" (printf "trainyard-%s.%s" .name $team.name) "claim" .name "team" $team.name
      "server" .server "path" .path "readOnly" .readOnly "size" .size "gid" (default 0 .gid)
      "mountOptions" (default $options .mountOptions)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $volumes -}}
{{- end }}
