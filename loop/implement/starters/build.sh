#!/bin/sh
# Exit status 0 means that the project is correct. The model gets the output.
set -e
CHECK
