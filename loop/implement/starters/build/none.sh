#!/bin/sh
# Exit status 0 means that the project is correct. The model gets the output.
echo "build.sh: write the commands here that build and test the project" >&2
exit 1
