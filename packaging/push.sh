#!/bin/sh
# push.sh IMAGE.tar REGISTRY/NAME VERSION pushes the image of a release, all architectures,
# as VERSION and latest. Log in to the registry first: crane auth login.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$1" -C "$work"
crane() { go -C "$(dirname "$0")/../tools" tool crane "$@"; }
crane push "$work" "$2:$3" --index
case $3 in *-*) ;; *) crane tag "$2:$3" latest ;; esac
