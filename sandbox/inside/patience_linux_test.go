package inside

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// silentAtFirst has a first server that takes nothing until it is killed, and others that serve.
func silentAtFirst(t *testing.T) (files *Files, starts *atomic.Int32) {
	starts = new(atomic.Int32)
	files = served(t, func(socket int) error {
		if starts.Add(1) > 1 {
			return serve(socket)
		}
		unix.Poll([]unix.PollFd{{Fd: int32(socket), Events: unix.POLLRDHUP}}, -1)
		return nil
	})
	return files, starts
}

func fileOf(t *testing.T) string {
	name := t.TempDir() + "/file"
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestAServerThatDoesNotAnswerIsAnErrorInTime, and the next request has another one.
func TestAServerThatDoesNotAnswerIsAnErrorInTime(t *testing.T) {
	name := fileOf(t)
	files, _ := silentAtFirst(t)
	files.client.patience = 20 * time.Millisecond
	var failed *ServerError
	if _, err := files.ReadFile(name); !errors.As(err, &failed) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	files.client.patience = time.Minute
	if text, err := files.ReadFile(name); err != nil || string(text) != "text" {
		t.Errorf("the next request: %q %v", text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := files.WithContext(ctx).ReadFile(name); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// TestARequestThatItsCallerGivesUpSaysNothingOfTheServer: the error is the context's, and a server that answers nothing else either is dropped after the
// client's own patience.
func TestARequestThatItsCallerGivesUpSaysNothingOfTheServer(t *testing.T) {
	name := fileOf(t)
	files, starts := silentAtFirst(t)
	short := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := files.WithContext(ctx).ReadFile(name)
		return err
	}
	files.client.patience = time.Minute
	var failed *ServerError
	for range 3 {
		if err := short(); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) {
			t.Errorf("%v", err)
		}
	}
	if n := starts.Load(); n != 1 {
		t.Errorf("%d servers were started", n)
	}

	files, starts = silentAtFirst(t)
	files.client.patience = 20 * time.Millisecond
	for end := time.Now().Add(time.Minute); starts.Load() < 2; short() {
		if time.Now().After(end) {
			t.Fatal("a server that answers nothing is kept")
		}
	}
}

// TestRequestsThatAreGivenUpFailNoOthers, whatever moment it is.
func TestRequestsThatAreGivenUpFailNoOthers(t *testing.T) {
	name := fileOf(t)
	var starts atomic.Int32
	files := served(t, func(socket int) error {
		starts.Add(1)
		return serve(socket)
	})
	if _, err := files.Stat(name); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%100)*time.Microsecond)
				files.WithContext(ctx).Stat(name)
				cancel()
			}
		})
		all.Go(func() {
			for range 1000 {
				if _, err := files.Stat(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := starts.Load(); n != 1 {
		t.Errorf("%d servers were started", n)
	}
}

// TestAServerThatDoesNotStartHoldsUpNoRequest beyond its context, and none beyond the client's patience.
func TestAServerThatDoesNotStartHoldsUpNoRequest(t *testing.T) {
	name := fileOf(t)
	files := New(func(ctx context.Context, socket *os.File) (func(), <-chan struct{}, error) {
		socket.Close()
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	}, func() error { return nil }, func() string { return "" }, nil)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := files.WithContext(ctx).ReadFile(name); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	files = New(files.client.start, files.client.over, files.dir, nil)
	files.client.patience = 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var failed *ServerError
	if _, err := files.WithContext(ctx).ReadFile(name); !errors.As(err, &failed) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
