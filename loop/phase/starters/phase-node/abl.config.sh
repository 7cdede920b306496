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

# health_check writes all problems of the code to lint.log, and exits with status 0 if there are none.
health_check() {
  exec > "$results/lint.log" 2>&1
  cd src || return
  if [ ! -f package.json ]; then
    echo "There is no package.json yet. It must be at the top of the directory, with a script 'dev' that starts the server."
    return 1
  fi
  local failed=0 file
  if ! node -e 'const p = JSON.parse(fs.readFileSync("package.json", "utf8")); process.exit(p.scripts?.dev ? 0 : 3)'; then
    echo "package.json is not valid JSON, or has no script 'dev' that starts the server."
    return 1
  fi
  while IFS= read -r -d '' file; do
    node --check "$file" || failed=1
  done < <(find . -name node_modules -prune -o -type f \( -name '*.js' -o -name '*.mjs' -o -name '*.cjs' \) -print0)
  # This file installs no packages. With hook-net = true in [phase] you can do that here:
  #   [ -d node_modules ] || npm ci --no-audit --no-fund || return
  if [ -d node_modules ]; then
    npm run --silent lint --if-present || failed=1
    if [ -f tsconfig.json ]; then npx --no-install tsc --noEmit || failed=1; fi
  fi
  return "$failed"
}

# map_deps prints the project's dependencies, which are the last part of project_map.txt.
map_deps() {
  if [ -f src/package.json ]; then cat src/package.json; else echo "(no package.json yet)"; fi
}

# start_dev starts the server in the background and returns. hone waits until it accepts connections.
start_dev() {
  cd src || return
  set -m # a process group of its own, so that stop_dev can stop all of it
  npm run dev < /dev/null > "$results/dev.log" 2>&1 &
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
