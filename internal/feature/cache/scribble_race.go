//go:build race

package cache

// scribbles says whether memory that is given back is overwritten.
const scribbles = true

// scribble overwrites memory that is given back, so that a test sees a view
// that was kept.
func scribble(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}
