#!/bin/sh
# The first process of the node, in namespaces of its own: mounts, network, containerd, and a kubelet that is restarted.
#   unshare --mount --pid --fork --uts --ipc --net sh node.sh ROOT
# ROOT holds the files of our node image. The machine stays visible at /machine, read by the driver's mounts.
set -eu
root=$1
read -r pid _ < /proc/self/stat # as the machine counts
echo "$pid" > "$root/../pid"
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mkdir -p machine old
mount --rbind / machine
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
pivot_root . old
cd /
umount -l /old
mount --make-rshared /
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOGC=400
hostname kit
echo "127.0.0.1 localhost" > /etc/hosts
echo "10.0.0.2 kit" >> /etc/hosts
echo "nameserver 10.0.0.1" > /etc/resolv.conf # nobody answers there
ip link set lo up
ip link add eth0 type veth peer name peer0 # not every kernel has dummy devices
ip link set eth0 up
ip link set peer0 up
ip address add 10.0.0.2/24 dev eth0
ip route add default via 10.0.0.1 # without one, the kernel refuses the addresses of Services
sysctl -qw net.ipv4.ip_forward=1 || true
sed -i 's/SystemdCgroup = true/SystemdCgroup = false/; s/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' \
  /etc/containerd/config.toml
containerd >> /var/log/containerd.log 2>&1 &
while sleep 1; do
  [ -f /var/lib/kubelet/config.yaml ] || continue
  . /var/lib/kubelet/kubeadm-flags.env
  kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \
    --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS >> /var/log/kubelet.log 2>&1 || true
done
