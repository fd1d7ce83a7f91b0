package seccomp

const native = ARM64
