#!/bin/sh
# Compares slug.sh with what specs/slug.md says, on a few titles.
findings=""
expect() {
    got=$(sh slug.sh "$1" 2>&1)
    if [ "$got" != "$2" ]; then
        finding="{\"provenance\": \"code-review\", \"file\": \"slug.sh\", \"finding\": \"The title '$1' must become '$2', and became '$got'.\"}"
        findings="${findings:+$findings, }$finding"
    fi
}
expect "Plain" "plain"
expect "Two Words" "two-words"
expect "A  wide   gap" "a-wide-gap"
expect "What? Really!" "what-really"
expect "(2nd) edition" "2nd-edition"
printf '{"per_file_findings": [%s], "overall_findings": []}\n' "$findings"
[ -z "$findings" ]
