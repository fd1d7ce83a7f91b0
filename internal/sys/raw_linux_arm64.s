#include "textflag.h"

// func Raw(nr, a, b, c, d, e, f uintptr) int
TEXT ·Raw(SB),NOSPLIT|NOFRAME,$0-64
	MOVD	nr+0(FP), R8
	MOVD	a+8(FP), R0
	MOVD	b+16(FP), R1
	MOVD	c+24(FP), R2
	MOVD	d+32(FP), R3
	MOVD	e+40(FP), R4
	MOVD	f+48(FP), R5
	SVC
	MOVD	R0, ret+56(FP)
	RET
