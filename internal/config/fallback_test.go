package config

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// What the schema calls a default holds where the field is absent. A feature that is absent
// is inherited, so that editors must be told of no default for one.
func TestFeaturesHaveNoDefaultsInTheSchema(t *testing.T) {
	data, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type field struct {
		Default     any    `json:"default"`
		Description string `json:"description"`
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]field `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	for name := range schema.Defs["Defaults"].Properties {
		for _, object := range []string{"Defaults", "Policy", "Proxy", "Route"} {
			if f, ok := schema.Defs[object].Properties[name]; ok && f.Default != nil {
				t.Errorf("%s of %s has the default %v, and is inherited", name, object, f.Default)
			}
		}
	}
	if f := schema.Defs["Policy"].Properties["request_timeout"]; !strings.Contains(f.Description, "the default is 60s") {
		t.Errorf("request_timeout of a policy: %q, want what absent means", f.Description)
	}
}
