//go:build !race

package sbpl

const raced = false
