package testhouse

import (
	"flag"
	"fmt"
	"testing"
)

var (
	lives = flag.Int("lives", 0, "how many random lives a test leads; 0 leads as many as it does by itself")
	seed  = flag.Uint64("seed", 0, "the seed of the first of them; 0 is the test's own")
)

// Lives runs many random scenarios, from the seed first on, or those selected by the flags
// -lives and -seed. Each is a subtest whose name has its seed.
func Lives(t *testing.T, first uint64, many int, lead func(t *testing.T, seed uint64)) {
	t.Helper()
	if *seed != 0 {
		first = *seed
	}
	if *lives != 0 {
		many = *lives
	}
	for n := range uint64(many) {
		t.Run(fmt.Sprint("seed ", first+n), func(t *testing.T) { lead(t, first+n) })
	}
}
