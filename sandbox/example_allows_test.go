package sandbox_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// What a policy means can be asked without a sandbox, on any system: it looks at
// no file.
func ExampleAllows() {
	p := sandbox.Policy{
		Files: sandbox.Files{
			Read: []string{"/usr"}, Write: []string{"/ws"}, Hide: []string{"/ws/keys"}, HideNames: []string{".env"}, Private: []string{"/tmp"},
		},
		Limits: sandbox.Limits{WallClock: time.Minute},
	}
	for _, act := range []sandbox.Access{
		{Op: sandbox.OpWrite, Path: "/ws/main.go"},
		{Op: sandbox.OpWrite, Path: "/usr/bin/ls"},
		{Op: sandbox.OpRead, Path: "/tmp/x"},
		{Op: sandbox.OpRead, Path: "/ws/keys/id"},
		{Op: sandbox.OpRead, Path: "/ws/api/.env"},
		{Op: sandbox.OpCreate, Path: "/ws/sub/.git/hooks/pre-commit"},
		{Op: sandbox.OpConnect, Network: "tcp", Host: "example.org", Port: 443},
		{Op: sandbox.OpConnect, Network: "tcp", Host: "127.0.0.1", Port: 8080},
		{Op: sandbox.OpSignal, Outside: true},
		{Op: sandbox.OpRunFor, For: time.Hour},
	} {
		ok, why := sandbox.Allows(p, act)
		fmt.Println(act.Op, ok, why)
	}
	// Output:
	// write true Files.Write[0]: shown to read and write: /ws/main.go lies in /ws
	// write false Files.Read[0]: shown to read: /usr/bin/ls lies in /usr (to allow it: name it, or a directory around it, in Files.Write)
	// read false Files.Private[0]: private: the tool sees what is the run's own there: a directory of the run's own, empty at its start: /tmp/x lies in /tmp
	// read false Files.Hide[0]: hidden: /ws/keys/id lies in /ws/keys (to allow it: take it out of Files.Hide, or name what is inside in Files.Read or Files.Write)
	// read false Files.HideNames[0]: /ws/api/.env is the hidden name .env (to allow it: take it out of Files.HideNames)
	// create false Files.Protect: /ws/sub/.git/hooks/pre-commit lies in a git directory, where tools may not have it (to allow it: name .git/hooks in Files.Protect.Except, if git outside may obey it)
	// connect false Network: there is no network but a loopback of the sandbox's own (to allow it: name the host in Network.Hosts)
	// connect true the sandbox has a loopback of its own: what listens there is inside
	// signal false no process outside of the sandbox can be signalled (to allow it: open the bound processes)
	// run false Limits.WallClock: everything inside is killed after 1m0s (to allow it: raise it)
}

// A rename is two names' matter, and so is a link: neither can be used to change
// what is protected, or to read what is hidden.
func ExampleOp() {
	p := sandbox.Policy{Files: sandbox.Files{Read: []string{"/usr"}, Write: []string{"/ws"}, HideNames: []string{".env"}}}
	for _, act := range []sandbox.Access{
		{Op: sandbox.OpRename, Path: "/ws/a", To: "/ws/b"},
		{Op: sandbox.OpRename, Path: "/ws/.env", To: "/ws/b"},
		{Op: sandbox.OpLink, Path: "/usr/bin/ls", To: "/ws/ls"},
		{Op: sandbox.OpSymlink, Path: "/ws/.bashrc", To: "evil"},
		{Op: sandbox.OpRemove, Path: "/ws"},
		{Op: sandbox.OpChmod, Path: "/ws/.git/hooks/pre-commit"},
		{Op: sandbox.OpSetXattr, Path: "/ws/a"},
		{Op: sandbox.OpList, Path: "/ws"},
		{Op: sandbox.OpStat, Path: "/home"},
		{Op: sandbox.OpExecute, Path: "/usr/bin/ls"},
		{Op: sandbox.OpBind, Network: "unix", Path: "/ws/socket"},
		{Op: sandbox.OpFork},
		{Op: sandbox.OpElevate},
	} {
		ok, why := sandbox.Allows(p, act)
		fmt.Printf("%s %v %s %q\n", act.Op, ok, why.Bound, why.Field)
	}
	// Output:
	// rename true files "Files.Write[0]"
	// rename false files "Files.HideNames[0]"
	// link false files "Files.Read[0]"
	// symlink false files "Files.Protect"
	// remove false files "Files.Write[0]"
	// chmod false files "Files.Protect"
	// xattr true files "Files.Write[0]"
	// list true files "Files.Write[0]"
	// stat false files ""
	// execute true files "Files.Read[0]"
	// bind true files "Files.Write[0]"
	// fork true processes ""
	// gain false privileges ""
}

// On macOS a report has what the system's log says of a tool that was refused.
func ExampleDenial() {
	r := sandbox.Report{Tool: "cat", Status: "exit status 1", Denials: []sandbox.Denial{{
		Time: time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC), Process: "cat", PID: 812, Operation: "file-read-data", Target: "/private/etc/master.passwd", Times: 2,
	}}}
	fmt.Print(r.String())
	text, _ := json.Marshal(r.Denials)
	fmt.Println(string(text))
	// Output:
	// cat: exit status 1
	//   denied 2 times: cat (812) file-read-data /private/etc/master.passwd
	// [{"time":"2026-11-21T16:00:00Z","process":"cat","pid":812,"operation":"file-read-data","target":"/private/etc/master.passwd","times":2}]
}
