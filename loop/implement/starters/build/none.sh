#!/bin/sh
# Exit status 0 says that the project is right. What is printed is shown to the model.
echo "build.sh: say here how the project is built and tested" >&2
exit 1
