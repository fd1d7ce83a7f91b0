package seccomp

const native = AMD64
