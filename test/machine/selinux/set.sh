#!/bin/bash
# set.sh ROOT POLICY   gives a Debian with selinux-policy-default a policy that enforces, and each of its files its label
#
#   debian   Debian's policy as it is: the reference policy, in which the kubelet is confined
#   kubelet  the same with the kubelet as container-selinux has it: by path, and in a domain without bounds
#
# The kernel of this machine needs no SELinux: labels are written as any other extended attribute.
set -euo pipefail
root=$1 policy=$2
cd "$(dirname "${BASH_SOURCE[0]}")"

modules=(machine)
[ "$policy" != kubelet ] || modules+=(kubelet)
cp "${modules[@]/%/.cil}" "$root/root/"
for module in "${modules[@]}"; do echo "--install=/root/$module.cil"; done | xargs chroot "$root" semodule --noreload
rm "$root"/root/*.cil
sed -i 's/^SELINUX=.*/SELINUX=enforcing/' "$root/etc/selinux/config"
chroot "$root" setfiles -F /etc/selinux/default/contexts/files/file_contexts /
