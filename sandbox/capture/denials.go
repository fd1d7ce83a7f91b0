package capture

import "sync"

// mostDenials bounds what is kept, and told, of what was refused.
const mostDenials = 1024

// A denial is something that was refused without a connection's being tried.
type denial struct {
	protocol, host string
	port           uint16
	why            string
}

// denials tells the run of each denial once: a tool that asks without end fills
// neither the report nor the harness.
type denials struct {
	tell func(protocol, host string, port uint16, why string)
	most int

	mu   sync.Mutex
	told map[denial]struct{}
}

func newDenials(tell func(protocol, host string, port uint16, why string), most int) *denials {
	return &denials{tell: tell, most: most, told: map[denial]struct{}{}}
}

// note tells of a denial that has not been told of. The last one that it tells of
// says that there are more.
func (d *denials) note(x denial) {
	d.mu.Lock()
	_, known := d.told[x]
	n := len(d.told)
	if !known && n < d.most {
		d.told[x] = struct{}{}
	}
	d.mu.Unlock()
	if known || n >= d.most {
		return
	}
	if n == d.most-1 {
		x.why += "; more that was refused after this is not listed"
	}
	d.tell(x.protocol, x.host, x.port, x.why)
}
