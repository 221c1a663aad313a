#!/bin/sh
# Makes the signed zones of this directory anew, with BIND's dnssec-keygen and dnssec-signzone (the
# Debian package bind9-utils). The keys are thrown away. All signatures but two zones' hold from 2026
# to 2036.
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"
from=20260101000000
to=20360101000000

# zone ADDRESS: the begin of a zone whose server has that address.
zone() {
    printf '$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\nns A %s\n' "$1"
}

# sign NAME FILE ALGORITHM OPTIONS: signs FILE.txt, and puts the DS record of its key into FILE.ds.
sign() {
    name=$1 file=$2 algorithm=$3
    shift 3
    bits=
    [ "$algorithm" = RSASHA256 ] && bits='-b 2048'
    signing=$(dnssec-keygen -q -a "$algorithm" $bits -f KSK -n ZONE "$name")
    other=$(dnssec-keygen -q -a "$algorithm" $bits -n ZONE "$name")
    cat "$signing.key" "$other.key" >> "$file.txt"
    dnssec-signzone -Q -S -K . -s "$from" -e "$to" -o "$name" -f "$file.signed" -d . -O full "$@" "$file.txt" > /dev/null
    dnssec-dsfromkey -2 "$signing.key" > "$file.ds"
    {
        echo "; $name, signed by sign.sh"
        grep -v '^;' "$file.signed" | tr -s '\t ' ' '
    } > "$here/$file.zone"
}

{ zone 10.0.0.5; echo 'www A 192.0.2.4'; echo '*.wild A 192.0.2.5'; } > edwards.txt
sign edwards.org edwards ED25519 -3 aabb -H 3
{
    zone 10.0.0.4
    printf 'www A 192.0.2.1\nwww A 192.0.2.2\nalias CNAME www.edwards.org.\n*.wild A 192.0.2.3\n'
    printf '*.wild TXT "any"\ndeep.empty MX 10 Mail.Example.ORG.\nmoved DNAME edwards.org.\n'
} > example.txt
sign example.org example ECDSAP384SHA384
for name in early late island wrong odd slow; do
    { zone 10.0.0.7; echo 'www A 192.0.2.6'; } > $name.txt
done
sign island.org island ED25519
sign wrong.org wrong ED25519
sign odd.org odd ED25519
sign slow.org slow ED25519 -3 - -H 51
to=20260601000000
sign late.org late ED25519 -P
from=20300101000000 to=20360101000000
sign early.org early ED25519 -P
from=20260101000000
{
    zone 10.0.0.2
    for name in example.4 edwards.5 unsigned.6 early.7 late.7 island.7 wrong.7 odd.7 slow.7; do
        printf '%s NS ns.%s\nns.%s A 10.0.0.%s\n' "${name%.*}" "${name%.*}" "${name%.*}" "${name#*.}"
    done
    cat example.ds edwards.ds early.ds late.ds slow.ds
    # The key of another zone, and an algorithm that no server has.
    sed 's/^late/wrong/' late.ds
    sed 's/^late\(.*\) 15 2 /odd\1 16 2 /' late.ds
} > org.txt
sign org org ECDSAP256SHA256 -3 - -A
{ zone 10.0.0.1; printf 'org NS ns.org\nns.org A 10.0.0.2\n'; cat org.ds; } > root.txt
sign . root RSASHA256
cp root.ds "$here/root.ds"

# The root as it replaces its key: alone, beside the new key, given up, gone. Each file has the keys
# of its time only.
old=$(dnssec-keygen -q -a ED25519 -f KSK -n ZONE .)
new=$(dnssec-keygen -q -a ED25519 -f KSK -n ZONE .)
data=$(dnssec-keygen -q -a ED25519 -n ZONE .)
# stage FILE KEYS: signs the zone with these keys.
stage() {
    file=$1
    shift
    { zone 10.0.0.1; echo 'www A 192.0.2.8'; } > "$file.txt"
    for key in "$@"; do cat "$key.key"; done >> "$file.txt"
    dnssec-signzone -Q -s "$from" -e "$to" -o . -f "$file.signed" -d . -O full "$file.txt" "$@" > /dev/null
    {
        echo "; ., signed by sign.sh"
        grep -v '^;' "$file.signed" | tr -s '\t ' ' '
    } > "$here/$file.zone"
}
stage roll1 "$old" "$data"
stage roll2 "$old" "$new" "$data"
dnssec-dsfromkey -2 "$old.key" > "$here/roll.ds"
given_up=$(dnssec-revoke "$old")
given_up=$(basename "$given_up")
stage roll3 "$given_up" "$new" "$data"
stage roll4 "$new" "$data"
rm -r "$work"
