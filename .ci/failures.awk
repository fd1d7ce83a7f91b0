# From the output of go test -v: what failed tests said, and all that belongs to
# no test, without the tests that passed. Tests that run side by side take turns ("=== NAME").
function flush(name) { printf "%s", text[name]; delete text[name] }
/^--- FAIL: / { flush(""); flush($3); print; now = ""; after = 1; next }
/^--- (PASS|SKIP): / { delete text[$3]; delete text[""]; now = ""; after = 0; next }
/^(ok|PASS|\?) *($|\t| )/ { delete text; after = 0; next }
/^=== end .* status 0$/ { delete text; after = 0; next }
/^(FAIL|panic: |fatal error: |=== end )/ { for (name in text) flush(name); print; next }
/^=== (RUN|PAUSE|CONT|NAME) / { now = $3; sub("/.*", "", now); after = 0; next }
/^ *--- (PASS|SKIP): / { next }
after { print; next }
{ text[now] = text[now] $0 "\n" }
END { for (name in text) flush(name) }
