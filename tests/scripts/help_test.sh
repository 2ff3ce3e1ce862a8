#!/usr/bin/env bash
# Every script says with --help what it is, whatever is installed, and does nothing else.
set -euo pipefail
cd "$1/.."
failed=0
for file in scripts/*; do
  script=${file#scripts/}
  [[ -f $file && $script != *.* ]] || continue
  shown=$(timeout 60 "scripts/$script" --help 2>&1 < /dev/null) && code=0 || code=$?
  if ((code > 2)) || [[ $shown == *Traceback* || $shown != *scripts/"$script"* && $shown != *"usage: $script"* ]]; then
    echo "$script --help ends with $code and says: ${shown:0:400}" >&2
    failed=1
  fi
done
exit $failed
