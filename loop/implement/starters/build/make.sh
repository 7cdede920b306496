#!/bin/sh
# Exit status 0 says that the project is right. What is printed is shown to the model.
set -e
make
if make -n test >/dev/null 2>&1; then
    make test
fi
