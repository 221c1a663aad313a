#!/bin/sh
# Compiles an Erlang module, and writes a program that runs its `main` on one scheduler.
# usage: erlang.sh SOURCE PROGRAM
set -e
mkdir -p "$2.objects"
erlc -o "$2.objects" "$1"
module=$(basename "$1" .erl)
cat > "$2" <<END
#!/bin/sh
exec erl +P 20000000 +S 1:1 +SDcpu 1:1 +SDio 1 +sbwt none -noshell -pa "$2.objects" -run $module main "\$@"
END
chmod +x "$2"
