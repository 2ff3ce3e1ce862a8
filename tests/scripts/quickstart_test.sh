#!/usr/bin/env bash
# Checks what scripts/quickstart makes of a cluster that is up already. The program and the build are played.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scripts" "$folder/build"
cp "$1" "$folder/scripts/quickstart"
cp "$(dirname "$1")/usage.sh" "$folder/scripts"
printf '#!/bin/sh\n' > "$folder/scripts/build"
cat > "$folder/build/troupe" << 'END'
#!/bin/sh
if [ "$1" = status ]; then cat "$0.status"; fi
END
chmod +x "$folder/scripts/build" "$folder/build/troupe"

# quickstart EXIT SAYS: beside a cluster whose status is the standard input.
quickstart() {
  cat > "$folder/build/troupe.status"
  local code=0 said
  said=$("$folder/scripts/quickstart" 2>&1) || code=$?
  if [[ $code != "$1" || $said != *"$2"* ]]; then
    printf 'exit code %s instead of %s, or it does not say: %s\n%s\n' "$code" "$1" "$2" "$said"
    exit 1
  fi
}

adapters='ADAPTER STATE\npricing@1 ready\nsupply@1 ready\n'
printf 'NODE STATE\ncoach alive\nhead alive\nw0 alive\nw1 alive\n%b' "$adapters" | quickstart 0 "== there is one"
printf 'NODE STATE\nw0 lost\ncoach alive\nhead alive\nw1 alive\n%b' "$adapters" | quickstart 1 "is up, but w0 is lost"
printf 'NODE STATE\nhead alive\nw0 alive\n' | quickstart 1 "another cluster"
