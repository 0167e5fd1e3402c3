//go:build unix && !aix && !solaris && !illumos

package cache

import "syscall"

// mapMemory returns n bytes of the system's memory, or nil if there is none.
func mapMemory(n int) []byte {
	mem, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return mem
}

// unmapMemory returns memory of mapMemory to the system.
func unmapMemory(mem []byte) { _ = syscall.Munmap(mem) }
