package gittext

// How commits are merged: strategies, of which git runs git-merge-NAME, and their options, which it passes on. git merge-index is another
// program's way, and git read-tree, which some strategies run, writes the file that --index-output names. So both are allow-lists.

// strategies are git's own (builtin/merge.c, all_strategy), and the programs by which git-merge-recursive(1) has its name changed.
var strategies = [...]string{"ort", "recursive", "recursive-ours", "recursive-theirs", "resolve", "octopus", "ours", "subtree"}

// strategyOptions are those of ort and recursive (merge-recursive.c, parse_merge_opt); of strategyValues a value follows.
var strategyOptions = [...]string{
	"ours", "theirs", "subtree", "patience", "histogram", "ignore-space-change", "ignore-all-space", "ignore-space-at-eol", "ignore-cr-at-eol",
	"renormalize", "no-renormalize", "no-renames", "find-renames",
}

var strategyValues = [...]string{"subtree=", "diff-algorithm=", "find-renames=", "rename-threshold="}

// optKeys are the keys of sequencer/opts (sequencer.c, populate_opts_cb) of which any value is harmless.
var optKeys = [...]string{
	"no-commit", "edit", "allow-empty", "allow-empty-message", "drop-redundant-commits", "keep-redundant-commits", "signoff", "record-origin",
	"allow-ff", "mainline", "gpg-sign", "allow-rerere-auto", "default-msg-cleanup",
}

//go:norace
func (t *Text) isStrategy(at, end uint) bool {
	for i := range strategies {
		if t.spells(at, end, strategies[i]) {
			return true
		}
	}
	return false
}

// isStrategyOption reports whether bytes at to end are such an option, without the dashes before it.
//
//go:norace
func (t *Text) isStrategyOption(at, end uint) bool {
	for i := range strategyOptions {
		if t.spells(at, end, strategyOptions[i]) {
			return true
		}
	}
	for i := range strategyValues {
		if value := at + uint(len(strategyValues[i])); value < end && t.startsWith(at, strategyValues[i]) {
			return t.isPlainValue(value, end)
		}
	}
	return false
}

// isPlainValue accepts letters, digits, dashes, and the sign of a percentage.
//
//go:norace
func (t *Text) isPlainValue(at, end uint) bool {
	for ; at < end; at++ {
		c := t.c(at)
		if low := c | 0x20; (low < 'a' || low > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '%' {
			return false
		}
	}
	return true
}

// HarmlessStrategy accepts the name of a strategy of git's own, which is what rebase-merge/strategy holds.
//
//go:norace
func (t *Text) HarmlessStrategy() bool {
	end := t.N
	if end > 0 && t.c(end-1) == '\n' {
		end--
	}
	return t.isStrategy(0, end)
}

// HarmlessStrategyOptions accepts harmless options of strategies with blanks between them, each in quotes or not, which is what
// rebase-merge/strategy_opts holds (sequencer.c, write_strategy_opts).
//
//go:norace
func (t *Text) HarmlessStrategyOptions() bool {
	for at := uint(0); at < t.N; {
		if t.c(at) == ' ' || t.c(at) == '\n' {
			at++
			continue
		}
		end := at
		for end < t.N && t.c(end) != ' ' && t.c(end) != '\n' {
			end++
		}
		last := end
		if quote := t.c(at); quote == '"' || quote == '\'' {
			if at++; last <= at || t.c(last-1) != quote {
				return false
			}
			last--
		}
		if last < at+2 || !t.startsWith(at, "--") || !t.isStrategyOption(at+2, last) {
			return false
		}
		at = end
	}
	return true
}

// HarmlessOpts accepts sequencer/opts as git writes it: a configuration of one section, each key on a line, without a value that goes on.
//
//go:norace
func (t *Text) HarmlessOpts() bool {
	for at := uint(0); at < t.N; {
		end := at
		for end < t.N && t.c(end) != '\n' {
			if c := t.c(end); c == '\\' || c == '/' || c != '\t' && c < ' ' {
				return false
			}
			end++
		}
		if !t.spells(at, end, "[options]") && !t.harmlessOpt(at, end) {
			return false
		}
		at = end + 1
	}
	return true
}

// harmlessOpt judges a line of sequencer/opts: a tab, a key, " = " and the value.
//
//go:norace
func (t *Text) harmlessOpt(at, end uint) bool {
	if at == end {
		return true
	}
	if t.c(at) != '\t' {
		return false
	}
	at++
	word := at
	for word < end && t.c(word) != ' ' {
		word++
	}
	value := word + 3
	if value > end || !t.startsWith(word, " = ") {
		return false
	}
	switch {
	case t.spells(at, word, "strategy"):
		return t.isStrategy(value, end)
	case t.spells(at, word, "strategy-option"):
		return t.isStrategyOption(value, end)
	}
	for i := range optKeys {
		if t.spells(at, word, optKeys[i]) {
			return true
		}
	}
	return false
}
