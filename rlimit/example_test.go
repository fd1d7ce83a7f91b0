package rlimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/rlimit"
)

// inherited is what a process was given, as [rlimit.Current] reads it.
var inherited = func() rlimit.Values {
	var v rlimit.Values
	for r := range v {
		v[r] = rlimit.Limit{Soft: rlimit.Unlimited, Hard: rlimit.Unlimited}
	}
	v[rlimit.NoFile] = rlimit.Limit{Soft: 1024, Hard: 524288}
	return v
}()

func ExampleLimits() {
	data, err := json.Marshal(rlimit.Limits{
		AS:     rlimit.At(2 << 30),
		CPU:    rlimit.Between(60, 65),
		NoFile: rlimit.Between(1024, rlimit.Inherited),
	})
	fmt.Println(string(data), err)
	// Output: {"as":"2GiB","cpu":"1m:65s","nofile":"1024:inherited"} <nil>
}

func ExampleLimits_UnmarshalJSON() {
	var l rlimit.Limits
	fmt.Println(json.Unmarshal([]byte(`{"fsize": "5MB"}`), &l))
	fmt.Println(json.Unmarshal([]byte(`{"fsize": "5MiB"}`), &l), l.FSize.Hard)
	// Output:
	// rlimit: FSize = "5MB": not a whole number with a unit of the resource, unlimited or inherited
	// <nil> 5242880
}

func ExampleLimits_MarshalJSON() {
	data, _ := json.Marshal(rlimit.Limits{Core: rlimit.At(0)})
	fmt.Println(string(data))
	// Output: {"core":"0"}
}

func ExampleLimits_Resolve() {
	l := rlimit.Limits{NoFile: rlimit.Between(4096, rlimit.Inherited), Core: rlimit.At(0)}
	fmt.Println(l.Resolve(inherited))
	_, err := rlimit.Limits{NoFile: rlimit.At(1_000_000)}.Resolve(inherited)
	fmt.Println(err)
	// Output:
	// [core 0 nofile 4096:524288] <nil>
	// rlimit: NoFile = "1000000": the hard limit is above the inherited one (1024:524288)
}

func ExampleLimits_Validate() {
	fmt.Println(rlimit.Limits{Nice: rlimit.At(50)}.Validate())
	// Output: rlimit: Nice = "50": above what the resource has (40)
}

func ExampleLimits_Or() {
	l := rlimit.Limits{Core: rlimit.At(1 << 20)}.Or(rlimit.Defaults(inherited, 0))
	data, _ := json.Marshal(l)
	fmt.Println(string(data))
	// Output: {"core":"1MiB","nofile":"4096:65536","nproc":"4096","sigpending":"4096"}
}

func ExampleDefaults() {
	const running = 250 // threads of this user, for want of a user namespace
	data, _ := json.Marshal(rlimit.Defaults(inherited, running))
	fmt.Println(string(data))
	// Output: {"core":"1B","nofile":"4096:65536","nproc":"4346"}
}

func ExampleAt() {
	fmt.Println(rlimit.FSize.Format(*rlimit.At(1 << 30)))
	// Output: 1GiB
}

func ExampleBetween() {
	fmt.Println(rlimit.Stack.Format(*rlimit.Between(8<<20, rlimit.Unlimited)))
	// Output: 8MiB:unlimited
}

func ExampleResource_Parse() {
	fmt.Println(rlimit.CPU.Parse("90s:2m"))
	// Output: {90 120} <nil>
}

func ExampleResource_Format() {
	fmt.Println(rlimit.RTTime, rlimit.RTTime.Format(rlimit.Limit{Soft: 200_000, Hard: 1_000_000}))
	// Output: rttime 200ms:1s
}

// A program that bounds itself and all that it will start.
func ExampleLimits_Apply() {
	if len(os.Args) < 100 { // in a program of your own: at its start
		return
	}
	if err := (rlimit.Limits{Core: rlimit.At(0), FSize: rlimit.At(1 << 30)}).Apply(); err != nil {
		log.Fatal(err)
	}
}

