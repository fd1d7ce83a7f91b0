#include "textflag.h"

// The handler: sendto(forwardFD, &signo, 1, MSG_DONTWAIT|MSG_NOSIGNAL, 0, 0).
// It is entered with the C convention: signo in DI, siginfo in SI. sigreturn restores every
// register it changes. A SIGCONT that tgkill(2) has sent, which is the stopper's, is not for the tool.
TEXT ·forward(SB),NOSPLIT|NOFRAME,$0
	CMPL	DI, $18 // SIGCONT
	JNE	pass
	CMPL	8(SI), $-6 // si_code: SI_TKILL
	JNE	pass
	RET
pass:
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

// func spawn(flags, top, pidfd uintptr) (pid uintptr)
// The child makes the stack check of every function pass, as enterInit does: where it shares the memory, it does already.
TEXT ·spawn(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ	flags+0(FP), DI
	MOVQ	top+8(FP), SI
	MOVQ	pidfd+16(FP), DX
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	MOVL	$56, AX // clone
	SYSCALL
	TESTQ	AX, AX
	JZ	spawned
	MOVQ	AX, pid+24(FP)
	RET
spawned:
	MOVQ	(TLS), AX
	MOVQ	$0, 16(AX)
	CALL	·besideMain(SB)
	INT	$3

// func enterInit(top uintptr)
// In the fork: it makes the stack check of every function pass (g.stackguard0
// is g's third word), goes to a stack that ends at top, and calls initMain.
TEXT ·enterInit(SB),NOSPLIT|NOFRAME,$0-8
	MOVQ	top+0(FP), CX
	MOVQ	(TLS), AX
	MOVQ	$0, 16(AX)
	MOVQ	CX, SP
	CALL	·initMain(SB)
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

// The trampoline (package launch) jumps here, into the harness's text, which it has mapped. No Go
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
	CALL	·stageMain(SB)
	INT	$3

TEXT ·stageEntryAddr(SB),NOSPLIT,$0-8
	LEAQ	·stageEntry(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
