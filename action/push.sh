#!/bin/sh
# Commits the changes of a run that is done, and pushes the commit to the branch of the pull request that hone follows.
set -eu

refuse() {
    echo "::error::hone pushes nothing: $1"
    exit 5
}

if [ "$RUN_EXIT" != 0 ]; then
    echo "hone: nothing is pushed: the run is not done (exit status $RUN_EXIT)"
    exit 0
fi
git add -A
if git diff --cached --quiet; then
    echo "hone: nothing is pushed: git sees no change (files that it ignores do not count)"
    exit 0
fi
# Workflows have the repository's secrets, whoever wrote them; no --approve in the arguments changes that.
[ -z "$(git diff --cached --name-only --no-renames HEAD -- ':(top,icase).github')" ] || refuse "the run changed files in .github"
[ "$(git rev-parse HEAD)" = "$EVENT_SHA" ] || refuse "the run made commits of its own"

# No hook of the repository runs: the key of the model's provider is in the environment.
git -c core.hooksPath=/dev/null -c user.name='github-actions[bot]' \
    -c user.email='41898282+github-actions[bot]@users.noreply.github.com' commit -q \
    -m "hone fix, run $RUN_ID" -m "Hone-Failures: $RUN_SIGNATURE"

# With the token here, no earlier step needs it in .git/config, where the model's commands could look for it.
if [ -n "${GH_TOKEN:-}" ]; then
    GIT_CONFIG_COUNT=2
    GIT_CONFIG_KEY_0=http.$GITHUB_SERVER_URL/.extraheader
    GIT_CONFIG_VALUE_0=
    GIT_CONFIG_KEY_1=$GIT_CONFIG_KEY_0
    GIT_CONFIG_VALUE_1="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$GH_TOKEN" | base64 | tr -d '\n')"
    export GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 GIT_CONFIG_KEY_1 GIT_CONFIG_VALUE_1
fi
if ! git -c core.hooksPath=/dev/null push -q origin "HEAD:refs/heads/$EVENT_BRANCH"; then
    echo "::warning::hone: the commit could not be pushed; has the branch moved?"
    exit 0
fi
echo "branch=$EVENT_BRANCH" >>"$GITHUB_OUTPUT"
echo "hone: pushed one commit to the pull request"
