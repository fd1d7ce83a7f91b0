package gittext

// Texts beside the configuration by which git runs, deletes or writes something: a rebase's todo and options, MERGE_RR.

// KeepEntries takes out of MERGE_RR, which is t, the entries that are not in of.
//
//go:norace
func (t *Text) KeepEntries(of *Text) {
	to := uint(0)
	for at := uint(0); at < t.N; {
		end := t.entryEnd(at)
		for keep := of.hasEntry(t, at, end); at < end; at++ {
			if keep {
				t.B[to&(Room-1)] = t.c(at)
				to++
			}
		}
	}
	t.N = to
}

// entryEnd returns the byte behind the NUL that ends the entry at byte at.
//
//go:norace
func (t *Text) entryEnd(at uint) uint {
	for at < t.N && t.c(at) != 0 {
		at++
	}
	return min(at+1, t.N)
}

// hasEntry reports whether an entry of t is bytes at to end of o.
//
//go:norace
func (t *Text) hasEntry(o *Text, at, end uint) bool {
	for i := uint(0); i < t.N; {
		next := t.entryEnd(i)
		if equalBytes(t, o, i, next, at, end) {
			return true
		}
		i = next
	}
	return false
}

// todoWords are the commands of a rebase but "exec" and "x" (sequencer.c of git, todo_command_info).
var todoWords = [...]string{
	"pick", "p", "revert", "edit", "e", "reword", "r", "fixup", "f", "squash", "s", "break", "b", "label", "l", "reset", "t", "merge", "m",
	"update-ref", "u", "noop", "drop", "d",
}

// HarmlessTodo reports whether each line is empty, a comment, or begins with a command that starts no program.
//
//go:norace
func (t *Text) HarmlessTodo() bool {
	for at := uint(0); at < t.N; {
		end := at
		for end < t.N && t.c(end) != '\n' {
			end++
		}
		for at < end && (t.c(at) == ' ' || t.c(at) == '\t') {
			at++
		}
		word := at
		for word < end && t.c(word) != ' ' && t.c(word) != '\t' {
			if c := t.c(word); c < ' ' || c == 0x7f {
				return false
			}
			word++
		}
		fine := at == end || t.c(at) == '#'
		for i := range todoWords {
			fine = fine || t.spells(at, word, todoWords[i])
		}
		if !fine {
			return false
		}
		at = end + 1
	}
	return true
}

//go:norace
func (t *Text) spells(at, end uint, word string) bool {
	if end-at != uint(len(word)) {
		return false
	}
	for i := 0; i < len(word); i++ {
		if t.c(at+uint(i)) != word[i] {
			return false
		}
	}
	return true
}

// HarmlessApply accepts options of git apply that say how to treat blanks, and how much context has to agree.
//
//go:norace
func (t *Text) HarmlessApply() bool {
	for at := uint(0); at < t.N; {
		for at < t.N && (t.c(at) == ' ' || t.c(at) == '\n' || t.c(at) == '\'') {
			at++
		}
		end := at
		for end < t.N && t.c(end) != ' ' && t.c(end) != '\n' {
			if c := t.c(end); c == '/' || c == '\\' || c < ' ' {
				return false
			}
			end++
		}
		if end > at && !t.startsWith(at, "--whitespace=") && !t.startsWith(at, "-C") && !t.startsWith(at, "-p") && !t.startsWith(at, "--ignore-") && !t.startsWith(at, "--reject") {
			return false
		}
		at = end
	}
	return true
}

//go:norace
func (t *Text) startsWith(at uint, word string) bool { return t.spells(at, at+uint(len(word)), word) }
