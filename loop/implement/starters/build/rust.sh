#!/bin/sh
# Exit status 0 says that the project is right. What is printed is shown to the model.
set -e
cargo build
cargo test
