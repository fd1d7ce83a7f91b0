package proxy

import (
	"io"
	"net/http"
)

// A trailed body gives its request's trailer to the request that goes out, once it
// has been read to its end: by whoever sends it, who then looks for the trailer.
//
// The two requests have a map each. A server may answer before it has read the
// request, and then net/http reads the rest of the client's body, and puts the
// trailer into the client's request, while the transport may still be writing the
// other one's header, which announces the trailer. With one map for both that would
// be the end of the process.
type trailed struct {
	io.ReadCloser
	from *http.Request // the client's
	to   http.Header   // the other's
}

func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		for name := range b.to { // those that were announced: net/http has refused what frames a message
			if v := b.from.Trailer[name]; name != "Host" {
				b.to[name] = v
			}
		}
	}
	return n, err
}
