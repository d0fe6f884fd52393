module trainyard.io/tools/step

go 1.25
