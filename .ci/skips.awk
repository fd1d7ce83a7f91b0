# From the output of go test -v: by reason, how many tests were skipped and
# which. A test's last line of log is its reason.
/^=== (RUN|NAME|CONT) / { test = $3; next }
/^ *--- SKIP: / {
	why = $3 in reason ? reason[$3] : "no reason given"
	top = $3
	sub(/\/.*/, "", top)
	count[why]++
	if (!seen[why, top]++)
		names[why] = names[why] " " top
	next
}
{
	reason[test] = $0
	sub(/^ *([^ ]*\.go:[0-9]+: +)*/, "", reason[test])
}
END {
	for (why in count)
		print count[why], why " --" names[why]
}
