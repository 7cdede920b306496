#!/bin/sh
# The correctness checker: prints what is wrong with the tree, as JSON.
# Exit status: 0 nothing is wrong, 1 something is wrong, 2 the checker itself could not run.
# Add your own checks at the bottom, one "try" per line. What was found is printed when the script ends.

set -e # a command that fails outside of "try" ends the script: the checker could not run

# quote writes its input as a JSON string. A text that is not UTF-8 is replaced.
quote() {
    if ! text=$(iconv -f UTF-8 -t UTF-8 2>/dev/null); then
        text="<non-UTF8 output>"
    fi
    printf '%s' "$text" | awk '
        BEGIN { printf "\""; for (i = 1; i < 32; i++) control[sprintf("%c", i)] = sprintf("\\u%04x", i) }
        {
            if (NR > 1) printf "\\n"
            n = split($0, c, "")
            for (i = 1; i <= n; i++) {
                if (c[i] == "\"" || c[i] == "\\") printf "\\%s", c[i]
                else if (c[i] in control) printf "%s", control[c[i]]
                else printf "%s", c[i]
            }
        }
        END { printf "\"" }'
}

# try runs a command, and adds a finding if it fails.
try() {
    status=0
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    if [ $status -ne 0 ]; then
        if [ -s "$scratch/findings" ]; then printf ', ' >>"$scratch/findings"; fi
        printf '{"provenance": "command", "command": %s, "stdout": %s, "stderr": %s, "exit-code": %d}' \
            "$(printf '%s' "$*" | quote)" "$(quote <"$scratch/out")" "$(quote <"$scratch/err")" $status >>"$scratch/findings"
    fi
}

# report prints the findings, and decides the exit status. It runs when the script ends, wherever that is.
report() {
    status=$?
    set +e
    found=$(cat "$scratch/findings")
    rm -rf "$scratch"
    if [ $status -gt 1 ] || { [ $status -eq 1 ] && [ -z "$found" ]; }; then
        echo "correctness-check.sh: a command outside of \"try\" ended the script with exit status $status" >&2
        exit 2
    fi
    printf '{"per_file_findings": [], "overall_findings": [%s]}\n' "$found"
    if [ -n "$found" ]; then exit 1; fi
    exit 0
}

scratch=$(mktemp -d) || exit 2
: >"$scratch/findings" || exit 2
trap report EXIT

# Your checks, for example:
#   try go vet ./...
#   try go test ./...
#   try uv run pyright .
#   try npm test
try git diff --check
