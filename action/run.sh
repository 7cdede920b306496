#!/bin/sh
# Runs the loop, with its events and its output in RUNNER_TEMP/hone/artifact. It succeeds whatever hone does: the last step
# of action.yml exits with hone's status.
set -eu
work=$RUNNER_TEMP/hone
artifact=$work/artifact
mkdir -p "$artifact"

events=$artifact/events.jsonl
: >"$events" # hone writes none if an argument is wrong
set -- "$INPUT_LOOP" "--log=$events"
[ -z "$INPUT_CHECK" ] || set -- "$@" --check "$INPUT_CHECK"
[ -z "$INPUT_MODEL" ] || set -- "$@" --model "$INPUT_MODEL"
[ -z "$RUN_FINDINGS" ] || set -- "$@" --findings "$RUN_FINDINGS"
while IFS= read -r line; do
    [ -z "$line" ] || set -- "$@" "$line"
done <<ARGS
$INPUT_ARGS
ARGS

# The runner must obey no command that a model wrote into the output.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$token"
{
    status=0
    hone "$@" 2>&1 </dev/null || status=$?
    echo "$status" >"$work/exit"
} | tee "$artifact/output.txt"
echo "::$token::"

run=$(sed -n '1s/^{"v":1,"seq":[0-9]*,"time":"[^"]*","run":"\([0-9a-z-]*\)".*/\1/p' "$events")
{
    echo "exit=$(cat "$work/exit")"
    echo "run=$run"
} >>"$GITHUB_OUTPUT"

if [ -n "$run" ]; then
    hone export "$run" -o "$artifact/run.hone" --force >/dev/null || true
fi
