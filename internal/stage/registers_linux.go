package stage

import "github.com/holdfast-dev/holdfast/internal/stage/wire"

// Registers of the mount steps.
const (
	regSource = wire.RegFree + iota
	regTree
	regDest
	regNew
	regView   // the overlay of a SharedOverlay
	regViewed // the directory that it is of
	regBlank  // the read-only mount of the scratch
)

// Registers of the layout's steps.
const (
	regUmask = wire.RegFree + 8 + iota
	regDev
)

// Slots of the self-checks that a sandbox makes: each holds an errno, plus one.
const (
	CheckRoot       = 0 // listing the harness's root directory
	CheckSignal     = 1 // signalling init
	CheckNoNewPrivs = 2 // asking whether no_new_privs is set
)

// Registers of the network's steps: closed at the end of the step that uses them.
const (
	regSocket = wire.RegFree
	regTun    = wire.RegFree + 1
)

// regSettings holds /proc/sys from a Proc to the Loopback behind it: only where there is no layout.
const regSettings = wire.RegFree + 8

// regLayer is the first of the registers that hold an overlay's directories.
const regLayer = wire.RegFree + 10

// probeIgnored is the self-check slot of calls whose outcome does not matter.
const probeIgnored = wire.MaxSelfChecks - 1

// Slots of the self-checks that a probe makes.
const (
	overlaySlot  = 1
	checkTunOpen = 2
	checkTunMake = 3
)
