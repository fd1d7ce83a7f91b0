#include "textflag.h"

// The trampoline: what a stage executes first, copied out of here into a file in
// memory (trampoline_linux.go). It runs alone in an empty address space, wherever it was
// put: every address it uses is relative to its own beginning, where the table
// follows at 512 bytes (table). R12 is the table, R13 the program's
// descriptor, R8 that of the harness's executable, two above.
TEXT ·trampoline(SB),NOSPLIT|NOFRAME,$0
	LEAQ	·trampoline(SB), R12
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

TEXT ·trampolineAddr(SB),NOSPLIT,$0-8
	LEAQ	·trampoline(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
