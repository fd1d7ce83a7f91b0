#include "textflag.h"

// The handler: sendto(forwardFD, &signo, 1, MSG_DONTWAIT|MSG_NOSIGNAL, 0, 0).
// It is entered with the C convention: signo in R0. sigreturn restores every
// register it changes.
TEXT ·forward(SB),NOSPLIT|NOFRAME,$0
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

// func spawn(flags, top uintptr) (pid uintptr)
TEXT ·spawn(SB),NOSPLIT|NOFRAME,$0-24
	MOVD	flags+0(FP), R0
	MOVD	top+8(FP), R1
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8 // clone
	SVC
	CBZ	R0, spawned
	MOVD	R0, pid+16(FP)
	RET
spawned:
	BL	·beNet(SB)
	UNDEF

// func enterInit(top uintptr)
// In the fork: it makes the stack check of every function pass (g.stackguard0
// is g's third word), goes to a stack that ends at top, and calls beInit.
TEXT ·enterInit(SB),NOSPLIT|NOFRAME,$0-8
	MOVD	top+0(FP), R1
	MOVD	ZR, 16(g)
	MOVD	R1, RSP
	BL	·beInit(SB)
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

// The image: what a stage executes first, copied out of here into a file of its
// own (image_linux.go). It runs alone in an empty address space, wherever it was
// put: every address it uses is relative to its own beginning, where the table
// follows at 512 bytes (wire.Table). R20 is the table, R21 the program's
// descriptor, R22 that of the harness's executable, two above.
TEXT ·image(SB),NOSPLIT|NOFRAME,$0
here:
	ADR	here, R20
	ADD	$512, R20
	MOVD	(RSP), R1 // argc, argv, 0, envp: the stage's environment is one variable
	MOVD	RSP, R2
	ADD	R1<<3, R2
	MOVD	16(R2), R3
	CBZ	R3, fail
	MOVD	(R3), R4
	MOVD	$0x54534146444c4f48, R5 // "HOLDFAST"
	CMP	R5, R4
	BNE	fail
	ADD	$20, R3 // wire.FDName and "="
	MOVD	$10, R5
	MOVD	ZR, R21
digit:
	MOVBU	(R3), R4
	SUB	$48, R4
	CMP	$9, R4
	BHI	map
	MUL	R5, R21
	ADD	R4, R21
	ADD	$1, R3
	B	digit
map:
	ADD	$2, R21, R22
	ADD	$32, R20, R23
next:
	MOVD	8(R23), R1
	CBZ	R1, mapped
	MOVD	(R23), R0
	MOVD	16(R23), R2
	MOVD	24(R23), R3
	MOVD	R22, R4
	MOVD	32(R23), R5
	MOVD	$222, R8 // mmap
	SVC
	MOVD	(R23), R6
	CMP	R6, R0
	BNE	fail
	ADD	$40, R23
	B	next
mapped:
	MOVD	8(R20), R0 // what of a page lies past the end of the file's data
	MOVD	16(R20), R1
zero:
	CBZ	R1, enter
	MOVB	ZR, (R0)
	ADD	$1, R0
	SUB	$1, R1
	B	zero
enter:
	MOVD	(R20), R1
	B	(R1)
fail:
	MOVD	$2, R0
	ADD	$512, R20, R1
	MOVD	24(R20), R2
	MOVD	$64, R8 // write
	SVC
	MOVD	$125, R0
	MOVD	$94, R8 // exit_group
	SVC
	UNDEF

// The image jumps here, into the harness's text, which it has mapped. No Go
// runtime was here before: this makes the g that functions look at.
TEXT ·stageEntry(SB),NOSPLIT|NOFRAME,$0
	MOVD	$·emptyG(SB), g
	MOVD	R21, ·givenFD(SB)
	SUB	$16, RSP
	BL	·beStage(SB)
	UNDEF

TEXT ·imageAddr(SB),NOSPLIT,$0-8
	MOVD	$·image(SB), R0
	MOVD	R0, ret+0(FP)
	RET

TEXT ·stageEntryAddr(SB),NOSPLIT,$0-8
	MOVD	$·stageEntry(SB), R0
	MOVD	R0, ret+0(FP)
	RET
