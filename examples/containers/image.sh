#!/bin/sh
# Collects the files of an image from scratch in the folder ROOT, which it makes:
#
#	sh image.sh ROOT "cpu" mnist             plugins, as `lazo install` names them, and programs
#	sh image.sh ROOT "cpu mpi" lazo mnist    for several ranks in one container by `lazo run`, which needs sh
#
# LAZO is the command lazo, by default that in PATH.
set -eu
root=$1 plugins=$2
shift 2
mkdir -p "$root/bin" "$root/lazo"
for plugin in $plugins; do
	installed=$("${LAZO:-lazo}" install "$plugin")
	path=${installed#*: }
	cp -RpL "${path%/pjrt-*}" "$root/lazo/"
	[ "$plugin" != mpi ] || cp -L /bin/sh "$root/bin/"
done
cp -L "$@" "$root/bin/"

# The loader of the image finds the libraries at the same paths. MPI's own optional parts lack some of theirs.
if ldd "$root"/bin/* | grep 'not found' >&2; then
	exit 1
fi
find "$root/bin" "$root/lazo" -type f \( -perm -u+x -o -name '*.so*' \) | while read -r file; do
	[ "$(head -c 4 "$file" | tail -c 3)" != ELF ] || ldd "$file"
done | sed -nE 's|^.*[[:space:]](/[^ ]*) \(0x.*|\1|p' | sort -u | while read -r library; do
	case $library in "$root"*) continue ;; esac
	mkdir -p "$root${library%/*}"
	cp -L "$library" "$root$library"
done

chmod -R a=rX,u+w "$root" # the plugin's files may be private to who installed it
mkdir -m 1777 "$root/tmp"
