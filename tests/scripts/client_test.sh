#!/usr/bin/env bash
# An unmodified client of others against a small cluster, by the script that checks it; 77 where Python lacks the client.
set -euo pipefail
. "$(dirname "$0")/small_cluster.sh"
check=$3
start_small_cluster
key=$("$troupe" keys add "$place/cluster.toml" checker --admin | head -n 1)
options=(--key "$key" --adapter pricing)
if [[ $check == *openai* ]]; then
  options+=(--limited "$("$troupe" keys add "$place/cluster.toml" limited --concurrent 1 | head -n 1)")
fi
"$check" "$url" "${options[@]}"
