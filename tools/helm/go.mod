module trainyard.io/tools/helm

go 1.25

require helm.sh/helm/v3 v3.19.2
