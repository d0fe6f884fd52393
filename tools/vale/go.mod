module trainyard.io/tools/vale

go 1.26.0

require github.com/vale-cli/vale/v3 v3.22.0
