#!/bin/sh
# Decides whether hone works on a pull request whose workflow has failed, and fetches what the failed jobs printed. Where it does
# not, it says why and sets the output stop: that is no failure.
set -eu
work=$RUNNER_TEMP/hone
mkdir -p "$work/ci"

stop() {
    echo "::notice::hone does not follow this workflow run: $1"
    echo "stop=$1" >>"$GITHUB_OUTPUT"
    exit 0
}

fail() {
    echo "::error::$1"
    exit 2
}

case $INPUT_FOLLOW in
'' | *[!0-9]* | 0*) fail "follow must be how many times hone may push to a pull request, such as 3" ;;
esac
[ "$INPUT_LOOP" = fix ] || fail "follow works with the loop fix only"
[ -n "$INPUT_CHECK" ] || fail "follow needs the input check: what the pull request's own files name must not decide"
[ "${GITHUB_EVENT_NAME:-}" = workflow_run ] || fail "follow is for workflows on workflow_run"

# The first two keep this job's secrets from code of strangers.
[ "$EVENT_HEAD_REPOSITORY" = "$GITHUB_REPOSITORY" ] || stop "the code comes from another repository"
[ "$EVENT_EVENT" = pull_request ] || stop "it was not started by a pull request"
[ "$EVENT_CONCLUSION" = failure ] || stop "it did not fail"
case ${GITHUB_WORKFLOW_REF:-} in
"$GITHUB_REPOSITORY/$EVENT_PATH@"*) stop "it is a run of the workflow that runs hone" ;;
esac
[ -n "$EVENT_BASE" ] || stop "its pull request is closed"
[ "$EVENT_BRANCH" != "$EVENT_DEFAULT_BRANCH" ] || stop "its branch is the default branch"

[ "$(git rev-parse HEAD)" = "$EVENT_SHA" ] || fail "check out the commit that failed: give actions/checkout the ref github.event.workflow_run.head_sha"
[ "$(git rev-parse --is-shallow-repository)" = false ] || fail "hone counts its commits in the history: give actions/checkout fetch-depth: 0"

# Each push leaves the signature of the failures that it was meant to mend.
git log --format=%B "refs/remotes/origin/$EVENT_BASE..HEAD" -- >"$work/ci/commits"
sed -n 's/^Hone-Failures: //p' "$work/ci/commits" >"$work/ci/pushes"
pushes=$(wc -l <"$work/ci/pushes")
[ "$pushes" -lt "$INPUT_FOLLOW" ] || stop "hone has pushed to this pull request $((pushes)) times"

# Of each line, the names of job and step and the time are cut off.
tab=$(printf '\t')
gh run view "$EVENT_RUN" --attempt "$EVENT_ATTEMPT" --repo "$GITHUB_REPOSITORY" --log-failed >"$work/ci/raw" ||
    fail "the logs of the failed jobs could not be fetched: this job needs GH_TOKEN and the permission actions: read"
sed -e "s/^[^$tab]*$tab[^$tab]*$tab//" -e 's/^[^0-9]\{0,3\}[0-9-]*T[0-9:.]*Z //' "$work/ci/raw" >"$work/ci/log.txt"
[ -s "$work/ci/log.txt" ] || stop "the failed jobs printed nothing"

# What was found, without the notes and the numbers in it: lines move, and times change.
hone check --check 'cat log.txt; exit 1' --sandbox none --quiet -C "$work/ci" >"$work/ci/findings" 2>/dev/null || true
signature=$(awk '/^[^ ]/ { note = /^note: / } !note' "$work/ci/findings" | sed -e 's/[0-9a-f]\{7,\}/N/g' -e 's/[0-9][0-9]*/N/g' | LC_ALL=C sort -u | git hash-object --stdin)
if grep -qx "$signature" "$work/ci/pushes"; then
    stop "the failures are those that hone has tried to fix before"
fi

# If hone reads nothing in the log, the run begins with the check.
findings=$work/ci/log.txt
! grep -q '^The check command failed' "$work/ci/findings" || findings=
{
    echo "findings=$findings"
    echo "signature=$signature"
} >>"$GITHUB_OUTPUT"
