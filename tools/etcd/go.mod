module trainyard.io/tools/etcd

go 1.25

require go.etcd.io/etcd/server/v3 v3.6.5
