"""A small Linux machine in QEMU that mounts the NFS server as a real kernel client: kernel, initial files, one run."""
