package main

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// indexHost is the name of a package index, which exists on the harness's loopback alone. A tool comes there by its policy's proxy or
// not at all: no name server has the name (RFC 2606).
const indexHost = "index.example"

// serveIndex serves an index with one package and grants its name.
func serveIndex(l net.Listener, p *sandbox.Policy) {
	address := l.Addr().(*net.TCPAddr).AddrPort()
	p.Network.Hosts = []string{fmt.Sprintf("%s:%d", indexHost, address.Port()), address.String()} // the address is loopback's, and takes a rule for itself
	p.Network.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{address.Addr()}, nil }
	wheel := wheel()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/simple/holdfast-answer/": // packaging.python.org, "Simple repository API"
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, `<a href="/files/`+wheelName+`">`+wheelName+`</a>`)
		case "/files/" + wheelName:
			w.Write(wheel)
		default:
			http.NotFound(w, r)
		}
	}))
}

const wheelName = "holdfast_answer-1-py3-none-any.whl"

// wheel is a package of one module (packaging.python.org, "Binary distribution format").
func wheel() []byte {
	const info = "holdfast_answer-1.dist-info/"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range []struct{ name, text string }{
		{"holdfast_answer.py", "text = '" + answer + "'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: holdfast-answer\nVersion: 1\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: hosttest\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "holdfast_answer.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := z.Create(f.name)
		if err == nil {
			_, err = io.WriteString(w, f.text)
		}
		if err != nil {
			panic(err) // a bytes.Buffer takes everything
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// pipInstalls installs the index's package as the tool and imports it. Debian has pip as a package, or for venv alone as a wheel, which Python imports as well.
func pipInstalls() error {
	at := indexHost + ":" + os.Getenv(portVariable)
	return shell(`python3 -c 'import pip' 2>/dev/null || export PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl)
python3 -m pip install -q --no-input --disable-pip-version-check --retries 0 --no-deps --target out --index-url http://` + at + `/simple/ --trusted-host ` + at + ` holdfast-answer &&
	[ "$(PYTHONPATH=out python3 -c 'import holdfast_answer; print(holdfast_answer.text)')" = '` + answer + `' ]`)
}
