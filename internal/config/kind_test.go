package config

import (
	"testing"

	"headgate/internal/schema"
)

func TestEveryKindStandsInTheTable(t *testing.T) {
	for _, f := range Describe().Fields {
		k := KindOf(f.Name)
		if f.Name == "version" {
			continue
		}
		if k == nil {
			t.Errorf("%s is in Config and not in the table of kinds", f.Name)
			continue
		}
		if k.Single != (f.Type.Kind == schema.Struct) {
			t.Errorf("%s: Single = %v, and the field is a %v", f.Name, k.Single, f.Type.Go)
		}
		if f.Called != "" && f.Called != k.Noun {
			t.Errorf("%s: the noun is %q, problems say %q", f.Name, k.Noun, f.Called)
		}
		for _, name := range []string{"description", "tags"} {
			if !k.Single && k.Schema().Field(name) == nil {
				t.Errorf("%s has no %s", f.Name, name)
			}
		}
	}
	for _, k := range Kinds() {
		if Describe().Field(k.Name) == nil {
			t.Errorf("the kind %s is in the table and not in Config", k.Name)
		}
	}
}
