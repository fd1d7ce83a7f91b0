//go:build race

package sbpl

// raced says that the race detector watches. It looks for no more in sixty profiles
// than in a few.
const raced = true
