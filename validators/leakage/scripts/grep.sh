# Files outside of the workspace that hold lines of the fix or of the hidden tests: one line a file, the number of
# distinct lines and the path. Before them, git's own files inside the workspace, marked `history`.
#
# Everything is searched but the system's own folders, which are the same for every task: of these, what bears the
# project's name, files named like one of the fix or the tests, and wheels that hold the project.
export LC_ALL=C
find "$PWD" -name .git -printf 'history\t%p\n' 2>/dev/null | head -n 5
marks=/tmp/.marks packed=/tmp/.packed
mkdir -p "$packed"
cat > "$marks" <<'@END@'
@MARKS@
@END@
tops=("$VIRTUAL_ENV")
if @ISOLATED@; then
    tops=(/dev/shm)
    for top in /* /.[!.]*; do
        case $top in /proc | /sys | /dev | /usr | /bin | /sbin | /lib*) ;; *) tops+=("$top") ;; esac
    done
fi
n=0
for wheel in @WHEELS@; do
    n=$((n + 1)) && python -m zipfile -e "$wheel" "$packed/$n" 2>/dev/null
done
{
    find "${tops[@]}" \( -path "$PWD" -o -path "$marks" @PRUNED@ \) -prune -o -type f -size -4M -print0
    for folder in @SYSTEM@; do find "$folder" -type f -size -4M \( @ALIKE@ \) -print0; done
    for named in @NAMED@; do find "$named" -type f -size -4M -print0; done
} 2>/dev/null |
    xargs -0 -r grep -HIsoFZ -f "$marks" | tr '\0' '\t' |
    awk -F '\t' '
        !seen[$0]++ { lines[$1]++ }
        END { for (path in lines) print lines[path] "\t" path }' |
    sort -k 1,1nr -k 2 | head -n 120
rm -f "$marks"
echo "== end"
