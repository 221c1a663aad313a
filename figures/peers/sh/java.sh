#!/bin/sh
# Compiles a Java program of one class by the newest JDK that has virtual threads, and writes a program that
# runs it on one carrier. The newest is found by trying those in the search path and in /usr/lib/jvm.
# usage: java.sh SOURCE PROGRAM
set -e
mkdir -p "$2.objects"
class=$(basename "$1" .java)
for home in /usr/lib/jvm/* "$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")"; do
    [ -x "$home/bin/javac" ] || continue
    "$home/bin/javac" --release 21 -d "$2.objects" "$1" 2>"$2.objects/refused" || continue
    cat > "$2" <<END
#!/bin/sh
exec "$home/bin/java" -XX:+UseSerialGC -Xmx16g \
    -Djdk.virtualThreadScheduler.parallelism=1 -Djdk.virtualThreadScheduler.maxPoolSize=1 \
    -cp "$2.objects" $class "\$@"
END
    chmod +x "$2"
    exit 0
done
echo "no JDK here compiles for Java 21" >&2
exit 1
