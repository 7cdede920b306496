#!/bin/sh
# Writes the job summary: the result, a table of the rounds, how to get the run, the changed files, and the diff. The part before
# the diff is also the text of the pull request.
set -eu
work=$RUNNER_TEMP/hone

result() {
    case "$RUN_EXIT" in
    0) echo "done" ;;
    1) echo "not done" ;;
    2) echo "usage or configuration is wrong" ;;
    3) echo "the budget is used up" ;;
    4) echo "waiting for you" ;;
    130) echo "interrupted" ;;
    *) echo "the environment failed" ;;
    esac
}

# verbatim prints its input so that nothing in it is Markdown or HTML.
verbatim() {
    echo '<pre>'
    sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g'
    echo '</pre>'
}

{
    echo "## hone $INPUT_LOOP: $(result)"
    echo
    if [ -z "$RUN_ID" ] || ! hone show "$RUN_ID" --markdown 2>/dev/null; then
        tail -n 20 "$work/artifact/output.txt" | verbatim
    fi
    echo
    echo "Exit status $RUN_EXIT${RUN_ID:+, run $RUN_ID}"
    if [ -n "$RUN_ID" ] && [ -n "${INPUT_ARTIFACT:-}" ]; then
        printf '\nTo look at the run, or to resume it, in a clone of this repository:\n\n'
        printf '    gh run download %s -R %s -n %s -D hone-run && hone import hone-run/run.hone && hone show last\n' \
            "${GITHUB_RUN_ID:-RUN}" "${GITHUB_REPOSITORY:-OWNER/REPO}" "$INPUT_ARTIFACT"
    fi
    changed=$(git status --short 2>/dev/null || true)
    if [ -n "$changed" ]; then
        printf '\nChanged files:\n\n'
        printf '%s\n' "$changed" | head -n 200 | verbatim
    fi
} >"$work/summary.md"

{
    cat "$work/summary.md"
    if [ -n "$RUN_ID" ]; then
        printf '\n<details><summary>The run</summary>\n\n'
        hone show "$RUN_ID" --diff 2>&1 | head -c 500000 | verbatim
        printf '\n</details>\n'
    fi
} >>"$GITHUB_STEP_SUMMARY"
