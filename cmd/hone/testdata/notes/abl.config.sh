#!/bin/bash
logs=tests/results

case "$1" in
  health_check)
    cd src || exit 1
    {
      unformatted=$(gofmt -l .)
      test -z "$unformatted" || { echo "not formatted: $unformatted"; exit 1; }
      go vet ./...
    } > ../$logs/lint.log 2>&1
    ;;
  start_dev)
    (cd src && go build -o ../$logs/server .) || exit 1
    $logs/server > $logs/dev.log 2>&1 &
    echo $! > $logs/dev.pid
    ;;
  reset_state) ;;
  stop_dev) kill "$(cat $logs/dev.pid)" ;;
  map_deps) cat src/go.mod 2>/dev/null || echo 'nothing yet' ;;
  *) exit 1 ;;
esac
