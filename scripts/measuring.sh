# Sourced by the scripts that measure a cluster: MODEL [QUANT] are their arguments. The cluster runs on this machine, in a
# folder of its own that is removed when the script ends. Nothing else should run on the machine.
source "$(dirname "$0")/usage.sh"
[[ -e ${1:-} ]] || usage
model=$(realpath "$1")
quant=${2:-u8}
cd "$(dirname "$0")/.."
troupe=${TROUPE:-build/troupe}
scheduler=${TROUPE_SCHEDULER:-'kv_memory = "256MiB"'}
folder=$(mktemp -d)
port=$((21000 + RANDOM % 5000))
export TROUPE_CONNECT=tcp://127.0.0.1:$port
unset TROUPE_KEY
trap '"$troupe" down "$folder/cluster.toml" > /dev/null 2>&1 || true; rm -rf "$folder"' EXIT

new_cluster() {  # of nodes that are named next
  cat > "$folder/cluster.toml" <<END
[model]
path = "$model"
quant = "$quant"
[scheduler]
$scheduler
[training]
${TROUPE_TRAINING:-may_delay = 0.1}
[[node]]
name = "head"
roles = ["router", "scheduler"]
END
}
new_cluster

node() {  # NAME ROLE [LINE]
  printf '[[node]]\nname = "%s"\nroles = ["%s"]\n%s\n' "$1" "$2" "${3:-}" >> "$folder/cluster.toml"
}
start_cluster() {  # [LINE]: one more of [cluster]
  cat >> "$folder/cluster.toml" <<END
[cluster]
name = "measured"
listen = "$TROUPE_CONNECT"
http = "127.0.0.1:$((port + 1))"
state_dir = "state"
${1:-}
END
  "$troupe" up "$folder/cluster.toml" --detach > /dev/null
}
serve() {  # NAME REQUESTS: 8 streams
  "$troupe" bench serve --url "http://127.0.0.1:$((port + 1))" --concurrency 8 --requests "$2" --prompt-min 32 \
    --prompt-max 64 --answer-min 128 --answer-max 128 | sed "s/^/$1: /"
}
write_examples() {  # FILE
  for i in $(seq 400); do
    echo "{\"prompt\": \"Question $i of many that are much like each other:\", \"completion\": \" answer $((i % 17)), which is long enough to be learned.\"}"
  done > "$1"
}
process_of() { "$troupe" status --json | grep -o "\"name\":\"$1\",\"pid\":[0-9]*" | grep -o '[0-9]*$'; }  # NAME
processor_ms() {  # NAME…: what these nodes have used so far
  for name in "$@"; do cat "/proc/$(process_of "$name")/stat"; done | awk '{ ticks += $14 + $15 } END { print ticks * 10 }'
}
tokens() { "$troupe" jobs --json | sed 's/.*"id":"'"$job"'"//' | grep -o '"tokens":[0-9]*' | head -1 | cut -d: -f2; }
await_training() { until [ -n "$(tokens)" ] && [ "$(tokens)" -gt 0 ]; do sleep 0.2; done; }
await_step() {  # the end of the one that is being made; three seconds at most, since training may stand still
  local before end=$((SECONDS + 3))
  before=$(tokens)
  while [ "$(tokens)" = "$before" ] && [ $SECONDS -lt $end ]; do sleep 0.2; done
}
microseconds() { echo "${EPOCHREALTIME/[.,]/}"; }  # some languages write a comma
speed() {  # NAME SECONDS: of whole steps, which take seconds
  local before after start
  await_step
  before=$(tokens) start=$(microseconds)
  sleep "$2"
  await_step
  after=$(tokens)
  echo "$1: $(((after - before) * 1000000 / ($(microseconds) - start))) tokens/s of training"
}
