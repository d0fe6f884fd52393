module trainyard.io/tools/flannel

go 1.25

require github.com/flannel-io/flannel v0.26.1

// The release that flannel asks for has no entry in the checksum database; the module serves a cloud that we do not use.
replace github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/vpc => github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/vpc v1.0.1000
