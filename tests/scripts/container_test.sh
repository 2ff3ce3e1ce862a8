#!/usr/bin/env bash
# container_test.sh PROGRAM: the image of configs/kubernetes has every package that the program's libraries are in, and its
# user has a home, where caches and states are. The packages are Debian 12's: skipped (77) elsewhere.
set -euo pipefail
program=$1
cd "$(dirname "$0")/../.."
grep -q 'useradd .*--create-home' configs/kubernetes/Containerfile || { echo "the image's user has no home"; exit 1; }
grep -q '^VERSION_CODENAME=bookworm' /etc/os-release || exit 77

# What comes with the others, and what the image installs.
known=" libc6 libgcc-s1 libstdc++6 $(sed -n '/no-install-recommends/,/rm -rf/p' configs/kubernetes/Containerfile | tr -s ' \\\n' ' ') "
is_known() {
  local package
  for package in "$@"; do [[ $known != *" $package "* ]] || return 0; done
  return 1
}

code=0
for library in $(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  mapfile -t packages < <(dpkg -S "*/$library" | sed 's/:.*//' | sort -u)
  is_known "${packages[@]}" || { echo "configs/kubernetes/Containerfile has nothing with $library: ${packages[*]}"; code=1; }
done
exit "$code"
