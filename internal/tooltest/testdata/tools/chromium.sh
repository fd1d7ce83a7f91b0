# needs: chromium
# prints: <p id="x">computed 42</p>
# prints: screenshot taken
# Its own sandbox is off: it is inside one already, which grants it no namespaces.
cat >page.html <<'END'
<p id="x"></p><script>document.getElementById('x').textContent = 'computed ' + 6 * 7</script>
END
run() {
	timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update \
		--disable-sync --user-data-dir="$PWD/profile" "$@" "file://$PWD/page.html" 2>chromium.log || { cat chromium.log; exit 1; }
}
run --dump-dom
run --screenshot="$PWD/shot.png"
[ -s shot.png ] && echo screenshot taken
