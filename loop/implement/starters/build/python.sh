#!/bin/sh
# Exit status 0 means that the project is correct. The model gets the output.
set -e
python3 -m compileall -q .
if python3 -m pytest --version >/dev/null 2>&1; then
    python3 -m pytest -q
else
    python3 -m unittest discover
fi
