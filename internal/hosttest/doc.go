// Hosttest runs the library on the hosts where harnesses run, as far as this machine can make them: Docker's daemon, Podman,
// containers of runc and crun under Docker's and containerd's default filters, a pod's security context, and gVisor.
//
//	go run ./internal/hosttest                      one line a host and user, and what is wrong
//	go run ./internal/hosttest -only Docker         the hosts whose name begins so
//	go run ./internal/hosttest -long                pip on every host; without it on two
//	go run ./internal/hosttest -machines            and kernels of Debian's and Ubuntu's in virtual machines: settings that forbid user namespaces, services of systemd, containers of LXC and LXD
//	go run ./internal/hosttest -machines -write docs/hosts.md and the table there; with -partial also without some of its rows
//
// On each host this program is the harness. It asks for the default sandbox, and where that is refused for one that is weaker
// ([policy.Policy.InContainer]); and once more for each way out of New's error, in a container made as that says. In each
// sandbox that it gets it is the tool as well: it tries what a tool must not bring about, which the harness then looks for from
// outside and holds against the report, and does some ordinary work. An act that goes through while its bound is said to be
// held, work that does not function, and a way out that leads nowhere are failures.
//
// It is run in the module's root. It makes namespaces of its own, with which its daemons, containers and mounts end however it ends. It must be root for that.
// Exit status 77 says that this machine can make none of the hosts.
//
// # Limits
//
// The virtual machines of -machines are emulated and take some minutes, more than .ci/run has: their settings, AppArmor profiles and systemd services are run by hand, when
// the table is made. Go is not in them. A pod is runc's container with what Kubernetes would ask for, without a kubelet. gVisor needs a runsc on PATH; CI_GVISOR=true .ci/run hosts
// builds one in minutes. Docker's and Podman's versions are Debian's. What a host without a container lacks is taken away in package
// sandbox's own tests.
package main
