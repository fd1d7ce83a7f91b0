package hosts

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// original is the default profile of Docker's that docker-seccomp.json extends: default.json of module
// github.com/moby/profiles/seccomp in the version of its name, unchanged (Apache License 2.0).
const original = "testdata/moby-profiles-seccomp-v0.2.3.json"

// namespaceCalls are what is added to it: each is needed (TestKernelEachCallOfTheDockerProfileIsNeeded).
var namespaceCalls = []string{
	"clone", "fsconfig", "fsmount", "fsopen", "mount", "mount_setattr", "move_mount", "open_tree", "pidfd_getfd",
	"pivot_root", "sethostname", "setns", "umount2", "unshare",
}

// extended returns the original with a group more, in which calls are allowed.
func extended(t *testing.T, calls []string) []byte {
	t.Helper()
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const first = "\t\"syscalls\": [\n"
	before, after, found := bytes.Cut(text, []byte(first))
	if !found {
		t.Fatalf("%s has no %q", original, first)
	}
	if calls == nil {
		return text
	}
	names, err := json.MarshalIndent(calls, "\t\t\t", "\t")
	if err != nil {
		t.Fatal(err)
	}
	group := "\t\t{\n\t\t\t\"names\": " + string(names) + ",\n\t\t\t\"action\": \"SCMP_ACT_ALLOW\",\n" +
		"\t\t\t\"comment\": \"for namespaces inside, as Holdfast makes them\"\n\t\t},\n"
	return bytes.Join([][]byte{before, []byte(first), []byte(group), after}, nil)
}

// TestTheDockerProfileIsDockersAndTheseCalls: nothing else of Docker's profile is changed.
func TestTheDockerProfileIsDockersAndTheseCalls(t *testing.T) {
	want := extended(t, namespaceCalls)
	if *update {
		if err := os.WriteFile("docker-seccomp.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return // what is embedded is what was there
	}
	got, err := Files.ReadFile("docker-seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docker-seccomp.json is not %s with the calls of this test: go test ./docs/hosts -update writes it", original)
	}
	if !json.Valid(got) {
		t.Error("docker-seccomp.json is no JSON")
	}
}
