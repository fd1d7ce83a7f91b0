//go:build !linux

package inside

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// A Start is not called: there are no sessions on this operating system.
type Start func(ctx context.Context, socket *os.File) (kill func(), gone <-chan struct{}, err error)

type client struct{}

func newClient(Start, func() error) *client { return nil }

func (c *client) ask(context.Context, request) (answer, int, error) {
	return answer{}, -1, errors.ErrUnsupported
}

func opened(int, int, string) (*os.File, bool, error) { return nil, false, errors.ErrUnsupported }
func looked(int, string) (fs.FileInfo, error)         { return nil, errors.ErrUnsupported }
func target(int) (string, error)                      { return "", errors.ErrUnsupported }
func entries(*os.File, int) ([]dirent, error)         { return nil, errors.ErrUnsupported }
