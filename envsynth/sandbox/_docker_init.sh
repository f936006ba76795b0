# First process of a container. Sourcing the words sets `folder`, `seconds` and the command as positional parameters.
# It reaps orphans, and when it ends the kernel kills what is left. It reports nothing of its own (a child's crash),
# and looks commands up as a program, never as a builtin.
. /envsynth-command/words
exec 3>&2 2>/dev/null
cd -- "$folder" 2>&3 || exit 126
unset OLDPWD
# Should the owner be killed, nobody else would end a command that hangs.
(exec </dev/null >/dev/null 3>&-; sleep "$seconds"; kill -9 -1) &
(exec "$@" 2>&3 3>&-)
exit $?
