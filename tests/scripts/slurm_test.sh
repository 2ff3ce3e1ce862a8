#!/usr/bin/env bash
# scripts/troupe.slurm, with stand-ins for Slurm and the program: a job that was put back into the queue runs again, one
# that is told to end waits until its head has ended, and weights are quantized as the user says, or not at all.
set -euo pipefail
script=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

stand_in() {  # NAME TEXT
  printf '#!/usr/bin/env bash\n%s\n' "$2" > "$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}
fail() {
  echo "$1" >&2
  cat "$folder/output" >&2
  exit 1
}

mkdir "$folder/bin"
stand_in scontrol 'printf "one\ntwo\n"'
stand_in getent 'echo "192.0.2.1 STREAM one"'
# shellcheck disable=SC2016  # they are expanded where they run
stand_in srun 'while [[ $1 == --* ]]; do shift; done; SLURM_PROCID=0 exec "$@"'
# shellcheck disable=SC2016
stand_in troupe '
if [[ $1 == keygen ]]; then
  [[ ! -e $3/cluster.key ]] || exit 2
  mkdir -p "$3" && date +%N > "$3/cluster.key"
fi
echo "$* in ${XDG_STATE_HOME:-}" >> "$CALLS"
[[ ${STAYS:-} && $* == *"--name head" ]] || exit 0
trap "until [[ -e $STAYS/may-end ]]; do sleep 0.05; done; echo head ended >> $CALLS; exit 0" TERM
touch "$STAYS/up"
while :; do sleep 0.05; done'

for run in first second; do
  PATH=$folder/bin:$PATH CALLS=$folder/$run SLURM_JOB_ID=7 SLURM_JOB_NODELIST='one,two' SLURM_SUBMIT_DIR=$folder \
    bash "$script" "$folder" > "$folder/output" 2>&1 || fail "the $run run failed"
  grep -q "node $folder/troupe-7/cluster.toml --name head" "$folder/$run" || fail "the $run run started no head"
  cp "$folder/troupe-7/keys/cluster.key" "$folder/key-$run"
done
! grep -q quant "$folder/troupe-7/cluster.toml" || fail "weights are quantized though nobody said so"
cmp "$folder/key-first" "$folder/key-second" || fail "clients would need another key"

PATH=$folder/bin:$PATH CALLS=$folder/third STAYS=$folder SLURM_JOB_ID=7 SLURM_JOB_NODELIST='one,two' \
  SLURM_SUBMIT_DIR=$folder bash "$script" "$folder" q4 > "$folder/output" 2>&1 &
job=$!
until [[ -e $folder/up ]] && grep -q -- "--name w0" "$folder/third"; do sleep 0.05; done
grep -q -- "--name w0 in $folder/troupe-7/state-0$" "$folder/third" || fail "a worker has no state folder of its own"
kill -TERM "$job"
(sleep 0.3 && touch "$folder/may-end") &
wait "$job" || fail "a job that was told to end failed"
grep -q "head ended" "$folder/third" || fail "the job did not wait for its head"
grep -q '^quant = "q4"$' "$folder/troupe-7/cluster.toml" || fail "the user's scheme is not in the cluster's file"
