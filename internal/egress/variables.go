package egress

type variable struct{ name string }

var variables []variable
