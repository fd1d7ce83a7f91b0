package main

import (
	"math"
	"strconv"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

var fileRows = []row{
	{"--bind", 2, "SRC DEST", "Show the host's SRC at DEST", bind(rootfs.Bind{Write: true})},
	{"--bind-try", 2, "SRC DEST", "The same if SRC exists", bind(rootfs.Bind{Write: true, Optional: true})},
	{"--dev-bind", 2, "SRC DEST", "Show SRC at DEST; device files work", bind(rootfs.Bind{Write: true, Devices: true})},
	{"--dev-bind-try", 2, "SRC DEST", "The same if SRC exists", bind(rootfs.Bind{Write: true, Devices: true, Optional: true})},
	{"--ro-bind", 2, "SRC DEST", "Show SRC at DEST read-only", bind(rootfs.Bind{})},
	{"--ro-bind-try", 2, "SRC DEST", "The same if SRC exists", bind(rootfs.Bind{Optional: true})},
	{"--bind-fd", 2, "FD DEST", "Show what FD has open at DEST", bindFD(rootfs.Bind{Write: true})},
	{"--ro-bind-fd", 2, "FD DEST", "The same read-only", bindFD(rootfs.Bind{})},
	{"--remount-ro", 1, "DEST", "Make the mount at DEST read-only, not those in it", at(func(p *parser, dest string) (rootfs.Entry, error) {
		return rootfs.RemountReadOnly{At: dest}, nil
	})},
	{"--overlay-src", 1, "SRC", "A layer of the overlay that follows, on top of those before", func(p *parser, _ string, arg []string) error {
		p.layers = append(p.layers, arg[0])
		return nil
	}},
	{"--overlay", 3, "RWSRC WORKDIR DEST", "An overlay at DEST that writes to RWSRC", func(p *parser, name string, arg []string) error {
		return p.overlay(name, 1, "one", arg[2], func(layers []string) rootfs.Entry {
			return rootfs.Overlay{At: inside(arg[2]), Layers: layers, Upper: arg[0], Work: arg[1]}
		})
	}},
	{"--tmp-overlay", 1, "DEST", "An overlay at DEST whose writes are forgotten", func(p *parser, name string, arg []string) error {
		return p.overlay(name, 1, "one", arg[0], func(layers []string) rootfs.Entry {
			return rootfs.TmpOverlay{At: inside(arg[0]), Layers: layers}
		})
	}},
	{"--ro-overlay", 1, "DEST", "An overlay at DEST without writes", func(p *parser, name string, arg []string) error {
		return p.overlay(name, 2, "two", arg[0], func(layers []string) rootfs.Entry {
			return rootfs.ReadOnlyOverlay{At: inside(arg[0]), Layers: layers}
		})
	}},
	{"--exec-label", 1, "LABEL", "The SELinux label of COMMAND", noLabels},
	{"--file-label", 1, "LABEL", "The SELinux label of files made for it", noLabels},
	{"--proc", 1, "DEST", "A new procfs at DEST", at(func(p *parser, dest string) (rootfs.Entry, error) {
		return rootfs.Proc{At: dest, Uncovered: true}, nil
	})},
	{"--dev", 1, "DEST", "A new /dev at DEST", at(func(p *parser, dest string) (rootfs.Entry, error) {
		return rootfs.Dev{At: dest, Console: console()}, nil
	})},
	{"--tmpfs", 1, "DEST", "An empty tmpfs at DEST", at(func(p *parser, dest string) (rootfs.Entry, error) {
		size := p.size
		p.size = 0
		return rootfs.Tmpfs{At: dest, Mode: p.mode(0o755), Bytes: size}, nil
	})},
	{"--mqueue", 1, "DEST", "Message queues at DEST", at(func(p *parser, dest string) (rootfs.Entry, error) {
		return rootfs.Mqueue{At: dest}, nil
	})},
	{"--dir", 1, "DEST", "A directory at DEST", at(func(p *parser, dest string) (rootfs.Entry, error) {
		return rootfs.Dir{At: dest, Mode: p.mode(0o755)}, nil
	})},
	{"--file", 2, "FD DEST", "A file at DEST with what FD has", data(0o666, func(s rootfs.DataBind) rootfs.Entry {
		return rootfs.File{At: s.At, Mode: s.Mode}
	})},
	{"--bind-data", 2, "FD DEST", "Bind a private file with the content of FD", data(0o600, func(s rootfs.DataBind) rootfs.Entry {
		s.Write = true
		return s
	})},
	{"--ro-bind-data", 2, "FD DEST", "The same read-only", data(0o600, func(s rootfs.DataBind) rootfs.Entry { return s })},
	{"--symlink", 2, "SRC DEST", "A symbolic link at DEST to SRC", func(p *parser, name string, arg []string) error {
		p.add(step{option: name, source: arg[0], dest: arg[1], fd: -1, entry: rootfs.Symlink{At: inside(arg[1]), Target: arg[0]}})
		return nil
	}},
	{"--perms", 1, "OCTAL", "The mode of what the next option makes", func(p *parser, _ string, arg []string) error {
		if p.perms >= 0 {
			return complaint("--perms given twice for the same action")
		}
		bits, ok := octal(arg[0])
		if !ok {
			return complaint("--perms takes an octal argument <= 07777")
		}
		p.perms = bits
		return nil
	}},
	{"--size", 1, "BYTES", "The size of the next option's tmpfs", func(p *parser, _ string, arg []string) error { return p.takeSize(arg[0]) }},
	{"--chmod", 2, "OCTAL PATH", "Change the mode of PATH, which exists", func(p *parser, name string, arg []string) error {
		bits, ok := octal(arg[0])
		if !ok {
			return complaint("--chmod takes an octal argument <= 07777")
		}
		p.add(step{option: name, source: arg[0], dest: arg[1], fd: -1, entry: rootfs.Chmod{At: inside(arg[1]), Mode: fileMode(bits)}})
		return nil
	}},
}

func (p *parser) add(s step) { p.steps = append(p.steps, s) }

func bind(b rootfs.Bind) func(*parser, string, []string) error {
	return func(p *parser, name string, arg []string) error {
		b := b
		b.Source, b.At = arg[0], inside(arg[1])
		p.add(step{option: name, source: arg[0], dest: arg[1], fd: -1, entry: b})
		return nil
	}
}

func bindFD(b rootfs.Bind) func(*parser, string, []string) error {
	return func(p *parser, name string, arg []string) error {
		fd, err := descriptor(arg[0])
		if err != nil {
			return err
		}
		b := b
		b.At = inside(arg[1])
		p.add(step{option: name, source: arg[0], dest: arg[1], fd: fd, entry: b})
		return nil
	}
}

// at makes an option of which DEST is all that it takes.
func at(entry func(p *parser, dest string) (rootfs.Entry, error)) func(*parser, string, []string) error {
	return func(p *parser, name string, arg []string) error {
		e, err := entry(p, inside(arg[0]))
		p.add(step{option: name, dest: arg[0], fd: -1, entry: e})
		return err
	}
}

// data makes an option that shows what a descriptor has.
func data(standard int, entry func(rootfs.DataBind) rootfs.Entry) func(*parser, string, []string) error {
	return func(p *parser, name string, arg []string) error {
		fd, err := descriptor(arg[0])
		if err != nil {
			return err
		}
		p.add(step{option: name, source: arg[0], dest: arg[1], fd: fd, entry: entry(rootfs.DataBind{At: inside(arg[1]), Mode: p.mode(standard)})})
		return nil
	}
}

func (p *parser) overlay(name string, least int, word, dest string, entry func(layers []string) rootfs.Entry) error {
	if len(p.layers) < least {
		return complain("%s requires at least %s --overlay-src", name, word)
	}
	p.add(step{option: name, dest: dest, fd: -1, entry: entry(p.layers)})
	p.layers = nil
	return nil
}

// takeSize reads --size: decimal, octal or hexadecimal, as C writes them.
func (p *parser) takeSize(text string) error {
	if p.size != 0 {
		return complaint("--size given twice for the same action")
	}
	const most = math.MaxUint64 >> 1
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		size, err := cNumber(text)
		if err == nil && size > most {
			return complain("--size (for tmpfs) is limited to %d", uint64(most))
		}
		if err == nil && size > 0 {
			p.size = size
			return nil
		}
	}
	return complaint("--size takes a non-zero number of bytes")
}

// cNumber reads a number as strtoull(3) with base 0 does, of which ParseUint's
// binary numbers, "0o" and underscores are no part.
func cNumber(text string) (uint64, error) {
	base := 10
	switch {
	case len(text) > 2 && (text[:2] == "0x" || text[:2] == "0X"):
		text, base = text[2:], 16
	case text[0] == '0':
		base = 8
	}
	return strconv.ParseUint(text, base, 64)
}

func noLabels(_ *parser, _ string, _ []string) error {
	return complaint("labeling not supported on this system")
}
