package proxy

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"

	"software.sslmate.com/src/go-pkcs12"
)

// SystemBundles are the files that hold a system's roots, in the order in which
// crypto/x509 looks for them. The root that the tool sees may have the
// sandbox's bundle in their places too, for tools that read no variable (wget).
var SystemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch, Gentoo
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL 6
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL 7
	"/etc/ssl/cert.pem",                                 // Alpine
}

// systemRoots reads the first of the system's bundles that exists. None: no roots,
// which is what a client inside would have found.
func systemRoots() ([]byte, error) {
	for _, name := range SystemBundles {
		b, err := os.ReadFile(name)
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the system's roots: %w", err)
		}
	}
	return nil, nil
}

// admit adds the policy's authorities to the roots, and returns the bundle of both.
func (t *Compiled) admit(c Config, system []byte) ([]byte, error) {
	if len(c.Authorities) == 0 {
		return system, nil
	}
	var err error
	if c.Roots != nil {
		t.roots = c.Roots.Clone()
	} else if t.roots, err = x509.SystemCertPool(); err != nil {
		return nil, fmt.Errorf("the system's roots: %w", err)
	}
	if !t.roots.AppendCertsFromPEM([]byte(c.Authorities)) {
		return nil, errors.New("the authorities hold no certificate in PEM")
	}
	return slices.Concat(system, []byte("\n"), []byte(c.Authorities)), nil
}

// bundle appends an authority to roots in PEM.
func bundle(roots []byte, a *authority) []byte {
	return slices.Concat(roots, []byte("\n"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// store makes a JVM's trust store of a bundle. A JVM reads no PEM as a trust
// store, in no version; PKCS#12 with the attribute that marks a trusted certificate
// it reads since 8, and a password is needed up to 17. Certificates that Go cannot
// parse are left out: Java's own store has none of them.
func store(bundle []byte) ([]byte, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
			certs = append(certs, c)
		}
	}
	return pkcs12.Modern.EncodeTrustStore(certs, clientenv.StorePassword)
}
