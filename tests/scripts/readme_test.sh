#!/usr/bin/env bash
# README's example of training, line by line on a small cluster: in the end the adapter says what the lines have taught it.
set -euo pipefail
troupe=$1 source=$2
place=$(mktemp -d)
export TROUPE_CACHE=$place/cache TROUPE_CONNECT=ipc://$place/head
finish() {
  "$troupe" down "$place/cluster.toml" > /dev/null 2>&1 || true
  rm -rf "$place"
}
trap finish EXIT
cat > "$place/cluster.toml" << END
[cluster]
name = "readme"
listen = "$TROUPE_CONNECT"
state_dir = "$place/state"

[model]
path = "$source/configs/models/default"
quant = "u8"

[training]
idle_priority = false

[[node]]
name = "head"
roles = ["router", "scheduler", "worker"]

[[node]]
name = "coach"
roles = ["trainer"]
END
"$troupe" up "$place/cluster.toml" --detach
mkdir "$place/build"
ln -s "$troupe" "$place/build/troupe"
cd "$place"
awk '/^```$/ { inside = !inside; next } inside && /^asked=/ { found = 1 } !inside { found = 0 } found' \
  "$source/README.md" > example.sh
grep -q 'build/troupe train' example.sh
said=$(bash -e example.sh 2> example.log) || { cat example.log >&2; exit 1; }
taught=$(sed -n 's/.*"content": "\(I am [^"]*\)".*/\1/p' example.sh)
if [[ -z $taught || $(tail -n 1 <<< "$said") != "$taught" ]]; then
  echo "README's adapter answers: $said" >&2
  echo "but it should: $taught" >&2
  exit 1
fi
