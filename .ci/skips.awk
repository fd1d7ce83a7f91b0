# From the output of go test -v: by reason, how many tests were skipped and
# which. A test's last line of log is its reason.
/^=== (RUN|NAME|CONT) / { test = $3; next }
/^ *--- (PASS|FAIL): / { next }
/^ *--- SKIP: / {
	# What a child skipped is in the log of the test that started it.
	said = $3
	while (!(said in reason) && sub(/\/[^\/]*$/, "", said))
		continue
	why = said in reason ? reason[said] : "no reason given"
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
