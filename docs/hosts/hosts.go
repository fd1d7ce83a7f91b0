// Package hosts holds files for the hosts on which a harness makes no namespaces by default: Docker's system call filter with the calls that
// they take, a service for Compose, a pod for Kubernetes, a drop-in for systemd, and an AppArmor profile.
//
//	text, err := hosts.Files.ReadFile("docker-seccomp.json")
//
// The doctor prints them (go run ./examples/doctor -file docker-seccomp.json), and says which one is for its host (-fix).
// docs/hosts.md has the hosts.
//
// # Limits
//
// docker-seccomp.json is the default profile of one version of Docker, which the tests have, and those calls; it is made anew for another
// version by "go test ./docs/hosts -update". Compose's and Kubernetes' files are examples: names and images are to be changed.
package hosts

import "embed"

// Files are all of them.
//
//go:embed docker-seccomp.json compose.yaml kubernetes.yaml systemd.conf apparmor-profile
var Files embed.FS
