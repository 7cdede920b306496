#!/bin/bash
# How this project is checked, started and described. hone phase runs, in this directory,
#
#   bash abl.config.sh health_check | map_deps | start_dev | reset_state | stop_dev
#
# These commands run code that a model wrote. So they run behind walls: they can write src/ and
# tests/results/, read this file, and see nothing else of the project; HOME is an empty directory, and
# there is no network. [phase] hook-read, hook-env and hook-net in .config/hone.toml allow more. Edit
# this file; the Makefile needs no changes.

export PORT=3000 # to change it, also tell hone: --dev-url, or [phase] dev-url
results=$PWD/tests/results
export PYTHONPYCACHEPREFIX=$results/pycache # compiled files are not part of the code

# health_check writes all problems of the code to lint.log, and exits with status 0 if there are none.
health_check() {
  exec > "$results/lint.log" 2>&1
  cd src || return
  if [ ! -f main.py ]; then
    echo "There is no main.py yet. It must start the server."
    return 1
  fi
  local failed=0
  "$(interpreter)" -m compileall -q -x '/\.venv/' . || failed=1
  # This file installs no packages. With hook-net = true in [phase] you can do that here:
  #   [ -d .venv ] || { python3 -m venv .venv && .venv/bin/pip install -r requirements.txt; } || return
  if ruff --version > /dev/null 2>&1; then ruff check --no-cache . || failed=1; fi
  if mypy --version > /dev/null 2>&1; then mypy --cache-dir=/dev/null . || failed=1; fi
  return "$failed"
}

# interpreter names the Python that runs the code: that of src/.venv if it exists.
interpreter() {
  if [ -x .venv/bin/python ]; then echo .venv/bin/python; else echo python3; fi
}

# map_deps prints the project's dependencies, which are the last part of project_map.txt.
map_deps() {
  local file found=
  for file in src/pyproject.toml src/requirements.txt; do
    if [ -f "$file" ]; then cat "$file" && found=yes; fi
  done
  [ -n "$found" ] || echo "(neither pyproject.toml nor requirements.txt yet)"
}

# start_dev starts the server in the background and returns. hone waits until it accepts connections.
start_dev() {
  cd src || return
  set -m # a process group of its own, so that stop_dev can stop all of it
  "$(interpreter)" -u main.py < /dev/null > "$results/dev.log" 2>&1 &
  echo $! > "$results/dev.pid"
}

# reset_state resets the server's state: empty the database, remove uploads. It runs while the server
# is up, before each run of the suite.
reset_state() {
  : # the state is in memory, and empty when the server starts
}

# stop_dev stops what start_dev started. hone stops it in any case; this is for a manual start.
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
