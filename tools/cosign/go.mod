module trainyard.io/tools/cosign

go 1.26.8

require github.com/sigstore/cosign/v3 v3.1.3
