package gittext

import "testing"

func TestHarmlessStrategies(t *testing.T) {
	judges := map[string]func(*Text) bool{"strategy": (*Text).HarmlessStrategy, "options": (*Text).HarmlessStrategyOptions, "opts": (*Text).HarmlessOpts}
	for _, c := range []struct {
		judge, text string
		want        bool
	}{
		{"strategy", "ort\n", true}, {"strategy", "recursive", true}, {"strategy", "recursive-theirs\n", true}, {"strategy", "subtree\n", true},
		{"strategy", "index\n", false}, {"strategy", "one-file\n", false}, {"strategy", "", false}, {"strategy", "ort\nindex", false}, {"strategy", "ort\n\n", false},
		{"strategy", "ORT\n", false}, {"strategy", "x/evil\n", false}, {"strategy", "ort evil\n", false}, {"strategy", "file\n", false},
		{"options", " --theirs --patience --find-renames=50%\n", true}, {"options", `"--ours" '--subtree=a'`, true}, {"options", "--diff-algorithm=histogram\n", true}, {"options", "", true},
		{"options", " --x/evil\n", false}, {"options", " --x\n", false}, {"options", " --index-output=x\n", false}, {"options", " -o\n", false}, {"options", "theirs\n", false},
		{"options", " --subtree=../x\n", false}, {"options", " --find-renames=\n", false}, {"options", `"--ours`, false}, {"options", `"`, false}, {"options", `--ou"rs"`, false},
		{"options", "--theirs\t--x", false}, {"options", "--theirs\\", false}, {"options", `"--ours --x"`, false},
		{"opts", "[options]\n\tstrategy = recursive\n\tgpg-sign = \n\tmainline = 1\n\tstrategy-option = ours\n\tstrategy-option = find-renames=50%\n", true}, {"opts", "", true},
		{"opts", "[options]\n\tstrategy = index\n", false}, {"opts", "[options]\n\tstrategy-option = x\n", false}, {"opts", "[options]\n\tStrategy = index\n", false},
		{"opts", "[options] strategy = index\n", false}, {"opts", "[options]\n\tedit = \\\n\tstrategy = index", false}, {"opts", "[options]\n\tstrategy=index\n", false},
		{"opts", "[options]\nstrategy = index\n", false}, {"opts", "[options]\n\tstrategy = ort ; x\n", false}, {"opts", "[include]\n\tpath = x\n", false},
		{"opts", "[options]\n\tsignoff = true\r\tstrategy = index\n", false},
	} {
		text := new(Text)
		text.N = uint(copy(text.B[:], c.text))
		if got := judges[c.judge](text); got != c.want {
			t.Errorf("%s %q: %v", c.judge, c.text, got)
		}
	}
}
