module github.com/holdfast-dev/holdfast/examples/shell

go 1.26.0

replace github.com/holdfast-dev/holdfast => ../..

require github.com/holdfast-dev/holdfast v0.0.0

require (
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	mvdan.cc/sh/v3 v3.13.1
	software.sslmate.com/src/go-pkcs12 v0.7.4 // indirect
)
