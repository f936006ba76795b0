# What stands around the workspace, seen by an agent. Sections begin with "== NAME".
export LC_ALL=C
echo "== mounts"
cut -d ' ' -f 5 /proc/self/mountinfo
echo "== variables"
env
echo "== links"
find "$VIRTUAL_ENV" \( -name '*.pth' -o -name '*.egg-link' -o -name direct_url.json \) -type f \
    -exec grep -H '' {} + 2>/dev/null
find "$VIRTUAL_ENV" -name '__editable__*' 2>/dev/null
if @ISOLATED@; then
    echo "== stores"
    find / \( -path /proc -o -path /sys -o -path /dev -o -path "$PWD" \) -prune -o \
        \( -name .git -o -name '*.bundle' -o -name '*.pack' -o -name packed-refs \) -print 2>/dev/null | head -n 50
    echo "== homes"
    find "$HOME" /home /mnt /media /opt /srv /var -xdev -maxdepth 3 \
        \( -path "$PWD" -o -path "$VIRTUAL_ENV" \) -prune -o -type f -print 2>/dev/null | head -n 20
    echo "== named"
    find @SYSTEM@ \( @NAMED@ \) -prune -print 2>/dev/null | head -n 60
    echo "== wheels"
    find @SYSTEM@ -type f \( -name '*.whl' -o -name '*.egg' -o -name '*.zip' \) -size -64M 2>/dev/null | head -n 50 |
        while read -r wheel; do
            # Not -q: it would close the pipe early, and under pipefail that counts as a failure.
            python -m zipfile -l "$wheel" 2>/dev/null | grep -E '(^|/)(@PACKAGES@)(/|\.py)' >/dev/null && echo "$wheel"
        done
fi
echo "== end"
