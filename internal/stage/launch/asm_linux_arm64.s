#include "textflag.h"

// The trampoline: what a stage executes first, copied out of here into a file in
// memory (trampoline_linux.go). It runs alone in an empty address space, wherever it was
// put: every address it uses is relative to its own beginning, where the table
// follows at 512 bytes (table). R20 is the table, R21 the program's
// descriptor, R22 that of the harness's executable, two above.
TEXT ·trampoline(SB),NOSPLIT|NOFRAME,$0
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

TEXT ·trampolineAddr(SB),NOSPLIT,$0-8
	MOVD	$·trampoline(SB), R0
	MOVD	R0, ret+0(FP)
	RET
