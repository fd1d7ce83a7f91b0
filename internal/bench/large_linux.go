package main

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// largeMain is the generated harness's main package.
//
//go:embed large.go.txt
var largeMain string

// How much the generated harness has of everything.
const (
	largePackages = 200      // packages with an init function each
	largeData     = 40 << 20 // bytes linked in
	module        = "github.com/holdfast-dev/holdfast"
)

type largeHarness struct {
	dir, program string
	initTime     time.Duration
}

// buildLarge generates and builds a harness with much linked into it and much to
// initialise, and returns its size in bytes.
func buildLarge() (h largeHarness, size int64, err error) {
	root, err := moduleRoot()
	if err != nil {
		return h, 0, err
	}
	if h.dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return h, 0, err
	}
	h.program = filepath.Join(h.dir, "large")
	if err = generateLarge(h.dir, root); err == nil {
		err = goBuild(h.dir, h.program)
	}
	if err == nil {
		h.initTime, err = timeOf(h.program, "quit")
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(h.program)
	}
	if err != nil {
		os.RemoveAll(h.dir)
		return h, 0, err
	}
	return h, info.Size(), nil
}

func generateLarge(dir, root string) error {
	data := make([]byte, largeData)
	rand.Read(data)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	files := map[string]string{
		"go.mod":   fmt.Sprintf("module large\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, root),
		"go.sum":   string(sums),
		"data.bin": string(data),
	}
	var imports strings.Builder
	for i := range largePackages {
		name := fmt.Sprintf("p%03d", i)
		fmt.Fprintf(&imports, "\t_ \"large/%s\"\n", name)
		files[name+"/p.go"] = strings.ReplaceAll(largePackage, "NAME", name)
	}
	files["main.go"] = strings.Replace(largeMain, "\t// generated packages\n", imports.String(), 1)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// largePackage is each of the generated packages.
const largePackage = `package NAME

import (
	"fmt"
	"regexp"
)

var table = map[string]*regexp.Regexp{}

func init() {
	for i := range 20 {
		s := fmt.Sprintf("^NAME-%d-(a|b|c)+[x-z]{1,9}$", i)
		table[s] = regexp.MustCompile(s)
	}
}
`

func goBuild(dir, to string) error {
	cmd := exec.Command("go", "build", "-o", to, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the large harness: %w\n%s", err, out)
	}
	return nil
}

func timeOf(name string, args ...string) (time.Duration, error) {
	began := time.Now()
	err := exec.Command(name, args...).Run()
	return time.Since(began), err
}

// moduleRoot is where this module's source is.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module's source (run this inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
