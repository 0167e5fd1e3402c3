package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a value looks like in a configuration.
type Kind uint8

// The kinds of values.
const (
	// Bool is true or false.
	Bool Kind = iota + 1
	// Int is a whole number.
	Int
	// Text is a string.
	Text
	// Scalar is a type that parses itself from text.
	Scalar
	// Struct is an object with named fields.
	Struct
	// List is a list of values.
	List
	// Map is a map from names to values.
	Map
	// Number is a number with a fraction. The configuration has none.
	Number
	// Any is any JSON value, kept as it is written. The configuration has none.
	Any
)

// Type describes the type of a field or of an element.
type Type struct {
	// Kind is what a value looks like.
	Kind Kind
	// Go is the Go type, without the pointer.
	Go reflect.Type
	// Pointer is whether the field holds a pointer to Go; nil means absent.
	Pointer bool
	// Object describes a Struct.
	Object *Object
	// Elem describes what a List or Map holds.
	Elem *Type
}

// Object describes a struct type. It is not changed once it was made and may be
// used by several goroutines at once.
type Object struct {
	// Go is the struct type.
	Go reflect.Type
	// Fields are its fields in order, those of embedded structs in their place.
	Fields []*Field
	// Was maps former names of fields to current ones.
	Was map[string]string
	// Later are names of fields that are reserved and not implemented yet.
	Later []string

	name     string
	byName   map[string]*Field
	template reflect.Value
}

// Field describes one field of an object.
type Field struct {
	// Name is the name in a configuration.
	Name string
	// GoName and Owner locate its comment: the field's Go name and the struct type that
	// declares it.
	GoName string
	Owner  reflect.Type
	// Index is the argument of reflect's FieldByIndex.
	Index []int
	// Type describes its values.
	Type *Type
	// Required is whether it must be set.
	Required bool
	// Default is the text of its default value; HasDefault distinguishes "" from none.
	Default    string
	HasDefault bool
	// Min and Max limit a number, or the length of a text, list or map; nil means no
	// limit. The texts are those of the tags.
	Min, Max         *int64
	MinText, MaxText string
	// Enum are the values it can have; empty means any.
	Enum []string
	// Later are values that are known and refused until they are built.
	Later []string
	// Example is a value to show.
	Example string
	// NoExpand is whether ${…} has no special meaning in its text.
	NoExpand bool
	// Secret is whether its value is never shown: a password hash, a token.
	Secret bool
	// MaybeSecret is whether the object determines which of its values are secrets: see
	// Hider.
	MaybeSecret bool
	// Host is who may set the field besides the owner of the files: "" means everyone who
	// may change the object, HostAdmin admins, HostDisk no one. It protects fields that
	// access other parts of the machine, such as files.
	Host string
	// Local is whether a value of another machine has an effect on a machine only if a file
	// of its own allows that: it runs a program, sends files to clients, or writes to a path.
	Local bool
	// Label is whether container labels can set it, which are trusted less than operators.
	// The fields of an object need the mark, too.
	Label bool
	// Unordered is whether the order of a list's elements has no meaning.
	Unordered bool
	// Called is the name of an element of this list or map ("route"), and CalledBy the
	// field that identifies an element; "" for the key of a map.
	Called, CalledBy string

	fallback reflect.Value
}

// The values of Field.Host.
const (
	HostAdmin = "admin"
	HostDisk  = "disk"
)

// Describe returns the description of a struct type and all that it holds. It
// panics when a tag cannot be read: that is a mistake in the program, and any
// test that loads a configuration finds it.
func Describe(t reflect.Type) *Object {
	root := describer{known: map[reflect.Type]*Object{}}.object(t)
	root.tellApart()
	return root
}

// tellApart gives every object a unique name: the later one of two with the same name is
// prefixed by its owner's ("ServerTLS").
func (o *Object) tellApart() {
	all := o.Objects()
	taken := map[string]bool{}
	for _, sub := range all {
		if taken[sub.name] {
			sub.name = shortestHolder(all, sub) + sub.name
		}
		taken[sub.name] = true
	}
}

