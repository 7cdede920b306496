#!/bin/sh
# Exit status 0 means that the project is correct. The model gets the output.
set -e
make
if make -n test >/dev/null 2>&1; then
    make test
fi
