# From the output of go test -v: what failed tests said, and all that belongs to
# no test, without the tests that passed.
function flush() { printf "%s", text; text = "" }
/^--- FAIL: / { flush(); print; after = 1; next }
/^--- (PASS|SKIP): / { text = ""; after = 0; next }
/^(ok|PASS|\?) *($|\t| )/ { text = ""; after = 0; next }
/^=== end .* status 0$/ { text = ""; after = 0; next }
/^(FAIL|panic: |fatal error: |=== end )/ { flush(); print; next }
/^=== (PAUSE|CONT|NAME) / || /^ *--- (PASS|SKIP): / { next }
/^=== RUN / { after = 0; next }
after { print; next }
{ text = text $0 "\n" }
END { flush() }
