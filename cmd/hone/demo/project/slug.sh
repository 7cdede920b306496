#!/bin/sh
# slug TITLE: prints the title as it stands in an address.
printf '%s\n' "$1" | tr ' ' '-'
