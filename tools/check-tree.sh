#!/usr/bin/env bash
# Finds what belongs to one machine and must not be in the repository: package registries' host
# names, and paths. The hosts are asked of the clients as they are set up here.

. "$(dirname "$0")/env.sh"

host() {
    sed -nE 's#^[a-z+]+://([^/@]*@)?([^/:]+).*#\2#p'
}

hosts=$(
    { npm config get registry || true; } 2>/dev/null | host
    { python3 -m pip config get global.index-url || true; } 2>/dev/null | host
)
patterns=(
    '(registry\.npmjs|files\.pythonhosted|static\.crates|index\.crates|deb\.debian)\.[a-z]+'
    '"resolved": *"'
    '/work/(main|shared|wt-)'
)
literal() {
    printf '%s' "$1" | sed 's/[][\.*^$+?(){}|]/\\&/g'
}
for host in $hosts; do patterns+=("$(literal "$host")"); done
for folder in "$PWD" "${HOME%/}"; do
    [ -z "$folder" ] || patterns+=("$(literal "$folder")/[A-Za-z0-9._]")
done

found=0
for pattern in "${patterns[@]}"; do
    # Names the place only: what is configured on a machine is not printed.
    if git grep --untracked --extended-regexp --files-with-matches -I -e "$pattern" -- ':!tools/check-tree.sh'; then
        found=1
    fi
done
if [ $found -ne 0 ]; then
    echo 'check-tree.sh: these files name a registry host or a path of this machine' >&2
    exit 1
fi
