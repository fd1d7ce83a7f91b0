#include "textflag.h"

// func Raw(nr, a, b, c, d, e, f uintptr) int
TEXT ·Raw(SB),NOSPLIT|NOFRAME,$0-64
	MOVQ	nr+0(FP), AX
	MOVQ	a+8(FP), DI
	MOVQ	b+16(FP), SI
	MOVQ	c+24(FP), DX
	MOVQ	d+32(FP), R10
	MOVQ	e+40(FP), R8
	MOVQ	f+48(FP), R9
	SYSCALL
	MOVQ	AX, ret+56(FP)
	RET
