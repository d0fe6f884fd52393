"""A small Linux machine in QEMU that mounts the NFS server as a real kernel client: kernel, initramfs, one run."""
