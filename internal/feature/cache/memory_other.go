//go:build !unix || aix || solaris || illumos

package cache

// mapMemory returns n bytes of the heap.
func mapMemory(n int) []byte { return make([]byte, n) }

// unmapMemory leaves memory to the collector.
func unmapMemory([]byte) {}
