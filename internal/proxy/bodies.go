package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// A uploadBody is the body of the request that goes out. When it was read to its end it gives
// that request the trailer of the client's; the sender looks for it then.
//
// The two requests have a map each. A server may answer before it has read the request, and
// then net/http reads the rest of the client's body, and puts the trailer into the client's
// request, while an exchange may still be writing the other one's header, which announces
// the trailer. With one map for both the process would end (concurrent map access).
type uploadBody struct {
	io.ReadCloser
	x    *proxiedRequest
	from *http.Request // the client's
	to   http.Header   // the other's trailer
}

func (b *uploadBody) Read(p []byte) (int, error) {
	b.x.uploadReads.Add(1)
	defer b.x.uploadReads.Add(-1)
	n, err := b.ReadCloser.Read(p)
	b.x.sent.Add(int64(n))
	switch {
	case err == io.EOF:
		for name := range b.to { // those that were announced: net/http has refused what frames a message
			if v := b.from.Trailer[name]; name != "Host" {
				b.to[name] = v
			}
		}
		b.x.uploaded.Store(true)
	case err != nil:
		b.x.uploadBroken.Store(true)
	}
	return n, err
}

// A downloadBody is the body of a response. Its end is the request's.
type downloadBody struct {
	io.ReadCloser
	length int64 // -1: it is not known
	x      *proxiedRequest
}

func (b *downloadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	received := b.x.received.Add(int64(n))
	if err != nil && err != io.EOF {
		b.x.err = err
	}
	if err == io.EOF || received == b.length {
		b.x.finishEvent()
	}
	return n, err
}

// An upgradedConn is a connection after an upgrade, counted both ways.
type upgradedConn struct {
	io.ReadWriteCloser
	x *proxiedRequest
}

func (s *upgradedConn) Read(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(p)
	return s.count(&s.x.received, n, err)
}

func (s *upgradedConn) Write(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Write(p)
	return s.count(&s.x.sent, n, err)
}

// count also keeps that the limit was why, which ReverseProxy does not report.
func (s *upgradedConn) count(of *atomic.Int64, n int, err error) (int, error) {
	if of.Add(int64(n)); errors.Is(err, errBytes) {
		s.x.limitReached.Store(true)
	}
	return n, err
}
