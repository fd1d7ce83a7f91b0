#include "textflag.h"

// The handler: sendto(forwardFD, &signo, 1, MSG_DONTWAIT|MSG_NOSIGNAL, 0, 0).
// It is entered with the C convention: signo in DI. sigreturn restores every
// register it changes.
TEXT ·forward(SB),NOSPLIT|NOFRAME,$0
	SUBQ	$24, SP
	MOVQ	DI, 8(SP)
	MOVQ	·forwardFD(SB), DI
	LEAQ	8(SP), SI
	MOVQ	$1, DX
	MOVQ	$0x4040, R10
	XORQ	R8, R8
	XORQ	R9, R9
	MOVQ	$44, AX // sendto
	SYSCALL
	ADDQ	$24, SP
	RET

TEXT ·restorer(SB),NOSPLIT|NOFRAME,$0
	MOVQ	$15, AX // rt_sigreturn
	SYSCALL
	INT	$3

TEXT ·handlerAddr(SB),NOSPLIT,$0-8
	LEAQ	·forward(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

TEXT ·restorerAddr(SB),NOSPLIT,$0-8
	LEAQ	·restorer(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func vfork(flags uintptr) (pid uintptr)
// The child runs on its parent's stack while the parent is suspended, so the
// return address is kept in a register: the child's calls overwrite it.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-16
	MOVQ	flags+0(FP), DI
	XORQ	SI, SI
	XORQ	DX, DX
	XORQ	R10, R10
	XORQ	R8, R8
	XORQ	R9, R9
	MOVQ	$56, AX // clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	MOVQ	AX, pid+8(FP)
	RET

// func spawn(flags, top uintptr) (pid uintptr)
TEXT ·spawn(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ	flags+0(FP), DI
	MOVQ	top+8(FP), SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	MOVL	$56, AX // clone
	SYSCALL
	TESTQ	AX, AX
	JZ	spawned
	MOVQ	AX, pid+16(FP)
	RET
spawned:
	CALL	·beNet(SB)
	INT	$3

// func enterInit(top uintptr)
// In the fork: it makes the stack check of every function pass (g.stackguard0
// is g's third word), goes to a stack that ends at top, and calls beInit.
TEXT ·enterInit(SB),NOSPLIT|NOFRAME,$0-8
	MOVQ	top+0(FP), CX
	MOVQ	(TLS), AX
	MOVQ	$0, 16(AX)
	MOVQ	CX, SP
	CALL	·beInit(SB)
	INT	$3

// func passStackChecks()
// In a fork: it makes the stack check of every function pass, as enterInit does.
TEXT ·passStackChecks(SB),NOSPLIT|NOFRAME,$0-0
	MOVQ	(TLS), AX
	MOVQ	$0, 16(AX)
	RET

// func stackBounds() (lo, hi, guard uintptr)
TEXT ·stackBounds(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ	(TLS), AX
	MOVQ	0(AX), CX
	MOVQ	CX, lo+0(FP)
	MOVQ	8(AX), CX
	MOVQ	CX, hi+8(FP)
	MOVQ	16(AX), CX
	MOVQ	CX, guard+16(FP)
	RET

// The image: what a stage executes first, copied out of here into a file of its
// own (image_linux.go). It runs alone in an empty address space, wherever it was
// put: every address it uses is relative to its own beginning, where the table
// follows at 512 bytes (wire.Table). R12 is the table, R13 the program's
// descriptor, R8 that of the harness's executable, two above.
TEXT ·image(SB),NOSPLIT|NOFRAME,$0
	LEAQ	·image(SB), R12
	ADDQ	$512, R12
	MOVQ	(SP), CX // argc, argv, 0, envp: the stage's environment is one variable
	MOVQ	16(SP)(CX*8), SI
	TESTQ	SI, SI
	JZ	fail
	MOVQ	$0x54534146444c4f48, AX // "HOLDFAST"
	CMPQ	AX, (SI)
	JNE	fail
	ADDQ	$20, SI // wire.FDName and "="
	XORL	R13, R13
digit:
	MOVBLZX	(SI), AX
	SUBL	$48, AX
	CMPL	AX, $9
	JHI	map
	LEAQ	(R13)(R13*4), R13
	LEAQ	(AX)(R13*2), R13
	INCQ	SI
	JMP	digit
map:
	LEAQ	2(R13), R8
	LEAQ	32(R12), R14
next:
	MOVQ	8(R14), SI
	TESTQ	SI, SI
	JZ	mapped
	MOVQ	(R14), DI
	MOVQ	16(R14), DX
	MOVQ	24(R14), R10
	MOVQ	32(R14), R9
	MOVL	$9, AX // mmap
	SYSCALL
	CMPQ	AX, (R14)
	JNE	fail
	ADDQ	$40, R14
	JMP	next
mapped:
	MOVQ	8(R12), DI // what of a page lies past the end of the file's data
	MOVQ	16(R12), CX
	XORL	AX, AX
	CLD
	REP
	STOSB
	MOVQ	(R12), AX
	JMP	AX
fail:
	MOVL	$1, AX // write
	MOVL	$2, DI
	LEAQ	512(R12), SI
	MOVQ	24(R12), DX
	SYSCALL
	MOVL	$231, AX // exit_group
	MOVL	$125, DI
	SYSCALL
	INT	$3

// The image jumps here, into the harness's text, which it has mapped. No Go
// runtime was here before: this makes the g that functions look at, and the word
// below FS in which amd64 keeps it (all words below, since an external linker may
// put it deeper).
TEXT ·stageEntry(SB),NOSPLIT|NOFRAME,$0
	ANDQ	$~15, SP
	LEAQ	·emptyG(SB), AX
	LEAQ	·threadLocal(SB), DI
	MOVL	$64, CX
	CLD
	REP
	STOSQ
	MOVQ	DI, SI
	MOVL	$0x1002, DI // ARCH_SET_FS
	MOVL	$158, AX    // arch_prctl
	SYSCALL
	MOVQ	R13, ·givenFD(SB)
	CALL	·beStage(SB)
	INT	$3

TEXT ·imageAddr(SB),NOSPLIT,$0-8
	LEAQ	·image(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

TEXT ·stageEntryAddr(SB),NOSPLIT,$0-8
	LEAQ	·stageEntry(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
