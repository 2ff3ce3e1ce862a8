#!/usr/bin/env bash
# scripts/test refuses a flag that neither it nor ctest knows before it builds anything, and hands on those of ctest. It
# builds what a sanitizer is for, which are programs that exist.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/scripts" "$tree/bin"
cp "$1" "$tree/scripts/test"
cp "$(dirname "$1")/usage.sh" "$tree/scripts"

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

# What is built, and the arguments of ctest.
built() { "$tree/scripts/test" "$@" | sed -n 's/^build //p'; }
run() { "$tree/scripts/test" "$@" | sed -n 's/^ctest --preset //p'; }
expect() {
  [[ " $1 " == *" $2 "* ]] || fail "should have $2: $1"
}

expect "$(run --slow)" "release --parallel $(($(nproc) + 2)) --label-regex slow"
expect "$(run)" "--label-exclude slow"
[[ $(built --slow) == --all ]] || fail "--slow builds $(built --slow)"
[[ $(built --asan --all) == "--all --asan" ]] || fail "--asan --all builds $(built --asan --all)"
for preset in asan tsan; do
  short=$(built --$preset)
  expect "$short" --$preset
  expect "$short" test_http
  expect "$(run --$preset --slow)" $preset
done
expect "$(built --asan)" test_lora
expect "$(built --tsan)" test_engine
expect "$(built --tsan --all)" test_train
for program in $(built --asan) $(built --tsan --all); do
  [[ $program == --* ]] || grep -qrw "troupe_test($program" "$(dirname "$0")/.." || fail "there is no $program"
done
