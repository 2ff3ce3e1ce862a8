#!/usr/bin/env bash
# scripts/test refuses a flag that neither it nor ctest knows before it builds anything, and hands on those of ctest.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/scripts" "$tree/bin"
cp "$1" "$tree/scripts/test"

stand_in() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" > "$tree/$1"
  chmod +x "$tree/$1"
}
# shellcheck disable=SC2016  # expanded where it runs
{
  stand_in scripts/build 'echo "build $*"'
  stand_in bin/ctest 'echo "ctest $*"; [[ $1 != --help ]] || echo "  -V,--verbose  --stop-on-failure  = Stop."'
}
PATH=$tree/bin:$PATH

fail() {
  echo "$1" >&2
  exit 1
}

for flag in --asna --stop --help; do
  code=0
  output=$("$tree/scripts/test" "$flag" 2>&1) || code=$?
  [[ $code == 2 && $output == "scripts/test ["* ]] || fail "$flag: ended with $code and said: $output"
done

output=$("$tree/scripts/test" NAME --stop-on-failure --verbose)
[[ $output == "build --all"*"ctest "*"-R NAME --stop-on-failure --verbose" ]] || fail "said: $output"
