package egress

// Deny notes something that was refused on the tool's behalf elsewhere: a datagram
// by a capture, a message by an agent's filter.
func (g *Gateway) Deny(e Event) {
	e.Allowed = false
	g.journal.add(e)
}
