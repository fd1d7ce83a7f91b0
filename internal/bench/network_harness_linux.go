package main

import "errors"

const networkHarness = "network-harness"

func beNetworkHarness(args []string) error { return errors.New("no") }
