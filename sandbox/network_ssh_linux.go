package sandbox

import (
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
	"github.com/holdfast-dev/holdfast/internal/resolve"
)

// mostConfigs and largestConfig bound what is read of ssh's configuration.
const (
	mostConfigs   = 64
	largestConfig = 1 << 16
)

// coverConfigs finds what ssh reads of the system's, if the policy shows it, and
// what it is to read instead, for as long as the sandbox lasts. Where the root is
// the sandbox's own at that path, and so has none, it gets one. Otherwise git alone
// is told of the relay.
func coverConfigs(in *compile.Input, names []string) {
	if in.NetConfig.Relay == "" || in.NetConfig.Dir == "" || in.Policy.Root != nil {
		return
	}
	if names == nil {
		names = clientenv.SystemSSHConfigs
	}
	command := clientenv.ProxyCommand(pathrule.Join(in.NetConfig.Dir, clientenv.RelayName), "http://"+netip.AddrPortFrom(compile.Loopback4, in.NetConfig.HTTP).String())
	var included []string
	for _, name := range names {
		real, text, info := hostConfig(in, name)
		if info == nil || configures(in.NetConfig, real) {
			continue
		}
		in.NetConfig.SSH = append(in.NetConfig.SSH, compile.SSHConfig{At: real, Text: clientenv.SSHConfig(command, text)})
		included = append(included, clientenv.SSHIncludes(text)...)
	}
	if len(in.NetConfig.SSH) == 0 && in.Inside(names[0]) {
		in.NetConfig.SSH = []compile.SSHConfig{{At: names[0], Text: clientenv.SSHConfig(command, ""), Made: true}}
	}
	if in.Facts.UserNS {
		coverIncluded(in, included)
	}
}

// coverIncluded shows copies of the files that the system's configuration includes.
// ssh takes those that root or its user owns alone and whose mode lets no other
// user write, or ends; and in a user namespace the host's root is the user nobody, unless the tool
// runs as root. What ssh would not take outside it gets as it is.
func coverIncluded(in *compile.Input, patterns []string) {
	for i := 0; i < len(patterns) && i < mostConfigs; i++ { // it grows
		names, _ := filepath.Glob(patterns[i])
		for _, name := range names {
			real, text, info := hostConfig(in, name)
			if info == nil || configures(in.NetConfig, real) || len(in.NetConfig.SSH) >= mostConfigs {
				continue
			}
			if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 && info.Mode()&0o022 == 0 {
				in.NetConfig.SSH = append(in.NetConfig.SSH, compile.SSHConfig{At: real, Text: text})
				patterns = append(patterns, clientenv.SSHIncludes(text)...)
			}
		}
	}
}

// config reads a file of ssh's configuration that the tool finds as the host has
// it; nil: there is none, or not everybody may read it, as the copy can be.
func hostConfig(in *compile.Input, name string) (real, text string, info fs.FileInfo) {
	real, info, err := resolve.Canonical(name)
	if err != nil || !info.Mode().IsRegular() || !showsHosts(in, real) {
		return "", "", nil
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", "", nil
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() || info.Mode()&0o004 == 0 {
		return "", "", nil
	}
	data, err := io.ReadAll(io.LimitReader(f, largestConfig+1))
	if err != nil || len(data) > largestConfig {
		return "", "", nil
	}
	return real, string(data), info
}

// showsHosts reports whether what the tool finds at p, which is canonical, is the
// host's own.
func showsHosts(in *compile.Input, p string) bool {
	for dir := p; ; dir = filepath.Dir(dir) {
		if e, ok := in.Tree.Find(dir); ok {
			return (e.Dir || dir == p) && (e.Kind == pathrule.Read || e.Kind == pathrule.Write || e.Kind == pathrule.CopyOnWrite && in.Facts.Overlay.Yes())
		}
		if dir == "/" {
			return false
		}
	}
}

// configures reports whether there is something for ssh at a path already.
func configures(w compile.NetConfig, at string) bool {
	return slices.ContainsFunc(w.SSH, func(c compile.SSHConfig) bool { return c.At == at })
}
