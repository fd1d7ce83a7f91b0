package resolve

import (
	"slices"
	"testing"
)

func TestBoundPaths(t *testing.T) {
	const text = "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"ffff8881: 00000002 00000000 00010000 0001 01  4711 /opt/x.sock\n" +
		"ffff8882: 00000003 00000000 00000000 0001 03  4712\n" +
		"ffff8883: 00000002 00000000 00010000 0001 01  4713 @/tmp/abstract\n" +
		"ffff8884: 00000002 00000000 00010000 0001 01  4714 relative/x\n" +
		"ffff8885: 00000002 00000000 00010000 0001 01  4715 /opt/with a blank//y \n"
	if got, want := boundPaths(text), []string{"/opt/x.sock", "/opt/with a blank/y "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
