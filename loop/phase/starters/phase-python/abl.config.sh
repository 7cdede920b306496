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
export PYTHONPYCACHEPREFIX=$results/pycache # compiled files are no part of the code

# health_check says in lint.log all that is wrong with the code; exit status 0 says that it is clean.
health_check() {
  exec > "$results/lint.log" 2>&1
  cd src || return
  if [ ! -f main.py ]; then
    echo "There is no main.py yet, which has to start the server."
    return 1
  fi
  local sick=0
  "$(interpreter)" -m compileall -q -x '/\.venv/' . || sick=1
  # Packages are not installed by this file. With hook_net = true in [phase] they can be, here:
  #   [ -d .venv ] || { python3 -m venv .venv && .venv/bin/pip install -r requirements.txt; } || return
  if ruff --version > /dev/null 2>&1; then ruff check --no-cache . || sick=1; fi
  if mypy --version > /dev/null 2>&1; then mypy --cache-dir=/dev/null . || sick=1; fi
  return "$sick"
}

# interpreter names the Python that runs the code: that of src/.venv where there is one.
interpreter() {
  if [ -x .venv/bin/python ]; then echo .venv/bin/python; else echo python3; fi
}

# map_deps prints what the project depends on: it ends project_map.txt.
map_deps() {
  local file found=
  for file in src/pyproject.toml src/requirements.txt; do
    if [ -f "$file" ]; then cat "$file" && found=yes; fi
  done
  [ -n "$found" ] || echo "(neither pyproject.toml nor requirements.txt yet)"
}

# start_dev starts the server in the background and comes back. hone waits until the port answers.
start_dev() {
  cd src || return
  set -m # a process group of its own, so that stop_dev finds all of it
  "$(interpreter)" -u main.py < /dev/null > "$results/dev.log" 2>&1 &
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
