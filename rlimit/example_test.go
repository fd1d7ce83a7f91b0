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
