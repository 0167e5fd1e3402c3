//go:build race

package h2_test

// racing says that the race detector is on: it changes what is allocated.
const racing = true
