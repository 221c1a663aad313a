#!/bin/sh
# Builds samurai as `$1/muon samu`. Debian has no package of samurai. But muon, a build system with
# a package, has a port of samurai in its source, which Debian's package leaves out. The source is
# that of Debian 13, because muon of Debian 12 asks for a copy of samurai that it does not have.
#
# The source comes by an apt with lists of its own below `$1`, so the machine's configuration stays
# as it is. apt checks Debian's signature.
set -eu
directory=$1
mkdir -p "$directory"
cd "$directory"
# apt takes a relative path as one below its own directories.
directory=$(pwd)
rm -rf source muon-meson_*
mkdir -p lists/partial cache/archives/partial source
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb-src [signed-by=$keys] http://deb.debian.org/debian trixie main" > sources.list
apt() {
    apt-get --quiet=2 -o Dir::Etc::SourceList="$directory/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::lists="$directory/lists" -o Dir::Cache="$directory/cache" -o APT::Sandbox::User=root "$@"
}
apt update
apt source --tar-only muon-meson
tar --extract --file "$(ls muon-meson_*.orig.tar.*)" --strip-components=1 --directory source
cd source
gcc -O2 -std=c99 -Iinclude -o ../muon src/amalgam.c
