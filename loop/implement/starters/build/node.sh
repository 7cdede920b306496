#!/bin/sh
# Exit status 0 means that the project is correct. The model gets the output.
set -e
[ -d node_modules ] || npm install --no-audit --no-fund
npm run build --if-present
npm test
