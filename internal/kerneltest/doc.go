// Package kerneltest runs tests that restrict, mount or unshare in a child
// process of the test binary, as root and as an ordinary user, on a kernel
// from which features have been taken away.
//
//	func TestMain(m *testing.M) { kerneltest.Main(m) }
//
//	func TestKernelFallsBackWithoutLandlock(t *testing.T) {
//		kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
//			c := kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Landlock}}
//			kerneltest.InChild(t, c, func(t *testing.T) { ... })
//		})
//	}
//
// The child is this test binary again with -test.run set to the running test,
// so whatever the test does before InChild happens in the child too. Its exit
// status is the verdict, and it has to say that the body ran to its end.
//
// # Limits
//
// The child of a test process that is not root gets no_new_privs when a
// feature is taken away by a filter, since the kernel demands it there
// (seccomp(2)); a root process installs the filter without. On other systems
// than Linux, InChild and Need skip.
package kerneltest
