#!/bin/sh
# Installs hone in RUNNER_TEMP/hone/bin: the release INPUT_VERSION, or what the source of this action builds.
set -eu
work=$RUNNER_TEMP/hone
mkdir -p "$work/bin"

fail() {
    echo "::error::$1"
    exit 5
}

build() {
    command -v go >/dev/null || fail "hone is built from source and needs Go: use actions/setup-go first, or set version to a release"
    cd "$GITHUB_ACTION_PATH"
    CGO_ENABLED=0 go build -trimpath -o "$work/bin/hone" ./cmd/hone
}

download() {
    os=$(uname -s | tr '[:upper:]' '[:lower:]')
    case "$(uname -m)" in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "hone has no release for $(uname -m): build it from source, without version" ;;
    esac
    archive=hone_${INPUT_VERSION#v}_${os}_$arch.tar.gz
    cd "$work"
    gh release download "$INPUT_VERSION" --repo "$INPUT_REPOSITORY" --pattern "$archive" --pattern checksums.txt --clobber
    grep " $archive\$" checksums.txt >checksum.txt || fail "checksums.txt of $INPUT_VERSION does not list $archive"
    if command -v sha256sum >/dev/null; then
        sha256sum -c checksum.txt || fail "$archive is not what checksums.txt lists"
    else
        shasum -a 256 -c checksum.txt || fail "$archive is not what checksums.txt lists"
    fi
    tar -xzf "$archive" -C bin hone
}

if [ -n "$INPUT_VERSION" ]; then download; else build; fi
echo "$work/bin" >>"$GITHUB_PATH"
"$work/bin/hone" version
