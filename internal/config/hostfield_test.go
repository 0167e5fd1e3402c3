package config

import (
	"reflect"
	"regexp"
	"testing"

	"headgate/internal/schema"
)

// noHost are the fields that are named like a path or a command, and reach for nothing of the
// machine.
var noHost = map[string]string{
	"gate.Bypass.Paths":            "of requests",
	"forwardauth.Config.SkipPaths": "of requests",
	"config.Route.Path":            "of requests",
	"files.FastCGI.ServerRoot":     "a text for the FastCGI server",
	"files.FastCGI.SplitPath":      "ends of names in requests",
	"health.Config.Path":           "of a request to a server",
	"bans.Condition.Path":          "of requests",
	"acme.Config.Directory":        "a URL",
}

// A field that names a file, a folder, a socket or a program of the machine can be set by admins
// only.
func TestFieldsThatReachForTheMachineAreMarked(t *testing.T) {
	like := regexp.MustCompile(`(^|_)(files?|paths?|root|dir|directory|folder|socket|command|logo|exec|program|script|endpoint|ca|pem|image|icon)(_|$)`)
	seen, used := map[*schema.Object]bool{}, map[string]bool{}
	var walk func(o *schema.Object)
	visit := func(f *schema.Field) {
		ty := f.Type
		for ty.Kind == schema.List || ty.Kind == schema.Map {
			ty = ty.Elem
		}
		if ty.Kind == schema.Struct {
			walk(ty.Object)
			return
		}
		name := f.Owner.String() + "." + f.GoName
		if ty.Go.Kind() != reflect.String || !like.MatchString(f.Name) || len(f.Enum) > 0 {
			return
		}
		if _, plain := noHost[name]; plain {
			used[name] = true
			if f.Host != "" {
				t.Errorf("%s is marked and an exception", name)
			}
		} else if f.Host == "" {
			t.Errorf("%s (%s) has no host tag", name, f.Name)
		}
	}
	walk = func(o *schema.Object) {
		if seen[o] {
			return
		}
		seen[o] = true
		for _, f := range o.Fields {
			visit(f)
		}
	}
	walk(Describe())
	for name := range noHost {
		if !used[name] {
			t.Errorf("the exception %s is no field", name)
		}
	}
}
