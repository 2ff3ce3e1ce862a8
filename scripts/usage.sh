# Sourced by scripts, before they go to another folder: usage shows the comment that they begin with, and ends them.
this_script=$(realpath "$0")

usage() {
  sed -n '2,/^[^#]/s/^# //p' "$this_script" >&2
  exit 2
}
