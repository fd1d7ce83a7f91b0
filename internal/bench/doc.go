// Bench measures what a sandbox costs and prints tables in Markdown:
//
//	go run ./internal/bench [-n ROUNDS] [-busy] [start|warm|files|many|harness|rules|binds|syscalls|build|work|first|workers|memory|workspace|sessions|crowd|network|all]
//
// What is compared is run in turn, A B C A B C, so that whatever else the
// machine does falls on all of them; the ratios are medians of each round's
// own ratio. bubblewrap is measured beside, when it is installed.
//
//	main.go      the command line
//	measure.go   contenders, rounds, medians and ratios
//	table.go     Markdown
//	start_*.go   the start of /bin/true: plain, sandboxed, by bubblewrap
//	warm_*.go    a command in an open session, the session's files, many busy sessions
//	crun_*.go    the container beside: docker exec or crun exec
//	harness_*.go from a harness that holds much memory, or whose binary is large
//	rules_*.go   with many path rules
//	workspace_*.go with many files in the workspace
//	calls_*.go   system calls inside and outside
//	build_*.go   a go build inside and outside
//	work_*.go    jobs full of small writes, inside and outside
//	first_*.go   the first command of a process; how many a second, and the processors' time of one
//	network_*.go what stands between a tool and a server: proxies, network stacks
//	memory_*.go, idle_*.go what sessions and prepared sandboxes hold that wait
//	sessions_*.go up to 10,000 sessions of one harness
//	crowd_*.go   1,000 commands at once, which end or whose harness is killed
//
// # Limits
//
// It measures on Linux only, as the user who runs it. It judges nothing: no
// figure makes it fail. A section during which other programs took more than a third of a processor prints none. Only root can read the memory of init, which is
// undumpable.
package main
