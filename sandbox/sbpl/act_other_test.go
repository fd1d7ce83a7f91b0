//go:build !linux

package sbpl

func actor([]string) int { return 1 }
