#!/bin/sh
# Commits the changes of a run that is done to a new branch, pushes it, and opens a pull request if INPUT_PULL_REQUEST is
# true.
set -eu
work=$RUNNER_TEMP/hone

if [ "$RUN_EXIT" != 0 ]; then
    echo "hone: no branch: the run is not done (exit status $RUN_EXIT)"
    exit 0
fi
if [ -z "$(git status --porcelain)" ]; then
    echo "hone: no branch: git sees no change (files that it ignores do not count)"
    exit 0
fi

branch=${INPUT_BRANCH:-hone/$RUN_ID}
title="hone $INPUT_LOOP, run $RUN_ID"
git checkout -q -b "$branch"
git add -A
# No hook of the repository runs: the key of the model's provider is in the environment.
git -c core.hooksPath=/dev/null -c user.name='github-actions[bot]' \
    -c user.email='41898282+github-actions[bot]@users.noreply.github.com' commit -q -m "$title"
git -c core.hooksPath=/dev/null push -q origin "$branch"
echo "branch=$branch" >>"$GITHUB_OUTPUT"
echo "hone: pushed $branch"

if [ "$INPUT_PULL_REQUEST" = true ]; then
    gh pr create --head "$branch" --base "${GITHUB_HEAD_REF:-$GITHUB_REF_NAME}" --title "$title" --body-file "$work/summary.md"
fi
