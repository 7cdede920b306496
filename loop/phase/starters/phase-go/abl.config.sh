#!/bin/bash
# How this project is checked, started and looked at. hone phase runs, in this folder,
#
#   bash abl.config.sh health_check | map_deps | start_dev | reset_state | stop_dev
#
# What that runs was written by a model. So it stands behind walls: src/ and tests/results/ can be
# written, this file can be read, nothing else of the project is there, HOME is a folder that begins
# empty, and there is no network. [phase] hook_read, hook_env and hook_net in .config/hone.toml open
# more. Edit this file; the Makefile stays as it is.

export PORT=3000 # for another one, tell hone as well: --dev-url, or [phase] dev-url
results=$PWD/tests/results

# health_check says in lint.log all that is wrong with the code; exit status 0 says that it is clean.
health_check() {
  exec > "$results/lint.log" 2>&1
  cd src || return
  if [ ! -f go.mod ]; then
    echo "There is no go.mod yet: the module has to stand at the top of the folder."
    return 1
  fi
  local sick=0 unformatted
  unformatted=$(gofmt -d . 2>&1)
  if [ -n "$unformatted" ]; then
    printf 'gofmt wants this:\n%s\n' "$unformatted"
    sick=1
  fi
  go vet ./... || sick=1
  go build -buildvcs=false -o /dev/null ./... || sick=1
  return "$sick"
}

# map_deps prints what the project depends on: it ends project_map.txt.
map_deps() {
  if [ -f src/go.mod ]; then cat src/go.mod; else echo "(no go.mod yet)"; fi
}

# start_dev starts the server in the background and comes back. hone waits until the port answers.
start_dev() {
  cd src || return
  go build -buildvcs=false -o "$results/server" . || return
  set -m # a process group of its own, so that stop_dev finds all of it
  "$results/server" < /dev/null > "$results/dev.log" 2>&1 &
  echo $! > "$results/dev.pid"
}

# reset_state gives the server a clean state: empty the database, remove uploads. It runs when the
# server is up, before each run of the suite.
reset_state() {
  : # the state is in memory, and begins empty with the server
}

# stop_dev ends what start_dev left running. hone ends it in any case; this is for a start by hand.
stop_dev() {
  local pid
  pid=$(cat "$results/dev.pid" 2> /dev/null) || return 0
  rm -f "$results/dev.pid"
  if [[ $pid =~ ^[0-9]+$ ]] && ((pid > 1)); then
    kill -- "-$pid" 2> /dev/null
  fi
  return 0
}

mkdir -p "$results" || exit
case "$1" in
  health_check | map_deps | start_dev | reset_state | stop_dev) "$1" ;;
  *)
    echo "abl.config.sh: there is no hook '$1'" >&2
    exit 1
    ;;
esac
