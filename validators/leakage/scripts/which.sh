# Which of the lines some files hold: one line each, the path and the line.
export LC_ALL=C
grep -IsoFZ -f - @PATHS@ /dev/null <<'@END@' | tr '\0' '\t' | sort -u | head -c 15000
@MARKS@
@END@
echo "== end"
