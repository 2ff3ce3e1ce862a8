# To be sourced: a cluster of the default model in a folder of its own, `place`, which ends with the shell. TROUPE_CONNECT
# leads to its head, `url` to its API.
troupe=$1 source=$2
place=$(mktemp -d)
export TROUPE_CACHE=$place/cache TROUPE_CONNECT=ipc://$place/head

end_small_cluster() {
  "$troupe" down "$place/cluster.toml" > /dev/null 2>&1 || true
  rm -rf "$place"
}
trap end_small_cluster EXIT

is_free() {
  ! (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null
}

start_small_cluster() {
  local port
  until port=$((20000 + RANDOM % 10000)) && is_free $port; do :; done
  url=http://127.0.0.1:$port
  cat > "$place/cluster.toml" << END
[cluster]
name = "small"
listen = "$TROUPE_CONNECT"
http = "127.0.0.1:$port"
state_dir = "$place/state"

[model]
path = "$source/configs/models/default"
quant = "u8"

[adapters]
dir = "$source/configs/adapters"
preload = ["pricing"]

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
}
