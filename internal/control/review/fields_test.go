package review

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/schema"
)

var update = flag.Bool("update", false, "write the golden files anew")

// secretText stands in fields that nobody may see.
const secretText = "SeCrEt"

// TestEveryFieldHasASentence sets, changes and removes every field of the schema, one
// by one, and compares what is said with the golden file.
func TestEveryFieldHasASentence(t *testing.T) {
	var got strings.Builder
	fields := 0
	for _, k := range config.Kinds() {
		fmt.Fprintf(&got, "# %s\n", k.Name)
		eachLeaf(k.Schema(), nil, func(way []*schema.Field) {
			fields++
			var path []string
			for _, f := range way {
				path = append(path, f.Name)
			}
			fmt.Fprintf(&got, "%s\n", strings.Join(path, "."))
			said := 0
			for from := range 3 {
				to := (from + 1) % 3 // absent, one value, another value
				before, after := with(k, way, from), with(k, way, to)
				d := diff.Compare(before, after)
				r := Of(Change{Before: before, After: after, Difference: d})
				if d.Empty() != (len(r.Objects) == 0) {
					t.Errorf("%s: %d objects differ, told are %d", strings.Join(path, "."), len(d.Objects), len(r.Objects))
				}
				// What features mean for visitors is held by visitors_test.go.
				for i := range r.Objects {
					r.Objects[i].Sentences = slices.DeleteFunc(r.Objects[i].Sentences, func(s Sentence) bool { return s.Code == Visitor })
				}
				for _, line := range r.Lines(100) {
					said++
					fmt.Fprintf(&got, "  %s\n", line)
				}
			}
			if said < 2 {
				t.Errorf("%s.%s: only %d sentences", k.Name, strings.Join(path, "."), said)
			}
		})
	}
	if fields < 250 {
		t.Errorf("only %d fields", fields)
	}
	if strings.Contains(got.String(), secretText) {
		t.Error("a sentence shows a secret")
	}
	golden(t, "testdata/fields.txt", got.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: read the difference, then go test ./internal/control/review -update (-want +got):\n%s", file, diff)
	}
}

// eachLeaf goes over all fields of an object, and of the objects in it.
func eachLeaf(o *schema.Object, way []*schema.Field, look func(way []*schema.Field)) {
	for _, f := range o.Fields {
		at := append(way[:len(way):len(way)], f)
		inner := f.Type.Innermost().Object
		if inner == nil || f.Type.Pointer || f.Type.Kind == schema.List || f.Type.Kind == schema.Map {
			look(at)
		}
		if inner != nil && len(at) < 6 {
			eachLeaf(inner, at, look)
		}
	}
}

// with returns a configuration with one object of a kind that has everything on the
// way to a field, and the field with nothing, one value or another value in it.
func with(k *config.Kind, way []*schema.Field, which int) *config.Config {
	c := config.New()
	top := config.Describe().Field(k.Name)
	v := reflect.ValueOf(c).Elem().FieldByIndex(top.Index)
	if k.Single {
		put(v, way, which)
		return c
	}
	o := reflect.New(k.Schema().Go)
	k.Schema().Fill(o.Elem())
	o.Interface().(config.Named).Info().Name = "x"
	put(o.Elem(), way, which)
	v.Set(reflect.MakeMap(v.Type()))
	v.SetMapIndex(reflect.ValueOf("x"), o)
	return c
}

func put(v reflect.Value, way []*schema.Field, which int) {
	f := way[0]
	v = v.FieldByIndex(f.Index)
	if len(way) == 1 {
		if which > 0 {
			fill(f, f.Type, v, which)
		}
		return
	}
	inner := f.Type.Innermost().Object
	switch {
	case f.Type.Kind == schema.List:
		v.Set(reflect.MakeSlice(f.Type.Go, 1, 1))
		v = v.Index(0)
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			v = v.Elem()
		}
		inner.Fill(v)
		if f.CalledBy != "" && way[1].Name != f.CalledBy {
			v.FieldByIndex(inner.Field(f.CalledBy).Index).SetString("THIS")
		}
	case f.Type.Kind == schema.Map:
		o := reflect.New(f.Type.Elem.Go)
		v.Set(reflect.MakeMap(f.Type.Go))
		v.SetMapIndex(reflect.ValueOf("x"), o)
		v = o.Elem()
		inner.Fill(v)
	case f.Type.Pointer:
		v.Set(reflect.New(f.Type.Go))
		v = v.Elem()
		inner.Fill(v)
	}
	put(v, way[1:], which)
}

// fill gives a value one of two values that are not its default.
func fill(f *schema.Field, t *schema.Type, v reflect.Value, which int) {
	if t.Pointer {
		v.Set(reflect.New(t.Go))
		v = v.Elem()
	}
	word := []string{"", "alpha", "beta"}[which]
	if f.Secret {
		word = secretText + word
	}
	switch t.Kind {
	case schema.Struct:
		t.Object.Fill(v)
		for _, inner := range t.Object.Fields {
			if which == 2 && inner.Type.Object == nil && inner.Type.Elem == nil {
				fill(inner, inner.Type, v.FieldByIndex(inner.Index), which)
			}
		}
	case schema.List:
		v.Set(reflect.MakeSlice(t.Go, which, which))
		for i := range which {
			e := v.Index(i)
			if e.Kind() == reflect.Pointer {
				e.Set(reflect.New(e.Type().Elem()))
				e = e.Elem()
			}
			fill(f, &schema.Type{Kind: t.Elem.Kind, Go: t.Elem.Go, Object: t.Elem.Object, Elem: t.Elem.Elem}, e, i+1)
		}
	case schema.Map:
		v.Set(reflect.MakeMap(t.Go))
		if t.Elem.Pointer {
			for i := range which {
				o := reflect.New(t.Elem.Go)
				t.Elem.Object.Fill(o.Elem())
				v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("o%d", i)), o)
			}
			return
		}
		v.SetMapIndex(reflect.ValueOf("user"), reflect.ValueOf(word).Convert(t.Elem.Go))
	case schema.Bool:
		v.SetBool(which == 1 != (f.Default == "true"))
	case schema.Int:
		v.SetInt(int64(which * 7))
	case schema.Text:
		if len(f.Enum) > which {
			word = f.Enum[which]
		}
		v.SetString(word)
	default:
		texts := [][]string{{"7s", "7KiB", "true", "10.1.2.3:77", "10.1.2.3", "404", "timeout"}, {"9s", "9KiB", "false", "10.1.2.3:99", "10.1.2.4", "502", "connect"}}
		for _, text := range texts[which-1] {
			w := reflect.New(t.Go).Elem()
			if t.SetText(w, text) == nil {
				v.Set(w)
				return
			}
		}
		panic(fmt.Sprintf("no value for %s", f.Name))
	}
}
