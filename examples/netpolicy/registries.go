package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
)

// registries serves one package in each of three formats.
func registries(mux *http.ServeMux) {
	tarball := npmPackage()
	sum := sha512.Sum512(tarball)
	mux.HandleFunc("/npm/holdfast-hello", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"name": "holdfast-hello", "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{"name": "holdfast-hello", "version": "1.0.0", "dist": map[string]string{
				"tarball":   "https://" + r.Host + "/npm/files/holdfast-hello.tgz",
				"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}}}})
	})
	serve(mux, "/npm/files/holdfast-hello.tgz", tarball)

	const wheel = "holdfast_hello-1.0.0-py3-none-any.whl"
	serve(mux, "/simple/holdfast-hello/{$}", []byte(`<a href="/wheels/`+wheel+`">`+wheel+`</a>`))
	serve(mux, "/wheels/"+wheel, zipped(map[string]string{
		"holdfast_hello.py":                       "text = '" + greeting + "'\n",
		"holdfast_hello-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: holdfast-hello\nVersion: 1.0.0\n",
		"holdfast_hello-1.0.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: netpolicy\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"holdfast_hello-1.0.0.dist-info/RECORD":   "holdfast_hello.py,,\n",
	}))

	const module = "/go/hello.example/hello/@v/"
	mod := "module hello.example/hello\n\ngo 1.20\n"
	serve(mux, module+"list", []byte("v1.0.0\n"))
	serve(mux, module+"v1.0.0.info", []byte(`{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`))
	serve(mux, module+"v1.0.0.mod", []byte(mod))
	serve(mux, module+"v1.0.0.zip", zipped(map[string]string{
		"hello.example/hello@v1.0.0/go.mod":   mod,
		"hello.example/hello@v1.0.0/hello.go": "package hello\n\n// Text is " + greeting + ".\nconst Text = \"" + greeting + "\"\n",
	}))
}

func serve(mux *http.ServeMux, pattern string, data []byte) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if bytes.HasPrefix(data, []byte("<")) {
			w.Header().Set("Content-Type", "text/html")
		} else {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		w.Write(data)
	})
}

func npmPackage() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range [][2]string{
		{"package/package.json", `{"name":"holdfast-hello","version":"1.0.0","main":"index.js"}`},
		{"package/index.js", fmt.Sprintf("module.exports = %q\n", greeting)},
	} {
		t.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))})
		t.Write([]byte(f[1]))
	}
	t.Close()
	z.Close()
	return b.Bytes()
}

func zipped(files map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		if w, err := z.Create(name); err == nil {
			w.Write([]byte(text))
		}
	}
	z.Close()
	return b.Bytes()
}
