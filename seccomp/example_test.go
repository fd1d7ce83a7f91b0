package seccomp_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/seccomp"
)

func Example() {
	filter := seccomp.Default().With(seccomp.Rule{
		Names:  []string{"ptrace"},
		Action: seccomp.Errno(seccomp.EPERM),
		Reason: "no debuggers here",
	})
	program, err := filter.Compile(seccomp.ARM64)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"openat", "ptrace", "clone3", "mount"} {
		call, _ := seccomp.NewCall(seccomp.ARM64, name)
		action, _ := program.Evaluate(call)
		fmt.Println(name, action)
	}
	// Output:
	// openat allow
	// ptrace errno(EPERM)
	// clone3 errno(ENOSYS)
	// mount errno(EPERM)
}

func ExampleFilter() {
	filter := seccomp.Filter{
		Default: seccomp.Allow,
		Rules: []seccomp.Rule{
			{Names: []string{"kill"}, Action: seccomp.Allow, Args: []seccomp.Arg{{Index: 1, Value: 0}}, Reason: "asking whether a process lives"},
			{Names: []string{"kill", "tkill"}, Action: seccomp.Errno(seccomp.EACCES), Reason: "no signals"},
		},
	}
	fmt.Println(filter.Validate())
	// Output: <nil>
}

func ExampleDefault() {
	call, _ := seccomp.NewCall(seccomp.AMD64, "socket", 40, 1, 0) // AF_VSOCK
	fmt.Println(seccomp.Default().Decide(call))
	// Output: errno(EAFNOSUPPORT) packet, vsock (to the hypervisor or the Windows host), AF_ALG, Bluetooth and all other families
}

func ExampleStrict() {
	call, _ := seccomp.NewCall(seccomp.AMD64, "connect", 3)
	fmt.Println(seccomp.Strict().Decide(call))
	// Output: errno(EPERM) no socket that has an address
}

func ExampleFilter_With() {
	// The caller's rules win; the rest of the profile stays.
	filter := seccomp.Default().With(seccomp.Rule{
		Names: []string{"socket"}, Action: seccomp.Allow, Args: []seccomp.Arg{{Index: 0, Value: 40}}, Reason: "the guest agent talks over vsock",
	})
	vsock, _ := seccomp.NewCall(seccomp.AMD64, "socket", 40, 1, 0)
	packet, _ := seccomp.NewCall(seccomp.AMD64, "socket", 17, 3, 0)
	fmt.Println(filter.Decide(vsock))
	action, _ := filter.Decide(packet)
	fmt.Println(action)
	// Output:
	// allow the guest agent talks over vsock
	// errno(EAFNOSUPPORT)
}

func ExampleFilter_Without() {
	filter := seccomp.Default().Without("ptrace", "process_vm_readv", "process_vm_writev")
	call, _ := seccomp.NewCall(seccomp.AMD64, "ptrace")
	action, _ := filter.Decide(call)
	fmt.Println(action)
	fmt.Println(seccomp.Default().Without("ptrcae").Validate())
	// Output:
	// errno(EPERM)
	// seccomp: Rules[0].Names[0]: unknown syscall: "ptrcae", did you mean "ptrace"?
}

func ExampleFilter_Validate() {
	err := seccomp.Filter{Rules: []seccomp.Rule{{Names: []string{"read"}, Args: []seccomp.Arg{{Index: 6}}}}}.Validate()
	var wrong *seccomp.Error
	fmt.Println(errors.As(err, &wrong), wrong.Field, errors.Is(err, seccomp.ErrInvalid))
	// Output: true Rules[0].Args[0].Index true
}

func ExampleFilter_Decide() {
	call, _ := seccomp.NewCall(seccomp.ARM64, "ioctl", 0, 0x5412) // TIOCSTI
	action, reason := seccomp.Default().Decide(call)
	fmt.Println(action, "-", reason)
	// Output: errno(EPERM) - types into the terminal as if the user had (CVE-2017-5226)
}

func ExampleFilter_UnmarshalJSON() {
	var filter seccomp.Filter
	err := json.Unmarshal([]byte(`{"default": "allow", "rules": [
		{"names": ["ioctl"], "action": "errno(EPERM)", "args": [{"index": 1, "value": 21522}], "reason": "no TIOCSTI"}]}`), &filter)
	fmt.Println(err, filter.Rules[0].Reason)
	fmt.Println(json.Unmarshal([]byte(`{"defualt": "allow"}`), &filter))
	// Output:
	// <nil> no TIOCSTI
	// seccomp: JSON: invalid value: unknown name "defualt"
}

func ExampleFilter_Compile() {
	for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
		program, err := seccomp.Default().Compile(arch)
		fmt.Println(arch, program.Len() < 200, err)
	}
	// Output:
	// amd64 true <nil>
	// arm64 true <nil>
}

func ExampleArg() {
	// clone is allowed if none of the namespace flags is set; its flags are an unsigned long, so all 64 bits count.
	flags := seccomp.Arg{Index: 0, Width: 64, Op: seccomp.MaskedEqual, Mask: 0x7E020000, Value: 0}
	filter := seccomp.Filter{Rules: []seccomp.Rule{{Names: []string{"clone"}, Action: seccomp.Allow, Args: []seccomp.Arg{flags}}}}
	for _, flags := range []uint64{0x11, 0x10000011} { // SIGCHLD; with CLONE_NEWUSER
		call, _ := seccomp.NewCall(seccomp.AMD64, "clone", flags)
		action, _ := filter.Decide(call)
		fmt.Println(action)
	}
	// Output:
	// allow
	// errno(EPERM)
}

