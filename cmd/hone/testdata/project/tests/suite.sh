#!/bin/bash
# Asks for each PATH=STATUS among its arguments.
rm -f failed_specs.md
for one; do
  path=${one%=*}
  got=$(curl -s -m 300 -o /dev/null -w '%{http_code}' "$DEV_URL$path")
  [ "$got" = "${one#*=}" ] ||
    printf 'SPEC: GET %s → %s\nINPUT: GET %s\nOBSERVED: %s\n\n' "$path" "${one#*=}" "$path" "$got" >> failed_specs.md
done
