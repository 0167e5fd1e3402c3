//go:build race

package netconn

// scribble overwrites memory that goes back to the pool, so that a test sees a
// view that outlived its exchange.
func scribble(b []byte) {
	for i := range b {
		b[i] = 0xDD
	}
}
