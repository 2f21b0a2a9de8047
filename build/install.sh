#!/usr/bin/env bash
# Installs the built library, its header, its pkg-config file, licences and the reference of requests:
#   build/install.sh PREFIX
# DESTDIR is put in front of every path, for packagers.
set -eu
cd "$(dirname "$0")/.."
prefix=${1:?usage: build/install.sh PREFIX}
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
root=${DESTDIR:-}$prefix
version=$(sed -n 's/^#define IEX_VERSION "\(.*\)"$/\1/p' include/icebergexec.h)
install -d "$root/lib/pkgconfig" "$root/include"
install -m 644 include/icebergexec.h "$root/include/"
install -m 755 build/out/libicebergexec.so "$root/lib/libicebergexec.so.$version"
ln -sfn "libicebergexec.so.$version" "$root/lib/libicebergexec.so.1"
ln -sfn libicebergexec.so.1 "$root/lib/libicebergexec.so"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" build/icebergexec.pc.in >"$root/lib/pkgconfig/icebergexec.pc"
"${PYTHON:-python3}" build/notices.py "$root/share/doc/icebergexec" >/dev/null
install -m 644 LICENSE docs/requests.md "$root/share/doc/icebergexec/"
echo "installed icebergexec $version under $root"
