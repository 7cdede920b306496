#!/bin/sh
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
printf '1\n2\n' >"$dir/two lines"
printf '1\n' >"$dir/one"
got=$(sh count.sh "$dir")
want='1 one
2 two lines'
if [ "$got" != "$want" ]; then
	echo "got:  $got"
	echo "want: $want"
	exit 1
fi
