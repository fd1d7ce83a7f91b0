package sandbox_test

import (
	"io/fs"
	"log"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// What Flatpak asks of bubblewrap for an application, in short:
//
//	bwrap --ro-bind RUNTIME /usr --ro-bind APP /app --symlink usr/lib /lib --symlink usr/lib64 /lib64
//	  --symlink usr/bin /bin --proc /proc --dev /dev --tmpfs /tmp --ro-bind-data 10 /etc/passwd
//	  --dir /run/user/1000 --bind DATA /var --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try
//	  --die-with-parent --seccomp 11 -- /app/bin/hello
func ExamplePolicy_flatpak() {
	data := os.Getenv("HOME") + "/.var/app/org.example.Hello"
	s, err := sandbox.New(sandbox.Policy{
		Root: &rootfs.Layout{Entries: []rootfs.Entry{
			rootfs.Bind{Source: "/var/lib/flatpak/runtime/files", At: "/usr"},
			rootfs.Bind{Source: "/var/lib/flatpak/app/files", At: "/app"},
			rootfs.Symlink{Target: "usr/lib", At: "/lib"},
			rootfs.Symlink{Target: "usr/lib64", At: "/lib64"},
			rootfs.Symlink{Target: "usr/bin", At: "/bin"},
			rootfs.Proc{At: "/proc"},
			rootfs.Dev{At: "/dev"},
			rootfs.Tmpfs{At: "/tmp", Mode: 0o777 | fs.ModeSticky},
			rootfs.DataBind{At: "/etc/passwd", Data: "me:x:1000:1000::/home/me:/bin/sh\n", Mode: 0o644},
			rootfs.Dir{At: "/run/user/1000", Mode: 0o700},
			rootfs.Bind{Source: data, At: "/var", Write: true},
		}},
		Network: sandbox.Network{Host: true}, // no --unshare-net
		// --seccomp: the default profile is one; Programs takes Flatpak's own.
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Command("/app/bin/hello").Run(); err != nil {
		log.Fatal(err)
	}
}

// What Codex asks of it for a command in a workspace:
//
//	bwrap --new-session --die-with-parent --ro-bind / / --dev /dev --bind W W --ro-bind W/.git W/.git
//	  --unshare-user --unshare-pid --unshare-net --proc /proc -- bash -lc COMMAND
//
// [sandbox.Workspace] shows less and protects more; this is the same tree.
func ExamplePolicy_codex() {
	w := "/home/me/project"
	s, err := sandbox.New(sandbox.Policy{
		Root: &rootfs.Layout{Entries: []rootfs.Entry{
			rootfs.Bind{Source: "/", At: "/"},
			rootfs.Dev{At: "/dev"},
			rootfs.Bind{Source: w, At: w, Write: true},
			rootfs.Bind{Source: w + "/.git", At: w + "/.git", Optional: true},
			rootfs.Proc{At: "/proc"},
		}},
		Env: sandbox.Env{Pass: []string{"PATH", "HOME", "LANG"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("bash", "-lc", "make test")
	cmd.Dir = w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // --new-session
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// What Anthropic's sandbox-runtime asks of it:
//
//	bwrap --new-session --die-with-parent --unshare-net --bind /tmp/http.sock /tmp/http.sock
//	  --setenv HTTP_PROXY http://localhost:3128 --ro-bind / / --bind W W --ro-bind W/.bashrc W/.bashrc
//	  --tmpfs SECRET --dev /dev --unshare-pid --unshare-user --proc /proc -- bash -c COMMAND
func ExamplePolicy_sandboxRuntime() {
	w, secret := "/home/me/project", "/home/me/.ssh"
	s, err := sandbox.New(sandbox.Policy{
		Root: &rootfs.Layout{Entries: []rootfs.Entry{
			rootfs.Bind{Source: "/", At: "/"},
			rootfs.Bind{Source: "/tmp/http.sock", At: "/tmp/http.sock", Write: true},
			rootfs.Bind{Source: w, At: w, Write: true},
			rootfs.Tmpfs{At: secret},
			rootfs.Dev{At: "/dev"},
			rootfs.Proc{At: "/proc"},
		}},
		// Names such as .bashrc and .git/hooks are protected in W whether or not they
		// exist: Files.Protect's zero value.
		Env: sandbox.Env{Pass: []string{"PATH", "HOME"}, Set: map[string]string{"HTTP_PROXY": "http://localhost:3128"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("bash", "-c", "npm test")
	cmd.Dir = w
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// What opam asks of it to build a package:
//
//	bwrap --unshare-net --new-session --die-with-parent --proc /proc --dev /dev --setenv TMPDIR /opam-tmp
//	  --tmpfs /opam-tmp --tmpfs /run --ro-bind /usr /usr --symlink /usr/bin /bin --symlink /usr/lib /lib
//	  --symlink /usr/lib64 /lib64 --ro-bind /etc /etc --ro-bind /home /home --ro-bind SWITCH SWITCH
//	  --bind BUILD BUILD make
func ExamplePolicy_buildSandbox() {
	root := "/home/me/.opam/5.2"
	build := root + "/.opam-switch/build/pkg"
	s, err := sandbox.New(sandbox.Policy{
		Root: &rootfs.Layout{Entries: []rootfs.Entry{
			rootfs.Proc{At: "/proc"},
			rootfs.Dev{At: "/dev"},
			rootfs.Tmpfs{At: "/opam-tmp"},
			rootfs.Tmpfs{At: "/run"},
			rootfs.Bind{Source: "/usr", At: "/usr"},
			rootfs.Symlink{Target: "/usr/bin", At: "/bin"},
			rootfs.Symlink{Target: "/usr/lib", At: "/lib"},
			rootfs.Symlink{Target: "/usr/lib64", At: "/lib64"},
			rootfs.Bind{Source: "/etc", At: "/etc"},
			rootfs.Bind{Source: root, At: root},
			rootfs.Bind{Source: build, At: build, Write: true},
		}},
		Env: sandbox.Env{Pass: []string{"PATH"}, Set: map[string]string{"TMPDIR": "/opam-tmp"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("make")
	cmd.Dir = build
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// What the Steam runtime asks of it, in short: a runtime as /usr, the host's
// graphics drivers beside it, everything of the user's, 32-bit programs too.
//
//	bwrap --ro-bind RUNTIME/usr /usr --symlink usr/lib /lib --symlink usr/lib32 /lib32 --tmpfs /tmp
//	  --ro-bind / /run/host --dev-bind /dev /dev --proc /proc --bind HOME HOME --bind-try /run/user/1000 /run/user/1000
//	  --setenv LD_LIBRARY_PATH /overrides/lib --unshare-pid --cap-drop ALL -- GAME
func ExamplePolicy_steamRuntime() {
	runtime, home := "/opt/steam-runtime", os.Getenv("HOME")
	s, err := sandbox.New(sandbox.Policy{
		Root: &rootfs.Layout{
			Entries: []rootfs.Entry{
				rootfs.Bind{Source: runtime + "/usr", At: "/usr"},
				rootfs.Symlink{Target: "usr/lib", At: "/lib"},
				rootfs.Symlink{Target: "usr/lib32", At: "/lib32"},
				rootfs.Tmpfs{At: "/tmp"},
				rootfs.Bind{Source: "/", At: "/run/host"},
				rootfs.Bind{Source: "/dev", At: "/dev", Write: true, Devices: true},
				rootfs.Proc{At: "/proc"},
				rootfs.Bind{Source: home, At: home, Write: true},
				rootfs.Bind{Source: "/run/user/1000", At: "/run/user/1000", Write: true, Optional: true},
			},
			Namespaces: rootfs.Namespaces{ShareIPC: true, ShareUTS: true, ShareCgroup: true},
			Nest:       true, // a game's own sandbox, such as a browser's
		},
		Network: sandbox.Network{Host: true},
		Open:    []sandbox.Bound{policy.BoundSyscalls}, // the default profile refuses 32-bit programs
		Files:   sandbox.Files{Protect: policy.Protect{Off: true}},
		Env:     sandbox.Env{Pass: []string{"*"}, Set: map[string]string{"LD_LIBRARY_PATH": "/overrides/lib"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Command("./game").Run(); err != nil {
		log.Fatal(err)
	}
}
