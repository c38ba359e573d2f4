#!/usr/bin/env bash
# build.sh NETMAP OUT: makes in OUT a virtual machine whose Linux kernel has netmap, for QEMU on Debian 12 (amd64).
#   NETMAP  netmap's sources: a checkout of https://github.com/luigirizzo/netmap, or its bare repository
#   OUT     a folder of its own, 1 GB; what is there already is not made again. Remove it to start anew.
#   KERNEL=6.1.0-NN  the kernel; otherwise the newest that linux-image-amd64 stands for
# The kernel, its headers and its drivers' sources are downloaded by apt and unpacked in OUT, not installed. The
# machine's file system is this machine's own, read-only (see init), so Node.js and the bridge run there as they are.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
fail() {
  echo "build.sh: $*" >&2
  exit 1
}
[ $# -eq 2 ] || fail "expected: build.sh NETMAP OUT"
mkdir -p "$2"/{bin,deb,done,log,share}
out=$(cd "$2" && pwd -P)
exec 9>"$out/lock"
flock -n 9 || fail "another build.sh is at work in $out"

# What this machine needs to build and run it.
packages="build-essential bc cpio gcc-12 git iproute2 kmod libelf1 qemu-system-x86 xz-utils"
missing=$(for p in $packages; do dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || echo "$p"; done)
if [ -n "$missing" ]; then
  [ "$(id -u)" = 0 ] || fail "as root: apt-get install" $missing
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

# Which netmap: a commit, or the state of a plain copy's files.
if commit=$(git -C "$1" rev-parse --verify -q HEAD 2>/dev/null) && git -C "$1" cat-file -e HEAD:LINUX/configure 2>/dev/null; then
  netmap_sources() { git -C "$netmap" archive HEAD; }
elif [ -f "$1/LINUX/configure" ]; then
  commit=$(cd "$1" && find . -type f -printf '%p %s %T@\n' | sort | sha1sum | cut -c1-12)
  netmap_sources() { tar -C "$netmap" -c .; }
else
  fail "$1: no netmap sources there; git clone https://github.com/luigirizzo/netmap makes a checkout"
fi
netmap=$(cd "$1" && pwd -P)

kernel=${KERNEL:-$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: linux-image-\(6\.1\.0-[0-9]*\)-amd64$/\1/p' | head -n 1)}
[ -n "$kernel" ] || fail "apt knows no kernel 6.1: netmap's patches are for that of Debian 12; KERNEL=6.1.0-NN names one"
release=$kernel-amd64
headers=$out/root/usr/src/linux-headers-$release

# step NAME KEY: runs NAME in OUT, unless it was done with that KEY; what it prints is in OUT/log/NAME.
step() {
  if [ "$(cat "$out/done/$1" 2>/dev/null)" = "$2" ]; then return; fi
  echo "$1 …" >&2
  (cd "$out" && "$1") >"$out/log/$1" 2>&1 </dev/null 9>&- || {
    tail -n 15 "$out/log/$1" >&2
    fail "$1 failed; all it said is in $out/log/$1"
  }
  echo "$2" >"$out/done/$1"
}

# `set -e` does not hold where a function is part of a condition, so the steps chain their commands.
download() {
  local version
  version=$(apt-cache policy "linux-image-$release" | sed -n 's/^ *Candidate: //p') && rm -f deb/*.deb && cd deb || return
  for p in "linux-image-$release" "linux-headers-$release" "linux-headers-$kernel-common" linux-kbuild-6.1 linux-source-6.1; do
    apt-get -o APT::Sandbox::User=root download "$p=$version" || apt-get -o APT::Sandbox::User=root download "$p" || return
  done
  apt-get -o APT::Sandbox::User=root download busybox-static
}

unpack() {
  rm -rf root sources && mkdir root sources || return
  for deb in deb/*.deb; do dpkg-deb -x "$deb" root || return; done
  sed -i "s|^include /usr/src/|include $out/root/usr/src/|" "$headers/Makefile" && # the headers' one absolute path
    depmod -b root "$release" &&
    tar -xJf root/usr/src/linux-source-6.1.tar.xz -C sources --strip-components=1 --wildcards '*/drivers/net/ethernet/intel/e1000' \
      '*/drivers/net/ethernet/intel/Makefile' '*/drivers/net/ethernet/Makefile' '*/drivers/net/Makefile' &&
    rm root/usr/src/linux-source-6.1.tar.xz && cp "root/boot/vmlinuz-$release" vmlinuz
}

# The module, e1000's driver, and upstream's programs, which are what ours are held against.
build_netmap() {
  rm -rf netmap build && mkdir netmap build && netmap_sources | tar -x -C netmap && cd build &&
    ../netmap/LINUX/configure --kernel-dir="$headers" --kernel-sources="$out/sources" --drivers=e1000 --no-ext-drivers \
      --apps=bridge,pkt-gen,vale-ctl --no-utils --enable-vale --enable-pipe --enable-monitor --enable-generic --enable-extmem &&
    make -j"$(nproc)" && for p in bridge pkt-gen vale-ctl; do cp build-apps/$p/$p ../bin/ || return; done
}

# What is loaded before this machine's file system is there: busybox and modules, in the order in which they load.
initramfs() {
  rm -rf ram && mkdir -p ram/{bin,dev,host,modules,proc,sys} && cp root/bin/busybox ram/bin/ && cp root/bin/busybox bin/ && cp "$here/init" ram/ && chmod 755 ram/init || return
  for m in virtio_pci 9pnet_virtio 9p veth; do modprobe -C /dev/null -d root -S "$release" --show-depends "$m" || return; done |
    sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >order || return
  local n=100
  while read -r module; do cp "$module" "ram/modules/$((n++))-$(basename "$module")" || return; done <order
  cp build/netmap.ko ram/modules/800-netmap.ko && cp build/e1000/e1000.ko ram/modules/900-e1000.ko && # drivers after netmap
    (cd ram && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >initramfs.gz
}

step download "$kernel"
step unpack "$kernel"
step build_netmap "$kernel $commit"
tools() {
  cc -O2 -Wall -Wextra "$here/tsc-khz.c" -o bin/tsc-khz
}

step tools "$(sha1sum <"$here/tsc-khz.c")"
step initramfs "$kernel $commit $(sha1sum <"$here/init")"
echo "netmap $commit, Linux $release"
