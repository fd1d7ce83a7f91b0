#include "textflag.h"

// The handler: sendto(forwardFD, &signo, 1, MSG_DONTWAIT|MSG_NOSIGNAL, 0, 0).
// It is entered with the C convention: signo in R0, siginfo in R1. sigreturn restores every
// register it changes. A SIGCONT that tgkill(2) has sent, which is the stopper's, is not for the tool.
TEXT ·forward(SB),NOSPLIT|NOFRAME,$0
	CMPW	$18, R0 // SIGCONT
	BNE	pass
	MOVW	8(R1), R2 // si_code
	CMPW	$-6, R2   // SI_TKILL
	BNE	pass
	RET
pass:
	SUB	$16, RSP
	MOVD	R0, (RSP)
	MOVD	·forwardFD(SB), R0
	MOVD	RSP, R1
	MOVD	$1, R2
	MOVD	$0x4040, R3
	MOVD	ZR, R4
	MOVD	ZR, R5
	MOVD	$206, R8 // sendto
	SVC
	ADD	$16, RSP
	RET

TEXT ·restorer(SB),NOSPLIT|NOFRAME,$0
	MOVD	$139, R8 // rt_sigreturn
	SVC
	UNDEF

TEXT ·handlerAddr(SB),NOSPLIT,$0-8
	MOVD	$·forward(SB), R0
	MOVD	R0, ret+0(FP)
	RET

TEXT ·restorerAddr(SB),NOSPLIT,$0-8
	MOVD	$·restorer(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func vfork(flags uintptr) (pid uintptr)
// The child runs on its parent's stack while the parent is suspended. The
// return address is in R30, which the kernel keeps for both.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-16
	MOVD	flags+0(FP), R0
	MOVD	ZR, R1
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8 // clone
	SVC
	MOVD	R0, pid+8(FP)
	RET

// func spawn(flags, top, pidfd uintptr) (pid uintptr)
// The child makes the stack check of every function pass, as enterInit does: where it shares the memory, it does already.
TEXT ·spawn(SB),NOSPLIT|NOFRAME,$0-32
	MOVD	flags+0(FP), R0
	MOVD	top+8(FP), R1
	MOVD	pidfd+16(FP), R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8 // clone
	SVC
	CBZ	R0, spawned
	MOVD	R0, pid+24(FP)
	RET
spawned:
	MOVD	ZR, 16(g)
	BL	·besideMain(SB)
	UNDEF

// func enterInit(top uintptr)
// In the fork: it makes the stack check of every function pass (g.stackguard0
// is g's third word), goes to a stack that ends at top, and calls initMain.
TEXT ·enterInit(SB),NOSPLIT|NOFRAME,$0-8
	MOVD	top+0(FP), R1
	MOVD	ZR, 16(g)
	MOVD	R1, RSP
	BL	·initMain(SB)
	UNDEF

// func passStackChecks()
// In a fork: it makes the stack check of every function pass, as enterInit does.
TEXT ·passStackChecks(SB),NOSPLIT|NOFRAME,$0-0
	MOVD	ZR, 16(g)
	RET

// func stackBounds() (lo, hi, guard uintptr)
TEXT ·stackBounds(SB),NOSPLIT|NOFRAME,$0-24
	MOVD	0(g), R1
	MOVD	R1, lo+0(FP)
	MOVD	8(g), R1
	MOVD	R1, hi+8(FP)
	MOVD	16(g), R1
	MOVD	R1, guard+16(FP)
	RET

// The trampoline (package launch) jumps here, into the harness's text, which it has mapped. No Go
// runtime was here before: this makes the g that functions look at.
TEXT ·stageEntry(SB),NOSPLIT|NOFRAME,$0
	MOVD	$·emptyG(SB), g
	MOVD	R21, ·givenFD(SB)
	SUB	$16, RSP
	BL	·stageMain(SB)
	UNDEF

TEXT ·stageEntryAddr(SB),NOSPLIT,$0-8
	MOVD	$·stageEntry(SB), R0
	MOVD	R0, ret+0(FP)
	RET
