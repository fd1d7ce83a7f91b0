package child

import (
	"bytes"
	"strconv"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

func TestDecimalWritesNumbers(t *testing.T) {
	for _, n := range []uintptr{0, 7, 10, 65535, 1 << 40, ^uintptr(0)} {
		i := decimal(&st.digits, n)
		if got := string(st.digits[i:]); got != strconv.FormatUint(uint64(n), 10) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestPathsOfEvidence(t *testing.T) {
	names := bytes.Split([]byte(wire.EvidenceNames), []byte{0})
	st.toolPID = 4194304
	defer func() { st.toolPID = 0 }()
	for i := range uintptr(wire.NumberEvidence) {
		pathOf(i, false)
		if got, _, _ := bytes.Cut(st.path[:], []byte{0}); string(got) != "4194304"+string(names[i]) {
			t.Errorf("%d: %q", i, got)
		}
		pathOf(i, true)
		if got, _, _ := bytes.Cut(st.path[:], []byte{0}); string(got) != "self"+string(names[i]) {
			t.Errorf("%d: %q", i, got)
		}
	}
}

func TestAToolThatWasNotExecutedBearsItsSecretName(t *testing.T) {
	st.hdr = &wire.Header{}
	defer func() { st.hdr = nil }()
	copy(st.hdr.Name[:], "/ABCDEFGHIJKLMN")
	tests := []struct {
		name, status string
		unnamed      bool
	}{
		{"the secret name", "Name:\t/ABCDEFGHIJKLMN\nUmask:\t0022\n", true},
		{"init's name", "Name:\tholdfast/init\nUmask:\t0022\n", false},
		{"a tool's name", "Name:\tsh\nUmask:\t0022\nState:\tR\n", false},
		{"a tool's name that is nearly it", "Name:\t/ABCDEFGHIJKLMX\nUmask:\n", false},
		{"nothing", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			clear(st.evidence[:64])
			copy(st.evidence[3:], test.status)
			if got := unnamed(); got != test.unnamed {
				t.Error(got)
			}
		})
	}
}

func TestExitCodesAreTheShells(t *testing.T) {
	tests := []struct {
		step  uint32
		errno syscall.Errno
		want  uintptr
	}{
		{wire.StepExecute, syscall.ENOENT, 127},
		{wire.StepExecute, syscall.EACCES, 126},
		{wire.StepExecute, syscall.ENOEXEC, 126},
		{wire.StepClone, syscall.ENOENT, 125},
		{3, syscall.ENOENT, 125},
	}
	for _, test := range tests {
		st.failedStep, st.failedErrno = test.step, uintptr(test.errno)
		if got := exitCode(); got != test.want {
			t.Errorf("step %#x, %v: %d, want %d", test.step, test.errno, got, test.want)
		}
	}
	st.failedStep, st.failedErrno = 0, 0
}

// TestOnlyTheKernelsWordMakesAStage: this program was not executed as one,
// whatever its arguments and variables say.
func TestOnlyTheKernelsWordMakesAStage(t *testing.T) {
	t.Setenv(wire.FDName, "3")
	if executedAs(wire.ExecPath) {
		t.Error("a test is taken for a stage")
	}
}

func TestTheProgramsDescriptorIsANumberAboveTheStandardOnes(t *testing.T) {
	for text, want := range map[string]uintptr{"3": 3, "123": 123, "2": 0, "": 0, "-1": 0, "3x": 0, "1234567890": 0, " 3": 0} {
		t.Setenv(wire.FDName, text)
		fd, ok := programFD()
		if ok != (want > 0) || ok && fd != want {
			t.Errorf("%q: %d, %v", text, fd, ok)
		}
	}
}
