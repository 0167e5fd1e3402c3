//go:build !linux

package interop

const networkJob = "HEADGATE_INTEROP_NETWORK"

func runNetworkJob() int { return 1 }