// shortestHolder returns the name of an object that holds sub, the shortest one.
func shortestHolder(all []*Object, sub *Object) string {
	name := ""
	for _, o := range all {
		holds := func(f *Field) bool { return f.Type.Innermost().Object == sub }
		if slices.ContainsFunc(o.Fields, holds) && (name == "" || len(o.name) < len(name)) {
			name = o.name
		}
	}
	return name
}

// Field returns the field with this name in a configuration, or nil.
func (o *Object) Field(name string) *Field { return o.byName[name] }

// Name returns the name of the object's type for people: "Port". It is unique. The settings
// of a feature are named after the field that holds them ("RateLimit"), or after an element
// of its list ("HeaderRule").
func (o *Object) Name() string { return o.name }

// Names returns the names of all fields, in order.
func (o *Object) Names() []string {
	names := make([]string, len(o.Fields))
	for i, f := range o.Fields {
		names[i] = f.Name
	}
	return names
}

// LabelNames returns the names of the fields that labels may set, in order.
func (o *Object) LabelNames() []string {
	var names []string
	for _, f := range o.Fields {
		if f.Label {
			names = append(names, f.Name)
		}
	}
	return names
}

// Fill sets v, a settable value of the object's type, to its defaults.
func (o *Object) Fill(v reflect.Value) { v.Set(o.template) }

// Objects returns o and every object below it, each once, in the order in which
// they are met.
func (o *Object) Objects() []*Object {
	out := []*Object{o}
	for i := 0; i < len(out); i++ {
		for _, f := range out[i].Fields {
			if sub := f.Type.Innermost().Object; sub != nil && !slices.Contains(out, sub) {
				out = append(out, sub)
			}
		}
	}
	return out
}

// Innermost returns what a list of lists holds in the end, or t itself.
func (t *Type) Innermost() *Type {
	for t.Elem != nil {
		t = t.Elem
	}
	return t
}

// describer makes descriptions, one for each struct type.
type describer struct{ known map[reflect.Type]*Object }

func (d describer) object(t reflect.Type) *Object {
	if o := d.known[t]; o != nil {
		return o
	}
	o := &Object{Go: t, name: t.Name(), byName: map[string]*Field{}, Was: map[string]string{}}
	d.known[t] = o
	d.fields(o, t, nil)
	o.template = reflect.New(t).Elem()
	for _, f := range o.Fields {
		o.byName[f.Name] = f
		o.setDefault(f)
	}
	return o
}

// fields adds the fields of t, which is o's type or embedded in it.
func (d describer) fields(o *Object, t reflect.Type, index []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clone(index), i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		switch {
		case sf.Name == "_":
			o.Later = append(o.Later, split(sf.Tag.Get("later"))...)
		case sf.Anonymous && name == "":
			d.fields(o, sf.Type, at)
		case name == "-" || !sf.IsExported():
		case name == "":
			panic(fmt.Sprintf("schema: %v.%s has no json tag", t, sf.Name))
		default:
			o.Fields = append(o.Fields, d.field(t, sf, name, at))
			for _, old := range split(sf.Tag.Get("was")) {
				o.Was[old] = name
			}
		}
	}
}

func (d describer) field(owner reflect.Type, sf reflect.StructField, name string, index []int) *Field {
	f := &Field{
		Name: name, GoName: sf.Name, Owner: owner, Index: index,
		Type:     d.typ(sf.Type),
		Required: sf.Tag.Get("required") == "true",
		Enum:     split(sf.Tag.Get("enum")),
		Later:    split(sf.Tag.Get("later")),
		Example:  sf.Tag.Get("example"),
		NoExpand: sf.Tag.Get("expand") == "no",
		Secret:   sf.Tag.Get("secret") == "true", MaybeSecret: sf.Tag.Get("secret") == "maybe", Host: sf.Tag.Get("host"), Local: sf.Tag.Get("local") == "true", Unordered: sf.Tag.Get("order") == "no",
		Label:   sf.Tag.Get("label") == "true",
		MinText: sf.Tag.Get("min"),
		MaxText: sf.Tag.Get("max"),
	}
	f.Default, f.HasDefault = sf.Tag.Lookup("default")
	f.Called, f.CalledBy, _ = strings.Cut(sf.Tag.Get("object"), ",")
	f.Min, f.Max = f.bound(f.MinText), f.bound(f.MaxText)
	f.nameObject()
	return f
}

