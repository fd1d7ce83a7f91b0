package landlock

import (
	"fmt"
	"strings"
)

// Errata is the set of Landlock bugs that the running kernel says it has fixed, bit n-1 for erratum n
// (LANDLOCK_CREATE_RULESET_ERRATA, Linux 6.15 and kernels that carry it). A bit that is missing may also mean that the
// kernel never had the bug. No protection should be given up because a bit is missing.
type Errata uint32

// The errata, by the kernel's numbers (security/landlock/errata).
const (
	// FixedTCPIdentification is erratum 1: without it SMC, MPTCP and SCTP sockets were held to the TCP rights. With it they
	// are free of them.
	FixedTCPIdentification Errata = 1 << iota
	// FixedSignalWithinProcess is erratum 2: without it ScopeSignal kept threads of one process, restricted
	// at different times, from signalling each other, which breaks setuid and friends in a threaded process.
	FixedSignalWithinProcess
	// FixedDisconnectedDirectories is erratum 3 (CVE-2025-68736): without it rights on directories moved out of
	// a bind mount were judged without the rules at the mount point.
	FixedDisconnectedDirectories
)

// String prints the numbers of the errata that are fixed: "fixed errata 1, 2", or "no errata fixed".
func (e Errata) String() string {
	var list []string
	for i := range 32 {
		if e&(1<<i) != 0 {
			list = append(list, fmt.Sprint(i+1))
		}
	}
	if list == nil {
		return "no errata fixed"
	}
	return "fixed errata " + strings.Join(list, ", ")
}

// HeldBy returns nil if a kernel of the given Landlock ABI holds all of r, as [Build] asks
// before it touches anything. Otherwise it is the error of [Ruleset.Validate], or an
// [*UnsupportedError] with all that would be lost. It is pure.
func (r Ruleset) HeldBy(abi int) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if lost := lostAt(r, abi); len(lost) > 0 {
		return &UnsupportedError{
			ABI: abi, Reason: fmt.Sprintf("Landlock ABI %d cannot hold the ruleset", max(abi, 0)), Lost: lost,
			Remedy: "downgrade the ruleset first and decide whether what is lost may be",
		}
	}
	return nil
}

// flagsAt returns an error if a kernel of this ABI does not know all of flags.
func flagsAt(flags Flags, abi int) error {
	if unknown := flags &^ FlagsAll; unknown != 0 {
		return &FieldError{"flags", unknown.String(), "unknown bits"}
	}
	if _, _, _, known := Supported(abi); flags&^known != 0 {
		return &UnsupportedError{ABI: abi, Reason: fmt.Sprintf("the kernel's Landlock ABI %d does not know the flags %v", abi, flags&^known),
			Remedy: "leave them out"}
	}
	return nil
}
