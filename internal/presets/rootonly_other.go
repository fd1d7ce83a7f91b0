//go:build !unix

package presets

// rootOnly is for systems whose root can read what others cannot.
func (*Builder) rootOnly() []string { return nil }
