// Package launch says how a stage is executed: what an exec.Cmd's Path has to be, and the files that the new process needs. What
// runs then is package child.
//
//	l, err := launch.Default()
//	if err != nil {
//		return err // this program's file does not hold the stage's code
//	}
//	cmd := exec.Cmd{Path: l.Path, Env: l.Layout(3).Env, ExtraFiles: l.Files(nil, program, control)}
//
// There are two launchers. The re-exec executes the harness's own file; package child's init makes a stage of it, after the start of
// Go's runtime. The trampoline is a file of some hundred bytes in memory that maps the harness's text and jumps into it, which saves a
// millisecond. Without it (trampoline_linux.go, elf_linux.go, the assembly, and stageEntry of package child) everything works as before: Default then
// always returns the re-exec.
//
//	launcher_linux.go    the two launchers and the files of a stage
//	trampoline_linux.go  the trampoline: which mappings it makes, where it lies, its memfd
//	elf_linux.go         the harness's executable, read; the trampoline's, written
//	osexec_linux.go      what os/exec does not tell of an exec.Cmd
//
// # Limits
//
// A program that is position-independent, or whose file is not an ELF file of 64 bits, has no trampoline; nor has a host that executes
// no memfd (vm.memfd_noexec, a security module).
package launch
