package darwin

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/rlimit"
)

func TestTheStagesArgumentsComeBackAsTheyWere(t *testing.T) {
	limits := []rlimit.Setting{{Resource: rlimit.Core}, {Resource: rlimit.NoFile, Soft: 10, Hard: rlimit.Unlimited}}
	argv := ProfileArgs(SandboxExec, emit.Emission{Profile: "(version 1)\n", Params: []emit.Param{{Name: "PATH0", Value: "/a b\n\"c\"=d"}}}, "/bin/echo", []string{"-n", "", "--", "x,y:z"})
	if want := []string{SandboxExec, "-p", "(version 1)\n", "-D", "PATH0=/a b\n\"c\"=d", "--", "/bin/echo", "-n", "", "--", "x,y:z"}; !slices.Equal(argv, want) {
		t.Errorf("%q", argv)
	}
	for _, l := range [][]rlimit.Setting{limits, nil} {
		pipe, gotLimits, gotArgv, err := ParseStage(StageArgs(7, l, argv))
		if err != nil || pipe != 7 || !slices.Equal(gotLimits, l) || !slices.Equal(gotArgv, argv) {
			t.Errorf("%d %v %q %v", pipe, gotLimits, gotArgv, err)
		}
	}
	for _, args := range [][]string{
		nil, {StageWord}, {StageWord, "3", ""}, {"sh", "3", "", "/bin/sh"}, {StageWord, "x", "", "/bin/sh"}, {StageWord, "2", "", "/bin/sh"},
		{StageWord, "3", "1:2", "/bin/sh"}, {StageWord, "3", "99:2:3", "/bin/sh"}, {StageWord, "3", "a:b:c", "/bin/sh"}, {StageWord, "3", "-1:2:3", "/bin/sh"},
	} {
		if _, _, _, err := ParseStage(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
