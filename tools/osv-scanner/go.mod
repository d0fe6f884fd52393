module trainyard.io/tools/osv-scanner

go 1.26.8

require github.com/google/osv-scanner/v2 v2.5.0
