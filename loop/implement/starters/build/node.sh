#!/bin/sh
# Exit status 0 says that the project is right. What is printed is shown to the model.
set -e
[ -d node_modules ] || npm install --no-audit --no-fund
npm run build --if-present
npm test
