module trainyard.io/tools/pause

go 1.25
