package seccomp

import (
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// randomInstruction is often valid: codes are those of seccomp and a few others, operands are small or wild.
func randomInstruction(r *rand.Rand, rest int) instruction {
	codes := [...]uint16{
		opLoad, opLoad, classLoad | modeLen, classLoadX | modeLen, classLoad | modeImm, classLoadX | modeImm, classLoad | modeMem, classLoadX | modeMem,
		classStore, classStoreX, classMisc | miscTAX, classMisc | miscTXA, classALU | aluNeg, opReturn, opReturnA, opJump,
		classALU | aluAdd, classALU | aluSub, classALU | aluMul, classALU | aluDiv, classALU | aluOr, classALU | aluAnd, classALU | aluXor,
		classALU | aluLsh, classALU | aluRsh, jumpEqual, jumpGreater, jumpGreaterOrEqual, classJump | testSet,
	}
	i := instruction{Code: codes[r.IntN(len(codes))], K: uint32(r.IntN(80))}
	switch i.Code & 7 {
	case classALU, classJump:
		i.Code |= uint16(r.IntN(2)) * operandX
	case classStore, classStoreX:
		i.K %= 17
	}
	if i.Code&7 == classJump {
		i.JT, i.JF, i.K = uint8(r.IntN(rest+1)), uint8(r.IntN(rest+1)), uint32(r.IntN(rest+1))
	}
	switch r.IntN(40) {
	case 0:
		i.Code = uint16(r.IntN(0x200))
	case 1:
		i.K = r.Uint32()
	case 2, 3, 4:
		i.K *= 4
	}
	return i
}

// The kernel checks a program before it makes a listener, for which a process that may have no
// more descriptors gets EMFILE: so it says what it thinks of a program without loading it
// (seccomp_set_mode_filter, kernel/seccomp.c).
func TestKernelRefusesTheProgramsThatParseProgramRefuses(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		n, accepted := kerneltest.Amount(t, 5_000, 10_000, 20_000), 0
		for range n {
			code := make([]instruction, 1+r.IntN(8))
			for i := range code {
				code[i] = randomInstruction(r, len(code)-i)
			}
			if r.IntN(4) > 0 {
				code[len(code)-1] = op(opReturn, 0)
			}
			b := assembled(code...)
			_, ours := ParseProgram(b)
			_, kernels := Program{string(b)}.Load(LoadOptions{ThreadOnly: true, Listener: true})
			switch {
			case errors.Is(kernels, unix.EMFILE):
				accepted++
				if ours != nil {
					t.Fatalf("the kernel takes it: %v\n%+v", ours, code)
				}
			case !errors.Is(kernels, unix.EINVAL):
				t.Fatalf("the kernel says %v", kernels)
			case ours == nil:
				t.Fatalf("the kernel refuses it\n%v", Program{string(b)})
			}
		}
		if accepted < n/40 || accepted > n-n/40 {
			t.Errorf("%d of %d are valid, which tests little", accepted, n)
		}
	})
}

// A thread with a filter that ends with an errno computed from the arguments finds the same errno as Evaluate.
func TestKernelGivesTheResultThatEvaluateGives(t *testing.T) {
	arch := nativeArch(t)
	target := mustCall(t, arch, "setdomainname") // fails with EPERM, EINVAL or EFAULT if the filter lets it through
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for tried := 0; tried < 150; {
			code := []instruction{op(opLoad, offsetNr), {Code: jumpEqual, JT: 1, K: target.Nr}, op(opReturn, uint32(Allow))}
			for body := 4 + r.IntN(12); body > 0; body-- {
				i := randomInstruction(r, body)
				readsIP := i.Code == opLoad && i.K/8 == offsetIP/8 // which the test does not know
				if i.Code&7 != classReturn && !readsIP {
					code = append(code, i)
				}
			}
			// The last 11 bits of a become an errno above 2048.
			code = append(code, op(classALU|aluAnd, 0x7ff), op(classALU|aluOr, retErrno|0x800), op(opReturnA, 0))
			p, err := ParseProgram(assembled(code...))
			if err != nil {
				continue
			}
			tried++
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := p.Load(LoadOptions{ThreadOnly: true}); err != nil {
					t.Error(err)
					return
				}
				for range 20 {
					c := target
					for i := range c.Args {
						c.Args[i] = r.Uint64() >> r.IntN(64)
					}
					want, _ := p.Evaluate(c)
					if want&actionBits != retErrno {
						continue // division by zero, which would kill
					}
					if got := invokeNumber(c.Nr, c.Args); Errno(uint16(got)) != want {
						t.Errorf("%v: %d, Evaluate says %v\n%v", c, got, want, p)
						return
					}
				}
			}()
			<-done
		}
	})
}

// Every operator at both widths, compiled here and run by the kernel.
func TestKernelComparesArgumentsAsTheFilterSays(t *testing.T) {
	arch := nativeArch(t)
	edges := []uint64{0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1<<32 | 1, 1 << 63, 1<<64 - 1}
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		f := Off()
		errno := uint16(2000)
		for i, width := range []uint8{32, 64, 32, 64, 32, 64} {
			for o := Equal; o <= MaskedEqual; o++ {
				a := Arg{Index: uint8(i), Width: width, Op: o, Value: edges[(i+int(o))%5]}
				if o == MaskedEqual {
					a.Mask = a.Value | 0x10
				}
				r := Rule{Names: []string{"setdomainname"}, Action: Errno(errno), Args: []Arg{a, {Index: uint8(i+1) % 6, Op: NotEqual, Value: 7}}}
				if next := f.With(r); next.Validate() == nil {
					f = next
					errno++
				}
			}
		}
		p := mustCompile(t, f, arch)
		if _, err := p.Load(LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(9, 10))
		for range 20000 {
			c := mustCall(t, arch, "setdomainname")
			for i := range c.Args {
				c.Args[i] = edges[r.IntN(len(edges))] + uint64(r.IntN(3)) - 1
			}
			want, _ := f.Decide(c)
			if want == Allow {
				continue
			}
			if got := invokeNumber(c.Nr, c.Args); Errno(uint16(got)) != want {
				t.Fatalf("%v: %d, want %v", c, got, want)
			}
		}
	})
}
