package plan

// These actions are about overlayfs.
type (
	// Overlay puts a copy-on-write view of Lower at a path; what is written goes to the scratch. Of is the Lower of the
	// SharedOverlay that it is taken from; "": it is a separate file system.
	Overlay struct{ Lower, At, Slot, Of string }
	// SharedOverlay makes a copy-on-write view of Lower that is shown nowhere, and is gone with the old root: Overlays of
	// directories below Lower are taken from it. To make and end an overlayfs takes the kernel as long as some ten binds.
	SharedOverlay struct{ Lower, Slot string }
	// ProbeOverlay mounts an overlayfs and records whether that went well.
	ProbeOverlay struct{}
)

func (a Overlay) String() string { return "copy-on-write " + a.Lower + " at " + a.At }
func (a SharedOverlay) String() string {
	return "make a copy-on-write view of " + a.Lower + ", of which only parts are shown"
}
func (ProbeOverlay) String() string { return "try an overlayfs" }

func (Overlay) action()       {}
func (SharedOverlay) action() {}
func (ProbeOverlay) action()  {}
