#!/usr/bin/env bash
# README's example of training, line by line on a small cluster: in the end the adapter says what the lines have taught it.
set -euo pipefail
. "$(dirname "$0")/small_cluster.sh"
start_small_cluster
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