// nameObject gives the settings of a feature the name of the field that holds them.
func (f *Field) nameObject() {
	o := f.Type.Innermost().Object
	switch {
	case o == nil || o.Go.PkgPath() == f.Owner.PkgPath():
	case o == f.Type.Object:
		o.name = f.GoName
	case f.Called != "" && strings.Contains(o.Go.PkgPath(), "/feature/"):
		o.name = ""
		for word := range strings.FieldsSeq(f.Called) {
			o.name += strings.ToUpper(word[:1]) + word[1:]
		}
	}
}

// bound reads a bound: a number, or a text in the field's own form.
func (f *Field) bound(text string) *int64 {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		v := reflect.New(f.Type.Go).Elem()
		if err := f.Type.SetText(v, text); err != nil || !v.CanInt() {
			panic(fmt.Sprintf("schema: %v.%s: bound %q cannot be read: %v", f.Owner, f.GoName, text, err))
		}
		n = v.Int()
	}
	return &n
}

// typ describes a Go type.
func (d describer) typ(t reflect.Type) *Type {
	if t.Kind() == reflect.Pointer {
		inner := *d.typ(t.Elem())
		inner.Pointer = true
		return &inner
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return &Type{Kind: Scalar, Go: t}
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return &Type{Kind: Any, Go: t}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Type{Kind: Bool, Go: t}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return &Type{Kind: Int, Go: t}
	case reflect.Float64:
		return &Type{Kind: Number, Go: t}
	case reflect.String:
		return &Type{Kind: Text, Go: t}
	case reflect.Struct:
		return &Type{Kind: Struct, Go: t, Object: d.object(t)}
	case reflect.Slice:
		return &Type{Kind: List, Go: t, Elem: d.typ(t.Elem())}
	case reflect.Map:
		return &Type{Kind: Map, Go: t, Elem: d.typ(t.Elem())}
	}
	panic(fmt.Sprintf("schema: no form for a field of type %v", t))
}

// setDefault fills f's default into the template. A struct brings its own.
func (o *Object) setDefault(f *Field) {
	v := o.template.FieldByIndex(f.Index)
	switch {
	case f.Type.Kind == Struct && !f.Type.Pointer:
		f.Type.Object.Fill(v)
	case f.HasDefault:
		f.fallback = reflect.New(f.Type.Go)
		if err := f.Type.SetText(f.fallback.Elem(), f.Default); err != nil {
			panic(fmt.Sprintf("schema: default of %v.%s: %v", f.Owner, f.GoName, err))
		}
		if !f.Type.Pointer {
			v.Set(f.fallback.Elem())
		}
	}
}

// DefaultOf returns a pointer to f's default, or the invalid Value when it has
// none. It is for a field that is a pointer, which Fill leaves nil. What it
// points to is shared and must not be changed.
func (f *Field) DefaultOf() reflect.Value { return f.fallback }

// fallsBack reports whether the default only applies if the field is set nowhere: an absent
// value can be inherited, so that it must not be shown as the default.
func (f *Field) fallsBack() bool { return f.HasDefault && f.Type.Pointer }

// SetText sets v, a settable value of a plain type t, from text.
func (t *Type) SetText(v reflect.Value, text string) error {
	switch t.Kind {
	case Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is not true or false", text)
		}
		v.SetBool(text == "true")
	case Int:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(n)
	case Text:
		v.SetString(text)
	case Scalar:
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	default:
		return fmt.Errorf("a %v has no text form", t.Go)
	}
	return nil
}

// split splits a list in a tag.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
