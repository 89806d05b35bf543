#!/bin/sh
# Installs omptrace from a release: program, libraries, man page, completions. Checks the archive's checksum first.
#
#     curl -LsSf https://github.com/omptrace/omptrace/releases/latest/download/install.sh | sh
#     sh install.sh --prefix ~/.local
#
# A release's files in the folder of this script are used. OMPTRACE_RELEASE names another place of them: an address, or a folder.
set -eu

release=https://github.com/omptrace/omptrace/releases/latest/download
case $0 in
*install.sh) [ -f "$(dirname "$0")/SHA256SUMS" ] && release=$(cd "$(dirname "$0")" && pwd) ;;
esac
release=${OMPTRACE_RELEASE:-$release}
prefix=${HOME:-/root}/.local

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
  --prefix)
    [ $# -ge 2 ] || fail "--prefix needs a folder"
    prefix=$2
    shift 2
    ;;
  -h | --help)
    sed -n 's/^# \{0,1\}//; 2,7p' "$0"
    exit 0
    ;;
  *) fail "unknown option $1; --prefix DIR says where to install" ;;
  esac
done

[ "$(uname -s)" = Linux ] || fail "omptrace runs on Linux only"
case $(uname -m) in
x86_64 | aarch64) machine=$(uname -m) ;;
*) fail "there is no release for $(uname -m); build it: cargo xtask install" ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

get() {
  case $release in
  *://*)
    if command -v curl >/dev/null; then
      curl -LsSf "$release/$1" -o "$scratch/$1"
    elif command -v wget >/dev/null; then
      wget -q "$release/$1" -O "$scratch/$1"
    else
      fail "neither curl nor wget is here"
    fi
    ;;
  *) cp "$release/$1" "$scratch/$1" ;;
  esac || fail "cannot get $release/$1"
}

get SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]*  \(omptrace-.*-$machine-linux\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS")
[ -n "$archive" ] || fail "the release has no archive for $machine"
get "$archive"
(cd "$scratch" && grep "  $archive\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
  fail "$archive is damaged: its checksum is not that of SHA256SUMS"

mkdir -p "$prefix"
tar -xzf "$scratch/$archive" -C "$prefix" --strip-components=1 --no-same-owner
echo "omptrace is in $prefix/bin"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) echo "add it to your path: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
