#!/bin/sh
# Compares what slug.sh prints with what it should, for a few titles, and reports as TAP.
n=0 status=0
expect() {
    n=$((n + 1))
    got=$(sh slug.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - '$1' must become '$2', and became '$got'"
        status=1
    fi
}
expect "Plain" "plain"
expect "Two Words" "two-words"
expect "A  wide   gap" "a-wide-gap"
expect "What? Really!" "what-really"
expect "(2nd) edition" "2nd-edition"
echo "1..$n"
exit $status
