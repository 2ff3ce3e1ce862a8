#!/usr/bin/env bash
# scripts/check-includes accepts a tree that keeps the rules and names the line that breaks one.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

write() {
  mkdir -p "$(dirname "$tree/$1")"
  printf '%b\n' "$2" > "$tree/$1"
}

clean_tree() {
  rm -rf "${tree:?}"/*
  write base/error.hpp '#pragma once\n#include <string>'
  write model/formats/tensor.hpp '#include "base/error.hpp"\n#include <nlohmann/json_fwd.hpp>'
  write model/formats/tensor.cpp '#include "model/formats/tensor.hpp"\n#include <nlohmann/json.hpp>'
  write model/ops/matmul.hpp '#include "model/formats/tensor.hpp"'
  write model/engine/engine.cpp '#include "model/ops/matmul.hpp"'
  write model/engine/stages/stage.cpp '#include "model/engine/sampling/sampler.hpp"'
  write model/engine/sampling/sampler.hpp '#pragma once'
  write model/train/kernels/products.hpp '#pragma once'
  write cluster/config/config.hpp '#pragma once'
  write transport/zmq/bus.cpp '#include <zmq.hpp>\n#include "base/error.hpp"'
  write actors/worker.cpp '#include <caf/all.hpp>\n#include "model/ops/matmul.hpp"'
  write cli/main.cpp '#include "model/ops/matmul.hpp"'
  write tests/model/ops/matmul_test.cpp '#include "model/ops/matmul.hpp"\n#include <caf/all.hpp>'
}

fail() {
  echo "$1" >&2
  exit 1
}

# One line added to a clean tree must be refused, by file, line and these words.
refuses() {
  local file=$1 line=$2 words=$3 output
  clean_tree
  write "$file" "\n$line"
  if output=$("$check" "$tree"); then fail "accepted in $file: $line"; fi
  [[ $output == "$file:2: "*"$words"* ]] || fail "expected $file:2 and '$words', got: $output"
}

clean_tree
"$check" "$tree" || fail "refused a tree that keeps the rules"

refuses base/a.hpp '#include "model/ops/matmul.hpp"' 'base/ may not include model/'
refuses transport/a.cpp '#include "model/ops/matmul.hpp"' 'transport/ may not include model/'
refuses bench/a.cpp '#include "cli/main.cpp"' 'bench/ may not include cli/'
refuses model/formats/a.cpp '#include "model/ops/matmul.hpp"' 'model/formats/ may not include model/ops/'
refuses model/chat/a.cpp '#include "model/formats/tensor.hpp"' 'model/chat/ may not include model/formats/'
refuses model/text/a.cpp '#include "model/engine/sampling/sampler.hpp"' 'model/text/ may not include model/engine/'
refuses model/train/data/a.cpp '#include "model/train/kernels/products.hpp"' \
  'model/train/data/ may not include model/train/kernels/'
refuses model/engine/sampling/a.cpp '#include "model/engine/engine.cpp"' \
  'model/engine/sampling/ may not include model/engine/'
refuses cluster/journal/a.cpp '#include "cluster/config/config.hpp"' 'cluster/journal/ may not include cluster/config/'
refuses model/ops/a.cpp '#include "matmul.hpp"' 'paths from the root'
refuses cli/a.cpp '#  include "model/ops/gone.hpp"' 'no such file'
refuses model/lora/a.hpp '#include <nlohmann/json.hpp>' 'heavy headers'
refuses model/engine/a.cpp '#include <caf/all.hpp>' 'only actors/'
refuses actors/a.cpp '#include <gloo/context.h>' 'only transport/collective/'
refuses transport/http/a.cpp '#include <zmq.h>' 'only transport/zmq/'
refuses actors/a.cpp '#include <cereal/cereal.hpp>' 'only transport/zmq/'
refuses cli/a.cpp '#include <toml++/toml.h>' 'only cluster/config/'
refuses cluster/adapters/a.cpp '#include <sqlite3.h>' 'only cluster/journal/'
refuses model/ops/a.cpp '#include <cuda_runtime.h>' 'only cuda/ folders'