func ExampleCurrent() {
	v, err := rlimit.Current()
	if err != nil {
		return // not Linux
	}
	_ = rlimit.NoFile.Format(v[rlimit.NoFile])
}

// Everything that a process can take, bounded for a job of a batch system.
func ExampleLimits_Resolve_all() {
	job := rlimit.Limits{
		AS: rlimit.At(4 << 30), Data: rlimit.At(2 << 30), Stack: rlimit.Between(8<<20, 64<<20), // memory
		RSS: rlimit.At(2 << 30), Locks: rlimit.At(100), // Linux enforces neither; other systems do
		CPU: rlimit.At(600), RTPrio: rlimit.At(0), RTTime: rlimit.At(0), Nice: rlimit.At(0), // time
		NProc: rlimit.At(256), NoFile: rlimit.At(1024), SigPending: rlimit.At(128), // things
		MemLock: rlimit.At(64 << 10), MsgQueue: rlimit.At(0), // what cannot be swapped out
		FSize: rlimit.At(1 << 30), Core: rlimit.At(0), // files
	}
	settings, err := job.Resolve(inherited)
	fmt.Println(len(settings) == rlimit.NumResources, err)
	for _, s := range settings {
		switch s.Resource {
		case rlimit.AS, rlimit.Data, rlimit.Stack:
			fmt.Println("memory:", s)
		case rlimit.NProc, rlimit.SigPending:
			fmt.Println("shared with the user's other processes:", s)
		case rlimit.RSS, rlimit.Locks:
			fmt.Println("not enforced:", s.Resource)
		}
	}
	// Output:
	// true <nil>
	// memory: data 2GiB
	// memory: stack 8MiB:64MiB
	// not enforced: rss
	// shared with the user's other processes: nproc 256
	// memory: as 4GiB
	// not enforced: locks
	// shared with the user's other processes: sigpending 128
}

// What a launcher sets by itself, in numbers and in the kernel's order.
func ExampleSetting() {
	settings, _ := rlimit.Limits{NoFile: rlimit.At(256), Nice: rlimit.At(0)}.Resolve(inherited)
	for _, s := range settings {
		fmt.Printf("setrlimit(%d, {%d, %d})\n", s.Resource, s.Soft, s.Hard)
	}
	// Output:
	// setrlimit(7, {256, 256})
	// setrlimit(13, {0, 0})
}

// What can lock memory, or queue messages, without a bound of its own.
func ExampleValues() {
	var unbounded []rlimit.Resource
	for _, r := range []rlimit.Resource{rlimit.MemLock, rlimit.MsgQueue, rlimit.NoFile, rlimit.RTPrio} {
		if inherited[r].Soft == rlimit.Unlimited {
			unbounded = append(unbounded, r)
		}
	}
	fmt.Println(unbounded)
	// Output: [memlock msgqueue rtprio]
}

// A limit that makes no sense is told by its field, before anything is set.
func ExampleFieldError() {
	err := rlimit.Limits{Core: rlimit.Between(2, 1)}.Validate()
	var wrong *rlimit.FieldError
	if errors.As(err, &wrong) {
		fmt.Printf("%s is %s: %s\n", wrong.Field, wrong.Value, wrong.Reason)
	}
	fmt.Println(rlimit.Core, rlimit.Nice, rlimit.Data) // the names in JSON
	// Output:
	// Core is 2B:1B: the soft limit is above the hard limit
	// core nice data
}

// A limit that the kernel refuses says which, and why.
func ExampleSetError() {
	var err error = &rlimit.SetError{Op: "setrlimit", Resource: rlimit.NProc, Err: os.ErrPermission} // as Apply returns it
	var refused *rlimit.SetError
	if errors.As(err, &refused) && errors.Is(refused.Err, os.ErrPermission) {
		fmt.Println(refused.Op, refused.Resource, "needs a right that this process lacks")
	}
	// Output: setrlimit nproc needs a right that this process lacks
}