func ExampleNewCall() {
	call, err := seccomp.NewCall(seccomp.ARM64, "openat", 0xffffff9c)
	fmt.Println(call, err)
	_, err = seccomp.NewCall(seccomp.ARM64, "open")
	fmt.Println(err)
	// Output:
	// arm64 openat(0xffffff9c, 0x0, 0x0, 0x0, 0x0, 0x0) <nil>
	// seccomp: Nr: unknown syscall: "open" on arm64
}

func ExampleCall() {
	program, _ := seccomp.Off().Compile(seccomp.AMD64)
	fmt.Println(program.Evaluate(seccomp.Call{Arch: 0x40000003, Nr: 1})) // a 32-bit exit, by int 0x80
	// Output: kill_process <nil>
}

func ExampleParseProgram() {
	program, _ := seccomp.Strict().Compile(seccomp.AMD64)
	again, err := seccomp.ParseProgram(program.Bytes())
	fmt.Println(again == program, err)
	_, err = seccomp.ParseProgram([]byte{0x15, 0, 9, 9, 0, 0, 0, 0})
	fmt.Println(err)
	// Output:
	// true <nil>
	// seccomp: Program[0]: not a valid seccomp program: jumps out of the program
}

func ExampleProgram_Evaluate() {
	program, _ := seccomp.Default().Compile(seccomp.AMD64)
	x32 := seccomp.Call{Arch: seccomp.AMD64, Nr: 0x40000000 | 41}
	fmt.Println(program.Evaluate(x32))
	// Output: errno(ENOSYS) <nil>
}

func ExampleProgram_String() {
	program, _ := seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"reboot"}}}}.Compile(seccomp.ARM64)
	fmt.Print(program)
	// Output:
	//    0  a = arch
	//    1  if a == 0xc00000b7 goto 3 else 2  ; arm64
	//    2  return kill_process
	//    3  a = nr
	//    4  if a == 0x8e goto 6 else 5  ; reboot
	//    5  return allow
	//    6  return errno(EPERM)
}

func ExampleProgram_Load() {
	arch, err := seccomp.Native()
	if err != nil {
		return
	}
	program, err := seccomp.Strict().Compile(arch)
	if err != nil {
		return
	}
	load := func() error { // from here on, and for good, for all threads and children
		_, err := program.Load(seccomp.LoadOptions{})
		return err
	}
	_ = load
}

// Each way in which a filter can be wrong has a sentinel of its own, and the error names the field.
func ExampleError() {
	large := make([]seccomp.Arg, 0, 6000)
	for i := range cap(large) {
		large = append(large, seccomp.Arg{Op: seccomp.NotEqual, Value: uint64(i)})
	}
	twice := []seccomp.Rule{{Names: []string{"read"}}, {Names: []string{"read"}, Action: seccomp.Allow}}
	for _, rules := range [][]seccomp.Rule{
		{{Names: []string{"raed"}}}, twice, {{Names: []string{"read"}, Args: large}},
	} {
		_, err := seccomp.Filter{Rules: rules}.Compile(seccomp.AMD64)
		var wrong *seccomp.Error
		switch errors.As(err, &wrong); {
		case errors.Is(err, seccomp.ErrUnknownSyscall):
			fmt.Println("a typing error:", wrong.Detail)
		case errors.Is(err, seccomp.ErrUnreachable):
			fmt.Println("nothing ever reaches", wrong.Field)
		case errors.Is(err, seccomp.ErrTooLarge):
			fmt.Println("more than", seccomp.MaxInstructions, "instructions:", wrong.Err)
		}
	}
	// Output:
	// a typing error: "raed", did you mean "read"?
	// nothing ever reaches Rules[1].Names[0]
	// more than 4096 instructions: too large
}

// What a program should see of a refusal: a C library falls back from ENOSYS, and a network program from the other two.
func ExampleFilter_Decide_errnos() {
	filter := seccomp.Filter{
		Default: seccomp.Allow,
		Unknown: seccomp.Errno(seccomp.ENOSYS), // calls newer than this package
		Rules: []seccomp.Rule{
			{Names: []string{"socket"}, Action: seccomp.Errno(seccomp.EAFNOSUPPORT), Args: []seccomp.Arg{{Index: 0, Value: 16}}},
			{Names: []string{"socket"}, Action: seccomp.Errno(seccomp.EPROTONOSUPPORT), Args: []seccomp.Arg{{Index: 2, Value: 262}}},
		},
	}
	netlink, _ := seccomp.NewCall(seccomp.AMD64, "socket", 16, 3, 0)
	multipath, _ := seccomp.NewCall(seccomp.AMD64, "socket", 2, 1, 262)
	future := seccomp.Call{Arch: seccomp.AMD64, Nr: 9999, IP: 0x401000}
	for _, call := range []seccomp.Call{netlink, multipath, future} {
		action, _ := filter.Decide(call)
		fmt.Println(action)
	}
	// Output:
	// errno(EAFNOSUPPORT)
	// errno(EPROTONOSUPPORT)
	// errno(ENOSYS)
}
