package sandbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// The commands of a session share /tmp, HOME, loopback and processes.
func ExampleSandbox_Open() {
	s, err := sandbox.New(sandbox.Workspace("/home/user/project"))
	if err != nil {
		log.Fatal(err)
	}
	sess, err := s.Open(context.Background())
	if err != nil {
		log.Fatal(err) // wraps errors.ErrUnsupported where there are no sessions
	}
	defer sess.Close()
	if err := sess.Command("bash", "-c", "npm run dev >/tmp/dev.log 2>&1 &").Run(); err != nil {
		log.Fatal(err)
	}
	if err := sess.WaitPort(context.Background(), 5173); err != nil {
		log.Fatal(err)
	}
	out, err := sess.Command("curl", "-sS", "http://127.0.0.1:5173/").CombinedOutput()
	fmt.Printf("%s%v\n", out, err)
	list, _ := sess.Processes()
	for _, p := range list {
		fmt.Println(p.PID, p.Args, "of", p.Command)
	}
}
