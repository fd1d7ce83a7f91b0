package landlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"

	"github.com/holdfast-dev/holdfast/landlock"
)

// A ruleset for a build tool: the system to read, one directory to work in, one port to fetch from.
var build = landlock.Ruleset{
	Paths: []landlock.PathRule{
		{Path: "/usr", Access: landlock.FSReadExecute},
		{Path: "/srv/build", Access: landlock.FSReadWrite | landlock.FSRefer},
	},
	Ports: []landlock.PortRule{{Port: 443, Access: landlock.NetConnectTCP}},
}

func ExampleRuleset() {
	var r landlock.Ruleset
	fmt.Println("handles", r.HandledNet(), "and closes", r.Scoped())
	r.UnhandledNet = landlock.NetAll // leave the network alone
	fmt.Println("handles", r.HandledNet(), "of the network, and nothing at all:", r.HandlesNothing())
	fmt.Println("the files are still handled:", r.HandledFS() == landlock.FSAll)
	// Output:
	// handles bind_tcp|connect_tcp|bind_udp|connect_send_udp and closes abstract_unix_socket|signal
	// handles none of the network, and nothing at all: false
	// the files are still handled: true
}

func ExampleRuleset_Validate() {
	fmt.Println(landlock.Ruleset{Paths: []landlock.PathRule{{Path: "src", Access: landlock.FSRead}}}.Validate())
	// Output: landlock: Paths[0].Path = "src": not absolute
}

func ExampleDowngrade() {
	for _, abi := range []int{0, 1, 9} {
		_, lost, err := landlock.Downgrade(build, abi)
		fmt.Println("ABI", abi, "loses", len(lost), "and holds something:", err == nil)
		if abi == 9 {
			fmt.Println(lost[0])
		}
	}
	// Output:
	// ABI 0 loses 23 and holds something: false
	// ABI 1 loses 10 and holds something: true
	// ABI 9 loses 2 and holds something: true
	// lost protection bind_udp (ABI 10, Linux 7.2): UDP sockets can be bound to any port
}

func ExampleLost() {
	_, lost, _ := landlock.Downgrade(build, 1)
	for _, l := range lost {
		if l.Ability {
			fmt.Println(l)
		}
	}
	// Output: lost ability refer (ABI 2, Linux 5.19): renames and links between directories are refused everywhere, with EXDEV
}

func ExampleRuleset_HeldBy() {
	err := build.HeldBy(9)
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	fmt.Println(err)
	// Output:
	// true
	// landlock: Landlock ABI 9 cannot hold the ruleset: lost protection bind_udp (ABI 10, Linux 7.2): UDP sockets can be bound to any port (and 1 more); downgrade the ruleset first and decide whether what is lost may be
}

func ExampleTable() {
	for _, f := range landlock.Table() {
		if f.ABI == 4 {
			fmt.Println(f, "else", f.Without)
		}
	}
	// Output:
	// bind_tcp (ABI 4, Linux 6.7) else TCP sockets can be bound to any port
	// connect_tcp (ABI 4, Linux 6.7) else TCP sockets can be connected to any port
}

func ExampleSupported() {
	_, net, scope, flags := landlock.Supported(7)
	fmt.Println(net, scope, flags)
	// Output: bind_tcp|connect_tcp abstract_unix_socket|signal log_same_exec_off|log_new_exec_on|log_subdomains_off
}

func ExampleScopesOnly() {
	r := landlock.ScopesOnly()
	fmt.Println(r.HandledFS(), r.HandledNet(), r.Scoped())
	// Output: refer none abstract_unix_socket|signal
}

func ExampleParseRuleset() {
	r, err := landlock.ParseRuleset([]byte(`{"paths": [{"path": "/usr", "access": "read|execute"}], "unscoped": "signal"}`))
	fmt.Println(r.Paths[0], r.Scoped(), err)
	_, err = landlock.ParseRuleset([]byte(`{"paths": [{"path": "/usr", "access": "reed"}]}`))
	var unknown *landlock.NameError
	fmt.Println(errors.As(err, &unknown))
	// Output:
	// /usr: execute|read_file|read_dir abstract_unix_socket <nil>
	// true
}

func ExampleParseAccessFS() {
	fmt.Println(landlock.ParseAccessFS("read | refer"))
	fmt.Println(landlock.ParseAccessFS("all of it"))
	// Output:
	// read_file|read_dir|refer <nil>
	// none landlock: unknown file system right "all of it"
}

func ExampleAccessFS_MarshalText() {
	data, err := json.Marshal(build.Paths[0])
	fmt.Println(string(data), err)
	// Output: {"path":"/usr","access":"execute|read_file|read_dir"} <nil>
}

func ExampleABI() {
	abi, err := landlock.ABI()
	var no *landlock.UnsupportedError
	switch {
	case err == nil:
		_ = abi // yes, and which
	case errors.As(err, &no):
		_, _ = no.Reason, no.Remedy // certainly not
	default:
		_ = err // could not tell: a *landlock.ProbeError
	}
}

// A goroutine that restricts its thread and works there.
func ExampleRestrictThread() {
	if len(os.Args) < 100 { // in a program of your own: always
		return
	}
	f, err := landlock.Build(build)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := landlock.RestrictThread(int(f.Fd()), 0); err != nil {
			log.Fatal(err)
		}
	}()
}
