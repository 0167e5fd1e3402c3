package config

import (
	"reflect"
	"testing"

	"headgate/internal/schema"
)

// TestNoTwoObjectsHaveOneName holds what links of the reference and references of
// the JSON Schema need.
func TestNoTwoObjectsHaveOneName(t *testing.T) {
	t.Parallel()
	seen := map[string]reflect.Type{}
	for _, o := range schema.Describe(reflect.TypeFor[Config]()).Objects() {
		if other := seen[o.Name()]; other != nil {
			t.Errorf("%v and %v are both called %s", other, o.Go, o.Name())
		}
		seen[o.Name()] = o.Go
	}
}
