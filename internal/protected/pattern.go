package protected

// Kind says what is refused at a protected name.
type Kind uint8

const (
	// Whole protects the name and everything beneath it. It is the zero value: the strictest.
	Whole Kind = iota
	// GitConfig is a git configuration file. It is never opened for writing; a rename onto it is carried
	// out with a checked copy of the source. Its mode may change, since git init probes it so.
	GitConfig
	// GitFile is a name that may be a directory but not a file with a content of the tool's choice: `.git`, whose content is judged, and others, which are no files.
	GitFile
	// CommonDir is the one-line file in which a linked worktree names the repository it belongs to.
	CommonDir
	// GitModules is a .gitmodules file: judged as GitConfig is, by another list, also when it is opened for writing.
	GitModules
	// Lock is the lock of such a file: opened with O_EXCL alone, and renamed or removed by the sandbox that made it.
	Lock
	// Ever is as Whole, in directories that the tool has made, too.
	Ever

	kinds

	// Unread is an absolute path of which nothing may be read either.
	Unread Kind = 0x80
	// Free is an absolute path for which the rules of Paths around it do not count, and that is the tool's to change.
	Free Kind = 0x40
)

// IsOfName reports whether k is one that a name can have, and not Unread or Free.
func (k Kind) IsOfName() bool { return k < kinds }

// Pattern is one protected name. Path is a list of components divided by '/', matched at every depth of a
// root: ".git/hooks". A component "*" stands for any one name, "**" for one or more, a trailing '*'
// for any ending (".env.*"), and one in front for any beginning ("*.code-workspace").
type Pattern struct {
	Path string
	Kind Kind
}
