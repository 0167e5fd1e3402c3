//go:build !unix

package ports

// connectionLimit returns 0: this system has no limit of descriptors to divide.
func connectionLimit() int { return 0 }
