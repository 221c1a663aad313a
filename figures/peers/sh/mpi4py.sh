#!/bin/sh
# Writes a program that runs a script of mpi4py by Debian's Python, if that has it.
# usage: mpi4py.sh SOURCE PROGRAM
set -e
/usr/bin/python3 -c 'import mpi4py'
cat > "$2" <<END
#!/bin/sh
exec /usr/bin/python3 "$1" "\$@"
END
chmod +x "$2"
